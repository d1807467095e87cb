"""What a compile starts from, and a bundle made of several sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documents import write_documents

from okf_compiler.bundle import load
from okf_compiler.compile import compile_database
from okf_compiler.gather import Sources, gather
from okf_compiler.live.claims import claims
from okf_compiler.model import Database
from okf_compiler.settings import Settings, UserError, load_settings
from okf_compiler.validate import validate


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(tmp_path, {})


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def shape(database: Database) -> tuple[str, int, int, int]:
    return database.name, len(database.tables), sum(len(t.columns) for t in database.tables), len(database.rules)


def test_documents_with_a_dictionary_and_a_glossary(settings: Settings, tmp_path: Path) -> None:
    alone = gather(settings, write_documents(tmp_path / "data").name, Sources())
    table = alone.tables[0]
    columns = write(tmp_path, "d.csv", f"table,column,comment\n{table.name},{table.columns[0].name},A key of ours\n")
    rules = write(tmp_path, "g.yaml", f"- name: New one\n  definition: of {table.columns[0].name}\n")
    both = gather(settings, alone.name, Sources(columns=(columns,), rules=(rules,)))
    assert shape(both) == (alone.name, len(alone.tables), shape(alone)[2], len(alone.rules) + 1)
    assert both.tables[0].columns[0].meaning == "A key of ours"
    report = compile_database(both, tmp_path / "out")
    assert not [f for f in validate(tmp_path / "out") if f.severity == "error"]
    bundle = load(tmp_path / "out")
    sources = {id: [s["id"] for s in c.frontmatter["sources"]] for id, c in bundle.concepts.items()}
    assert sources["knowledge/new-one"] == ["glossary"]
    assert sources[f"tables/{table.name}"][-1] == "dictionary"
    assert report.problems == both.problems


@pytest.mark.parametrize(
    ("name", "files", "expected"),
    [
        ("hero", {"columns": "bird-superhero/database_description"}, ("hero", 10, 31, 0)),
        ("wallet", {"columns": "defog/ewallet/ewallet.json"}, ("wallet", 9, 96, 7)),
        ("jaffle", {"dbt": "dbt/jaffle-shop"}, ("jaffle", 18, 50, 39)),
    ],
)
def test_files_alone_make_a_bundle(
    settings: Settings, test_data: Path, tmp_path: Path, name: str, files: dict[str, str], expected: tuple[str, int]
) -> None:
    sources = Sources(**{kind: (test_data / path,) for kind, path in files.items()})
    database = gather(settings, name, sources)
    assert shape(database) == expected
    compile_database(database, tmp_path / "out")
    assert not [f for f in validate(tmp_path / "out") if f.severity == "error"]
    assert len(load(tmp_path / "out").concepts) == len(database.tables) + len(database.rules)
    assert not compile_database(gather(settings, name, sources), tmp_path / "out").saved


def test_nothing_to_start_from_names_what_was_looked_for(settings: Settings, tmp_path: Path) -> None:
    rules = write(tmp_path, "g.yaml", "- name: A\n  definition: b\n")
    with pytest.raises(UserError, match="There is no database 'shop'"):
        gather(settings, "shop", Sources(rules=(rules,)))


def test_what_tests_and_dictionaries_claim_can_be_held_against_the_data(settings: Settings, tmp_path: Path) -> None:
    write(
        tmp_path,
        "p/m.yml",
        "models:\n- name: t\n  columns:\n  - name: a\n    description: How far\n"
        "    tests: [{accepted_values: {values: [new, old]}}]\n",
    )
    columns = write(tmp_path, "d.csv", "table,column,allowed values,nullable\nt,b,x; y,no\nt,a,,no\n")
    dbt_first = gather(settings, "x", Sources(dbt=(tmp_path / "p",), columns=(columns,)))
    found = {c.kind: c.values for c in claims(dbt_first.tables[0].columns[0].meaning)}
    assert found == {"values": ("new", "old"), "not null": ()}
    dictionary_alone = gather(settings, "x", Sources(columns=(columns,)))
    assert [c.values for c in claims(dictionary_alone.tables[0].columns[0].meaning)] == [("x", "y")]
