"""`okf-agent data get`, from a publisher on this machine that cuts connections."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.command import run_inside
from support.package_index import serve_files

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
    """A hub with one data set. `cut`: bytes after which a file's connection ends; `endless`: it never does."""

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.cut = 0
        self.endless = False
        self.headers: dict[str, str] = {}
        """Sent with each file; with a Location it has moved."""
        self.paths: list[str] = []
        self.asked: list[str] = []
        self.sent = 0
        self.listed: dict[str, bytes] = {}
        self.said: bytes | None = None
        """What it answers to whoever asks for the list, if that is no list."""
        self.address = ""

    def reply(self, path: str) -> bytes | None:
        self.paths.append(path)
        if path == f"/api/datasets/{REPOSITORY}/revision/main?blobs=true":
            listed = [entry(*each) for each in (self.listed or self.files).items()]
            return json.dumps({"sha": REVISION, "siblings": listed}).encode() if self.said is None else self.said
        return self.files.get(path.removeprefix(f"/datasets/{REPOSITORY}/resolve/{REVISION}/"))


def git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def entry(path: str, content: bytes) -> dict[str, object]:
    """A file as the hub lists it: the tasks are large there, and have a SHA-256."""
    listed = {"rfilename": path, "size": len(content), "blobId": git_id(content)}
    large = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 134}
    return {**listed, "lfs": large} if path.endswith("data.jsonl") else listed


@contextlib.contextmanager
def serve(publisher: Publisher) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            body = publisher.reply(self.path)
            self._head(404 if body is None else 200, body or b"")

        def do_GET(self) -> None:
            body = publisher.reply(self.path)
            if body is None:
                self._head(404, b"")
                return
            name, wanted = self.path.rpartition(f"{REVISION}/")[2], self.headers.get("Range", "")
            first = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
            self._head(206 if first else 200, body[first:])
            if "/resolve/" in self.path:
                publisher.asked.append(f"{name} {wanted}".strip())
                if publisher.endless:
                    self._go_on()
                    return
                body = body[: first + publisher.cut] if publisher.cut else body
            self.wfile.write(body[first:])

        def _head(self, status: int, body: bytes) -> None:
            sent = publisher.headers if "/resolve/" in self.path else {}
            self.send_response(302 if "Location" in sent else status)
            for header in sent.items():
                self.send_header(*header)
            if not publisher.endless or self.command == "HEAD":
                self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{git_id(body)}"')
            self.send_header("X-Repo-Commit", REVISION)
            self.end_headers()

        def _go_on(self) -> None:
            with contextlib.suppress(OSError):
                while publisher.sent < 400_000_000:
                    publisher.sent += self.wfile.write(b"x" * 100_000)

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
def publisher() -> Iterator[Publisher]:
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


def test_cut_connections_are_resumed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["livesqlbench_data.jsonl"] = TASKS * 80  # 28 MB; the library keeps what it has in steps of 10 MiB
    publisher.cut = 12_000_000
    status, said = get(tmp_path, publisher)
    assert status == 0, said
    step = 10 * 1024 * 1024
    assert publisher.asked[:3] == [
        f"livesqlbench_data.jsonl{r}" for r in ("", f" bytes={step}-", f" bytes={2 * step}-")
    ]
    assert (tmp_path / "data" / SUITE / "livesqlbench_data.jsonl").read_bytes() == TASKS * 80


def test_a_later_time_brings_what_is_missing_or_damaged_from_the_same_revision(
    publisher: Publisher, tmp_path: Path
) -> None:
    get(tmp_path, publisher)
    folder = tmp_path / "data" / SUITE
    (folder / "x" / "x_column_meaning_base.json").unlink()
    (folder / "x" / "x_schema.txt").write_text("edited", encoding="utf-8")
    publisher.asked.clear()
    publisher.listed = {"livesqlbench_data.jsonl": b"newer"}  # nobody looks at the list again
    status, said = get(tmp_path, publisher)
    assert (status, sorted(publisher.asked)) == (0, ["x/x_column_meaning_base.json", "x/x_schema.txt"])
    assert "4 files, 2 of them fetched now" in said and "Nothing was pinned" not in said


def test_other_bytes_than_those_listed_are_refused_and_not_kept(publisher: Publisher, tmp_path: Path) -> None:
    publisher.listed = {**FILES, "x/x_schema.txt": b"CREATE TABLE u (a int);"}
    status, said = get(tmp_path, publisher)
    assert status == 1
    assert "is not the published file" in said
    folder = tmp_path / "data" / SUITE
    assert [each.name for each in folder.iterdir()] == [".partial"], "all of a suite, or nothing"
    publisher.asked.clear()
    publisher.listed = {}
    assert get(tmp_path, publisher)[0] == 0
    assert "livesqlbench_data.jsonl" not in publisher.asked, "what has arrived is kept"


def test_a_publisher_that_changed_a_pinned_file_is_refused_until_an_update(
    publisher: Publisher, tmp_path: Path
) -> None:
    get(tmp_path, publisher)
    publisher.files["x/x_schema.txt"] = b"CREATE TABLE u (a int);"
    schema = tmp_path / "data" / SUITE / "x" / "x_schema.txt"
    schema.unlink()
    assert "not the published file" in get(tmp_path, publisher)[1]
    assert get(tmp_path, publisher, "--update")[0] == 0
    assert schema.read_bytes() == publisher.files["x/x_schema.txt"]


OUTSIDE = ("../x/x_schema.txt", "x/../../../config_schema.txt", "/tmp/x_schema.txt", "..\\\\x/x_schema.txt",
           "x/\0_schema.txt", "x/\ud800_schema.txt", "link/x_schema.txt")  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("by", ["listing", "lock"])
def test_nothing_is_written_outside_of_the_folder(publisher: Publisher, tmp_path: Path, by: str, path: str) -> None:
    folder = tmp_path / "data" / SUITE
    folder.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    publisher.files[path] = b"theirs"
    if by == "lock":
        pin = {"url": f"{publisher.address}/x", "size": 6, "sha256": None, "git": git_id(b"theirs")}
        (folder / LOCK).write_text(json.dumps({"revisions": {REPOSITORY: REVISION}, "files": {path: pin}}), "utf-8")
    before = {each for each in tmp_path.rglob("*") if folder not in each.parents} | {tmp_path / "config.yaml"}
    status, said = get(tmp_path, publisher)
    assert (status, publisher.asked) == (1, []), said
    assert ("is damaged" in said or "not JSON" in said) if by == "lock" else True
    assert by == "lock" or "a file outside of its folder" in said
    assert {each for each in tmp_path.rglob("*") if folder not in each.parents} == before


def test_a_lock_of_an_earlier_release_names_no_address(publisher: Publisher, tmp_path: Path) -> None:
    """Each of its entries has one, which may be a local file's: nobody reads it any more."""
    get(tmp_path, publisher)
    folder = tmp_path / "data" / SUITE
    lock = json.loads((folder / LOCK).read_text("utf-8"))
    for each in lock["files"].values():
        each["url"] = "file:///etc/passwd"
    (folder / LOCK).write_text(json.dumps(lock), "utf-8")
    (folder / "x" / "x_schema.txt").unlink()
    assert get(tmp_path, publisher)[0] == 0
    assert (folder / "x" / "x_schema.txt").read_bytes() == FILES["x/x_schema.txt"]


@pytest.mark.parametrize("address", ["file:///etc", "ftp://127.0.0.1:9", "data:text/plain,x#"])
def test_only_http_and_https_are_asked(publisher: Publisher, tmp_path: Path, address: str) -> None:
    publisher.address = address
    status, said = get(tmp_path, publisher)
    assert status == 1 and "unknown url type" in said


def test_a_file_that_goes_on_is_stopped_where_it_was_promised_to_end(publisher: Publisher, tmp_path: Path) -> None:
    publisher.endless = True
    status, said = get(tmp_path, publisher)
    assert status == 1 and "it goes on after the" in said
    assert publisher.sent < 40_000_000
    assert not [each for each in (tmp_path / "data").rglob("*") if each.is_file() and each.stat().st_size > 10**6]


def test_a_file_that_unpacks_to_more_is_stopped_too(publisher: Publisher, tmp_path: Path) -> None:
    publisher.listed = dict(publisher.files)
    publisher.files["livesqlbench_data.jsonl"] = gzip.compress(b"x" * 50_000_000)
    publisher.headers = {"Content-Encoding": "gzip"}
    status, said = get(tmp_path, publisher)
    assert status == 1 and f"it goes on after the {len(TASKS):,} bytes" in said


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1:9/x"])
def test_a_file_that_has_moved_to_no_web_server_is_refused(publisher: Publisher, tmp_path: Path, address: str) -> None:
    publisher.headers = {"Location": address}
    status, said = get(tmp_path, publisher)
    assert status == 1 and "could not be fetched: Hugging Face: Request URL " in said


def test_nobody_else_is_asked_and_nothing_is_told_of_the_caller(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    env = {name: value for name, value in os.environ.items() if name != "HF_HUB_DISABLE_TELEMETRY"}
    env |= {"HF_ENDPOINT": publisher.address, "HF_HOME": str(tmp_path / "hf"), "AGENT": "something"}
    command = [Path(sys.executable).with_name("okf-agent"), "data", "get", SUITE]
    assert subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False).returncode == 0
    assert {path.split(REPOSITORY)[0] for path in publisher.paths} == {"/api/datasets/", "/datasets/"}
    assert not (tmp_path / "hf").exists()


def test_a_listing_is_read_up_to_a_limit(publisher: Publisher, tmp_path: Path) -> None:
    publisher.said = b'{"sha": "' + b"a" * 21_000_000
    status, said = get(tmp_path, publisher)
    assert status == 1 and "20,000,000" in said
    assert not (tmp_path / "data" / SUITE).exists(), "nothing arrived"


FILE = entry("x/x_schema.txt", b"x")
REPLIES = {
    "nothing": b"", "a page": b"<html>", "a list": b"[]", "a number": b"7", "null": b"null", "no UTF-8": b"\xff",
    "no revision": json.dumps({"siblings": [FILE]}).encode(),
    "no files": json.dumps({"sha": REVISION}).encode(),
    "files of another shape": json.dumps({"sha": REVISION, "siblings": {"a": 1}}).encode(),
    "a revision that leads elsewhere": json.dumps({"sha": "../../x", "siblings": [FILE]}).encode(),
    "deep": b"[" * 200_000,
    **{f"a {key} of {value!r:.20}": json.dumps({"sha": REVISION, "siblings": [FILE | {key: value}]}).encode()
       for key, value in [("size", None), ("size", -1), ("size", "x"), ("size", 1 << 60), ("blobId", 7),
                          ("rfilename", 7), ("rfilename", None), ("lfs", 1), ("lfs", {"sha256": 1})]},
    "a size of 5,000 digits":
        json.dumps({"sha": REVISION, "siblings": [FILE]}).replace(" 1,", " " + "9" * 5000 + ",").encode(),
}  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_of_a_wrong_shape_is_one_message(publisher: Publisher, tmp_path: Path, reply: str) -> None:
    publisher.said = REPLIES[reply]
    status, said = get(tmp_path, publisher)
    assert status == 1 and said.startswith(f"{SUITE} could not be fetched: "), said
    assert not (tmp_path / "data" / SUITE).exists()


LOCKS = {
    "a list": "[]", "cut": '{"files": {', "deep": "[" * 200_000, "a size of 5,000 digits": "9" * 5000,
    "no revisions": '{"files": {}}', "no file": json.dumps({"revisions": {REPOSITORY: REVISION}, "files": {}}),
    **{f"an entry {value!r:.30}": json.dumps({"revisions": {REPOSITORY: REVISION}, "files": {"x/x_schema.txt": value}})
       for value in (None, 5, {}, {"size": "x"}, {"size": 1, "sha256": "short"}, {"size": 1, "git": 5})},
    "another revision": json.dumps({"revisions": {REPOSITORY: "../.."}, "files": {"x/x_schema.txt": {"size": 1}}}),
    "another repository": json.dumps({"revisions": {"a/b": REVISION}, "files": {"x/x_schema.txt": {"size": 1}}}),
    "a file that is not the suite's": json.dumps({"revisions": {REPOSITORY: REVISION}, "files": {"a": {"size": 1}}}),
}  # fmt: skip


@pytest.mark.parametrize("lock", LOCKS)
def test_a_damaged_lock_is_one_message(publisher: Publisher, tmp_path: Path, lock: str) -> None:
    file = tmp_path / "data" / SUITE / LOCK
    file.parent.mkdir(parents=True)
    file.write_text(LOCKS[lock], encoding="utf-8")
    status, said = get(tmp_path, publisher)
    assert (status, publisher.asked) == (1, [])
    assert said.startswith(f"{file} is damaged (") and "delete it to pin anew" in said
    assert [each.name for each in file.parent.iterdir()] == [LOCK]


def test_without_a_network_it_says_what_to_do(publisher: Publisher, tmp_path: Path) -> None:
    publisher.address = "http://127.0.0.1:9"
    status, said = get(tmp_path, publisher)
    assert status == 1
    assert "could not be fetched" in said and "Connect to the network and try again" in said


def test_an_unknown_suite_gets_the_nearest_name(tmp_path: Path) -> None:
    done = run_inside("data", "get", "livesqlbench-lite", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'livesqlbench-base-lite'" in done.stderr


def test_a_suite_on_github_comes_checked_and_its_tasks_are_made(tmp_path: Path) -> None:
    data, questions = "a" * 40, "b" * 40
    csv = b"question,query,db_name\nHow many?,SELECT 1,shop\nAnd there?,SELECT 2,other\n"
    files = {"defog_data/shop/shop.sql": b"CREATE TABLE t (a int);", "defog_data/shop/shop.json": b"{}", "x.md": b"x"}
    (tmp_path / "config.yaml").touch()
    with serve_files() as github:
        env = {"OKF_GITHUB_API": github.address, "OKF_GITHUB_RAW": github.address}
        for name, revision, has in (
            ("defog-ai/defog-data", data, files),
            ("defog-ai/sql-eval", questions, {"data/questions_gen_postgres.csv": csv}),
        ):
            tree = [{"type": "blob", "path": p, "size": len(c), "sha": git_id(c)} for p, c in has.items()]
            tree.append({"type": "tree", "path": "data", "sha": "c" * 40})
            github.content |= {
                f"/repos/{name}/commits/main": json.dumps({"sha": revision}).encode(),
                f"/repos/{name}/git/trees/{revision}?recursive=1": json.dumps({"tree": tree}).encode(),
                **{f"/{name}/{revision}/{path}": content for path, content in has.items()},
            }
        done = run_inside("data", "get", "defog", cwd=tmp_path, env=env)
        assert done.returncode == 0 and "3 files, 3 of them fetched now" in done.stdout, done.stderr
        folder = tmp_path / "data" / "defog"
        assert (folder / "shop" / "shop.sql").read_bytes() == files["defog_data/shop/shop.sql"]
        (task,) = (json.loads(line) for line in (folder / "tasks.jsonl").read_text("utf-8").splitlines())
        assert (task["instance_id"], task["query"]) == ("questions_gen_1", "SELECT 1")
        assert not [path for path in github.asked if path.endswith("x.md")]

        (folder / "shop" / "shop.sql").unlink()
        github.content[f"/defog-ai/defog-data/{data}/defog_data/shop/shop.sql"] += b" DROP TABLE t;"
        done = run_inside("data", "get", "defog", cwd=tmp_path, env=env)
        assert done.returncode == 1 and "it goes on after the 23 bytes" in done.stderr
        github.content[f"/repos/defog-ai/sql-eval/git/trees/{questions}?recursive=1"] = b'{"truncated": true}'
        done = run_inside("data", "get", "defog", "--update", cwd=tmp_path, env=env)
        assert done.returncode == 1 and "defog-ai/sql-eval answers is no list of files" in done.stderr
