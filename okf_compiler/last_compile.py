"""What the last compile of a large bundle was made from and said, so that compiling it again can stop there.

Linking and writing ten thousand tables takes most of a minute, and finding that nothing has changed takes as long.
Beside a large bundle lies `.<name>.last.json`: a digest of the facts, the corrections and the compiler's own code, one
of the bundle's files, and what the report adds to the facts. Whoever deletes it loses nothing but time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from okf_compiler import compiled, swap
from okf_compiler.bundle import bundle_hash
from okf_compiler.model import Database, Problem
from okf_compiler.report import Report
from okf_compiler.whole_file import write_whole

WORTH = 1_000
"""Concepts from which on it is worth a file: below, a compile takes a second."""


def inputs(database: Database, overlay: Path | None) -> str:
    """A digest of everything that a compile is made from; "" for a database that is too small for it."""
    if len(database.tables) + len(database.rules) < WORTH:
        return ""
    found = hashlib.blake2b(_code())
    for facts in (database.name, database.tables, database.rules, database.sources, database.problems):
        found.update(repr(facts).encode("utf-8", "surrogatepass"))
    if overlay and overlay.is_file():
        found.update(str(overlay.resolve()).encode() + overlay.read_bytes())
    return found.hexdigest()


def report(out: Path, made_from: str, database: Database) -> Report | None:
    """What the last compile reported, if it was made from the same and its bundle is as it was; else None."""
    try:
        last = json.loads(_file(out).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(last, dict) or last.get("made_from") != made_from or not out.is_dir():
        return None
    said = last.get("said")
    if last.get("bundle") != _state(out) or not isinstance(said, dict):
        return None
    misfits = (Problem(*problem) for problem in said["misfits"])
    return Report(
        database=replace(database, problems=(*database.problems, *misfits)),
        folder=out,
        unlinked=tuple(rule for rule in database.rules if rule.id in said["unlinked"]),
        notes=tuple(said["notes"]),
    )


def remember(report: Report, made_from: str, misfits: Sequence[Problem]) -> None:
    """Write down what this compile was made from and reported, `misfits` being what of the overlay does not fit; that
    it cannot be written is no fault."""
    said = {
        "unlinked": [rule.id for rule in report.unlinked],
        "notes": report.notes,
        "misfits": [(problem.message, problem.file, problem.line) for problem in misfits],
    }
    text = json.dumps({"made_from": made_from, "bundle": _state(report.folder), "said": said})
    with suppress(OSError):
        write_whole(_file(report.folder), text)


def _file(out: Path) -> Path:
    out = swap.real(out)
    return out.with_name(f".{out.name}.last.json")


def _state(out: Path) -> str:
    """Of all the bundle's files, the record of what was compiled included."""
    try:
        kept = (out / compiled.FILE).read_bytes()
    except OSError:
        kept = b""
    return bundle_hash(out) + hashlib.blake2b(kept, digest_size=16).hexdigest()


@cache
def _code() -> bytes:
    """Of the compiler's own files: another version may write something else."""
    found = hashlib.blake2b()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        found.update(file.read_bytes())
    return found.digest()
