"""One prompt and no browsing: tables, joins, rules and values that the question needs, and what to do. One reply.

The same for a large model and for the embedded one; `packing.shape` says how much of it, and in which words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from okf_agent import prompts
from okf_agent.bundles import cards
from okf_agent.bundles.cards import Cards
from okf_agent.clock import LONGEST
from okf_agent.knowledge.model import Knowledge, Sources
from okf_agent.models.providers import LOCAL
from okf_agent.packing import rank, shape, write
from okf_agent.packing.choose import Chooser
from okf_agent.search import named_values
from okf_agent.search.named_values import Named
from okf_agent.search.text import key_stems
from okf_compiler import profiling
from okf_compiler.profiling import values
from okf_compiler.tokens import tokens

FRAMES_TOKENS = 40
"""What the marks around the sections and the database's name take, on the safe side."""
VALUES_SHARE = 0.15
"""Of a pack's tokens, what the values may take that a question names."""


def prepare(question: str, sources: Sources) -> Knowledge:
    """The sections for one question, and no tools.

    Raises:
        UserError: there is no bundle, or it cannot be read.
    """
    bundle = sources.need_bundle()
    cell = sources.cell
    form = shape.SMALL if cell.model == LOCAL else shape.large(sources.pack_tokens)
    known = cards.read(bundle)
    measured = profiling.load(sources.values, sources.hide) if sources.values else None
    writer = write.Writer(form, measured if sources.profiles else None, measured)
    named = (
        _fitting(writer, _standing(_named(question, sources), known), int(form.max_tokens * VALUES_SHARE))
        if cell.values
        else []
    )
    scores = rank.rank(question, known, rank.searched(question, known, bundle))
    chooser = Chooser(known, question, scores, writer, _room(question, writer, named))
    chosen = chooser.choose(_tables_of(named, known), with_rules=cell.rules)
    if form.brief:
        titles = " ".join(known.rules[path].title for path in scores.named_rules)
        named = _shown(named, {table.title for table, _ in chosen.tables}, titles if cell.rules else "")
    sections = write.sections(writer, chosen.tables, chosen.rules, named)
    rules = tuple(section for section in sections if section.startswith("<rules>"))
    first = [s for s in sections if not (form.rules_last and s.startswith(("<rules>", "<values>")))]
    last = "\n\n".join(section for section in sections if section not in first)
    return Knowledge(tuple(first), reply="sql", grounds=rules, signposts=last, prompt=form.prompt, repair=cell.repair)


def _named(question: str, sources: Sources) -> list[Named]:
    """The values that the question names; none where nothing was measured, or what was measured is broken."""
    index = values.open(sources.values, sources.hide) if sources.values else None
    if index is None:
        return []
    try:
        with index:
            return named_values.named_in(question, index)
    except values.Broken:
        return []


def _standing(named: Sequence[Named], known: Cards) -> list[Named]:
    """The values without those of tables and columns that the bundle does not have: they may be gone since."""
    columns = {table.title: {write.plain_name(c.name) for c in table.columns} for table in known.tables.values()}

    def stands(table: str, column: str) -> bool:
        names = columns.get(table, set()) if columns else {column}
        return column in names or any(column.startswith(f"{name}.") for name in names)

    kept = (replace(each, hits=tuple(h for h in each.hits if stands(h.table, h.column))) for each in named)
    return [each for each in kept if each.hits]


def _fitting(writer: write.Writer, named: Sequence[Named], room: int) -> list[Named]:
    """As many of the values as fit."""
    kept: list[Named] = []
    for each in named:
        room -= tokens(writer.value(each)) + 1
        if room < 0:
            break
        kept.append(each)
    return kept


def _shown(named: Sequence[Named], tables: Collection[str], titles: str) -> list[Named]:
    """The values that help a small model: in tables that are shown, and no word of a rule that is named.

    It would query the other tables too, and take the value for the rule: `status = 'active'` for Active Customer.
    """
    told = set(key_stems(titles))
    kept = (replace(each, hits=tuple(hit for hit in each.hits if hit.table in tables)) for each in named)
    return [each for each in kept if each.hits and not _is_of(told, key_stems(each.text))]


def _is_of(told: set[str], words: Sequence[str]) -> bool:
    return bool(words) and told.issuperset(words)


def _tables_of(named: Sequence[Named], known: Cards) -> list[str]:
    """Paths of the tables in which the values stand, those of most values first."""
    by_title = {table.title: path for path, table in known.tables.items()}
    counts: dict[str, int] = {}
    for each in named:
        for table in {hit.table for hit in each.hits} & by_title.keys():
            counts[by_title[table]] = counts.get(by_title[table], 0) + 1
    return sorted(counts, key=lambda path: (-counts[path], path))


def _room(question: str, writer: write.Writer, named: Sequence[Named]) -> int:
    """Tokens for tables, joins and rules: what the rest of the message leaves."""
    rest = prompts.load(writer.shape.prompt, database="", content="", knowledge="", question=question, today=LONGEST)
    spent = tokens(rest) + FRAMES_TOKENS + tokens(writer.note()) + sum(tokens(writer.value(each)) + 1 for each in named)
    return max(0, writer.shape.max_tokens - spent)
