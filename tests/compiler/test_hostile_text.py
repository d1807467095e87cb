"""Every pattern of the compiler against text that was written to make its reader slow."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator

import pytest

import okf_compiler
from okf_compiler import indexes, markdown, names, validate
from okf_compiler.agreement import literal, types_disagree
from okf_compiler.console import without_passwords
from okf_compiler.linking import rule_names
from okf_compiler.live.claims import claims, listed_values
from okf_compiler.profiling import spelling
from okf_compiler.readers import dbt, dbt_project, dictionary
from okf_compiler.type_cell import parse_type

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
    ],
)
def test_a_hundred_thousand_characters_are_read_in_time(read: Callable[[str], object], text: str) -> None:
    assert seconds(read, text) < 5
