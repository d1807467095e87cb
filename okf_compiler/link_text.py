"""Links as concepts show them: under a heading by kind, each with its reason in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from okf_compiler.headings import (
    COLUMNS_INFERRED,
    COLUMNS_USED,
    KNOWLEDGE_INFERRED,
    RELATED_KNOWLEDGE,
    STORED_RESULTS,
    TABLES_REACHED,
)
from okf_compiler.linking.links import Link, Links
from okf_compiler.linking.reach import builds_on
from okf_compiler.markdown import Part, code

_INFERRED = "Not said by the source; the compiler matched words. Check them before you rely on them."
_INFERRED_RULES = "Not said by the source; the compiler matched the rules' words with these columns."
_STORED = "What is stored and what the rule's definition gives can differ."

Linked = Callable[[str], str]
"""The markdown link to a table by its qualified name, or to a rule by its id."""


def of_rule(links: Links, rule: str, table: Linked, rule_link: Linked) -> list[Part]:
    """What a rule's concept says of the columns and tables that it needs."""
    found = links.columns_of.get(rule, ())
    inferred = _by_table([link for link in found if link.kind == "inferred"], table, scores=True)
    stored = [f"* {table(k.target.table)}: {code(place(k))} ({k.evidence})" for k in links.stored_results.get(rule, ())]
    return [
        Part(COLUMNS_USED, "\n".join(_by_table([link for link in found if link.kind == "stated"], table))),
        Part(COLUMNS_INFERRED, "\n".join([_INFERRED, "", *inferred] if inferred else ())),
        Part(STORED_RESULTS, "\n".join([_STORED, "", *stored] if stored else ())),
        Part(TABLES_REACHED, "\n".join(_reached(links, rule, table, rule_link))),
    ]


def of_table(links: Links, table: str, rule_link: Linked) -> list[Part]:
    """The rules that need a table's columns."""
    found = links.rules_of.get(table, ())
    stated = [f"* {rule_link(rule)} - uses {names}" for rule, names in _by_rule(found, "stated").items()]
    inferred = [f"* {rule_link(rule)} - may use {names}" for rule, names in _by_rule(found, "inferred").items()]
    stored = [
        f"* {rule_link(rule)} - {names} claims to hold its result"
        for rule, names in _by_rule(links.stored_in.get(table, ()), "stored").items()
    ]
    return [
        Part(RELATED_KNOWLEDGE, "\n".join(stated)),
        Part(KNOWLEDGE_INFERRED, "\n".join([_INFERRED_RULES, "", *inferred] if inferred else ())),
        Part(STORED_RESULTS, "\n".join([_STORED, "", *stored] if stored else ())),
    ]


def place(link: Link) -> str:
    """What a link points at, as it is called within its table."""
    return ".".join((link.target.column or link.target.table, *link.target.path))


def _by_table(links: Sequence[Link], table: Linked, *, scores: bool = False) -> list[str]:
    """One line a table: its columns, grouped by why they are linked."""
    by_table: dict[str, dict[str, list[str]]] = {}
    for link in links:
        evidence = f"{link.evidence}; score {link.score:.2f}" if scores else link.evidence
        by_table.setdefault(link.target.table, {}).setdefault(evidence, []).append(code(place(link)))
    return [
        f"* {table(name)}: " + "; ".join(f"{', '.join(names)} ({evidence})" for evidence, names in reasons.items())
        for name, reasons in by_table.items()
    ]


def _by_rule(links: Iterable[Link], kind: str) -> Mapping[str, str]:
    found: dict[str, dict[str, None]] = {}
    for link in links:
        if link.kind == kind:
            found.setdefault(link.rule, {})[code(place(link))] = None
    return {rule: ", ".join(names) for rule, names in found.items()}


def _reached(links: Links, rule: str, table: Linked, rule_link: Linked) -> list[str]:
    """The tables that a rule needs besides those of its own columns, each with the way to it."""
    own = {link.target.table for link in links.columns_of.get(rule, ())}
    others = [name for name in links.reached.get(rule, ()) if name not in own]
    if not others:
        return []
    through: dict[str, str] = {}
    for other in builds_on(links, rule)[1:]:
        for link in links.columns_of.get(other, ()):
            through.setdefault(link.target.table, other)
    ways = {name: f"through {rule_link(rule)}" for name, rule in through.items()}
    return [f"* {table(name)}, {ways.get(name, 'to join the others')}" for name in others]
