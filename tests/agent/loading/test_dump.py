"""A dump falls into the statements psql would send, and nothing in it runs a program."""

from __future__ import annotations

import io

import pytest

from okf_agent.loading.dump import DumpError, statements

SPLITS = {
    "two statements": ("SELECT 1; SELECT 2;", ["SELECT 1;", "SELECT 2;"]),
    "semicolon in a string": ("INSERT INTO t VALUES ('a;b''c;');", ["INSERT INTO t VALUES ('a;b''c;');"]),
    "backslash is plain in a string": (r"SELECT 'a\'; SELECT 2;", [r"SELECT 'a\';", "SELECT 2;"]),
    "escape string": (r"SELECT E'a\';b'';c'; SELECT 2;", [r"SELECT E'a\';b'';c';", "SELECT 2;"]),
    "a word that ends in e": (r"SELECT typE'a\'; SELECT 2;", [r"SELECT typE'a\';", "SELECT 2;"]),
    "string over lines": ("SELECT 'a\n;b\n''\n;'; SELECT 2;", ["SELECT 'a\n;b\n''\n;';", "SELECT 2;"]),
    "quoted name": ('SELECT 1 AS "a;""b"; SELECT 2;', ['SELECT 1 AS "a;""b";', "SELECT 2;"]),
    "dollar quotes": ("DO $x$ a; $$; b; $x$; SELECT 2;", ["DO $x$ a; $$; b; $x$;", "SELECT 2;"]),
    "dollar in a name": ("SELECT a$b, c$b; SELECT 2;", ["SELECT a$b, c$b;", "SELECT 2;"]),
    "line comment": ("SELECT 1 -- ; '\n; SELECT 2;", ["SELECT 1 -- ; '\n;", "SELECT 2;"]),
    "nested comment": ("/* a; /* ' */ ; */ SELECT 1;", ["/* a; /* ' */ ; */ SELECT 1;"]),
    "rule with two actions": (
        "CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2);",
        ["CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2);"],
    ),
    "body that is not quoted": (
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; SELECT 3;",
        ["CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;", "SELECT 3;"],
    ),
    "byte order mark, empty statements": ("\ufeffSELECT 1;;\n;\n", ["SELECT 1;"]),
    "harmless psql commands": ("\\restrict abc\n\\connect shop\n\\set ON_ERROR_STOP on\nSELECT 1;", ["SELECT 1;"]),
}


@pytest.mark.parametrize("name", SPLITS)
def test_statements(name: str) -> None:
    text, expected = SPLITS[name]
    assert [s.sql.decode().strip() for s in statements(io.BytesIO(text.encode()))] == expected


def test_rows_of_copy_are_not_sql() -> None:
    dump = b'COPY public.t (a, "B") FROM stdin;\n1\t\';\n\\N\t$$\r\n\\.\nSELECT 1;\n'
    found = []
    for statement in statements(io.BytesIO(dump)):
        found.append((statement.line, statement.words[0], list(statement.rows or [])))
    assert found == [(1, b"COPY", [b"1\t';\n", b"\\N\t$$\r\n"]), (5, b"SELECT", [])]


REFUSED = {
    "shell command": (b"SELECT 1;\n\\! touch /tmp/okf-was-here\n", 2, r"\\!"),
    "shell command in a statement": (b"SELECT 1 \\g |sh\n", 1, r"\\g"),
    "another file": (b"\\i /etc/passwd\n", 1, r"\\i"),
    "back quotes run a program": (b"\\set x `id`\n", 1, r"\\set"),
    "rows that never end": (b"COPY t FROM stdin;\n1\n", 1, "cut off"),
    "string that never ends": (b"SELECT 1;\nSELECT 'abc\n", 2, "cut off"),
    "custom format": (b"PGDMP\x01\x10\x04", 1, "pg_restore"),
    "compressed": (b"\x1f\x8b\x08\x00", 1, "gunzip"),
    "UTF-16": ("SELECT 1;".encode("utf-16"), 1, "UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    dump, line, message = REFUSED[name]
    with pytest.raises(DumpError, match=message) as caught:
        for statement in statements(io.BytesIO(dump)):
            list(statement.rows or [])
    assert caught.value.line == line
