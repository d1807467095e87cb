"""Every pattern of the compiler against text that was written to make its reader slow."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import okf_compiler
from okf_compiler import indexes, markdown, names, validate
from okf_compiler.agreement import literal, types_disagree
from okf_compiler.bundle import load
from okf_compiler.compile import compile_database
from okf_compiler.console import without_passwords
from okf_compiler.ddl import parse_create_table
from okf_compiler.errors import UserError
from okf_compiler.gist import phrase
from okf_compiler.link import link
from okf_compiler.linking import rule_names
from okf_compiler.live.claims import claims, listed_values
from okf_compiler.model import Column, Database, Rule, Source, Table
from okf_compiler.names import slug
from okf_compiler.profiling import spelling
from okf_compiler.readers import dbt, dbt_project, dictionary, glossary
from okf_compiler.type_cell import parse_type
from okf_compiler.validate import check

CHARACTERS = 8_000
SECONDS = 0.04
"""Of processor time: ten times what a pattern takes that looks at each character a few times, and less than what it
takes where it goes over the rest of the text from each place."""

UNITS = (
    *" \t\n'\"`[(<{\\_-.:0aA",
    *(
        "a ",
        "a.",
        "a'",
        "A1",
        "[a](",
        "](/",
        "](<",
        "* [",
        "{{",
        "{% ",
        "$ ",
        "->",
        "'a',",
        "::a",
        "a://a:",
        "password=",
    ),
    *("values ", "one of ", "unique a ", "1 to ", "ex: 1 a/", ", using ", "e.g. ", "JSONB ", "enum(a) ", "a_enum "),
)


AT_A_PLACE = {
    "okf_compiler.linking.stated._AFTER_FORMULA",
    "okf_compiler.live.claims._QUOTED",
    "okf_compiler.type_cell._LABELS",
}
"""Only matched at a given place, so that no search for one begins anywhere else."""


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for module in pkgutil.walk_packages(okf_compiler.__path__, "okf_compiler."):
        for name, value in vars(importlib.import_module(module.name)).items():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, re.Pattern):
                    yield f"{module.name}.{name}", each


def seconds(read: Callable[[str], object], text: str) -> float:
    begin = time.process_time()
    read(text)
    return time.process_time() - begin


def is_slow(read: Callable[[str], object], text: str) -> bool:
    """Three times over the limit: once may be somebody else's doing."""
    return all(seconds(read, text) > SECONDS for _ in range(3))


@pytest.mark.slow
def test_no_pattern_goes_over_the_rest_from_each_place() -> None:
    unique = {pattern: name for name, pattern in patterns() if name not in AT_A_PLACE}
    assert len(unique) > 90
    texts = [f"x{unit * (CHARACTERS // len(unit))}!" for unit in UNITS]
    slow = []
    for pattern, name in unique.items():

        def read(text: str, pattern: re.Pattern[str] = pattern) -> object:
            return [*pattern.finditer(text), pattern.fullmatch(text)]

        slow += [(name, text[:12]) for text in texts if is_slow(read, text)]
    assert slow == []


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (indexes._ENTRY.match, "* " + "[a](" * 25_000),
        (indexes._ENTRY.match, "* [a" + "](<" * 33_000),
        (markdown.links, "](/" * 33_000),
        (markdown.links, "[a](/" * 20_000),
        (rule_names._DEFINES.match, "AB" + " " * 100_000),
        (dictionary._TARGET.match, "a" + " " * 100_000 + "b"),
        (dictionary._TARGET.match, "a." + "b " * 50_000 + "("),
        (dbt_project.JINJA.search, "{{ a " * 20_000),
        (dbt_project._REF.match, "ref('a'" + ")" * 100_000 + "x"),
        (dbt._DOC_BLOCK.findall, "{% docs a %}" * 8_000),
        (without_passwords, "postgresql://a:" * 6_600),
        (without_passwords, "a@" + "a://a:" * 16_000),
        (validate._ACTOR.fullmatch, "a/" * 50_000 + " x"),
        (literal, "::" + "a" * 100_000 + "("),
        (literal, "'a'" + "::a" * 33_000 + "("),
        (lambda text: types_disagree(text, "text"), "a" + " " * 100_000 + "b"),
        (claims, "possible values: " + "'a', " * 20_000),
        (claims, "FK to a " * 12_000),
        (listed_values, "a, " * 33_000),
        (listed_values, "'a'" + " " * 100_000 + "b"),
        (listed_values, "'a'" + ", " * 50_000 + "b"),
        (spelling.fold, "a" + "\u0301\u0327" * 50_000),
        (dictionary._reduce, "a" + "\u0301\u0327" * 50_000),
        (names.slug, "a" + "\u0301\u0327" * 50_000),
        (names._file_name, "é" + "\u0323\u0307" * 50_000),
        (parse_type, "mood, one of '" + "a', " * 25_000),
        (markdown.links, "\\[" * 50_000),
        (markdown.codes, "".join("`" * n + "a" for n in range(1, 800))),
        (markdown.unverbatim, "`" * 50_000 + "]" * 50_000),
        (phrase, "A text " + "a " * 50_000),
        (slug, "(" * 50_000 + ")" * 50_000),
        (lambda text: [*check({"a.md": text.encode()})], "---\ntype: a\n---\n" + "[a](/b.md)\n" * 100_000),
        (lambda text: [*check({"a.md": text.encode()})], "---\ntype: a\n---\n" + '](a "' * 25_000),
        (lambda text: [*check({"a.md": text.encode()})], "---\ntype: a\n---\n" + "[^a]" * 100_000),
        (parse_create_table, "CREATE TABLE t (a int DEFAULT " + "(" * 20_000),
    ],
)
def test_a_hundred_thousand_characters_are_read_in_time(read: Callable[[str], object], text: str) -> None:
    assert seconds(read, text) < 5


def _shop(
    definition: str = "OV = amount", meaning: str = "What was paid", title: str = "Value", name: str = "ov"
) -> Database:
    """A database in which one text is whatever is given; two tables have a column `order_id`."""
    columns = (Column("order_id", "int", meaning="Its order"), Column(name, "text", meaning=meaning))
    tables = (Table("orders", columns), Table("lines", (columns[0], Column("amount", "numeric", meaning="The amount"))))
    rules = (Rule("1", title, "calculation_knowledge", "", definition), Rule("2", "Gross Value (GV)", "", "", "a"))
    return Database("shop", tables, rules, (Source("schema", "s", "S"), Source("kb", "k", "K")))


def _linked(part: str) -> Callable[[str], object]:
    return lambda text: link(_shop(**{part: text}))


def _compiled(place: Path, text: str) -> object:
    return compile_database(_shop(definition=text, meaning=text, title=text[:2_000]), place, check=True)


def _glossary(place: Path, text: str) -> object:
    (place / "g.csv").write_text(f"term,definition\n{text}", encoding="utf-8")
    return glossary.read(place / "g.csv")


def _dictionary(place: Path, text: str) -> object:
    (place / "d.csv").write_text(f"table,column,description,references\n{text}\na,b,{text},{text}\n", encoding="utf-8")
    return dictionary.read(place / "d.csv")


def _bundle(place: Path, text: str) -> object:
    folder = place / "b"
    folder.mkdir(exist_ok=True)
    (folder / "a.md").write_text(f"---\ntype: Table\ntitle: A\n---\n{text}\n# Schema\n\n| {text}", encoding="utf-8")
    (folder / "index.md").write_text(f"# Table\n\n* [A](/a.md)\n{text}", encoding="utf-8")
    return indexes.outdated(folder), [*validate.validate(folder)], [c.links() for c in load(folder).tables]


READERS: dict[str, Callable[[Path, str], object]] = {
    **{name: lambda _, text, name=name: getattr(markdown, name)(text) for name in (  # type: ignore[misc]
        "links", "codes", "uncode", "unverbatim", "verbatim", "sections", "without_code", "code", "uncell")},
    **{f"link by {part}": lambda _, text, part=part: _linked(part)(text)  # type: ignore[misc]
       for part in ("definition", "meaning", "title", "name")},
    "phrase": lambda _, text: phrase(text),
    "slug": lambda _, text: slug(text),
    "schema": lambda _, text: parse_create_table(f"CREATE TABLE t (a int, {text}"),
    "compile": _compiled,
    "glossary": _glossary,
    "dictionary": _dictionary,
    "bundle": _bundle,
}  # fmt: skip
LONG = (
    *UNITS,
    *("\\[", "\\", "```\n", "~~~~\n", "`` ` ", "# a\n", "|", "\\|", "a,b\n", '"a\n', "order_id.", "orders.order_id."),
    *("order_id ", "order_id->", "amount ", "Gross Value ", "GV ", "ing", "ation", "日", "(a) ", "a int,\n"),
    *('[a](/b.md "', "[^a]", "[a]: b\n", "[a](/b.md)\n", "()", "[]", "(("),
)
SHORT = 6_000


def _time(read: Callable[[Path, str], object], place: Path, text: str) -> float:
    begin = time.process_time()
    with suppress(UserError):
        read(place, text)
    return time.process_time() - begin


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_four_times_the_text_takes_no_more_than_some_times_as_long(name: str, tmp_path: Path) -> None:
    """What goes over the rest from each place takes sixteen times as long; three tries, for a busy machine."""
    slow = []
    for unit in LONG:
        once, four = (f"x{unit * (size // len(unit))}" for size in (SHORT, 4 * SHORT))
        tries = ((_time(READERS[name], tmp_path, once), _time(READERS[name], tmp_path, four)) for _ in range(3))
        if all(after > 0.1 and after > 9 * before for before, after in tries):
            slow.append(unit)
    assert slow == []


@pytest.mark.parametrize("definition", ["order_id." * 32_000, "orders.order_id->" * 16_000, "order_id " * 30_000])
def test_a_rule_of_any_length_is_compiled_in_time(definition: str, tmp_path: Path) -> None:
    begin = time.process_time()
    compile_database(_shop(definition), tmp_path / "x")
    assert time.process_time() - begin < 5
    found = load(tmp_path / "x").concepts["knowledge/value"].body
    assert len(found) < 2 * len(definition)


def test_many_rules_of_one_name_are_compiled_in_time(tmp_path: Path) -> None:
    begin = time.process_time()
    database = _glossary(tmp_path, "a,b\n" * 6_000)
    assert isinstance(database, Database)
    compile_database(database, tmp_path / "x")
    assert time.process_time() - begin < 20
    assert len(load(tmp_path / "x").rules) == 6_000


@pytest.mark.parametrize("body", ["a" * 1_300_000, "".join("`" * n + " " for n in range(800)), "```\n" * 80_000])
def test_a_bundle_of_any_file_is_checked_in_time(body: str, tmp_path: Path) -> None:
    begin = time.process_time()
    _bundle(tmp_path, body)
    assert time.process_time() - begin < 5
