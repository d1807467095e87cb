"""SQL text before any server: what is cleaned, what is refused, in which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from okf_agent.sql.lexer import tokens
from okf_agent.sql.sql_text import SqlTextError, clean, parse, refuse_functions

CLEANED = {
    "SELECT 1": "SELECT 1",
    "SELECT 1;": "SELECT 1",
    " \n SELECT 1 ;; \n": "SELECT 1",
    ";;SELECT 1": "SELECT 1",
    "SELECT 1; -- done": "SELECT 1",
    "SELECT 1 /* a */ ; /* b; */": "SELECT 1",
    "-- find\nSELECT 1": "-- find\nSELECT 1",
    "```sql\nSELECT 1\n```": "SELECT 1",
    "```\nSELECT 1;\n```\n": "SELECT 1",
    "```postgresql\r\nSELECT 1\r\n```": "SELECT 1",
    "Here it is:\n\n```sql\nWITH a AS (SELECT 1)\nTABLE a\n```\nIt counts.": "WITH a AS (SELECT 1)\nTABLE a",
    "```sql\nSELECT 1": "SELECT 1",
    "SELECT 1\n```": "SELECT 1",
    "`SELECT 1`": "SELECT 1",
    "\ufeffSELECT\u00a01": "SELECT 1",
    "SELECT\u200b1, '\u00a0' -- \u00a0": "SELECT 1, '\u00a0'",
    "SELECT '```\n' AS a": "SELECT '```\n' AS a",
    "SELECT $$;$$ AS a, ';' AS b, E'\\';' AS c": "SELECT $$;$$ AS a, ';' AS b, E'\\';' AS c",
    "SELECT $é$ ; $é$": "SELECT $é$ ; $é$",
    "SELECT a$b, $1": "SELECT a$b, $1",
    'SELECT ";" FROM "a""b;"': 'SELECT ";" FROM "a""b;"',
    "SELECT /* /* ; */ ; */ 1": "SELECT /* /* ; */ ; */ 1",
    "((SELECT 1)) UNION SELECT 2": "((SELECT 1)) UNION SELECT 2",
    "show  timezone": "show  timezone",
    'SELECT \'DELETE\', "update" FROM t AS "into"': 'SELECT \'DELETE\', "update" FROM t AS "into"',
    "SELECT update FROM t": "SELECT update FROM t",
    "WITH a AS (SELECT 1) SELECT count(*) delete FROM a": "WITH a AS (SELECT 1) SELECT count(*) delete FROM a",
    "SELECT substring(a FOR 2) FROM t": "SELECT substring(a FOR 2) FROM t",
}
REFUSED = {
    "": "is empty",
    " \n\t;": "is empty",
    "-- only a comment": "only a comment",
    "/* a */ ; -- b": "only a comment",
    "SELECT 1\x00; DROP TABLE t": "NUL",
    "SELECT '\ud800'": "surrogate",
    "SELECT 1; SELECT 2": "more than one statement",
    "SELECT 1; DROP TABLE t": "will never be allowed",
    "```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```": "2 code blocks",
    "The answer is 42": "must begin with SELECT",
    "DELETE FROM t": "DELETE is refused: it deletes rows. This will never be allowed",
    "/* SELECT */ TRUNCATE t": "TRUNCATE is refused",
    "COPY t TO STDOUT": "COPY moves data",
    "COPY (SELECT 1) TO PROGRAM 'id'": "never be allowed",
    "DO $$ BEGIN END $$": "DO is refused: it runs a program",
    "SET x = 1": "SET is refused: it changes settings",
    "CALL p()": "CALL is refused",
    "LISTEN a": "LISTEN is refused",
    "NOTIFY a": "NOTIFY is refused",
    "LOCK TABLE t": "LOCK is refused",
    "COMMIT": "controls transactions",
    "PREPARE x AS SELECT 1": "PREPARE is refused",
    "DESCRIBE t": "information_schema.columns",
    "USE shop": "schema.table",
    "SELECT * INTO u FROM t": "leave out INTO",
    "SELECT * FROM t FOR UPDATE": "leave out FOR UPDATE",
    "SELECT * FROM t FOR NO KEY UPDATE": "cannot be locked",
    "WITH d AS (DELETE FROM t RETURNING *) TABLE d": "DELETE is refused",
    "WITH d AS NOT MATERIALIZED (UPDATE t SET a = 1 RETURNING *) TABLE d": "UPDATE is refused",
    "WITH a AS (SELECT 1), b(x) AS (SELECT (2)) DELETE FROM t": "DELETE is refused",
    "EXPLAIN WITH a AS (SELECT 1) INSERT INTO t TABLE a": "INSERT is refused",
    "EXPLAIN ANALYZE DELETE FROM t": "EXPLAIN is taken of a SELECT only",
    "EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM t": "EXPLAIN is taken of a SELECT only",
    "EXPLAIN ANALYZE EXECUTE x": "not of EXECUTE",
    "EXPLAIN": "EXPLAIN is taken of a SELECT only",
    "SELECT 1" + " " * 200_000: "200,000",
}
EXPLAINED = {
    "EXPLAIN SELECT 1": "SELECT 1",
    "explain analyze verbose (select 1)": "(select 1)",
    "EXPLAIN (ANALYZE, FORMAT JSON) WITH a AS (SELECT 1) TABLE a": "WITH a AS (SELECT 1) TABLE a",
    "EXPLAIN (SELECT 1)": "(SELECT 1)",
    "EXPLAIN /* a */ VALUES (1)": "VALUES (1)",
}
CALLS = {
    "SELECT pg_advisory_lock(1)": True,
    'SELECT "pg_advisory_lock" /* a */ (1)': True,
    'SELECT pg_catalog."set_config"(1)': True,
    'SELECT U&"set\\005fconfig"(1)': True,
    "SELECT U&\"set!005fconfig\" UESCAPE '!' (1)": True,
    "SELECT * FROM Query_To_XML('SELECT 1')": True,
    "SELECT E'a'\n'\\' ', set_config(1), ''": True,
    "SELECT E'a'--\r\n--\n'\\' ', set_config(1), ''": True,
    "SELECT E'a'\n'\\', set_config(1)'": False,
    "SELECT E'a' '\\', set_config(1), ''": True,
    "SELECT 'pg_advisory_lock(1)'": False,
    "SELECT count(*), lower(a) FROM t -- set_config(1)": False,
    "WITH page_views(a) AS (SELECT 1) SELECT bt_x(1), lo_score(2) FROM page_views": False,
}


@pytest.mark.parametrize(("text", "expected"), CLEANED.items())
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected
    assert clean(expected) == expected


@pytest.mark.parametrize(("text", "words"), REFUSED.items())
def test_refused_in_clear_words(text: str, words: str) -> None:
    with pytest.raises(SqlTextError) as refused:
        clean(text)
    assert words in str(refused.value)
    assert refused.value.never == ("never be allowed" in str(refused.value))


@pytest.mark.parametrize(("text", "inner"), EXPLAINED.items())
def test_the_query_of_an_explain(text: str, inner: str) -> None:
    statement = parse(text)
    assert (statement.kind, statement.inner) == ("explain", inner)
    assert statement.head + statement.inner == text


@pytest.mark.parametrize(("text", "refused"), CALLS.items())
def test_functions_that_act(text: str, refused: bool) -> None:
    if not refused:
        assert refuse_functions(text, (), ()) is False
        return
    with pytest.raises(SqlTextError):
        refuse_functions(text, (), ())


def test_functions_that_people_brought_must_be_allowed_by_name() -> None:
    with pytest.raises(SqlTextError, match="allow_functions"):
        refuse_functions("SELECT similarity(a, b) FROM t", {"similarity"}, ())
    assert refuse_functions("SELECT similarity(a, b) FROM t", {"similarity"}, ("public.similarity",)) is True
    assert refuse_functions("SELECT crosstab(a)", {"crosstab"}, ("crosstab",)) is True
    assert refuse_functions("SELECT ours.crosstab(a)", {"crosstab"}, ("crosstab",)) is True
    with pytest.raises(SqlTextError, match="allow_functions"):
        refuse_functions("SELECT theirs.similarity(a, b) FROM t", {"similarity"}, ("public.similarity",))


@pytest.mark.parametrize("called", ["public.lower(a)", 'public . "lower" (a)', "SALES.lower/**/(a)"])
def test_a_function_of_another_schema_is_not_postgresqls_own_whatever_its_name(called: str) -> None:
    with pytest.raises(SqlTextError, match="not PostgreSQL's own"):
        refuse_functions(f"SELECT {called} FROM t", (), ())
    assert refuse_functions("SELECT public.lower(a) FROM t", (), ("public.lower",)) is True
    own = "SELECT pg_catalog.lower(a), lower(t.a) FROM s.t AS x (a) WHERE x.a IN (1) AND s.t.b IN (SELECT 1)"
    assert refuse_functions(own, (), ()) is False


@given(st.text(alphabet=st.sampled_from("ab'\"$\\;-/*(\n éEU&\u00a01.")))
def test_the_pieces_are_the_text(text: str) -> None:
    assert "".join(token.text for token in tokens(text)) == text


def test_a_long_text_is_read_in_time_that_grows_with_it() -> None:
    tags = ("".join(f"$a{i}$ " for i in range(25_000)),)
    hostile = ("'" * 50_000, "(" * 50_000, "/*" * 50_000, "$a$" * 30_000, "E'\\" * 30_000, '"' * 50_001, *tags)
    for text in hostile:
        assert sum(1 for _ in tokens("SELECT " + text)) > 0


@pytest.mark.parametrize("signs", ["+-" * 50, "<" * 64, "1" + "@-" * 99_000 + "1"])
def test_a_run_of_operator_characters_is_refused_before_a_server_reads_it(signs: str) -> None:
    with pytest.raises(SqlTextError, match="An operator has more than 63 characters"):
        clean(f"SELECT 1 {signs} 1")


@pytest.mark.parametrize(
    "sql", [f"SELECT '{'+-' * 50}'", f"SELECT 1 --{'-' * 99}", f"SELECT /*{'*' * 99}*/ 1", f'SELECT 1 AS "{"=" * 99}"']
)
def test_such_a_run_is_text_in_literals_and_comments(sql: str) -> None:
    assert clean(sql)
