"""Documents in, a bundle out: the steps in order. Both command lines call `compile`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from okf_compiler import swap
from okf_compiler.bundle import Concept, files, is_concept, save
from okf_compiler.concepts import concepts
from okf_compiler.indexes import add_to_log, indexes, log_entry
from okf_compiler.link import link, unlinked
from okf_compiler.merge import Merged, merge
from okf_compiler.model import Database
from okf_compiler.names import assign
from okf_compiler.readers import livesqlbench
from okf_compiler.report import Report
from okf_compiler.settings import Documents, UserError
from okf_compiler.validate import check, check_concept

_FOLDERS = ("tables", "knowledge")


def compile(documents: Documents, out: Path) -> Report:
    """Compile one database's documents into the bundle folder `out`, whole or not at all.

    What people added to a bundle that is there already is kept; nothing changes where nothing did.

    Raises:
        UserError: the documents or the folder cannot be used; the folder is then as it was.
    """
    return compile_database(livesqlbench.read(documents), out)


def compile_database(database: Database, out: Path) -> Report:
    """As `compile`, from facts that a reader gave."""
    links = link(database)
    ids = assign(database)
    compiled = concepts(database, links, ids)
    now = datetime.now(UTC).replace(microsecond=0)
    with swap.lock(out):
        merged = merge(out, compiled, now.isoformat())
        guides = indexes(merged.concepts, _FOLDERS)
        if merged.added or merged.changed or merged.removed:
            guides["log.md"] = _log(database, out, merged, now.date().isoformat())
        _refuse_errors([*merged.added, *merged.changed], guides)
        saved = save(out, {**merged.texts, **guides}, frozenset(f"{concept.id}.md" for concept in merged.removed))
        _count(database, out, (f"{concept.id}.md" for concept in compiled))
    return Report(
        database=database,
        folder=out,
        saved=saved,
        added=len(merged.added),
        changed=len(merged.changed),
        removed=len(merged.removed),
        unlinked=tuple(unlinked(database, links)),
        notes=tuple(merged.notes),
    )


def _log(database: Database, out: Path, merged: Merged, date: str) -> str:
    file = out / "log.md"
    before = file.read_bytes().decode("utf-8", "replace") if file.is_file() else None
    counts = f"{len(database.tables)} tables and {len(database.rules)} rules of {database.name}."
    first = counts if before is None and not (merged.changed or merged.removed) else None
    changes = {"added": merged.added, "changed": merged.changed, "removed": merged.removed}
    return add_to_log(before, date, log_entry(first, changes))


def _refuse_errors(written: Iterable[Concept], guides: Mapping[str, str]) -> None:
    """What we are about to write is held against the format first; `guides` are the indexes and the log."""
    findings = [finding for concept in written for finding in check_concept(concept.path, concept.frontmatter)]
    findings += check({path: text.encode() for path, text in guides.items()})
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise UserError(f"The compiled bundle would not conform, so nothing was written: {errors[0]}.")


def _count(database: Database, out: Path, paths: Iterable[str]) -> None:
    """Each table and each rule must be a file of its own."""
    expected = len(database.tables) + len(database.rules)
    wanted = set(paths)
    there = {path for path in files(out) if path in wanted and is_concept(path)}
    if len(there) != expected:
        missing = ", ".join(sorted(wanted - there)[:5])
        raise UserError(
            f"{out}: {expected} tables and rules gave {len(there)} concepts"
            + (f"; missing: {missing}." if missing else ".")
        )
