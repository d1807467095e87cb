"""Print a suite's pins, with its databases loaded: what belongs into okf_agent/evaluation/suites/pinned/<suite>.json.

python benchmarks/pin_suite.py shop
python benchmarks/pin_suite.py defog --root FOLDER_OF_ITS_DATA
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from okf_agent.ask import Workspace
from okf_agent.config import load_config
from okf_agent.evaluation import suites
from okf_agent.evaluation.suites import Suite, databases, pins
from okf_agent.evaluation.suites.model import digest
from okf_agent.prepare import quiet
from okf_agent.sql.database import Database
from okf_compiler.sql_names import sql_name


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("suite")
    options.add_argument("--root", type=Path, help="a data root, beside those of config.yaml")
    given = options.parse_args()
    changes = [f"agent.raw_docs=[{json.dumps(str(given.root.resolve()))}]"] if given.root else []
    config = load_config(changes=changes)
    suite = suites.load(given.suite, config)
    with Workspace(databases.configured(suite, config)) as workspace:
        ready = {each.name: workspace.ready(each.name, quiet).database for each in suite.databases}
        content = measured(suite, {name: database for name, database in ready.items() if database})
    print(json.dumps(content, indent=1))


def measured(suite: Suite, loaded: Mapping[str, Database]) -> Mapping[str, Any]:
    """What a committed file of pins holds, for inputs and loaded databases as they are now.

    Raises:
        QueryError: a table cannot be counted.
    """
    counts = {}
    for name, database in loaded.items():
        listed = database.run(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema)' ORDER BY 1, 2",
            max_rows=10_000,
        )
        tables = {f"{schema}.{table}": _count(database, str(schema), str(table)) for schema, table in listed.rows}
        counts[name] = {"dump": pins.dump_digest(suite, name), "tables": tables}
    return {"files": {name: digest(path) for name, path in sorted(suite.files.items())}, "row_counts": counts}


def _count(database: Database, schema: str, table: str) -> int:
    return int(str(database.run(f"SELECT count(*) FROM {sql_name(schema)}.{sql_name(table)}").rows[0][0]))


if __name__ == "__main__":
    main()
