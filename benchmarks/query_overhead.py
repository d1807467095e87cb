"""What running a query safely costs over bare psycopg, and what a result without end costs the client.

    python benchmarks/query_overhead.py

Prints, for queries of several shapes, the median milliseconds of `Database.run` and of bare psycopg on an open
connection; then for `SELECT * FROM generate_series(1, 5e7)` the memory added and the seconds until the rows are
there and the server is idle again. Bounds: 3 ms, 60 MB.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
from needs import admin_of, own_server

from okf_agent.sql.database import Database
from okf_compiler.settings import DatabaseSection

QUERIES = {
    "one value": "SELECT 1",
    "20 rows, 4 columns": "SELECT oid, relname, relpages, reltuples FROM pg_class LIMIT 20",
    "20 rows, 30 columns": "SELECT * FROM pg_proc LIMIT 20",
    "an aggregate": "SELECT relkind, count(*) FROM pg_class GROUP BY 1 ORDER BY 1",
}
ENDLESS = "SELECT * FROM generate_series(1, 5e7)"
ACTIVE = """
SELECT 1 FROM pg_stat_activity
WHERE state = 'active' AND query LIKE '%generate_series%5e7%' AND pid <> pg_backend_pid()"""
REPEATS = 200


def main() -> None:
    with own_server() as (_, server):
        overhead(admin_of(server))
        endless(admin_of(server))


def overhead(params: dict[str, Any]) -> None:
    """Print the two medians of each query, and their difference."""
    with (
        psycopg.connect(**params, dbname="postgres", autocommit=True) as bare,
        Database(params, "postgres", DatabaseSection()) as database,
    ):
        for name, sql in QUERIES.items():
            plain = median_ms(partial(fetched, bare, sql))
            safe = median_ms(partial(database.run, sql))
            print(f"{name:22} bare {plain:6.2f} ms   safe {safe:6.2f} ms   overhead {safe - plain:5.2f} ms")


def fetched(connection: psycopg.Connection[Any], sql: str) -> object:
    """All rows, by bare psycopg."""
    return connection.execute(sql.encode()).fetchall()


def endless(params: dict[str, Any]) -> None:
    """Print what the first rows of a result of 50 million cost."""
    with Database(params, "postgres", DatabaseSection(statement_timeout_s=300)) as database:
        database.run("SELECT 1")
        before = peak_mb()
        started = time.monotonic()
        result = database.run(ENDLESS)
        seconds = time.monotonic() - started
        print(f"{ENDLESS}: {len(result.rows)} rows after {seconds:.1f} s, +{peak_mb() - before:.0f} MB")
        with psycopg.connect(**params, dbname="postgres", autocommit=True) as watcher:
            ended = time.monotonic()
            while watcher.execute(ACTIVE).fetchone():
                time.sleep(0.01)
            print(f"the server was idle {time.monotonic() - ended:.2f} s later")


def median_ms(run: Callable[[], object]) -> float:
    """Median milliseconds of a call, after ten that do not count."""
    for _ in range(10):
        run()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def peak_mb() -> float:
    """The most memory this process has held, in MB."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


if __name__ == "__main__":
    main()
