"""A million rows to a CSV file: our export beside `psql --csv`, in the same run.

    python benchmarks/export.py [ROWS]

Prints seconds, rows a second and the client memory added of each format, and of psql. Bound: CSV at half the speed
of psql or better, in flat memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
from needs import admin_of, own_server

from okf_agent.engines.binaries import find_programs
from okf_agent.results import export
from okf_agent.results.formats import FORMATS, Written
from okf_agent.sql.database import Database
from okf_compiler.settings import DatabaseSection

SQL = "SELECT * FROM orders"
FILL = """
CREATE TABLE orders AS
SELECT g AS id, 'customer ' || g % 5000 AS customer, (g * 0.37)::numeric(12,2) AS amount,
       timestamp '2024-01-01' + g * interval '1 minute' AS placed,
       CASE WHEN g % 7 = 0 THEN NULL WHEN g % 11 = 0 THEN '' ELSE 'note, with "quotes" ' || g END AS note
FROM generate_series(1, {rows}) AS g"""


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with own_server() as (root, server):
        params = admin_of(server)
        with psycopg.connect(**params, dbname="postgres", autocommit=True) as admin:
            admin.execute(FILL.format(rows=rows))
            admin.execute("VACUUM orders")
        theirs = psql(params, root / "psql.csv")
        print(f"psql --csv  {theirs:6.2f} s  {rows / theirs:10,.0f} rows/s")
        for format in FORMATS:
            ours = write(params, root / f"ours.{format}", format)
            print(f"{format:10}  {ours:6.2f} s  {rows / ours:10,.0f} rows/s  {theirs / ours:.2f} of psql's speed")
        print(f"the two CSV files are {'equal' if same(root) else 'DIFFERENT'} but for quoted ''")
        print(f"memory added by all four: {peak_mb() - BEFORE:.0f} MB")


def psql(params: dict[str, Any], file: Path) -> float:
    """Seconds psql takes to write the result."""
    programs = find_programs()
    command = [programs / "psql", "-X", "--csv", "-o", file, "-c", SQL, "-h", params["host"], "-U", params["user"]]
    started = time.monotonic()
    subprocess.run([*map(str, command), "-p", str(params["port"]), "postgres"], check=True)
    return time.monotonic() - started


def write(params: dict[str, Any], file: Path, format: Any) -> float:
    """Seconds our export takes to write the result."""
    started = time.monotonic()
    with Database(params, "postgres", DatabaseSection()) as database, file.open("wb") as out:
        export.write(database, SQL, Written(format), out, seconds=600)
    return time.monotonic() - started


def same(root: Path) -> bool:
    """Whether both CSV files say the same; psql writes '' as NULL is written."""
    with (root / "psql.csv").open(encoding="utf-8") as a, (root / "ours.csv").open(encoding="utf-8") as b:
        return all(x == y.replace(',""\n', ",\n") for x, y in zip(a, b, strict=True))


def peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


BEFORE = peak_mb()

if __name__ == "__main__":
    main()
