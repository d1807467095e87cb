"""Print a suite's pins, with its databases loaded: what belongs into okf_agent/evaluation/suites/pinned/<suite>.json.

python benchmarks/pin_suite.py shop
python benchmarks/pin_suite.py defog --root FOLDER_OF_ITS_DATA
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from okf_agent.ask import Workspace
from okf_agent.config import load_config
from okf_agent.evaluation import suites
from okf_agent.evaluation.suites import pins
from okf_agent.prepare import quiet


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("suite")
    options.add_argument("--root", type=Path, help="a data root, beside those of config.yaml")
    given = options.parse_args()
    changes = [f"agent.raw_docs=[{json.dumps(str(given.root.resolve()))}]"] if given.root else []
    config = load_config(changes=changes)
    suite = suites.load(given.suite, config)
    with Workspace(suites.configured(suite, config)) as workspace:
        ready = {database.name: workspace.ready(database.name, quiet).database for database in suite.databases}
        content = pins.measured(suite, {name: database for name, database in ready.items() if database})
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
