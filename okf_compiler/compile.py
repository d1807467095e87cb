"""Sources in, a bundle out: the steps in order. Both command lines call `compile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from okf_compiler import compiled, edits, last_compile, overlays, swap
from okf_compiler.bundle import Concept, files, is_concept, save, would_save
from okf_compiler.concepts import concepts
from okf_compiler.errors import UserError
from okf_compiler.gather import NOTHING_MORE, Sources, gather
from okf_compiler.hide import is_hidden
from okf_compiler.indexes import due
from okf_compiler.link import link, unlinked
from okf_compiler.linking.terms import missing_columns
from okf_compiler.log import add_to_log, log_entry
from okf_compiler.merge import Merged, merge
from okf_compiler.model import Database, Place, Problem
from okf_compiler.names import assign
from okf_compiler.report import Report
from okf_compiler.settings import Settings
from okf_compiler.validate import check as check_files
from okf_compiler.validate import check_concept

if TYPE_CHECKING:
    from okf_compiler.connections import Reach


def compile(
    settings: Settings,
    name: str,
    out: Path,
    sources: Sources = NOTHING_MORE,
    reach: Reach | None = None,
    *,
    check: bool = False,
) -> Report:
    """Compile the database `name` into the bundle folder `out`, with the corrections that people keep to it.

    It is made from the sources that config.yaml records and from those given here; `sources` and `reach` are those of
    `gather`. The rest is as in `compile_database`.
    """
    database = gather(settings, name, sources, reach)
    if any(source.id == "schema" for source in database.sources):  # a dictionary may leave columns out
        missing = _missing_columns(database, (*settings.hidden(name), *sources.hide))
        database = replace(database, problems=(*database.problems, *missing))
    return compile_database(database, out, overlays.overlay_file(settings, name), check=check)


def _missing_columns(database: Database, hide: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each column that a rule names, of a table that has no such column."""
    for rule, table, column in missing_columns(database.rules, database.tables):
        if not is_hidden(hide, table.schema or "public", table.name, column):
            place = database.places.get((rule.id,), Place(""))
            message = f"{table.qualified_name}.{column}: no such column; rule {rule.name}"
            yield Problem(message, place.file, place.line)


def compile_database(database: Database, out: Path, overlay: Path | None = None, *, check: bool = False) -> Report:
    """Compile what readers gave into the bundle folder `out`, whole or not at all.

    What people added to a bundle that is there already is kept; nothing changes where nothing did. `overlay` is a
    file of people's corrections, which need not exist. With `check` nothing is written, and the report says whether
    anything would be.

    Raises:
        UserError: the sources, the overlay or the folder cannot be used; the folder is then as it was.
    """
    made_from = last_compile.inputs(database, overlay)
    if made_from and (report := last_compile.report(out, made_from, database)):
        return report
    corrections = overlays.read(overlay)
    database = corrections.describe(database)
    links = corrections.link(database, link(database))
    ids = assign(database)
    made = corrections.finish(database, ids, concepts(database, links, ids))
    database = corrections.report(database)
    merged, saved = _save(database, out, made, check=check)
    report = Report(
        database=database,
        folder=out,
        unlinked=tuple(unlinked(database, links)),
        saved=saved,
        added=len(merged.added),
        changed=len(merged.changed),
        removed=len(merged.removed),
        notes=tuple(merged.notes),
        checked=check,
    )
    if made_from and not merged.edits and not check:
        last_compile.remember(report, made_from, corrections.problems)
    return report


def _save(database: Database, out: Path, made: Sequence[Concept], *, check: bool) -> tuple[Merged, bool]:
    """The concepts merged with what lies in `out`, and whether a file changed there, or with `check` would change."""
    _refuse_missing(database, out, {f"{concept.id}.md" for concept in made}, made)
    now = datetime.now(UTC).replace(microsecond=0)
    with swap.lock_to_compare(out, create=not check):
        merged = merge(out, made, now.isoformat())
        guides, outdated = due(out, merged.concepts)
        if merged.added or merged.changed or merged.removed:
            guides["log.md"] = _log(database, out, merged, now.date().isoformat())
        guides[compiled.FILE] = compiled.render(made)
        _refuse_errors([*merged.added, *merged.changed], guides)
        texts = {**merged.texts, **guides}
        gone = outdated.union(f"{concept.id}.md" for concept in merged.removed)
        if check:
            saved = would_save(out, texts, gone)
        else:
            if merged.edits:
                edits.keep(out, merged.edits, now.date().isoformat())
            saved = save(out, texts, gone)
            _refuse_missing(database, out, {path for path in files(out) if is_concept(path)}, made)
    if merged.edits:
        merged.notes.append(f"Edits kept aside are in {edits.file_for(out)}; what should stay belongs in the overlay.")
    return merged, saved


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
    findings += check_files({path: text.encode() for path, text in guides.items()}, links=False)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise UserError(f"The compiled bundle would not conform, so nothing was written: {errors[0]}.")


def _refuse_missing(database: Database, out: Path, there: AbstractSet[str], made: Iterable[Concept]) -> None:
    """Raise unless each table and each rule is a file of its own among those that are `there`."""
    expected = len(database.tables) + len(database.rules)
    wanted = {f"{concept.id}.md" for concept in made}
    if len(wanted & there) != expected:
        missing = ", ".join(sorted(wanted - there)[:5])
        raise UserError(
            f"{out}: {expected} tables and rules gave {len(wanted & there)} concepts"
            + (f"; missing: {missing}." if missing else ".")
        )
