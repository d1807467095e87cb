"""Documents in, a bundle out: the steps in order. Both command lines call `compile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from okf_compiler import edits, last_compile, overlays, record, swap
from okf_compiler.bundle import Concept, files, is_concept, save, would_save
from okf_compiler.concepts import concepts
from okf_compiler.documents import Documents
from okf_compiler.errors import UserError
from okf_compiler.indexes import OWN_FOLDERS, indexes, is_smaller_index, with_prose
from okf_compiler.link import link, unlinked
from okf_compiler.log import add_to_log, log_entry
from okf_compiler.merge import Merged, digests, merge
from okf_compiler.model import Database, Problem
from okf_compiler.names import assign
from okf_compiler.readers import livesqlbench
from okf_compiler.report import Report
from okf_compiler.validate import check, check_concept


def compile(documents: Documents, out: Path, overlay: Path | None = None, *, check: bool = False) -> Report:
    """Compile one database's documents into the bundle folder `out`, whole or not at all.

    What people added to a bundle that is there already is kept; nothing changes where nothing did. `overlay` is a
    file of people's corrections, which need not exist. With `check` nothing is written, and the report says whether
    anything would be.

    Raises:
        UserError: the documents, the overlay or the folder cannot be used; the folder is then as it was.
    """
    return compile_database(livesqlbench.read(documents), out, overlay, check=check)


def compile_database(database: Database, out: Path, overlay: Path | None = None, *, check: bool = False) -> Report:
    """As `compile`, from facts that a reader gave."""
    made_from = last_compile.digest(database, overlay)
    if made_from and (said := last_compile.unchanged(out, made_from)):
        return _said_again(database, out, said)
    corrections = overlays.read(overlay) if overlay else overlays.NOTHING
    database = corrections.describe(database)
    links = corrections.link(database, link(database))
    ids = assign(database)
    compiled = corrections.finish(database, ids, concepts(database, links, ids))
    database = corrections.report(database)
    now = datetime.now(UTC).replace(microsecond=0)
    with swap.lock_to_read(out) if check else swap.lock(out):
        merged = merge(out, compiled, now.isoformat())
        guides = _guides(database, out, merged, now.date().isoformat())
        guides[record.FILE] = record.render(digests(compiled).items())
        _refuse_errors([*merged.added, *merged.changed], guides)
        gone = frozenset([*(f"{c.id}.md" for c in merged.removed), *_outdated(out, guides)])
        if check:
            saved = would_save(out, {**merged.texts, **guides}, gone)
        else:
            if merged.edits:
                edits.keep(out, merged.edits, now.date().isoformat())
            saved = save(out, {**merged.texts, **guides}, gone)
            _count(database, out, (f"{concept.id}.md" for concept in compiled))
    if merged.edits:
        merged.notes.append(f"Edits kept aside are in {edits.file_for(out)}; what should stay belongs in the overlay.")
    report = Report(
        database=database,
        folder=out,
        saved=saved,
        added=len(merged.added),
        changed=len(merged.changed),
        removed=len(merged.removed),
        unlinked=tuple(unlinked(database, links)),
        notes=tuple(merged.notes),
        checked=check,
    )
    if made_from and not merged.edits and not check:
        said = {
            "unlinked": [rule.id for rule in report.unlinked],
            "notes": report.notes,
            "misfits": [(problem.message, problem.file, problem.line) for problem in corrections.problems],
        }
        last_compile.remember(out, made_from, said)
    return report


def _said_again(database: Database, out: Path, said: Mapping[str, Any]) -> Report:
    """The report of a compile that would change nothing, as the last one said it."""
    unlinked_ids = set(said["unlinked"])
    misfits = tuple(Problem(*problem) for problem in said["misfits"])
    return Report(
        database=replace(database, problems=(*database.problems, *misfits)),
        folder=out,
        saved=False,
        added=0,
        changed=0,
        removed=0,
        unlinked=tuple(rule for rule in database.rules if rule.id in unlinked_ids),
        notes=tuple(said["notes"]),
    )


def _guides(database: Database, out: Path, merged: Merged, date: str) -> dict[str, str]:
    """Relative path -> text of the indexes, with what people wrote into them, and of the log where it grows."""
    guides = with_prose(out, indexes(merged.concepts, OWN_FOLDERS), merged.concepts)
    if merged.added or merged.changed or merged.removed:
        guides["log.md"] = _log(database, out, merged, date)
    return guides


def _outdated(out: Path, guides: Mapping[str, str]) -> Iterator[str]:
    """Smaller indexes of before that nothing leads to any more."""
    if out.is_dir():
        yield from (path for path in files(out) if is_smaller_index(path) and path not in guides)


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
    findings += check({path: text.encode() for path, text in guides.items()}, links=False)
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
