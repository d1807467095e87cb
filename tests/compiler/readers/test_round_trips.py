"""Any names and texts, written as CSV and YAML, read back as they were."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from okf_compiler.errors import UserError
from okf_compiler.readers import dictionary, glossary

TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\u2028\u2029"), min_size=1, max_size=30
).map(str.strip).filter(bool)  # fmt: skip
NAMES = st.lists(TEXT.filter(lambda t: "." not in t), min_size=1, max_size=6, unique_by=str.lower)


def read(reader: object, name: str, data: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        return reader.read(Path(folder) / name)  # type: ignore[attr-defined]


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(TEXT.filter(lambda t: "." not in t), NAMES, min_size=1, max_size=4),
    st.data(),
    st.sampled_from(",;\t|"),
)
def test_a_dictionary(tables: dict[str, list[str]], data: st.DataObject, delimiter: str) -> None:
    if len({t.lower() for t in tables}) < len(tables):
        return
    rows = [(t, c, data.draw(TEXT)) for t, columns in tables.items() for c in columns]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows([("table", "column", "description"), *rows])
    database = read(dictionary, "d.csv", out.getvalue().encode())
    assert [(t.name, c.name, c.meaning) for t in database.tables for c in t.columns] == rows  # type: ignore[attr-defined]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT, st.lists(TEXT, max_size=3)), min_size=1, max_size=6, unique_by=lambda r: r[0]))
def test_a_glossary(rules: list[tuple[str, str, list[str]]]) -> None:
    entries = [{"name": name, "definition": text, "synonyms": synonyms} for name, text, synonyms in rules]
    database = read(glossary, "g.yaml", yaml.safe_dump(entries, allow_unicode=True).encode())
    assert [(r.name, r.definition) for r in database.rules] == [(n, t) for n, t, _ in rules]  # type: ignore[attr-defined]
    assert len({r.id for r in database.rules}) == len(rules)  # type: ignore[attr-defined]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["x.csv", "x.yaml", "x.json"]))
def test_any_bytes_are_read_or_refused_in_words(data: bytes, name: str) -> None:
    head = b"table,column,description\n" if name == "x.csv" else b"- name: A\n  definition: b\n"
    for content in (data, head + data):
        for reader in (glossary, dictionary):
            try:
                read(reader, name, content)
            except UserError as error:
                assert str(error)
