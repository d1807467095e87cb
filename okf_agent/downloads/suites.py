"""Public suites from their publishers: documents and tasks, pinned by the first download, checked ever after.

A publisher lists its files with a size and a hash each. The first download of a suite records the revision and the
SHA-256 of every file in `okf-data.lock.json` beside them; a later one, here or where that file was copied to, brings
the same bytes or fails. Databases' contents are not in these repositories; `content` says where they are.
"""

from __future__ import annotations

import csv
import fnmatch
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from okf_agent.downloads.fetch import (
    Expected,
    Progress,
    SourceError,
    download,
    problem_of,
    read_json,
    sha256_of,
    silent,
)
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings
from okf_compiler.whole_file import write_whole

LOCK = "okf-data.lock.json"
HUB = ("HF_ENDPOINT", "https://huggingface.co")
GITHUB = ("OKF_GITHUB_API", "https://api.github.com")
GITHUB_RAW = ("OKF_GITHUB_RAW", "https://raw.githubusercontent.com")
"""Environment variables that name another server, and the usual ones."""


@dataclass(frozen=True)
class Repository:
    """A repository of a publisher, and which of its files are wanted."""

    name: str
    """`owner/name`."""
    files: tuple[str, ...]
    """Patterns of paths in it."""
    host: str = "hub"
    """`hub` (a data set on Hugging Face) or `github`."""
    branch: str = "main"
    strip: str = ""
    """What is cut off the beginning of a path."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Path there -> path here, where it differs."""

    def place(self, path: str) -> str:
        """Where a file of the repository lies in the suite's folder."""
        return self.renamed.get(path, path.removeprefix(self.strip))


@dataclass(frozen=True)
class Published:
    """A suite as its publisher gives it."""

    folder: str
    """In `data/`."""
    repositories: tuple[Repository, ...]
    licence: str
    content: str
    """Where the databases' contents are, in words."""
    finish: Callable[[Path], None] = lambda _folder: None
    """What is made of the files once they are there."""


QUESTIONS = ("questions_gen_postgres", "instruct_basic_postgres", "instruct_advanced_postgres", "idk")
DOCUMENTS = ("livesqlbench_data.jsonl", "*/*_schema.txt", "*/*_column_meaning_base.json", "*/*_kb.jsonl")


def _livesqlbench(name: str, content: str) -> Published:
    return Published(name, (Repository(f"birdsql/{name}", DOCUMENTS),), "CC BY-SA 4.0", content)


def _defog_tasks(folder: Path) -> None:
    """Make tasks.jsonl of the CSV files: an id is the file's name and the row's number, from 1."""
    with (folder / "tasks.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        for file in sorted((folder / "published").glob("*.csv")):
            stem = file.stem.removesuffix("_postgres")
            with file.open(encoding="utf-8-sig", newline="") as lines:
                for number, row in enumerate(csv.DictReader(lines), start=1):
                    kept = ("question", "query", "db_name", "query_category", "instructions")
                    task = {"instance_id": f"{stem}_{number}"} | {name: row.get(name) or "" for name in kept}
                    if (folder / task["db_name"]).is_dir():
                        out.write(json.dumps(task, ensure_ascii=False) + "\n")


SUITES: Mapping[str, Published] = {
    "livesqlbench-base-lite": _livesqlbench(
        "livesqlbench-base-lite",
        "Contents (PostgreSQL edition): `database.engine: docker` in config.yaml loads all 18 from the authors' image.",
    ),
    "livesqlbench-base-full": _livesqlbench(
        "livesqlbench-base-full-v1",
        "Contents: the authors link PostgreSQL dumps in the data set's README; put <db>_full.sql into dumps/.",
    ),
    "livesqlbench-large": _livesqlbench(
        "livesqlbench-large-v1",
        "Contents: the authors link PostgreSQL dumps in the data set's README; put <db>_full.sql into dumps/.",
    ),
    "bird-minidev": Published(
        "bird-minidev",
        (
            Repository(
                "birdsql/bird_mini_dev",
                ("data/mini_dev_sqlite-*.json",),
                renamed={"data/mini_dev_sqlite-00000-of-00001.json": "mini_dev_sqlite.json"},
            ),
        ),
        "CC BY-SA 4.0",
        "Contents: the data set's README links the complete package; put its dev_databases/ here.",
    ),
    "defog": Published(
        "defog",
        (
            Repository(
                "defog-ai/defog-data", ("defog_data/*/*.sql", "defog_data/*/*.json"), "github", strip="defog_data/"
            ),
            Repository(
                "defog-ai/sql-eval",
                tuple(f"data/{name}.csv" for name in QUESTIONS),
                "github",
                renamed={f"data/{name}.csv": f"published/{name}.csv" for name in QUESTIONS},
            ),
        ),
        "Apache-2.0",
        "Contents: in the same files.",
        _defog_tasks,
    ),
}


@dataclass(frozen=True)
class Got:
    """A suite that is here now."""

    folder: Path
    files: int
    fetched: int
    """Of them, those that were not here before."""
    first: bool
    """Nothing was pinned before: the publisher's word was taken for what these files are."""
    content: str


def get(settings: Settings, name: str, *, update: bool = False, progress: Progress = silent) -> Got:
    """Bring a suite to `data/<folder>/`: what is missing, and what is not as it was pinned; `update`: the newest.

    Raises:
        UserError: no such suite, no network, or files that are not what was published or pinned.
    """
    if name not in SUITES:
        raise UserError(
            f"No suite {name!r} can be fetched{did_you_mean(name, SUITES)}\nKnown: {', '.join(SUITES)}", status=2
        )
    published = SUITES[name]
    folder = settings.root / "data" / published.folder
    try:
        lock = {} if update else _read_lock(folder)
        first = not lock
        lock = lock or _new_lock(name, published)
        fetched = 0
        for path, entry in lock["files"].items():
            fetched += _ensure(folder / path, entry, progress)
            entry["sha256"] = entry["sha256"] or sha256_of(folder / path)[1]
        if first or fetched:
            _write_lock(folder, lock)
        published.finish(folder)
    except SourceError as error:
        raise UserError(
            f"{name} could not be fetched: {error}\nConnect to the network and try again (what has arrived is kept), "
            f"or copy the files of {', '.join(r.name for r in published.repositories)} into {folder} by hand."
        ) from None
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}. Make room there.") from None
    return Got(folder, len(lock["files"]), fetched, first, published.content)


def _ensure(file: Path, entry: Mapping[str, Any], progress: Progress) -> bool:
    """Have one file, checked; whether it had to be fetched."""
    expected = Expected(entry["size"], entry["sha256"], entry["git"])
    if file.is_file() and not problem_of(file, expected):
        return False
    download(entry["url"], file, expected, progress)
    return True


def _new_lock(name: str, published: Published) -> dict[str, Any]:
    """What the publisher has now."""
    revisions, files = {}, {}
    for repository in published.repositories:
        revision, found = (_on_hub if repository.host == "hub" else _on_github)(repository)
        revisions[repository.name] = revision
        for path, entry in found:
            here = repository.place(path)
            if PurePosixPath(here).is_absolute() or ".." in PurePosixPath(here).parts or "\\" in here or ":" in here:
                raise SourceError(f"{repository.name} lists a file outside of its folder: {path}")
            if any(fnmatch.fnmatchcase(path, pattern) for pattern in repository.files):
                files[here] = entry
    if not files:
        raise SourceError(f"{', '.join(revisions)} lists none of the files of {name}")
    return {"suite": name, "licence": published.licence, "revisions": revisions, "files": files}


def _on_hub(repository: Repository) -> tuple[str, Iterator[tuple[str, dict[str, Any]]]]:
    """The revision, and path and facts of each file, of a data set on Hugging Face."""
    host = _server(HUB)
    revision = str(read_json(f"{host}/api/datasets/{repository.name}/revision/{repository.branch}")["sha"])
    tree = read_json(f"{host}/api/datasets/{repository.name}/tree/{revision}?recursive=true")
    base = f"{host}/datasets/{repository.name}/resolve/{revision}"

    def files() -> Iterator[tuple[str, dict[str, Any]]]:
        for entry in tree:
            if entry.get("type") == "file":
                large = entry.get("lfs")
                sha256, git = (str(large["oid"]), None) if large else (None, str(entry["oid"]))
                path = str(entry["path"])
                yield path, _entry(f"{base}/{quote(path)}", int(entry["size"]), sha256, git)

    return revision, files()


def _on_github(repository: Repository) -> tuple[str, Iterator[tuple[str, dict[str, Any]]]]:
    """The same, of a repository on GitHub."""
    host = _server(GITHUB)
    revision = str(read_json(f"{host}/repos/{repository.name}/commits/{repository.branch}")["sha"])
    tree = read_json(f"{host}/repos/{repository.name}/git/trees/{revision}?recursive=1")["tree"]
    base = f"{_server(GITHUB_RAW)}/{repository.name}/{revision}"

    def files() -> Iterator[tuple[str, dict[str, Any]]]:
        for entry in tree:
            if entry.get("type") == "blob":
                path = str(entry["path"])
                yield path, _entry(f"{base}/{quote(path)}", int(entry["size"]), None, str(entry["sha"]))

    return revision, files()


def _entry(url: str, size: int, sha256: str | None, git: str | None) -> dict[str, Any]:
    return {"url": url, "size": size, "sha256": sha256, "git": git}


def _server(variable: tuple[str, str]) -> str:
    name, usual = variable
    return (os.environ.get(name) or usual).rstrip("/")


def _read_lock(folder: Path) -> dict[str, Any]:
    """What was pinned; {} if nothing was.

    Raises:
        UserError: the lock file is damaged.
    """
    try:
        lock = json.loads((folder / LOCK).read_text(encoding="utf-8"))
        return {**lock, "files": {str(path): {**entry} for path, entry in lock["files"].items()}}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / LOCK} cannot be read ({error}); bring it back, or delete it to pin anew.") from None


def _write_lock(folder: Path, lock: Mapping[str, Any]) -> None:
    write_whole(folder / LOCK, json.dumps(lock, indent=1, ensure_ascii=False) + "\n")
