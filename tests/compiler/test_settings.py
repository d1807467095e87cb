from __future__ import annotations

from pathlib import Path

import pytest

from okf_compiler.documents import find_documents, list_databases
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import find_root, load_settings


def workspace(root: Path, config: str = "") -> Path:
    (root / "config.yaml").write_text(config, encoding="utf-8")
    return root


def database(root: Path, name: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / f"{name}_schema.txt").write_text("", encoding="utf-8")
    return folder


def test_defaults_are_the_contract(tmp_path: Path) -> None:
    settings = load_settings(workspace(tmp_path))
    assert settings.bundles == tmp_path / "bundles/compiled"
    assert settings.data_roots == (tmp_path / "data/livesqlbench-base-lite", tmp_path / "data")
    section = settings.database
    assert (section.engine, section.host, section.port) == ("embedded", "localhost", 5432)
    assert (section.agent_user, section.statement_timeout_s, section.max_rows) == ("agent_ro", 30, 20)


def test_the_workspace_is_the_nearest_folder_with_a_config(tmp_path: Path) -> None:
    inner = workspace(tmp_path) / "a" / "b"
    inner.mkdir(parents=True)
    assert find_root(inner) == tmp_path
    assert find_root(Path(tmp_path.anchor)) == Path(tmp_path.anchor)


def test_the_first_root_that_has_a_database_wins_and_data_is_last(tmp_path: Path) -> None:
    workspace(tmp_path, "agent: {raw_docs: [one, two]}")
    database(tmp_path / "two", "shop")
    database(tmp_path / "data", "shop")
    database(tmp_path / "data", "farm")
    settings = load_settings(tmp_path)
    assert find_documents(settings, "shop").root == tmp_path / "two"
    assert {n: d.root.name for n, d in list_databases(settings).items()} == {"shop": "two", "farm": "data"}


@pytest.mark.parametrize(
    ("made", "config", "found"),
    [
        (["data/shop/shop.sql", "data/dumps/shop_full.sql", "x.sql"], "databases: {shop: {dump: x.sql}}", "shop.sql"),
        (["data/dumps/shop_full.sql", "x.sql"], "databases: {shop: {dump: x.sql}}", "shop_full.sql"),
        (["x.sql"], "databases: {shop: {dump: x.sql, schema: s}}", "x.sql"),
        ([], "", None),
    ],
)
def test_where_a_dump_is_looked_for(tmp_path: Path, made: list[str], config: str, found: str | None) -> None:
    workspace(tmp_path, config)
    database(tmp_path / "data", "shop")
    for name in made:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    dump = find_documents(load_settings(tmp_path), "shop").dump
    assert (dump and dump.name) == found


def test_an_unknown_database_names_the_nearest(tmp_path: Path) -> None:
    database(workspace(tmp_path) / "data", "disaster")
    for name in ("disastre", "../disaster", ""):
        with pytest.raises(UserError) as caught:
            find_documents(load_settings(tmp_path), name)
        assert "disaster" in str(caught.value)
        assert caught.value.status == 2
    assert did_you_mean("disastre", ["disaster", "solar"]) == "; did you mean 'disaster'?"
    assert did_you_mean("xyz", ["disaster"]) == "."
    assert did_you_mean("y" * 900_000, ["y" * 890_000]) == "."  # who looks for it would take minutes


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("database: {prot: 1}", "database.prot: there is no such key; did you mean 'port'?"),
        ("database: {port: x}", "database.port"),
        ("database: {engine: mysql}", "database.engine"),
        ("database: {port: 1}\ndatabase: {hide: [a.b]}", "config.yaml:2: database: stands in line 1 already"),
        ("databases:\n  x:\n    hide: [a]\n    hide: [b]", "config.yaml:4: hide: stands in line 3 already"),
        ("- a", "this is no mapping"),
        ("agent: {bundles: 5}", "1: agent.bundles: one folder"),
        ("agent: {bundles: }", "1: agent.bundles: one folder"),
        ("agent: {raw_docs: [5]}", "1: agent.raw_docs: one folder"),
        ("a: [", "this is not YAML"),
        ("databases: {shop: {schem: x}}", "databases.shop.schem: there is no such key; did you mean 'schema'?"),
    ],
)
def test_a_broken_config_names_file_and_key(tmp_path: Path, config: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_settings(workspace(tmp_path, config))
    assert said in str(caught.value)
    assert "config.yaml" in str(caught.value)
    assert caught.value.status == 2
