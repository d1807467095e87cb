"""The SQL in a reply that is one text: in a block of code, or without one, in the forms that models use."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from okf_agent.sql.lexer import Token, significant, tokens


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BLOCK = re.compile(
    r"(?<![`~])(?P<mark>`{3,}|~{3,})(?![`~])(?P<language>[^\n`]*)\n(?P<text>.*?)"
    r"(?:(?=^[ \t]*(?P=mark)\w)|^[ \t]*(?P=mark)[`~]*|(?P=mark)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A fence ends where a line begins or ends with its mark, or where another block begins, or with the reply."""
INLINE = re.compile(r"(?<!`)(`{1,3})(?!`)(?:\w*sql\s+)?([(\s]*(?:select|with)\b.*?)\1", re.DOTALL | re.IGNORECASE)
SQL_LANGUAGE = re.compile(r"[\s{.]*(?:sql|postgres\w*|pgsql)\b", re.IGNORECASE)
START = re.compile(r"^[ \t(]*(?i:select|with)\b|\b(?:SELECT|WITH)\b", re.MULTILINE)
"""Where a query without a block may begin: a line, or a word in capitals."""
MOST_STARTS = 20
"""Places where a query may begin that are looked at."""
PARAGRAPH = re.compile(r"(?<=\S)[^\S\n]*+\n[^\S\n]*+\n\s*+(?P<word>[A-Za-z]+)")
CLAUSES = _words(
    """SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET FETCH WINDOW UNION INTERSECT EXCEPT JOIN LEFT RIGHT FULL INNER
    CROSS NATURAL ON USING AND OR WITH AS CASE WHEN THEN ELSE END"""
)
"""What begins a paragraph that still belongs to the query."""
COMMON_TABLE = re.compile(
    r"[(\s]*WITH\s+(?:RECURSIVE\s+)?(?:\"[^\"]+\"|\w+)\s*(?:\([^)]*\)\s*)?AS\s*(?:(?:NOT\s+)?MATERIALIZED\s*)?\(",
    re.IGNORECASE,
)
PROSE_SIGNS = frozenset(",.;:)?!…`")
"""What never follows the word SELECT in a query."""
LEADING = _words("DISTINCT ALL CASE NOT NULL TRUE FALSE CURRENT_DATE INTERVAL DATE TIMESTAMP ARRAY")
"""What may follow it beside a name."""
BEHIND = _words("FROM AS IS IN NOT AND OR LIKE ILIKE BETWEEN AT COLLATE SIMILAR WHERE UNION LIMIT ORDER")
"""What may follow a name that is no alias."""


def sql_in_text(text: str) -> str:
    """The SQL in a reply: its last sql block, else its last block, else the text from SELECT or WITH; else "".

    >>> sql_in_text("Here it is:\\n```sql\\nSELECT 1\\n```\\nIt gives:\\n```\\n1\\n```")
    'SELECT 1'
    >>> sql_in_text("The query: SELECT 1;\\nIt gives one."), sql_in_text("With these tables, no SELECT can tell.")
    ('SELECT 1;', '')
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = [(bool(SQL_LANGUAGE.match(m["language"])), m["text"].strip()) for m in BLOCK.finditer(plain)]
    if filled := [block for block in blocks if block[1]]:
        return next((sql for is_sql, sql in reversed(filled) if is_sql), filled[-1][1])
    inline = [m[2].strip() for m in INLINE.finditer(plain) if _is_query(m[2])]
    return inline[-1] if inline else next(_bare(plain), "")


def _bare(text: str) -> Iterator[str]:
    """The texts from SELECT or WITH that read as a query, each to its end."""
    for start in itertools.islice(START.finditer(text), MOST_STARTS):
        rest = text[start.start() :].lstrip(" \t") if start.group().strip(" \t(") else ""
        if rest and _is_query(rest):
            yield rest[: _end(rest)].strip()


def _is_query(text: str) -> bool:
    """Whether a text that begins with SELECT or WITH is a query and no sentence: words side by side are one."""
    if COMMON_TABLE.match(text):
        return True
    first, *found = significant(text[:2_000].lstrip(" \t\n("))
    if not found or first.text.upper() == "WITH" or found[0].text in PROSE_SIGNS:
        return False
    if found[0].kind != "word" or found[0].text.upper() in LEADING or (found[1:2] and found[1].text == "("):
        return True
    if not any(_is(token, "FROM") for token in found[1:]) or _is(found[0], "IS"):
        return False
    side_by_side = len(found) > 2 and all(token.kind == "word" for token in found[:3])
    # A column, its alias, and then FROM.
    return not side_by_side or found[1].text.upper() in BEHIND or _is(found[2], "FROM")


def _is(token: Token, word: str) -> bool:
    return token.kind == "word" and token.text.upper() == word


def _end(text: str) -> int:
    """Where a query without a block ends: behind its semicolon, or before a paragraph of prose."""
    ends = [token.start + 1 for token in tokens(text) if token.text == ";"][:1]
    depth = done = 0
    for paragraph in PARAGRAPH.finditer(text):
        before = text[done : paragraph.start()]
        done = paragraph.start()
        depth += before.count("(") - before.count(")")
        is_open = before.endswith(",") or depth > 0
        if not is_open and paragraph["word"].upper() not in CLAUSES:
            ends.append(paragraph.start())
            break
    return min(ends, default=len(text))
