"""The index on disk: made, brought up to date with its bundle, and made anew where it cannot be trusted.

    <folder>/state.json           what the index holds: each file's time, size and digest, and which generation it is
    <folder>/<generation>/        tantivy's own files; a rebuild makes a new one, so that readers keep theirs
    <folder>/.lock                held by who writes

tantivy commits first, state.json follows in one step. A process killed in between leaves an index that knows more
than its state says; the next one indexes those files again, which gives the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import tantivy
from filelock import FileLock

from okf_agent.search import text
from okf_compiler.bundle import LARGEST_FILE, is_concept
from okf_compiler.whole_file import write_whole

FORMAT = f"2 {version('tantivy')}"
"""An index of another format, of ours or of the library's, is made anew."""
STATE = "state.json"
FIELDS = ("title", "description", "text")
_LOCK_SECONDS = 60
_FRESH_NS = 2_000_000_000
"""A file changed this shortly before it was read may change again within the same tick of its clock."""
_SMALL_HEAP, _LARGE_HEAP = 15_000_000, 120_000_000
_MANY = 2_000
"""Files from which an update is worth a second thread and more memory."""

Stamp: TypeAlias = tuple[int, int]
"""Modification time in ns and size in bytes; (0, -1) where the time cannot be trusted yet."""
_UNSURE: Stamp = (0, -1)


class BrokenIndex(Exception):
    """The index cannot be used as it lies there."""


@dataclass(frozen=True)
class State:
    """What an index holds, by path in the bundle."""

    generation: str
    stamps: Mapping[str, Stamp]
    digests: Mapping[str, str]


@contextmanager
def guarded() -> Iterator[None]:
    """Turn whatever tantivy says of broken files, a panic of its own included, into BrokenIndex."""
    try:
        yield
    except BrokenIndex:
        raise
    except Exception as error:
        raise BrokenIndex(str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise BrokenIndex(str(error)) from error


def scan(bundle: Path) -> dict[str, Stamp]:
    """Return the concepts' files and their stamps, without what vanishes meanwhile and what read_file does not read.

    Raises:
        OSError: the folder cannot be read.
    """
    found: dict[str, Stamp] = {}
    folders = [("", bundle)]
    while folders:
        prefix, folder = folders.pop()
        try:
            entries = [*os.scandir(folder)]
        except OSError:
            if not prefix:
                raise
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", Path(entry.path)))
            elif is_concept(entry.name) and entry.is_file():
                with suppress(OSError):
                    status = entry.stat()
                    if status.st_size <= LARGEST_FILE:
                        found[prefix + entry.name] = (status.st_mtime_ns, status.st_size)
    return found


class Store:
    """The index of one bundle, in a folder or, with None, in memory. One thread at a time writes."""

    def __init__(self, bundle: Path, folder: Path | None) -> None:
        self.bundle = bundle
        self.folder = folder
        self.state: State | None = None
        self.index: tantivy.Index | None = None
        self._read_at: tuple[int, int] | None = None

    def follow(self, stamps: Mapping[str, Stamp]) -> None:
        """Bring the index to what these files hold now.

        Raises:
            OSError, filelock.Timeout: the folder cannot be written, or another process has held it for a minute.
        """
        with suppress(BrokenIndex):
            self._load()
            if self.state and self.state.stamps == stamps:
                return
        if self.folder is None:
            self._write(stamps)
            return
        with FileLock(self.folder / ".lock", timeout=_LOCK_SECONDS):
            try:
                self._load()  # another process may have done it
                if not self.state or self.state.stamps != stamps:
                    self._write(stamps)
            except BrokenIndex:
                self.forget()
                self._write(stamps)

    def forget(self) -> None:
        """The index is broken: the next `follow` makes another one."""
        self.state, self.index, self._read_at = None, None, None
        if self.folder is not None:
            with suppress(OSError):
                (self.folder / STATE).unlink()

    def _load(self) -> None:
        """Take the index that lies in the folder, if it is not the one at hand.

        Raises:
            BrokenIndex: it is damaged or of another format.
        """
        if self.folder is None:
            return
        try:
            status = (self.folder / STATE).stat()
        except OSError:
            self.state, self.index = None, None
            return
        if self._read_at == (status.st_mtime_ns, status.st_ino) and self.state:
            return
        with guarded():
            content = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise BrokenIndex("of another format")
            files = {path: (time, size, digest) for path, (time, size, digest) in content["files"].items()}
            state = State(
                str(content["generation"]),
                {path: (time, size) for path, (time, size, _) in files.items()},
                {path: digest for path, (_, _, digest) in files.items()},
            )
            if self.state and self.index and self.state.generation == state.generation:
                self.index.reload()
            else:
                self.index = tantivy.Index.open(str(self.folder / state.generation))
                if self.index.searcher().num_docs != len(state.digests):
                    raise BrokenIndex("it does not hold what its state says")
        self.state, self._read_at = state, (status.st_mtime_ns, status.st_ino)

    def _write(self, stamps: Mapping[str, Stamp]) -> None:
        """Index what differs from the state at hand, and keep the new state."""
        old = self.state
        generation = old.generation if old else uuid.uuid4().hex
        known = old.digests if old else {}
        before = old.stamps if old else {}
        suspects = [path for path, stamp in stamps.items() if before.get(path) != stamp]
        index = self.index if old and self.index else self._new(generation)
        with guarded():
            digests = _update(index, self.bundle, suspects, known, [path for path in known if path not in stamps])
        fresh = time.time_ns() - _FRESH_NS
        kept = {path: stamps[path] for path in digests if path in stamps}
        lasting = {path: stamp if stamp[0] < fresh else _UNSURE for path, stamp in kept.items()}
        self.state, self.index = State(generation, lasting, digests), index
        if self.folder is not None:
            self._save(self.state)

    def _new(self, generation: str) -> tantivy.Index:
        if self.folder is None:
            return tantivy.Index(_schema())
        folder = self.folder / generation
        folder.mkdir()
        for other in self.folder.iterdir():
            if other.is_dir() and other != folder:
                shutil.rmtree(other, ignore_errors=True)
        return tantivy.Index(_schema(), str(folder))

    def _save(self, state: State) -> None:
        assert self.folder is not None
        files = {path: (*state.stamps[path], digest) for path, digest in state.digests.items()}
        content = json.dumps({"format": FORMAT, "generation": state.generation, "files": files}, separators=(",", ":"))
        write_whole(self.folder / STATE, content)
        status = (self.folder / STATE).stat()
        self._read_at = (status.st_mtime_ns, status.st_ino)


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("name", stored=True, tokenizer_name="raw", index_option="basic")
    for field in FIELDS:
        builder.add_text_field(field, tokenizer_name=text.TOKENIZER, index_option="freq")
    return builder.build()


def _update(
    index: tantivy.Index, bundle: Path, suspects: Sequence[str], known: Mapping[str, str], gone: Iterable[str]
) -> dict[str, str]:
    """Index the suspects that really changed, drop those that are gone; the digests of all files afterwards."""
    index.register_tokenizer(text.TOKENIZER, text.analyzer())
    digests = {**known}
    lost = [*gone]
    writer: tantivy.IndexWriter | None = None
    for path in suspects:
        try:
            data = (bundle / path).read_bytes()
        except OSError:
            lost.append(path)
            continue
        digest = hashlib.blake2b(data, digest_size=12).hexdigest()
        if digests.get(path) != digest:
            writer = writer or _writer(index, len(suspects))
            if known:
                writer.delete_documents_by_term("path", path)
            writer.add_document(_document(path, data))
            digests[path] = digest
    for path in lost:
        if digests.pop(path, None) is not None:
            writer = writer or _writer(index, len(lost))
            writer.delete_documents_by_term("path", path)
    if writer is not None:
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
    return digests


def _writer(index: tantivy.Index, files: int) -> tantivy.IndexWriter:
    return index.writer(_LARGE_HEAP, 2) if files > _MANY else index.writer(_SMALL_HEAP, 1)


def _document(path: str, data: bytes) -> tantivy.Document:
    found = text.document(data.decode("utf-8", "replace"), path.removesuffix(".md"))
    document = tantivy.Document()
    document.add_text("path", path)
    document.add_text("name", found.title)
    document.add_text("title", text.apart(" ".join((found.title, *found.synonyms))))
    document.add_text("description", text.apart(found.description))
    document.add_text("text", text.apart(text.own(found.body)))
    return document
