"""Any names, definitions and descriptions compile to a bundle that conforms and reads back to the same facts."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from okf_compiler import markdown
from okf_compiler.bundle import load
from okf_compiler.compile import compile_database
from okf_compiler.model import Column, Database, Rule, Source, Table
from okf_compiler.names import assign
from okf_compiler.validate import validate

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), max_size=60)
HARD = st.sampled_from(
    [
        "---",
        "a: b",
        "@x",
        "# Joins",
        "```\n# x",
        "index",
        "Log",
        "(a)",
        "[x](/y.md)",
        "|",
        "a\n---\nb",
        "no",
        "5",
        "",
        " ",
    ]
)
ANY = TEXT | HARD
COLUMNS = st.lists(
    st.builds(Column, name=ANY, type=ANY, meaning=st.none() | ANY), max_size=4, unique_by=lambda c: c.name.lower()
)
TABLES = st.lists(
    st.builds(Table, name=ANY, columns=COLUMNS.map(tuple)), max_size=4, unique_by=lambda t: t.name.lower()
)
RULES = st.lists(
    st.builds(Rule, id=ANY, name=ANY, type=ANY, description=ANY, definition=ANY), max_size=4, unique_by=lambda r: r.id
)
SOURCES = (Source("schema", "data/x", "S"), Source("kb", "data/y", "K"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TABLES.map(tuple), RULES.map(tuple))
def test_every_database_reads_back(tables: tuple[Table, ...], rules: tuple[Rule, ...]) -> None:
    database = Database("x", tables, rules, SOURCES)
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "x"
        compile_database(database, out)
        concepts, ids = load(out).concepts, assign(database)
        assert len(concepts) == len(tables) + len(rules)
        assert [str(f) for f in validate(out) if f.severity == "error"] == []
        for table in tables:
            concept = concepts[ids.tables[table.qualified_name]]
            assert concept.title.strip() == (table.qualified_name.strip() or concept.title.strip())
            schema = next(p.text for p in markdown.sections(concept.body) if p.heading == "Schema")
            for column in table.columns:
                assert f"| {markdown.cell(markdown.code(column.name))} |" in schema
                assert markdown.cell(column.meaning or "") in schema
        for rule in rules:
            concept = concepts[ids.rules[rule.id]]
            assert concept.title == (markdown.one_line(rule.name) or f"Rule {rule.id}") or "\n" in rule.id
            if rule.description.strip():
                assert concept.description == markdown.one_line(rule.description)
            found = next(p.text for p in markdown.sections(concept.body) if p.heading == "Definition")
            assert found.strip("\n") == markdown.verbatim(rule.definition).strip("\n")
        assert not compile_database(database, out).saved
