"""What a compile starts from, and a bundle made of several sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run
from support.databases import made, url
from support.documents import write_documents

from okf_agent.engines import Server
from okf_compiler.bundle import load
from okf_compiler.compile import compile_database
from okf_compiler.documents import list_databases
from okf_compiler.errors import UserError
from okf_compiler.gather import Sources, gather
from okf_compiler.live.claims import claims
from okf_compiler.model import Database
from okf_compiler.settings import Settings, load_settings
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
    with pytest.raises(UserError, match=r"There is no database in .*looked for <db>/<db>_schema.txt"):
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


MARTS = """
CREATE SCHEMA marts;
CREATE TABLE marts.customers (customer_id int PRIMARY KEY, customer_name text, customer_type date);
CREATE TABLE marts.orders (order_id int, customer_id int, order_total numeric, is_food_order boolean);
COMMENT ON COLUMN marts.orders.order_total IS 'Before tax';
"""


def test_a_live_database_with_dbt_a_dictionary_and_a_glossary(
    postgres: Server, test_data: Path, tmp_path: Path
) -> None:
    columns = write(
        tmp_path,
        "dict.csv",
        "Tabelle;Spalte;Beschreibung;Typ\nOrders;ORDER_TOTAL;With everything;numeric\n;orderid;?;int\n"
        "customers;customer_type;;text\n",
    )
    rules = write(
        tmp_path,
        "rules.yaml",
        "- name: Food share\n  definition: food orders / orders\n  depends_on: [Food Orders, Orders]\n"
        "- name: large orders\n  definition: order_total over 100\n",
    )
    with made(postgres, "gather_test", MARTS) as params:
        arguments = ["compile", "jaffle", "--from", url(params, "gather_test"), "--columns", columns, "--rules", rules]
        result = run("okf-compiler", *arguments, "--dbt", test_data / "dbt" / "jaffle-shop", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "jaffle: 2 tables, 7 columns, 40 rules" in result.stdout
    for line in (
        "orders.yml:21: marts.orders.order_total has two meanings: 'Before tax' in Catalogue of jaffle, and 'The total "
        "amount of the order in USD including tax.' in dbt project jaffle-shop, which stands",
        "dict.csv:2: marts.orders.order_total has two meanings: 'The total amount of the order in USD including tax.' "
        "in dbt project jaffle-shop, and 'With everything' in Data dictionary dict.csv, which stands",
        "dict.csv:3: there is no column 'orderid' in marts.orders; did you mean 'order_id'?",
        "dict.csv:4: marts.customers.customer_type is date in Catalogue of jaffle and text in Data dictionary "
        "dict.csv; date stands",
        "there is no table 'stg_customers' to describe; did you mean 'marts.customers'?",
        "marts.orders.customer_id refers to stg_customers.customer_id, which is not there; the reference is not used",
        "rules.yaml:4: rule 'large orders' has two definitions: ",
    ):
        assert line in result.stdout, result.stdout
    bundle = load(tmp_path / "bundles" / "compiled" / "jaffle")
    orders = bundle.concepts["tables/marts.orders"]
    assert [s["id"] for s in orders.frontmatter["sources"]] == ["schema", "dbt", "dictionary"]
    assert orders.description.startswith("Order overview data mart")
    assert "With everything" in orders.body
    assert "[marts.customers](/tables/marts.customers.md)" in orders.body
    share = bundle.concepts["knowledge/food-share"].body
    assert "/knowledge/food-orders.md" in share and "/knowledge/orders.md" in share
    assert "order_total over 100" in bundle.concepts["knowledge/large-orders"].body


def test_the_sources_that_config_yaml_records_are_read_too(tmp_path: Path) -> None:
    """Beside those of the command line; one path or a list, from the workspace's folder."""
    (tmp_path / "data" / "pets").mkdir(parents=True)
    (tmp_path / "data" / "pets" / "pets_schema.txt").write_text("CREATE TABLE cats (name text);", encoding="utf-8")
    (tmp_path / "mine.csv").write_text("table,column,description\ncats,name,What it listens to\n", encoding="utf-8")
    (tmp_path / "rules.yaml").write_text("rules:\n  - {name: Old cat, definition: ten years}\n", encoding="utf-8")
    more = tmp_path / "more.yaml"
    more.write_text("rules:\n  - {name: Kitten, definition: below one year}\n", encoding="utf-8")
    config = {"databases": {"pets": {"columns": "mine.csv", "rules": ["rules.yaml"]}}}
    database = gather(load_settings(tmp_path, config), "pets", Sources(rules=(more,)))
    assert database.tables[0].columns[0].meaning == "What it listens to"
    assert [rule.name for rule in database.rules] == ["Old cat", "Kitten"]


def test_a_database_of_the_server_is_known_by_its_name() -> None:
    settings = load_settings(Path("/nowhere"), {"databases": {"pagila": {"from": "configured"}, "shop": {"hide": []}}})
    assert {name: d.live for name, d in list_databases(settings).items()} == {"pagila": True}
    with pytest.raises(UserError, match=r"databases\.pagila\.from: (?!.*secret)"):
        load_settings(Path("/nowhere"), {"databases": {"pagila": {"from": "postgresql://me:secret@host/db"}}})
