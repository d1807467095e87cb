"""`okf-compiler profile` on a table of ten million rows, and on disaster_relief where OKF_TEST_DATA names its dump.

    python benchmarks/profiles.py [ROWS]

Prints the machine, seconds and the client's peak memory. Bounds: ten million rows in 30 s and 200 MB, disaster_relief
in 5 s.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from needs import admin_of, own_server

from okf_agent.engines import Server
from okf_agent.loading import load

COMMAND = Path(sys.executable).with_name("okf-compiler")
FILL = """
CREATE TABLE customers AS
SELECT g AS id, 'customer ' || g AS name, CASE WHEN g % 50 = 0 THEN '' ELSE 'city ' || g % 700 END AS city
FROM generate_series(1, 200000) AS g;
ALTER TABLE customers ADD PRIMARY KEY (id);
CREATE TABLE orders AS
SELECT g AS id, CASE WHEN g % 20 > 0 THEN 1 + (g::bigint * 7919) % 180000 END AS customer_id,
       (g * 0.37)::numeric(12,2) AS amount, random() AS weight,
       timestamp '2015-01-01' + g * interval '30 seconds' AS placed_at,
       (array['open', 'paid', 'shipped', 'Returned'])[1 + g % 4] AS state,
       CASE WHEN g % 7 = 0 THEN NULL WHEN g % 11 = 0 THEN '' ELSE 'note, with "quotes" ' || g END AS note,
       md5(g::text) AS token, g % 3 = 0 AS is_test,
       CASE WHEN g % 5 = 0 THEN 'gift,fragile' ELSE (array['gift', 'fragile', 'bulk'])[1 + g % 3] END AS tags,
       jsonb_build_object('channel', 'c' || g % 12, 'size', jsonb_build_object('g', g % 900)) AS extra
FROM generate_series(1, {rows}) AS g;
ALTER TABLE orders ADD PRIMARY KEY (id);
ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers;
"""


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with own_server() as (root, server):
        params = admin_of(server)
        with psycopg.connect(**params, dbname="postgres", autocommit=True) as admin:
            admin.execute("CREATE DATABASE big")
        with psycopg.connect(**params, dbname="big", autocommit=True) as admin:
            admin.execute(FILL.format(rows=rows).encode())
            admin.execute("VACUUM ANALYZE")
        profile(params, "big", root)
        relief(server, root)


def relief(server: Server, root: Path) -> None:
    """The largest real database with a time limit."""
    data = os.environ.get("OKF_TEST_DATA")
    if not data:
        print("disaster_relief: OKF_TEST_DATA is not set")
        return
    dump = Path(data) / "livesqlbench-base-full-v1" / "dumps" / "disaster_relief_full.sql"
    load.load(server, "disaster_relief", dump)
    profile(admin_of(server), "disaster_relief", root)


def profile(admin: dict[str, Any], name: str, root: Path) -> None:
    """Runs the command as a process of its own, and prints what it took."""
    url = f"postgresql://{admin['user']}@/{name}?host={quote(str(admin['host']))}&port={admin['port']}"
    started = time.monotonic()
    process = subprocess.Popen([COMMAND, "profile", name, "--from", url, "--quiet"], cwd=root)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    print(f"{name}: {seconds:.1f} s, {peak:.0f} MB, exit status {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
