"""What a line typed at the prompt means where it is no question: words that people know from elsewhere, and SQL."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

WORDS: Mapping[str, str] = {
    **dict.fromkeys(("exit", "quit", "bye", "\\q", ":q", ":q!", ":wq", "logout"), "/exit"),
    **dict.fromkeys(("help", "?", "\\?", "\\h"), "/help"),
    **dict.fromkeys(("clear", "cls"), "/clear"),
    **dict.fromkeys(("\\l", "\\c"), "/db"),
}
"""Words alone on a line, of shells, psql, editors and Python, and the command of the prompt that does the same."""
_CALLED = re.compile(r"(\w+)\(\)")
_STATEMENT = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:explain\s+(?:analyze\s+)?)?"
    r"(?P<statement>\(*(?P<word>select|with|values|table|insert|update|delete|merge|create|alter|drop|truncate|grant|"
    r"revoke|copy)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(r"""[*;=<>()"]|'[^']*'|\w\.\w|\b\d+\s*$""")
"""What a query has, and hardly any question that begins with one of its words."""


def command_of(line: str) -> str:
    """The command that a line stands for; "" for every other line.

    >>> command_of("Exit;"), command_of("quit()"), command_of("?"), command_of("exit the shop?")
    ('/exit', '/exit', '/help', '')
    """
    word = line.strip().rstrip(";").strip().lower()
    if called := _CALLED.fullmatch(word):
        word = called[1]
    return WORDS.get(word, "")


def is_sql(line: str, tables: Iterable[str]) -> bool:
    """Whether a line begins and reads like a statement, as no question does; `tables` are those of the database.

    >>> is_sql("select count(*) from orders", ()), is_sql("select name from orders", ["orders"])
    (True, True)
    >>> is_sql("Select the customers from Germany", ["orders"]), is_sql("With which carrier (2)?", [])
    (False, False)
    """
    begins = _STATEMENT.fullmatch(line)
    if begins is None or line.rstrip().endswith("?"):
        return False
    if begins["word"].isupper() or line.rstrip().endswith(";"):
        return True
    import sqlglot

    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        (parsed,) = sqlglot.parse(begins["statement"], dialect="postgres")
    except (sqlglot.ParseError, sqlglot.TokenError, ValueError):
        return False
    if parsed is None or isinstance(parsed, sqlglot.exp.Command):
        return False
    named = {table.name.lower() for table in parsed.find_all(sqlglot.exp.Table)}
    return bool(_CODE.search(line)) or any(table.lower() in named for table in tables)
