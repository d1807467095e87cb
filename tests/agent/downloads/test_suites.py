"""`okf-agent data get`, from a publisher on this machine that cuts connections."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.command import run_inside

from okf_agent.downloads import fetch
from okf_agent.downloads.suites import LOCK

SUITE, REPOSITORY, REVISION = "livesqlbench-base-lite", "birdsql/livesqlbench-base-lite", "a" * 40
TASKS = json.dumps({"instance_id": "x_1", "selected_database": "x", "query": "How many?"}).encode() * 5000
FILES = {
    "README.md": b"not wanted",
    "livesqlbench_data.jsonl": TASKS,
    "x/x_schema.txt": b"CREATE TABLE t (a int);",
    "x/x_column_meaning_base.json": b"{}",
    "x/x_kb.jsonl": b"",
}


class Publisher:
    """A hub with one data set. `cut`: bytes after which a file's connection ends; `asked` the ranges of the tasks."""

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.cut = 0
        self.ranges = True
        self.asked: list[str] = []
        self.listed: dict[str, bytes] = {}
        self.address = ""

    def reply(self, path: str, wanted: str) -> tuple[int, bytes]:
        api = f"/api/datasets/{REPOSITORY}"
        if path == f"{api}/revision/main":
            return 200, json.dumps({"sha": REVISION}).encode()
        if path == f"{api}/tree/{REVISION}?recursive=true":
            return 200, json.dumps([entry(*each) for each in (self.listed or self.files).items()]).encode()
        name = path.removeprefix(f"/datasets/{REPOSITORY}/resolve/{REVISION}/")
        if name not in self.files:
            return 404, b""
        self.asked.append(f"{name} {wanted}".strip())
        first = int(wanted.removeprefix("bytes=").rstrip("-") or 0) if self.ranges else 0
        return (206 if first else 200), self.files[name][first:]


def entry(path: str, content: bytes) -> dict[str, object]:
    """A file as the hub lists it: the tasks are large there, and have a SHA-256."""
    git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    large = (
        {"lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}}
        if path.endswith("data.jsonl")
        else {}
    )
    return {"type": "file", "path": path, "size": len(content), "oid": git, **large}


@contextlib.contextmanager
def serve(publisher: Publisher) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = publisher.reply(self.path, self.headers.get("Range", ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            whole = "/resolve/" not in self.path or not publisher.cut
            self.wfile.write(body if whole else body[: publisher.cut])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    publisher.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    monkeypatch.setattr(fetch, "PAUSE_S", 0.0)
    made = Publisher()
    with serve(made):
        yield made


def get(root: Path, publisher: Publisher, *arguments: str) -> tuple[int, str]:
    (root / "config.yaml").touch()
    done = run_inside("data", "get", SUITE, *arguments, cwd=root, env={"HF_ENDPOINT": publisher.address})
    return done.returncode, done.stdout + done.stderr


def test_the_wanted_files_come_checked_and_are_pinned(publisher: Publisher, tmp_path: Path) -> None:
    status, said = get(tmp_path, publisher)
    assert status == 0, said
    assert "4 files, 4 of them fetched now" in said and "Nothing was pinned before" in said
    assert "database.engine: docker" in said
    folder = tmp_path / "data" / SUITE
    wanted = {name: content for name, content in FILES.items() if name != "README.md"}
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    lock = json.loads(found.pop(LOCK))
    assert found == wanted
    assert lock["revisions"] == {REPOSITORY: REVISION}
    assert {n: e["sha256"] for n, e in lock["files"].items()} == {
        n: hashlib.sha256(c).hexdigest() for n, c in wanted.items()
    }
    assert str(folder) in run_inside("data", "list", cwd=tmp_path).stdout


def test_cut_connections_are_resumed_where_they_ended(publisher: Publisher, tmp_path: Path) -> None:
    publisher.cut = len(TASKS) // 3 + 1
    status, said = get(tmp_path, publisher)
    assert status == 0, said
    step = publisher.cut
    assert publisher.asked[:3] == [
        f"livesqlbench_data.jsonl{r}" for r in ("", f" bytes={step}-", f" bytes={2 * step}-")
    ]
    assert (tmp_path / "data" / SUITE / "livesqlbench_data.jsonl").read_bytes() == TASKS


def test_a_server_without_ranges_is_asked_for_the_whole_again(publisher: Publisher, tmp_path: Path) -> None:
    file = tmp_path / "data" / SUITE / "livesqlbench_data.jsonl.partial"
    file.parent.mkdir(parents=True)
    file.write_bytes(TASKS[:1000])
    publisher.ranges = False
    assert get(tmp_path, publisher)[0] == 0
    assert publisher.asked[0] == "livesqlbench_data.jsonl bytes=1000-"
    assert file.with_suffix("").read_bytes() == TASKS


def test_a_later_time_brings_what_is_missing_or_damaged_from_the_same_revision(
    publisher: Publisher, tmp_path: Path
) -> None:
    get(tmp_path, publisher)
    folder = tmp_path / "data" / SUITE
    (folder / "x" / "x_kb.jsonl").unlink()
    (folder / "x" / "x_schema.txt").write_text("edited", encoding="utf-8")
    publisher.asked.clear()
    publisher.listed = {"livesqlbench_data.jsonl": b"newer"}  # nobody looks at the list again
    status, said = get(tmp_path, publisher)
    assert (status, sorted(publisher.asked)) == (0, ["x/x_kb.jsonl", "x/x_schema.txt"])
    assert "4 files, 2 of them fetched now" in said and "Nothing was pinned" not in said


def test_other_bytes_than_those_listed_are_refused_and_not_kept(publisher: Publisher, tmp_path: Path) -> None:
    publisher.listed = {**FILES, "x/x_schema.txt": b"CREATE TABLE u (a int);"}
    status, said = get(tmp_path, publisher)
    assert status == 1
    assert "is not the published file" in said
    folder = tmp_path / "data" / SUITE / "x"
    assert not (folder / "x_schema.txt").exists() and not [*folder.glob("*.partial")]


def test_a_publisher_that_changed_a_pinned_file_is_refused_until_an_update(
    publisher: Publisher, tmp_path: Path
) -> None:
    get(tmp_path, publisher)
    publisher.files["x/x_schema.txt"] = b"CREATE TABLE t (a int, b int);"
    schema = tmp_path / "data" / SUITE / "x" / "x_schema.txt"
    schema.unlink()
    assert "not the published file" in get(tmp_path, publisher)[1]
    assert get(tmp_path, publisher, "--update")[0] == 0
    assert schema.read_bytes() == publisher.files["x/x_schema.txt"]


def test_a_listing_cannot_write_outside_of_the_folder(publisher: Publisher, tmp_path: Path) -> None:
    publisher.listed = {"../x/x_schema.txt": b"x"}
    status, said = get(tmp_path, publisher)
    assert status == 1
    assert "a file outside of its folder" in said


def test_without_a_network_it_says_what_to_do(publisher: Publisher, tmp_path: Path) -> None:
    publisher.address = "http://127.0.0.1:9"
    status, said = get(tmp_path, publisher)
    assert status == 1
    assert "could not be fetched" in said and "Connect to the network and try again" in said


def test_an_unknown_suite_gets_the_nearest_name(tmp_path: Path) -> None:
    done = run_inside("data", "get", "livesqlbench-lite", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'livesqlbench-base-lite'" in done.stderr
