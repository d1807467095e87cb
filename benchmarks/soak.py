"""Sixteen runs at once while the server is restarted, its processes are killed and its disk fills.

    python benchmarks/soak.py [SECONDS] [--workers N] [--seed N]

A scripted model asks, over HTTP, questions whose answers are known: it reads a file, runs a query and submits what the
query gave; after an error it tries again, as a model would. Meanwhile, every few seconds, one thing happens to the
embedded PostgreSQL (see HARM). Run by root on Linux, its data lie on a tmpfs of 320 MB that is filled to the last byte;
elsewhere only `temp_file_limit` bounds its disk.

Prints figures and the machine. Exit status 1 unless there was no wrong answer, no hung run, no leaked connection or
descriptor, flat memory, and a line in runs.jsonl for every run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from needs import admin_of

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.endpoint import Endpoint, Scripted, calls, submit  # noqa: E402

from okf_agent.ask import Asked, Outcome, Workspace, ask  # noqa: E402
from okf_agent.cell import Cell  # noqa: E402
from okf_agent.config import load_config  # noqa: E402
from okf_agent.engines import embedded  # noqa: E402
from okf_agent.engines.binaries import find_programs  # noqa: E402
from okf_compiler.errors import UserError  # noqa: E402

DATABASE = "soak"
SCHEMA = "CREATE TABLE numbers (id integer NOT NULL, grp integer, amount numeric(12,2), note text, PRIMARY KEY (id));\n"
CONTENT = """
CREATE TABLE numbers (id integer PRIMARY KEY, grp integer, amount numeric(12,2), note text);
INSERT INTO numbers SELECT g, g % 97, g * 0.37, 'note ' || g FROM generate_series(1, 50000) g;
"""
QUESTIONS = (
    "SELECT sum(amount) FROM numbers WHERE grp = {n}",
    "SELECT count(*), min(id), max(note) FROM numbers WHERE id % 13 = {n}",
    "SELECT id, amount, note FROM numbers WHERE grp = {n} ORDER BY id",
    "SELECT md5(string_agg(note, ',' ORDER BY amount DESC)) FROM numbers WHERE grp <> {n}",
    "SELECT count(*) FROM (SELECT a.note FROM numbers a JOIN numbers b USING (grp) WHERE grp = {n} ORDER BY b.note) s",
    "SELECT max(length(r)) FROM (SELECT repeat(note, 2000) AS r FROM numbers WHERE grp = {n} ORDER BY r) AS s",
    "SELECT {n}, repeat('x', 20000000)",
)
"""From a look-up to sorts that spill and a cell of 20 MB. Their answers are taken before anything is harmed."""
VARIANTS = 8
DISK_MB = 320
TRIES = 6
"""Queries the model tries before it says that it cannot answer."""
HUNG_S = 120
"""A run that takes longer than its own limit (60 s) and this is hung."""
MEMORY_MB = 25
"""What may be added between the first and the last third of the time."""


@dataclass
class Tally:
    """What happened. Threads add to it under `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)
    unrecorded: int = 0
    seconds: list[float] = field(default_factory=list)
    query_errors: int = 0
    harm: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)
    hung: int = 0
    """Runs that did not end."""
    left: int = 0
    """Connections of the agent's role when all is over."""


class Model(Endpoint):
    """Plays the same conversation for every question, from what the request says has happened so far."""

    def _next(self, body: dict[str, Any], _headers: dict[str, str]) -> Scripted:
        messages = body["messages"]
        question = next(m["content"] for m in reversed(messages) if m["role"] == "user" and "[[" in str(m["content"]))
        sql = re.findall(r"\[\[(.*?)\]\]", question, re.DOTALL)[-1]
        told = [str(m["content"]) for m in messages if m["role"] == "tool"]
        if not told:
            return calls(("read_file", {"paths": ["/tables/numbers.md"]}))
        if len(told) > 1 and "Rows (data" in told[-1]:
            return submit(sql, "The rows say it.")
        if len(told) > TRIES:
            return submit("", "The database does not answer.")
        time.sleep(0.3 * (len(told) - 1))
        return calls(("run_sql", {"sql": f"{sql} -- {len(told)}" if len(told) > 1 else sql}))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=float, default=300)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--seed", type=int, default=7)
    wanted = parser.parse_args()
    chance = random.Random(wanted.seed)
    with tempfile.TemporaryDirectory(prefix="okf-soak-") as folder, Model([]) as model:
        root = Path(folder)
        root.chmod(0o755)  # run by root, the server's account must enter it
        write_workspace(root, model.url)
        with small_disk(root / ".okf") as disk:
            try:
                return soak(root, disk, wanted.seconds, wanted.workers, chance)
            finally:
                with suppress(UserError):
                    embedded.stop(root)


def write_workspace(root: Path, url: str) -> None:
    """A workspace with one database, whose model is the scripted one."""
    data = root / "data" / DATABASE
    data.mkdir(parents=True)
    (data / f"{DATABASE}_schema.txt").write_text(SCHEMA, encoding="utf-8")
    (data / f"{DATABASE}_column_meaning_base.json").write_text("{}", encoding="utf-8")
    (data / f"{DATABASE}_kb.jsonl").write_text("", encoding="utf-8")
    (data / f"{DATABASE}.sql").write_text(CONTENT, encoding="utf-8")
    config = {
        "model": {"name": "openai/scripted", "api_base": url, "retries": 2, "retry_wait_s": 0.2},
        "agent": {"max_seconds": 60},
        "database": {"statement_timeout_s": 10, "temp_file_limit_mb": 50},
    }
    (root / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    os.environ["OPENAI_API_KEY"] = "scripted"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """The folder as a small disk of its own; None where one cannot be made."""
    folder.mkdir()
    folder.chmod(0o711)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0711", "tmpfs", str(folder)]
    made = sys.platform == "linux" and os.geteuid() == 0 and subprocess.run(mount).returncode == 0
    try:
        yield folder if made else None
    finally:
        if made:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def soak(root: Path, disk: Path | None, seconds: float, workers: int, chance: random.Random) -> int:
    """Ask and harm for so many seconds, print what came of it, and give the exit status."""
    config = load_config(root)
    tally = Tally()
    threads: list[threading.Thread] = []
    with Workspace(config) as workspace:
        ready = workspace.ready(DATABASE, lambda _: None)
        assert ready.database is not None
        admin = admin_of(embedded.start(root, "agent_ro"))
        with administrator(root) as connection:
            connection.execute("ALTER SYSTEM SET max_wal_size = '64MB'")
            connection.execute("ALTER SYSTEM SET restart_after_crash = on")
            connection.execute("SELECT pg_reload_conf()")
        known = {
            sql: ready.database.run(sql).rows for q in QUESTIONS for sql in [q.format(n=n) for n in range(VARIANTS)]
        }
        ask_one(workspace, next(iter(known)), known, tally)  # imports, caches and pools are there before we count
        over = time.monotonic() + seconds
        for number in range(workers):
            seed = chance.random()
            work = (workspace, known, tally, over, random.Random(f"{seed}{number}"))
            threads.append(threading.Thread(target=ask_on, args=work, daemon=True))
        for thread in threads:
            thread.start()
        watcher = threading.Thread(target=watch, args=(admin, tally, over), daemon=True)
        watcher.start()
        harm_on(root, disk, tally, over, chance)
        for thread in (*threads, watcher):
            thread.join(max(1.0, over + HUNG_S - time.monotonic()))
        tally.hung = sum(thread.is_alive() for thread in threads)
    tally.left = agent_connections(admin_of(embedded.start(root, "agent_ro")))
    lines = [json.loads(x) for x in (config.runs / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    return report(tally, seconds, workers, disk, lines)


def ask_on(workspace: Workspace, known: Mapping[str, Any], tally: Tally, over: float, chance: random.Random) -> None:
    """One run after another until the time is over."""
    queries = list(known)
    while time.monotonic() < over:
        try:
            ask_one(workspace, chance.choice(queries), known, tally)
        except Exception as error:
            with tally.lock:
                tally.wrong.append(f"{type(error).__name__}: {error}")


def ask_one(workspace: Workspace, sql: str, known: Mapping[str, Any], tally: Tally) -> None:
    """Ask one question and hold its answer against the one that is known."""
    question = Asked(f"What does this give? [[{sql}]]", DATABASE)
    outcome: Outcome = ask(question, Cell("openai/scripted"), workspace, lambda _: None, lambda _: None)
    run = outcome.run
    checked = run.answer.checked if run.answer else "none"
    with tally.lock:
        tally.ends[f"{run.stop_reason}, {checked}"] += 1
        tally.run_ids.add(outcome.run_id)
        tally.unrecorded += bool(outcome.unrecorded)
        tally.seconds.append(run.seconds)
        tally.query_errors += run.tally.sql_errors
        if run.result is not None and run.result.rows != known[sql]:
            tally.wrong.append(f"{sql}: {str(run.result.rows)[:200]}")
        if run.stop_reason == "submitted" and checked == "ran" and run.result is None:
            tally.wrong.append(f"{sql}: submitted as run, and no rows")


def harm_on(root: Path, disk: Path | None, tally: Tally, over: float, chance: random.Random) -> None:
    """One harm after another, pauses between them, each kind as often as the others; the server is up at the end."""
    kinds = [kind for kind in HARM if disk or kind != "the disk fills"]
    turns: list[str] = []
    while time.monotonic() < over - 3:
        time.sleep(chance.uniform(2, 5))
        if not turns:
            turns = chance.sample(kinds, len(kinds))
        kind = turns.pop()
        with suppress(UserError, psycopg.Error, ProcessLookupError):
            HARM[kind](root, disk)
        bring_up(root)
        tally.harm[kind] += 1


def bring_up(root: Path) -> None:
    """The server, started if it is down; a crash may take it some seconds to get over."""
    end = time.monotonic() + 60
    while True:
        try:
            embedded.start(root, "agent_ro")
            return
        except UserError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def administrator(root: Path, database: str = "postgres") -> psycopg.Connection[Any]:
    """A connection of the server's administrator; starts the server if it is down."""
    admin = admin_of(embedded.start(root, "agent_ro"))
    return psycopg.connect(**admin, dbname=database, autocommit=True)


def kill_sessions(root: Path, _disk: Path | None) -> None:
    with administrator(root) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'agent_ro'")


def kill_process(root: Path, _disk: Path | None) -> None:
    """kill -9 of one backend: PostgreSQL ends all others and recovers."""
    with administrator(root) as admin:
        row = admin.execute("SELECT pid FROM pg_stat_activity WHERE usename = 'agent_ro' LIMIT 1").fetchone()
    if row:
        os.kill(row[0], 9)


def restart(root: Path, _disk: Path | None) -> None:
    embedded.stop(root)
    time.sleep(1)


def crash(root: Path, _disk: Path | None) -> None:
    """kill -9 of the whole server."""
    pid = int((root / ".okf" / "postgres" / "postmaster.pid").read_text(encoding="utf-8").split("\n")[0])
    os.kill(pid, 9)
    time.sleep(1)


def fill_disk(root: Path, disk: Path | None) -> None:
    """Not a byte is left for five seconds; meanwhile the server is asked to write."""
    assert disk is not None
    filler = disk / "filler"
    try:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 65_536)
        with administrator(root, DATABASE) as admin:
            admin.execute("CREATE TABLE filled AS SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
    finally:
        time.sleep(5)
        filler.unlink(missing_ok=True)
        bring_up(root)
        with administrator(root, DATABASE) as up:
            up.execute("DROP TABLE IF EXISTS filled")


HARM: Mapping[str, Callable[[Path, Path | None], None]] = {
    "all sessions are ended": kill_sessions,
    "a backend is killed": kill_process,
    "the server is restarted": restart,
    "the server is killed": crash,
    "the disk fills": fill_disk,
}


def watch(admin: Mapping[str, Any], tally: Tally, over: float) -> None:
    """Note memory, descriptors and connections while the time runs."""
    while time.monotonic() < over:
        tally.memory.append(memory_mb())
        tally.descriptors.append(descriptors())
        with suppress(psycopg.Error):
            tally.connections.append(agent_connections(admin))
        time.sleep(1)


def agent_connections(admin: Mapping[str, Any]) -> int:
    with psycopg.connect(**admin, dbname="postgres", connect_timeout=5) as connection:
        row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'agent_ro'").fetchone()
    return int(row[0]) if row else 0


def memory_mb() -> float:
    """What this process holds now; on systems that do not tell, the most it ever held."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def descriptors() -> int:
    """Open files and sockets of this process; 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def thirds(values: Sequence[float]) -> tuple[float, float]:
    """The medians of the first third and of the last."""
    size = max(1, len(values) // 3)
    return statistics.median(values[:size]), statistics.median(values[-size:])


def report(tally: Tally, seconds: float, workers: int, disk: Path | None, lines: list[dict[str, Any]]) -> int:
    """Print the figures; 1 if one of them is not as it should be."""
    recorded = Counter(line["run_id"] for line in lines)
    first, last = thirds(tally.memory)
    opened, open_last = thirds(tally.descriptors)
    times = sorted(tally.seconds)
    checks = {
        f"{len(tally.wrong)} wrong answers": not tally.wrong,
        f"{tally.hung} hung runs; median {statistics.median(times):.1f} s, longest {times[-1]:.1f} s": not tally.hung,
        f"{len(recorded)} lines in runs.jsonl for {len(tally.run_ids)} runs": set(recorded) == tally.run_ids
        and set(recorded.values()) == {1}
        and not tally.unrecorded,
        f"{tally.left} connections left, at most {max(tally.connections, default=0)} at once": not tally.left
        and max(tally.connections, default=0) <= workers + 2,
        f"{opened:.0f} files and sockets open in the first third, {open_last:.0f} in the last": open_last
        <= opened + workers,
        f"memory {first:.0f} MB in the first third, {last:.0f} MB in the last": last - first < MEMORY_MB,
    }
    programs = subprocess.run([find_programs() / "postgres", "--version"], capture_output=True, text=True).stdout
    print(f"{workers} runs at once for {seconds:.0f} s, {os.cpu_count()} cores, {platform.platform()}, "
          f"Python {platform.python_version()}, {programs.strip()}")  # fmt: skip
    print(f"harm: {', '.join(f'{kind} {n} times' for kind, n in tally.harm.items())}"
          f"{'' if disk else '; the disk was not filled: that needs root on Linux'}")  # fmt: skip
    print(f"runs: {', '.join(f'{end} {n}' for end, n in tally.ends.most_common())}")
    print(f"queries that failed and were tried again: {tally.query_errors}")
    for text, good in checks.items():
        print(f"{'ok  ' if good else 'FAIL'}  {text}")
    for wrong in tally.wrong[:10]:
        print(wrong)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
