"""Documents against a real database: differences made on purpose, and those of real documents and dumps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.databases import documents_of, loaded, made

from okf_agent.engines import Server
from okf_compiler.link import link
from okf_compiler.live import Finding, check
from okf_compiler.live.claims import claims
from okf_compiler.model import Column, Database, ForeignKey, JsonField, Rule, Table
from okf_compiler.postgres import connect
from okf_compiler.readers import catalogue, livesqlbench

NAME = "live_test"
SCRIPT = """
CREATE TYPE state AS ENUM ('open', 'shut');
CREATE TABLE shops (id int PRIMARY KEY, city text);
CREATE TABLE visits (
    id int, shop int, mood text, score int, rate text, day text, seen text, note text, door state, gate state,
    size varchar(20), share numeric, secret text, extra int, facts jsonb, code text, spelt text, few text
);
INSERT INTO shops VALUES (1, 'Bern'), (2, 'Thun');
INSERT INTO visits
SELECT CASE n WHEN 100 THEN 99 ELSE n END, 1, (ARRAY['Good', 'Bad', 'Odd', NULL])[n % 4 + 1], n,
       CASE n WHEN 7 THEN 'inf km/h' ELSE n || '.5 km/h' END, CASE n WHEN 9 THEN '2024-1-9' ELSE '2024-01-09' END,
       '2024-01-09', CASE WHEN n > 3 THEN 'x' END, 'open', 'open', 'S', n / 50.0, 'hidden ' || n, n,
       jsonb_build_object('Kind', (ARRAY['A', 'B'])[n % 2 + 1], 'Deep', jsonb_build_object('Level', n, 'More', n)),
       'c' || n, (ARRAY['RED', 'blue'])[n % 2 + 1], CASE WHEN n < 4 THEN 'a' END
FROM generate_series(1, 100) n;
CREATE TABLE unknown (id int);
"""

COLUMNS = (
    Column("id", "integer", nullable=False, meaning="Primary key."),
    Column("shop", "bigint", meaning="The shop. FK to stores."),
    Column("mood", "text(20)", meaning="Mood. Possible values: Good, Bad, Mixed."),
    Column("score", "integer", meaning="Score, ranging from 0 to 90."),
    Column("rate", "text", meaning="Speed. Example: 3.5 km/h."),
    Column("day", "text", meaning="Day in YYYY-MM-DD format."),
    Column("seen", "text", meaning="Date and time of the visit."),
    Column("note", "text", nullable=False, meaning="Contains NULL when unknown."),
    Column("door", "USER-DEFINED", enum_labels=("open", "ajar")),
    Column("gate", "state", meaning="Gate. Possible values: Open, Locked."),
    Column("size", "varchar(9)", meaning="Values like 'S', 'M'."),
    Column("share", "integer", meaning="Share (0-1)."),
    Column("secret", "text", meaning="Must be unique. Possible values: a, b."),
    Column("gone", "text"),
    Column("code", "text", meaning="Uniquely identifies a visit. Never null."),
    Column("spelt", "text", meaning="Colour, one of 'red', 'blue'."),
    Column("few", "text", meaning="Values: a, b."),
    Column(
        "facts",
        "jsonb",
        fields=(
            JsonField(("Kind",), "SMALLINT. Kind, possible values: 'A', 'B', 'C'."),
            JsonField(("Deep", "Level"), "Level (0-200)."),
            JsonField(("Deep", "Lost"), "Lost."),
        ),
    ),
)
DOCUMENTED = Database(
    NAME,
    (
        Table("visits", COLUMNS, primary_key=("id",), foreign_keys=(ForeignKey(("shop",), "shops", ("id",)),)),
        Table("Shops", (Column("ID", "integer"), Column("City", "text")), primary_key=("ID",)),
        Table("stores", (Column("id", "integer"),)),
    ),
    (
        Rule("1", "Lost Rule", "calculation_knowledge", definition="Count of visits.gone."),
        Rule("2", "Mood", "value_illustration", definition="'Good' is fine. 'Bad' is not. 'Awful' is worse."),
        Rule("3", "Any Mood", "domain_knowledge", definition="A visit whose mood is 'Good', 'Bad' or 'A'."),
        Rule("5", "Late", "calculation_knowledge", definition='visits.left_at - public.visits."came at", visits.extra'),
        Rule("6", "Kept Back", "calculation_knowledge", definition="visits.secret of visits.Then, visits.csv"),
        Rule("4", "Worst Mood", "domain_knowledge", definition="A visit whose mood is 'Good', 'Bad' or 'Nowhere'."),
    ),
)
EXPECTED = {
    ("missing-table", "error", "stores", "no such table"),
    ("missing-column", "error", "visits.gone", "no such column"),
    ("missing-field", "error", "visits.facts->Deep->Lost", "held: Level, More"),
    ("rule-names-no-column", "error", "visits.left_at", "no such column; rule Late"),
    ("rule-names-no-column", "error", "visits.came at", "no such column; rule Late"),
    ("rule-uses-missing", "error", "rule 1", "visits.gone"),
    ("extra-table", "warning", "unknown", "no document"),
    ("extra-column", "warning", "visits.extra", "integer"),
    ("extra-field", "warning", "visits.facts->Deep->More", "100 rows"),
    ("changed-key", "warning", "visits", "there is none"),
    ("missing-foreign-key", "warning", "visits", "(shop) to shops"),
    ("changed-enum", "warning", "visits.door", "gone: 'ajar'; new: 'shut'"),
    ("changed-enum", "warning", "visits.gate", "no label: 'Locked'; not listed: 'shut'"),
    ("changed-type", "warning", "visits.facts->Kind", "SMALLINT, but 100 rows"),
    ("not-unique", "warning", "visits.id", "1 values"),
    ("unknown-reference", "warning", "visits.shop", "no table stores"),
    ("unheld-value", "warning", "visits.mood", "(100 rows, 25 of them NULL): 'Mixed'"),
    ("unlisted-value", "warning", "visits.mood", "'Odd' (25 rows) of 100 rows"),
    ("out-of-range", "warning", "visits.score", "10 rows are outside; held: 1 to 100"),
    ("wrong-unit", "warning", "visits.rate", "1 of 100 rows"),
    ("wrong-format", "warning", "visits.day", "1 of 100 rows"),
    ("out-of-range", "warning", "visits.share", "50 rows are outside"),
    ("null-value", "warning", "visits.note", "NULL in 3 of 100 rows"),
    ("value-spelling", "warning", "visits.spelt", "'red'"),
    ("unheld-value", "warning", "visits.facts->Kind", "'C'"),
    ("rule-unheld-value", "warning", "rule 2", "visits.mood (100 rows): 'Awful'"),
    ("rule-unlisted-value", "warning", "rule 2", "'Odd' (25 rows)"),
    ("rule-unheld-value", "warning", "rule 4", "any column: 'Nowhere'"),
    ("changed-length", "info", "visits.size", "varchar(9), is character varying(20)"),
    ("changed-precision", "info", "visits.share", "integer, is numeric"),
    ("unheld-example", "info", "visits.size", "'M'"),
    ("no-time", "info", "visits.seen", "100 rows"),
    ("unheld-value", "info", "visits.few", "(100 rows, 97 of them NULL): 'b'"),
}
HIDE = ["visits.secret"]


@pytest.fixture(scope="module")
def params(postgres: Server) -> Iterator[dict[str, Any]]:
    with made(postgres, NAME, SCRIPT) as found:
        yield found


def test_every_difference_is_found_once_and_nothing_else(params: dict[str, Any]) -> None:
    with connect(params, NAME) as connection:
        found = check(DOCUMENTED, connection, links=link(DOCUMENTED), hide=HIDE)
    assert {(f.code, f.severity, f.place) for f in found} == {entry[:3] for entry in EXPECTED}
    assert len(found) == len(EXPECTED)
    texts = {(f.code, f.place): f.text for f in found}
    for code, _, place, text in EXPECTED:
        assert text in texts[code, place]
    assert [f.severity for f in found] == sorted((f.severity for f in found), key=["error", "warning", "info"].index)


def test_hidden_columns_are_neither_read_nor_named(params: dict[str, Any]) -> None:
    asked: list[str] = []

    class Listening(psycopg.Cursor[Any]):
        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append(query if isinstance(query, str) else query.as_string(self))
            return super().execute(query, *args, **kwargs)

    with connect(params, NAME) as connection:
        connection.cursor_factory = Listening
        found = check(DOCUMENTED, connection, hide=HIDE)
    assert any('"mood"' in query for query in asked)
    assert not any("secret" in query for query in asked)
    assert not any("secret" in f.place or "secret" in f.text for f in found)


def test_the_catalogue_agrees_with_itself(params: dict[str, Any]) -> None:
    with connect(params, NAME) as connection:
        documented = catalogue.read(connection, NAME)
        assert check(documented, connection) == []


def test_a_changed_column_type_is_found(params: dict[str, Any]) -> None:
    with connect(params, NAME) as connection:
        documented = catalogue.read(connection, NAME)
        shops = documented.table("shops")
        assert shops is not None
        changed = replace(shops, columns=(Column("id", "date", nullable=False), shops.columns[1]))
        others = tuple(t for t in documented.tables if t.name != "shops")
        found = check(replace(documented, tables=(*others, changed)), connection)
    assert [(f.code, f.place, f.text) for f in found] == [
        ("changed-type", "shops.id", "documented as date, is integer")
    ]


def test_what_the_time_did_not_allow_is_said(params: dict[str, Any]) -> None:
    with connect(params, NAME) as connection:
        found = check(DOCUMENTED, connection, seconds=0)
    assert next(f.text for f in found if f.code == "not-checked").endswith("were not looked at: 0 s were spent")
    assert not any(f.code == "unheld-value" for f in found)


def test_a_role_that_may_not_read_a_column_says_so(postgres: Server) -> None:
    script = "CREATE TABLE t (a int, b int); GRANT SELECT (a) ON t TO catalogue_reader; CREATE TABLE closed (a int);"
    documented = Database("live_closed", (Table("t", (Column("a", "int"), Column("b", "int"))), Table("closed", ())))
    with made(postgres, "live_closed", "SELECT 1", "catalogue_reader") as params:
        with psycopg.connect(**postgres.admin or {}, dbname="live_closed") as admin:
            admin.execute(script.encode())
        with connect(params, "live_closed") as connection:
            found = check(documented, connection, hide=["t.c"])
    assert [(f.code, f.place) for f in found] == [
        ("unknown-hide", "t.c"),
        ("unreadable-table", "closed"),
        ("unreadable-column", "t.b"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An enum (X_enum) for status (Low, High).", [("values", ("Low", "High"))]),
        ("An enum (X_enum) for the device (e.g., Mouse, Headset).", [("examples", ("Mouse", "Headset"))]),
        ("Possible values: 450.0, 500.0. Measured in W.", [("values", ("450.0", "500.0"))]),
        ("possible values include 'a b', 'c.d' and 'e'.", [("values", ("a b", "c.d", "e"))]),
        ("Protocol used (HTTP, FTP, etc.). Possible values: (A, B, etc.).", [("examples", ("A", "B", "etc."))]),
        ("Possible values might include 'x', 'y'.", [("examples", ("x", "y"))]),
        ("Contains values like 'x', 'y'.", [("examples", ("x", "y"))]),
        ("Percentage (0–100%) of it.", [("range", ())]),
        ("A VARCHAR(20) of 3-4 words.", []),
        ("Between 2020 and later.", []),
        ("Part of a composite primary key.", []),
        ("Number of unique visitors.", []),
        ("A unique reference number. FK to orders.", [("reference", ("orders",))]),
        ("Never null.", [("not null", ())]),
        ("NULL means unknown.", [("has null", ())]),
        ("Rate. Example: 13 Sep.", []),
        (None, []),
    ],
)
def test_claims_are_read_conservatively(text: str | None, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(c.kind, c.values) for c in claims(text)] == expected


# --- real documents and dumps; the lists are the output of the checker, read against one made by SQL before it ---

REAL = Path(__file__).parents[1] / "data" / "live_differences.json"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dump"), [("virtual_idol", "virtual_idol"), ("mental_health", "mental_healths")])
def test_real_differences_are_all_found_and_nothing_else(
    postgres: Server, test_data: Path, name: str, dump: str
) -> None:
    root = test_data / "livesqlbench-base-full-v1"
    loaded(postgres, name, root / "dumps" / f"{dump}_full.sql")
    documented = livesqlbench.read(documents_of(root, name))
    with connect(postgres.admin or {}, name) as connection:
        found = check(documented, connection, links=link(documented))
    assert sorted(map(_short, found)) == sorted(json.loads(REAL.read_text(encoding="utf-8"))[name])


def _short(finding: Finding) -> str:
    """Code and place, and of values that are not as listed the counts; no path of a file."""
    place = Path(finding.place).name
    numbers = " ".join(part for part in finding.text.replace("(", " ").split() if part.replace(",", "").isdigit())
    return f"{finding.code} {place} {numbers}".strip()
