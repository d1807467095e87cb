"""Glossaries in YAML and CSV, in the shapes people give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from okf_compiler.errors import UserError
from okf_compiler.model import Database, Place, Rule
from okf_compiler.readers.glossary import read

ACTIVE = ("active-customer", "Active customer", "ordered in 90 days")


def glossary(folder: Path, text: str, name: str = "rules.yaml") -> Database:
    (folder / name).write_text(text, encoding="utf-8")
    return read(folder / name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.yaml", "- name: Active customer\n  definition: ordered in 90 days\n"),
        ("g.yaml", "terms:\n  - Term: Active customer\n    Formula: ordered in 90 days\n"),
        ("g.yml", "glossary:\n  Active customer: ordered in 90 days\n"),
        ("g.yaml", "Active customer:\n  definition: ordered in 90 days\n"),
        ("g.yaml", "- Active customer: ordered in 90 days\n"),
        ("g.json", '[{"name": "Active customer", "definition": "ordered in 90 days"}]'),
        ("g.csv", "Name,Definition\nActive customer,ordered in 90 days\n"),
        ("g.csv", "sep=;\nterm;definition\nActive customer;ordered in 90 days\n"),
        ("g.csv", "Business term;Business rule\nActive customer;ordered in 90 days\n"),
        ("g.csv", "Name,Description,Definition\nActive customer,ordered in 90 days,\n"),
        ("g.yaml", "- name: Active customer\n  description: ordered in 90 days\n"),
    ],
)
def test_the_shapes_of_a_glossary(tmp_path: Path, name: str, text: str) -> None:
    database = glossary(tmp_path, text, name)
    assert [(r.id, r.name, r.definition) for r in database.rules] == [ACTIVE]
    assert not database.problems


def test_every_fact_of_a_rule(tmp_path: Path) -> None:
    database = glossary(
        tmp_path,
        "- id: 7\n  name: Churn\n  description: Who left\n  definition: |\n    1 - kept / all\n  type: ratio\n"
        "  depends_on: [active CUSTOMER, Kept, 9]\n  synonyms: attrition; loss\n"
        "- name: Active customer\n  definition: ordered\n  aliases: [kept]\n",
    )
    assert database.rules == (
        Rule(
            id="7",
            name="Churn",
            type="ratio",
            description="Who left",
            definition="1 - kept / all\n",
            depends_on=("active-customer", "9"),
            synonyms=("attrition", "loss"),
            source="glossary",
        ),
        Rule("active-customer", "Active customer", "business_rule", definition="ordered", synonyms=("kept",),
             source="glossary"),
    )  # fmt: skip
    assert database.places[("7",)] == Place(str(tmp_path / "rules.yaml"), 1)
    assert database.places[("active-customer",)].line == 9


def test_synonyms_in_one_cell(tmp_path: Path) -> None:
    text = 'Term,Definition,Also known as\nChurn,who left,"attrition, loss; turnover"\n'
    assert glossary(tmp_path, text, "g.csv").rules[0].synonyms == ("attrition", "loss", "turnover")
    (rule,) = glossary(tmp_path, "- {name: A, definition: a, synonyms: ['b, late', c]}\n").rules
    assert rule.synonyms == ("b, late", "c")


def test_scalars_are_kept_as_they_are_spelt(tmp_path: Path) -> None:
    rules = glossary(tmp_path, "- name: NO\n  definition: 1_000\n- name: 007\n  definition: 2020-01-01\n").rules
    assert [(r.name, r.definition) for r in rules] == [("NO", "1_000"), ("007", "2020-01-01")]


def test_a_list_in_one_cell_and_a_name_with_a_comma(tmp_path: Path) -> None:
    rules = glossary(
        tmp_path,
        'name,definition,depends_on\nA,a,\n"B, late",b,A\nC,c,"B, late"\nD,d,"A, C"\nE,e,A; C\n',
        "g.csv",
    ).rules
    assert [r.depends_on for r in rules] == [(), ("a",), ("b-late",), ("a", "c"), ("a", "c")]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("- name: X\n  definition: x\n  owner: bob", "1: X: the key 'owner' is not read"),
        ("- just a text", "1: an entry is not a mapping: 'just a text'"),
        ("- definition: x\n  type: y", "1: an entry has no name, so it is not read"),
        ("- name: X", "1: X: has neither a definition nor a description, so it is not read"),
        ("- name: X\n  definition: {sum: a}", "1: definition is not a text; it is kept as JSON"),
        (
            "- {id: 1, name: X, definition: x}\n- {id: 1, name: Y, definition: y}",
            "2: id 1 stands twice; this one became",
        ),
        ("- name: X\n  name: Z\n  definition: x", "2: 'name' stands twice; the last counts"),
    ],
)
def test_an_entry_that_cannot_be_read_is_reported_and_reading_goes_on(tmp_path: Path, entry: str, message: str) -> None:
    database = glossary(tmp_path, f"{entry}\n- name: Good\n  definition: good\n")
    assert "Good" in [r.name for r in database.rules]
    assert [str(p) for p in database.problems if str(p).rpartition("rules.yaml:")[2].startswith(message)]


def test_a_column_that_is_not_read_is_one_problem_however_many_rules_fill_it(tmp_path: Path) -> None:
    text = "Term;What it means;Owner\nA;one;Ops\nB;two;Ops\n"
    database = glossary(tmp_path, text, "g.csv")
    assert [(r.name, r.definition) for r in database.rules] == [("A", "one"), ("B", "two")]
    assert [str(p).rpartition("g.csv:")[2] for p in database.problems] == ["1: the column 'Owner' is not read"]


def test_headings_may_stand_below_a_title_and_carry_remarks(tmp_path: Path) -> None:
    text = "Our rules;;;\nas of May;;;\n;;;\nNo.; Term ;DEFINITION (in words);Formula\n1;A;one;a = 1\n2;B;;b\n"
    database = glossary(tmp_path, text, "g.csv")
    rules = [(r.id, r.name, r.definition) for r in database.rules]
    assert rules == [("1", "A", "one\nFormula: a = 1"), ("2", "B", "b")]
    assert [str(p).rpartition("g.csv:")[2] for p in database.problems] == [
        "4: what stands above these headings is not read"
    ]
    (rule,) = glossary(tmp_path, "Term,What does it mean?, Formula \nA,one,x\n", "h.csv").rules
    assert rule.definition == "one\nFormula: x"


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"])
def test_a_workbook_is_refused_with_what_to_do(tmp_path: Path, start: bytes) -> None:
    (tmp_path / "rules.xlsx").write_bytes(start + b"\0\1\2")
    with pytest.raises(UserError, match="Save its sheet as CSV"):
        read(tmp_path / "rules.xlsx")


def test_a_sheet_without_a_heading_for_what_a_rule_says_names_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Definition, Formula, Calculation"):
        glossary(tmp_path, "Term,Wording\nA,a\n", "g.csv")


def test_two_names_that_make_one_id(tmp_path: Path) -> None:
    database = glossary(tmp_path, "- {name: A b, definition: x}\n- {name: A-B, definition: y}\n")
    assert [r.id for r in database.rules] == ["a-b", "a-b-2"]


BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
"""Some 400 characters that say 40 million words."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- name: [", r"rules\.yaml:2: not YAML"),
        ("", "no business rule that can be read"),
        ("[" * 50_000, "nested too deeply|not YAML"),
        (BOMB + "terms: [{name: A, definition: *a8}]", "aliases multiply"),
        ("&a [*a]", "alias stands inside its own anchor"),
    ],
)
def test_a_file_that_cannot_be_read_at_all_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        glossary(tmp_path, text)


def test_a_glossary_that_has_only_begun_has_no_rules_and_no_problem(tmp_path: Path) -> None:
    database = glossary(tmp_path, "rules:\n# - name: later\n")
    assert (database.rules, database.problems) == ((), ())
