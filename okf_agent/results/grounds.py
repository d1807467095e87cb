"""What an answer rests on: the rules that its run read and that matter to it, and what they assume."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from okf_agent.search.text import key_stems
from okf_agent.sql import lexer
from okf_compiler import bundle as bundles
from okf_compiler import markdown
from okf_compiler.bundle import Concept
from okf_compiler.frontmatter import FormatError
from okf_compiler.headings import COLUMNS_INFERRED, COLUMNS_USED, DEFINITION, DEPENDS_ON
from okf_compiler.loaded import loaded

USED = 0.5
"""A rule matters from this share of its columns on that the query has."""


@dataclass(frozen=True)
class Rule:
    """A rule as the bundle has it. `assumed`: what the compiler inferred, where the query relies on it."""

    title: str
    path: str
    definition: str
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grounds:
    rules: tuple[Rule, ...] = ()
    """Those the answer rests on."""
    also_read: tuple[str, ...] = ()
    """Paths of rules that were read besides."""
    tables: tuple[str, ...] = ()
    """Paths of tables that were read."""
    read: bool = True
    """False where no file was read: then the rules are those that question or answer name."""


def find(files: Sequence[str], bundle: Path, question: str, answer: str, sql: str) -> Grounds:
    """The grounds of an answer. Where no file was read, the rules that question or answer name are taken.

    A rule matters if the query has half of its columns, if question or answer name it, or if one that matters
    depends on it.
    """
    opened = [*_concepts(files, bundle)] if files else []
    tables = tuple(concept.path for concept in opened if concept.is_table)
    rules = [concept for concept in opened if not concept.is_table]
    asked = {*key_stems(f"{question} {answer}")}
    if not files and bundle.is_dir():
        rules = [rule for rule in loaded(bundle).rules if _is_named(rule, asked)]
    names = _names(sql)
    matter = {rule.path for rule in rules if _is_named(rule, asked) or _is_used(rule, names)} if sql else set()
    for rule in rules * 2:  # twice, for a dependency of a dependency that was read before it
        if rule.path in matter:
            matter |= {*rule.links(DEPENDS_ON)}
    return Grounds(
        rules=tuple(_rule(rule, names) for rule in rules if rule.path in matter),
        also_read=tuple(rule.path for rule in rules if rule.path not in matter),
        tables=tables,
        read=bool(files),
    )


def _concepts(files: Iterable[str], bundle: Path) -> Iterator[Concept]:
    """The concepts among bundle paths, each once; what is no concept, or gone meanwhile, is left out."""
    for path in dict.fromkeys(files):
        if bundles.is_concept(path):
            try:
                text = (bundle / path.lstrip("/")).read_bytes().decode("utf-8", "replace")
                yield bundles.parse(text, path.strip("/")[:-3])
            except (OSError, FormatError):
                continue


def _is_named(rule: Concept, asked: set[str]) -> bool:
    title = key_stems(rule.title.partition("(")[0])
    return bool(title) and asked.issuperset(title)


def _names(sql: str) -> set[str]:
    """The words of a query in lower case: names of columns are among them."""
    code = " ".join(token.text for token in lexer.tokens(sql) if token.kind != "comment")
    return {*re.findall(r"\w+", code.lower())}


def _columns(text: str) -> set[str]:
    """Names of the columns, and of the fields in them, that a text has as code."""
    return {code.rpartition(".")[2].lower() for code in markdown.codes(text)}


def _is_used(rule: Concept, names: set[str]) -> bool:
    parts = rule.sections
    columns = {name for heading in (COLUMNS_USED, COLUMNS_INFERRED) for name in _columns(parts.get(heading, ""))}
    return bool(columns) and len(columns & names) >= USED * len(columns)


def _rule(concept: Concept, names: set[str]) -> Rule:
    parts = concept.sections
    definition = parts.get(DEFINITION) or next(iter(parts.values()), "") or concept.description
    inferred = parts.get(COLUMNS_INFERRED, "").splitlines()
    assumed = [line.removeprefix("* ") for line in inferred if _columns(line) & names]
    return Rule(concept.title, concept.path, definition, tuple(assumed))
