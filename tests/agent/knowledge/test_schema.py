"""The schema mode: DDL with keys, and not a word of what anything means."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from okf_agent.knowledge import Sources, prepare
from okf_compiler.compile import compile_database
from okf_compiler.documents import list_databases
from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, ForeignKey, JsonField, Rule, Table
from okf_compiler.readers import livesqlbench
from okf_compiler.settings import load_settings

ROOT = Path(__file__).parents[3]

ZOO = Database(
    "zoo",
    (
        Table(
            "animals",
            (
                Column("id", "integer", nullable=False, generated="identity"),
                Column(
                    "Name", "character varying(40)", nullable=False, default="'nobody'::text", meaning="SECRET name"
                ),
                Column("diet", "diet", enum_labels=("grass", "it's, not null")),
                Column("parent", "integer"),
                Column("facts", "jsonb", fields=(JsonField(("born",), "SECRET year"),)),
                Column("weight", "numeric(8,2)", generated="(1 + 2)"),
            ),
            primary_key=("id",),
            foreign_keys=(ForeignKey(("parent",), "animals", ("id",)),),
            description="SECRET animals",
        ),
        Table(
            "feeds",
            (Column("day", "date", nullable=False), Column("animal", "integer", nullable=False)),
            schema="big house",
            primary_key=("day", "animal"),
            foreign_keys=(ForeignKey(("animal",), "animals", ("id",)),),
        ),
    ),
    (Rule("1", "Heavy", "domain_knowledge", "SECRET", "weight > 100"),),
)
DDL = """CREATE TABLE animals (
  id integer GENERATED AS IDENTITY,
  "Name" character varying(40) NOT NULL DEFAULT 'nobody'::text,
  diet enum ('grass', 'it's, not null'),
  parent integer,
  facts jsonb,
  weight numeric(8,2) GENERATED ALWAYS AS ((1 + 2)),
  PRIMARY KEY (id),
  FOREIGN KEY (parent) REFERENCES animals (id)
);

CREATE TABLE "big house".feeds (
  day date,
  animal integer,
  PRIMARY KEY (day, animal),
  FOREIGN KEY (animal) REFERENCES animals (id)
);"""


def test_tables_with_keys_and_nothing_said_of_them(tmp_path: Path) -> None:
    compile_database(ZOO, tmp_path / "zoo")
    knowledge = prepare("schema", "How many?", Sources("zoo", bundle=tmp_path / "zoo"))
    (section,) = knowledge.sections
    assert section.split("<schema>\n")[1] == f"{DDL}\n</schema>"
    assert "SECRET" not in section and "Heavy" not in section
    assert (knowledge.tools, knowledge.reply, knowledge.signposts) == ((), "tools", "")


def test_every_table_column_and_key_of_the_shop_is_there() -> None:
    section = prepare("schema", "", Sources("shop", bundle=ROOT / "bundles" / "compiled" / "shop")).sections[0]
    made = sqlglot.parse(section.split("<schema>\n")[1].split("</schema>")[0].replace(" enum ", " text "), "postgres")
    found = {table.name: each for each in made if each and (table := each.find(exp.Table))}
    shop = livesqlbench.read(list_databases(load_settings(ROOT))["shop"])
    assert set(found) == {table.name for table in shop.tables}
    for table in shop.tables:
        columns = [column.name for column in found[table.name].find_all(exp.ColumnDef)]
        assert columns == [column.name for column in table.columns]
        assert len([*found[table.name].find_all(exp.ForeignKey)]) == len(table.foreign_keys)


def test_a_bundle_without_columns_has_no_schema() -> None:
    by_hand = ROOT / "bundles" / "shop-by-hand"
    with pytest.raises(UserError, match="has no schema to show"):
        prepare("schema", "", Sources("shop", bundle=by_hand))
    with pytest.raises(UserError, match="okf-compiler compile shop"):
        prepare("schema", "", Sources("shop"))
