"""Public suites from their publishers: documents and tasks, pinned by the first download, checked ever after.

A publisher lists its files with a size and a hash each. The first download of a suite records the revision and the
SHA-256 of every file in `okf-data.lock.json` beside them; a later one, here or where that file was copied to, brings
the same bytes or fails. Databases' contents are not in these repositories; `content` says where they are.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import filelock
from pydantic import Field, TypeAdapter, ValidationError

from okf_agent.downloads.fetch import Progress, SourceError, from_hub, read, sha256_of, silent
from okf_agent.downloads.published import SUITES, Published, Repository
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings
from okf_compiler.whole_file import write_whole

LOCK = "okf-data.lock.json"
HUB = ("HF_ENDPOINT", "https://huggingface.co")
GITHUB = ("OKF_GITHUB_API", "https://api.github.com")
GITHUB_RAW = ("OKF_GITHUB_RAW", "https://raw.githubusercontent.com")
"""Environment variables that name another server, and the usual ones."""
LISTING_BYTES = 20_000_000


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


Sha1 = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Size = Annotated[int, Field(ge=0, lt=1 << 40)]


@dataclass(frozen=True)
class Pin:
    """What one file is to be: `git` is its id as a git blob, the SHA-1 of `blob <size>\\0` and its content."""

    size: Size
    sha256: Sha256 | None = None
    git: Sha1 | None = None


@dataclass(frozen=True)
class Lock:
    """Revisions by repository, and pins by the path in the suite's folder."""

    revisions: dict[str, Sha1]
    files: dict[str, Pin]


def get(settings: Settings, name: str, *, update: bool = False, progress: Progress = silent) -> Got:
    """Bring a suite to `data/<folder>/`: what is missing, and what is not as it was pinned; `update`: the newest.

    A file gets its name once all of them are here and checked; until then they lie in `.partial`.

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
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / ".partial.lock"), _tidied(folder):
            pinned = None if update else _read_lock(published, folder)
            lock = pinned or _listed(published, folder)
            fetched = _bring(published, folder, lock, progress)
            published.finish(folder)
            if fetched or not pinned:
                _write_lock(name, published, folder, lock)
    except (SourceError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"{name} could not be fetched: {error}\nConnect to the network and try again (what has arrived is kept), "
            f"or copy the files of {', '.join(r.name for r in published.repositories)} into {folder} by hand."
        ) from None
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}. Make room there.") from None
    return Got(folder, len(lock.files), fetched, not pinned, published.content)


@contextlib.contextmanager
def _tidied(folder: Path) -> Iterator[None]:
    """Leave no lock file, and no folder where nothing arrived."""
    try:
        yield
    finally:
        (folder / ".partial.lock").unlink()
        with contextlib.suppress(OSError):
            folder.rmdir()


def _bring(published: Published, folder: Path, lock: Lock, progress: Progress) -> int:
    """Fetch what is not as it is pinned, all or nothing; return how many files that were."""
    missing = [path for path, pin in lock.files.items() if _problem(folder / path, pin)]
    for path in missing:
        if _problem(_inside(folder, f".partial/{path}"), lock.files[path]):
            _fetch(published, lock, path, folder, progress)
    for path in missing:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / ".partial" / path).replace(folder / path)
    shutil.rmtree(folder / ".partial", ignore_errors=True)
    return len(missing)


def _inside(folder: Path, path: str) -> Path:
    """Return where a file is to lie.

    Raises:
        SourceError: that is not in the suite's folder, also where a link in it leads elsewhere.
    """
    here = folder.resolve()
    with contextlib.suppress(ValueError, RuntimeError):  # no name of a file; links that go round
        place = (here / path).resolve()
        if here in place.parents and place != here / LOCK and ".." not in Path(path).parts and "\\" not in path:
            return place
    raise SourceError(f"a file outside of its folder is listed: {path!r}")


def _origin(published: Published, path: str) -> tuple[Repository, str]:
    """Return the repository that has what lies at a path in the suite's folder, and its path there.

    Raises:
        SourceError: none has it.
    """
    for repository in published.repositories:
        if there := repository.origin(path):
            return repository, there
    raise SourceError(f"no repository of {published.folder} has a file {path!r}")


def _checked(published: Published, folder: Path, lock: Lock) -> Lock:
    """Return a lock whose files all are the suite's, and in its folder.

    Raises:
        SourceError: one is not, or there is none.
    """
    for path in lock.files:
        _inside(folder, path)
        if _origin(published, path)[0].name not in lock.revisions:
            raise SourceError(f"there is no revision for {path!r}")
    if not lock.files:
        raise SourceError(f"{', '.join(lock.revisions)} lists none of the files of {published.folder}")
    return lock


def _problem(file: Path, pin: Pin) -> str:
    """Return how a file differs from what it is to be; "" if it does not."""
    if not file.is_file():
        return "it is not there"
    size, sha256 = sha256_of(file)
    if size != pin.size:
        return f"it has {size} bytes, not {pin.size}"
    if pin.sha256 is not None and sha256 != pin.sha256:
        return f"its SHA-256 is {sha256}, not {pin.sha256}"
    if pin.git is not None:
        content = b"blob %d\0" % size + file.read_bytes()
        if hashlib.sha1(content, usedforsecurity=False).hexdigest() != pin.git:
            return "its content is not the published one"
    return ""


def _fetch(published: Published, lock: Lock, path: str, folder: Path, progress: Progress) -> None:
    """Put one file into `.partial`, checked.

    Raises:
        SourceError: it cannot be had, or is not what it is to be.
    """
    repository, there = _origin(published, path)
    pin, revision, target = lock.files[path], lock.revisions[repository.name], folder / ".partial" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if repository.host == "hub":
        where = {"revision": revision, "repo_type": "dataset"}
        scratch = _inside(folder, ".partial/.hub")
        told = functools.partial(progress, target.name)
        from_hub(repository.name, there, scratch, told, size=pin.size, **where).replace(target)
    else:
        write_whole(target, read(f"{_server(GITHUB_RAW)}/{repository.name}/{revision}/{quote(there)}", pin.size))
    if problem := _problem(target, pin):
        target.unlink()
        raise SourceError(f"what arrived as {path} is not the published file: {problem}")


def _listed(published: Published, folder: Path) -> Lock:
    """Return what the publisher has now.

    Raises:
        SourceError: it cannot be had, is no list of files, or has none of the suite's.
    """
    revisions: dict[str, str] = {}
    files: dict[str, Any] = {}
    for repository in published.repositories:
        try:
            revisions[repository.name], found = (_on_hub if repository.host == "hub" else _on_github)(repository)
            files |= {repository.place(path): pin for path, pin in found.items() if repository.has(path)}
            lock = TypeAdapter(Lock).validate_python({"revisions": revisions, "files": files})
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise SourceError(f"what {repository.name} answers is no list of files") from None
    return _checked(published, folder, lock)


def _on_hub(repository: Repository) -> tuple[str, dict[str, Any]]:
    """Return the revision, and the files by their paths, of a data set on Hugging Face."""
    address = f"{_server(HUB)}/api/datasets/{repository.name}/revision/{repository.branch}?blobs=true"
    said = json.loads(read(address, LISTING_BYTES))
    found = {}
    for each in said["siblings"]:
        large = each.get("lfs")  # the id of such a file is that of its reference
        known = {"sha256": large["sha256"]} if large else {"git": each["blobId"]}
        found[each["rfilename"]] = {"size": each["size"], **known}
    return said["sha"], found


def _on_github(repository: Repository) -> tuple[str, dict[str, Any]]:
    """Return the same of a repository on GitHub."""
    address = f"{_server(GITHUB)}/repos/{repository.name}"
    revision = json.loads(read(f"{address}/commits/{repository.branch}", LISTING_BYTES))["sha"]
    tree = json.loads(read(f"{address}/git/trees/{quote(revision)}?recursive=1", LISTING_BYTES))["tree"]
    return revision, {e["path"]: {"size": e["size"], "git": e["sha"]} for e in tree if e["type"] == "blob"}


def _server(variable: tuple[str, str]) -> str:
    name, usual = variable
    return (os.environ.get(name) or usual).rstrip("/")


def _read_lock(published: Published, folder: Path) -> Lock | None:
    """Return what was pinned, or None if nothing was.

    Raises:
        UserError: the lock file is damaged.
    """
    try:
        return _checked(published, folder, TypeAdapter(Lock).validate_json((folder / LOCK).read_bytes()))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        problem = ": ".join([*map(str, first["loc"]), first["msg"]])
    except SourceError as error:
        problem = str(error)
    raise UserError(f"{folder / LOCK} is damaged ({problem}). Bring it back, or delete it to pin anew.")


def _write_lock(name: str, published: Published, folder: Path, lock: Lock) -> None:
    """Pin the files that are here, each by the SHA-256 that it has."""
    files = {path: asdict(replace(pin, sha256=sha256_of(folder / path)[1])) for path, pin in lock.files.items()}
    content = {"suite": name, "licence": published.licence, "revisions": lock.revisions, "files": files}
    write_whole(folder / LOCK, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
