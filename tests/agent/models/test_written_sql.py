"""Which SQL a reply of one text holds: a table of replies in the forms that models write."""

from __future__ import annotations

import pytest

from okf_agent.models.reply import without_thoughts
from okf_agent.models.written_sql import sql_in_text

REPLIES = [
    # In blocks.
    ("```sql\nSELECT 1\n```", "SELECT 1"),
    ("First:\n```\nSELECT 1\n```\nBetter:\n```sql\nSELECT 2\n```", "SELECT 2"),
    ("```sql\nSELECT 1\n```\nor\n```sql\nSELECT 2\n```", "SELECT 2"),
    ("```sql\nSELECT 1\n```\nIt gives:\n```\n1\n```", "SELECT 1"),
    ("```sql\nSELECT 1\n```\n```sql\n```", "SELECT 1"),
    ("```json\n{}\n```\n```text\nSELECT 3\n```", "SELECT 3"),
    ("```python\nprint(1)\n```", "print(1)"),
    ("```PostgreSQL\nSELECT 1\n```", "SELECT 1"),
    ("```sql title=x\nSELECT 1\n```", "SELECT 1"),
    ("```{.sql}\nSELECT 1\n```", "SELECT 1"),
    ("```sql\nDELETE FROM t\n```", "DELETE FROM t"),
    ("1. Do:\n   ```sql\n   SELECT 1\n   ```", "SELECT 1"),
    ("````sql\nSELECT 1\n````", "SELECT 1"),
    ("~~~sql\nSELECT 1\n~~~\nThis counts.", "SELECT 1"),
    ("Here:\n~~~\nselect 1\n~~~\nThis counts.", "select 1"),
    ("```sql\r\nSELECT 1\r\nFROM t\r\n```\r\nok", "SELECT 1\nFROM t"),
    ("```sql\rSELECT 1\r```", "SELECT 1"),
    ("```sql\nSELECT '```' AS a\n```", "SELECT '```' AS a"),
    ("```sql\nSELECT 1```\nok", "SELECT 1"),
    ("```sql\n```", ""),
    # Never closed.
    ("```sql\nSELECT 1", "SELECT 1"),
    ("```sql\nSELECT 1\n```\nbetter:\n```sql\nSELECT 2", "SELECT 2"),
    ("```sql\nSELECT 1\n\nBetter:\n```sql\nSELECT 2\n```", "SELECT 2"),
    # In a line.
    ("```sql SELECT 1 ```", "SELECT 1"),
    ("`SELECT 1`", "SELECT 1"),
    ("Use `SELECT count(*) FROM t`.", "SELECT count(*) FROM t"),
    ("There is no `SELECT` for it.", ""),
    # Without a block.
    ("The query is SELECT 1;\nIt gives one.", "SELECT 1;"),
    ("SELECT ';' FROM t; It counts.", "SELECT ';' FROM t;"),
    ("SELECT 1\nFROM t\n\nThis counts the rows.", "SELECT 1\nFROM t"),
    (
        "WITH a AS (SELECT 1),\n\nb AS (SELECT 2)\n\nSELECT * FROM b",
        "WITH a AS (SELECT 1),\n\nb AS (SELECT 2)\n\nSELECT * FROM b",
    ),
    ("Here is the query:\nselect count(*) from t;", "select count(*) from t;"),
    ("Here:\n\nwith a(x) as (select 1) select * from a", "with a(x) as (select 1) select * from a"),
    ("(SELECT 1) UNION (SELECT 2)", "(SELECT 1) UNION (SELECT 2)"),
    ("select name n from t", "select name n from t"),
    ("SELECT a IS NULL FROM t", "SELECT a IS NULL FROM t"),
    ("<think>SELECT 9 FROM x</think>No data on this.", ""),
    ("perhaps SELECT 9 FROM x</think>\nSELECT 1;", "SELECT 1;"),
    # No SQL at all.
    ("", ""),
    ("I answer with care, and select nothing.", ""),
    ("The data has no prices.", ""),
    ("With the tables given, there is no data on prices.", ""),
    ("Select is not possible from these tables.", ""),
    ("The data is missing, so no SELECT can answer this from the tables.", ""),
    ("Answering this WITH the data is impossible.", ""),
    ("There is no SELECT, sorry.", ""),
    ("I would use sql here.", ""),
]


@pytest.mark.parametrize(("reply", "sql"), REPLIES)
def test_the_sql_of_a_reply(reply: str, sql: str) -> None:
    said, _ = without_thoughts(reply)
    assert sql_in_text(said) == sql


def test_a_long_reply_is_read_at_once() -> None:
    without_thoughts("</think>" * 100_000 + "<think>" * 100_000)
    for reply in ("`" * 20_000, "SELECT a b c " * 2_000, "WITH x (" * 3_000, "```sql\n" * 3_000, "\n\nword" * 5_000):
        sql_in_text(reply)
