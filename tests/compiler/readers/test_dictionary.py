"""CSV data dictionaries: the real BIRD one, and what spreadsheets make of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, ForeignKey, Place, Table
from okf_compiler.readers.dictionary import read


def dictionary(folder: Path, text: str | bytes, name: str = "dict.csv") -> Database:
    data = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(data)
    return read(folder / name)


def table(database: Database, name: str, schema: str = "") -> Table:
    found = database.table(name, schema)
    assert found is not None
    return found


def column(database: Database, name: str, column: str) -> Column:
    found = table(database, name).column(column)
    assert found is not None
    return found


def messages(database: Database) -> list[str]:
    return [f"{p.line}: {p.message}" for p in database.problems]


def test_the_real_superhero_descriptions(test_data: Path) -> None:
    database = read(test_data / "bird-superhero" / "database_description")
    assert {t.name: len(t.columns) for t in database.tables} == {
        "alignment": 2,
        "attribute": 2,
        "colour": 2,
        "gender": 2,
        "hero_attribute": 3,
        "hero_power": 2,
        "publisher": 2,
        "race": 2,
        "superhero": 12,
        "superpower": 2,
    }
    assert not database.problems
    assert all(c.meaning for t in database.tables for c in t.columns)
    height = column(database, "superhero", "height_cm")
    assert height.type == "integer"
    assert height.meaning is not None
    assert height.meaning.startswith("the height of the superhero\nValue description: commonsense evidence:\nThe unit")
    assert database.places["", "superhero", "weight_kg"].line == 15  # quoted line breaks counted


@pytest.mark.parametrize(
    "text",
    [
        "table,column,description,type\norders,id,The order,int\n",
        "Table Name;Column Name;Description;Data Type\r\norders;id;The order;int\r\n",
        "\ufeffTABLE_NAME\tCOLUMN_NAME\tMEANING\tDATATYPE\norders\tid\tThe order\tint\n",
        "entity|attribute|definition|format\norders|id|The order|int\n",
        "Tabelle;Spalte;Beschreibung;Typ\norders;id;The order;int\n",
        "sep=;\ntable;field;desc;type\norders;id;The order;int\n",
        "Orders of our shop,,,\n,,,\nTable,Field,Comment,Type\norders,id,The order,int\n",
        'table,column,type,description\n"orders","id","int","The order"\n',
        "column,description,type\norders.id,The order,int\n",
    ],
)
def test_headers_and_delimiters_as_people_keep_them(tmp_path: Path, text: str) -> None:
    database = dictionary(tmp_path, text)
    assert [(t.name, t.columns) for t in database.tables] == [("orders", (Column("id", "int", meaning="The order"),))]
    assert not database.problems


def test_a_file_without_a_table_column_is_about_the_table_it_is_named_for(tmp_path: Path) -> None:
    assert dictionary(tmp_path, "column,description\nid,The order\n", "orders.csv").tables[0].name == "orders"


@pytest.mark.parametrize(("encoding", "reported"), [("utf-8", 0), ("utf-8-sig", 0), ("utf-16", 0), ("cp1252", 1)])
def test_any_encoding_and_what_is_not_unicode_is_reported(tmp_path: Path, encoding: str, reported: int) -> None:
    text = "table;column;description\nkäufer;größe;Größe in cm – ungefähr\n"
    database = dictionary(tmp_path, text.encode(encoding))
    assert column(database, "käufer", "größe").meaning == "Größe in cm – ungefähr"
    assert len(database.problems) == reported


def test_every_fact_a_dictionary_can_hold(tmp_path: Path) -> None:
    database = dictionary(
        tmp_path,
        "schema,table,column,business name,description,type,nullable,default,primary key,unique,references,"
        "allowed values,unit,comment\n"
        'sales,orders,id,Order number,The key,bigint,NO,0,yes,,,,,"from the ""old"" system,\nsince 2019"\n'
        'sales,orders,state,state,How far it is,text,Y,,,,,"new, paid",,\n'
        "sales,orders,customer,,Who bought,bigint,,,,yes,crm.customers(id),,,\n"
        "sales,orders,weight,,Of the parcel,numeric,,,,,,,kg,\n",
    )
    orders = table(database, "orders", "sales")
    assert orders.primary_key == ("id",)
    assert orders.unique == (("customer",),)
    assert orders.foreign_keys == (ForeignKey(("customer",), "customers", ("id",), "crm"),)
    assert orders.columns == (
        Column(
            "id",
            "bigint",
            nullable=False,
            default="0",
            meaning='The key\nCalled: Order number\nComment: from the "old" system,\nsince 2019',
        ),
        Column("state", "text", meaning="How far it is\nAllowed values: new, paid"),
        Column("customer", "bigint", meaning="Who bought"),
        Column("weight", "numeric", meaning="Of the parcel\nUnit: kg"),
    )
    assert database.places["sales", "orders", "weight"] == Place(str(tmp_path / "dict.csv"), 6)
    assert not database.problems


def test_merged_cells_and_rows_about_a_table(tmp_path: Path) -> None:
    database = dictionary(
        tmp_path, "table,column,description\norders,,All orders\n,id,The key\n,state,\nitems,id,The item\n"
    )
    assert [(t.name, t.description, len(t.columns)) for t in database.tables] == [
        ("orders", "All orders", 2),
        ("items", None, 1),
    ]
    assert [p.message for p in database.problems] == ["rows without a table, taken to belong to the one above: 2"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("orders,id,a, b,int,yes", "2: the row has 6 cells and the header 5, so it is not read"),
        ("orders,id,x,int,perhaps", "2: nullable is 'perhaps', neither yes nor no"),
        (",id,x,int,yes", "2: the row names no table"),
        ("orders,,,int,yes", "2: the row names no column and does not describe its table"),
        ('orders,id,"x" y,int,yes', "2: the row cannot be read"),
        ('orders,id,"never closed,int,yes', "2: the row cannot be read: unexpected end of data"),
        ("orders,ok,another,int,yes", "3: orders.ok has a second meaning; the one of "),
        ("orders,ok,fine,text,yes", "3: orders.ok has two types, text and int; the first stands"),
    ],
)
def test_a_row_that_cannot_be_read_is_reported_and_reading_goes_on(tmp_path: Path, row: str, message: str) -> None:
    database = dictionary(tmp_path, f"table,column,description,type,nullable\n{row}\norders,ok,fine,int,yes\n")
    assert table(database, "orders").column("ok") is not None
    assert [m for m in messages(database) if m.startswith(message)]


def test_columns_of_the_file_that_are_not_read_are_named(tmp_path: Path) -> None:
    database = dictionary(tmp_path, "table,column,description,steward\norders,id,The key,bob\n")
    assert [p.message for p in database.problems] == ["the header has columns that are not read: 'steward'"]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "column\nid\n"])
def test_a_file_that_is_no_dictionary_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="must name its columns") as caught:
        dictionary(tmp_path, text)
    assert caught.value.status == 2


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.csv cannot be read"):
        read(tmp_path / "nowhere.csv")


def test_cells_for_whoever_fills_it_in_are_no_meaning_and_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text(
        "table,column,description,known,to do\n"
        "orders,,,table,describe the table\n"
        "orders,id,,integer; primary key,describe\n"
        "orders,state,Where it stands,text,\n",
        encoding="utf-8",
    )
    database = read(file)
    assert database.problems == ()
    assert [(c.name, c.meaning) for c in database.tables[0].columns] == [("id", None), ("state", "Where it stands")]
    assert (database.tables[0].description, database.tables[0].primary_key) == (None, ())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark(tmp_path: Path, encoding: str) -> None:
    database = dictionary(tmp_path, "table\tcolumn\tdescription\norders\tid\tSchlüssel\n".encode(encoding))
    assert column(database, "orders", "id").meaning == "Schlüssel"
    assert not database.problems


@pytest.mark.parametrize(
    ("header", "schema", "unread"),
    [
        ("OWNER,TABLE_NAME,COLUMN_NAME,COMMENTS", "ann", []),
        ("Table,Owner,Column,Description", "", ["0: the header has columns that are not read: 'Owner'"]),
    ],
)
def test_an_owner_is_a_schema_only_where_oracle_writes_it(
    tmp_path: Path, header: str, schema: str, unread: list[str]
) -> None:
    cells = "ann,orders" if schema else "orders,ann"
    database = dictionary(tmp_path, f"{header}\n{cells},id,The key\n")
    assert [(t.schema, t.name, t.columns[0].meaning) for t in database.tables] == [(schema, "orders", "The key")]
    assert messages(database) == unread


def test_the_columns_that_mysql_lists(tmp_path: Path) -> None:
    header = "TABLE_SCHEMA,TABLE_NAME,COLUMN_NAME,COLUMN_DEFAULT,IS_NULLABLE,DATA_TYPE,COLUMN_KEY,COLUMN_COMMENT"
    database = dictionary(tmp_path, f"{header}\nshop,orders,id,NULL,NO,bigint,PRI,The key\n")
    assert table(database, "orders", "shop").primary_key == ("id",)
    (found,) = database.tables[0].columns
    assert (found.meaning, found.default, found.nullable) == ("The key", None, False)
    assert not database.problems


@pytest.mark.parametrize("line", ["|---|:--:|---|", "-----+-----+-----", "|   |===|   |"])
def test_a_line_below_the_header_is_no_row(tmp_path: Path, line: str) -> None:
    database = dictionary(tmp_path, f"| table | column | description |\n{line}\n| orders | id | The key |\n")
    assert [t.name for t in database.tables] == ["orders"]
    assert not database.problems
