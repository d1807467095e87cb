"""What can be said of SQL without a connection: fences, characters, one statement or more, its kind.

This gives clear messages early. It is never the only wall: the server is asked in a way that takes one
statement, in a transaction that is read-only and rolled back.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from okf_agent.sql.lexer import Token, significant, tokens
from okf_agent.sql.query_error import QueryError
from okf_agent.sql.refusals import DENIED_FUNCTION, NEVER, refusal

Kind = Literal["query", "explain", "show"]

READS = ("SELECT", "VALUES", "TABLE", "WITH")
WRITES = ("INSERT", "UPDATE", "DELETE", "MERGE")
SYSTEM_SCHEMAS = ("", "pg_catalog", "information_schema")
"""Where PostgreSQL's own functions are; in another schema, one that has the name of one of them is somebody's."""
MAX_CHARS = 200_000
MAX_OPERATOR_CHARS = 63

_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FENCE_IN_LINE = re.compile(r"^\s*`{1,3}([^`\n]+?)`{1,3}\s*$")
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|`?]+")


class SqlTextError(QueryError):
    """SQL text that is refused before any server sees it."""


@dataclass(frozen=True)
class Statement:
    """One statement: its text as it will be sent, and what it is.

    `inner` is the query an EXPLAIN explains and `head` what stands before it; `inner` is the text otherwise.
    """

    text: str
    kind: Kind
    inner: str
    head: str = ""

    @property
    def runs(self) -> bool:
        """Whether the query is run, and not only planned."""
        return self.kind != "explain" or any(t.text.upper() in ("ANALYZE", "ANALYSE") for t in significant(self.head))


def clean(sql: str) -> str:
    """The one read-only statement of `sql`, without fences, byte order mark and closing semicolons.

    >>> clean("```sql\\nSELECT 1; -- done\\n```")
    'SELECT 1'

    Raises:
        SqlTextError: NUL, empty, only a comment, several statements, or a kind that is not a read.
    """
    return parse(sql).text


def parse(sql: str) -> Statement:
    """`clean`, and what kind of statement it is.

    Raises:
        SqlTextError: as `clean`; the text says what to send instead.
    """
    _refuse_characters(sql)
    text = _single(_plain_spaces(_unfence(sql)))
    _refuse_long_operators(text)
    tokens = significant(text)
    kind = _kind(tokens, text)
    if kind == "explain":
        start = _explained(tokens)
        return Statement(text, "explain", text[start:], text[:start])
    return Statement(text, kind, text)


def refuse_functions(sql: str, foreign: Collection[str], allowed: Collection[str]) -> bool:
    """Refuse calls of functions that act or run SQL given as text, and of those that do not belong to PostgreSQL.

    `foreign` are the names people or extensions brought, `allowed` those of `database.allow_functions`, with or
    without a schema. True if one of them is called: then the session cannot be known to be as it was.

    Raises:
        SqlTextError: names the function.
    """
    brought = False
    for schema, name in _called(sql):
        if _may(schema, name, allowed):
            brought = True
        elif DENIED_FUNCTION.fullmatch(name):
            raise SqlTextError(f"The function {name}() does more than read tables. {NEVER}", never=True)
        elif (name in foreign and schema != "pg_catalog") or schema not in SYSTEM_SCHEMAS:
            raise SqlTextError(
                f"The function {name}() is not PostgreSQL's own, and only those named in database.allow_functions "
                "may be called. Write what it does as a query.",
                never=True,
            )
    return brought


def refuse_implied(sql: str, implied: Collection[tuple[str, str, str]], allowed: Collection[str]) -> None:
    """Refuse names and operators that run a function of people's with its owner's rights; `allowed` as above.

    `implied` are such a name, and the schema and name of the function that it runs.

    Raises:
        SqlTextError: names the first.
    """
    acting = {name for name, schema, function in implied if not _may(schema, function.lower(), allowed)}
    if not acting:
        return
    said = {token.name for token in tokens(sql) if token.name}
    signs = _operators(sql)
    for name in sorted(acting):
        if name in said or any(name in sign for sign in signs):
            raise SqlTextError(
                f"{name} runs a function with its owner's rights, which this role has not. Write what it does as a "
                "query.",
                never=True,
            )


def _may(schema: str, name: str, allowed: Collection[str]) -> bool:
    """Whether a function may be called: allowed with a schema is allowed in it alone; a call may name none."""
    entries = [entry.lower().rpartition(".") for entry in allowed]
    return any(name == own and (not schema or where in ("", schema)) for where, _, own in entries)


def _refuse_characters(sql: str) -> None:
    if "\x00" in sql:
        raise SqlTextError("The SQL has a NUL character, and PostgreSQL would stop reading there. Remove it.")
    if len(sql) > MAX_CHARS:
        raise SqlTextError(f"The SQL has {len(sql):,} characters; the most is {MAX_CHARS:,}. Write a shorter query.")
    if any("\ud800" <= c <= "\udfff" for c in sql):
        raise SqlTextError("The SQL has half of a surrogate pair, which is no character. Remove it.")


def _operators(sql: str) -> list[str]:
    return _OPERATOR.findall("".join(token.text if token.kind == "other" else " " for token in tokens(sql)))


def _refuse_long_operators(sql: str) -> None:
    """Raise for a run of operator characters that no operator can have.

    PostgreSQL reads such a run again for each of its characters, and takes no cancel meanwhile: 198,000 characters of
    `+-` kept a server busy for 28 s.
    """
    if any(len(sign) > MAX_OPERATOR_CHARS for sign in _operators(sql)):
        raise SqlTextError(f"An operator has more than {MAX_OPERATOR_CHARS} characters. Put spaces between signs.")


def _unfence(sql: str) -> str:
    """What stands in a markdown fence, if the text is not SQL as it stands."""
    sql = sql.lstrip("\ufeff \t\r\n")
    first = next((t for t in tokens(sql) if t.kind not in ("space", "comment")), None)
    if first is None or (first.kind == "word" and first.text.upper() in _STARTS):
        # "SELECT 1\n```": a fence whose first line was lost.
        return re.sub(r"\n[ \t]*```\Z", "", sql.rstrip())
    blocks = [b.strip() for b in _FENCE.findall(sql) if b.strip()]
    if len(blocks) > 1:
        raise SqlTextError(f"There are {len(blocks)} code blocks. Send one query, without fences.")
    if blocks:
        return str(blocks[0])
    inline = _FENCE_IN_LINE.match(sql)
    return re.sub(r"^sql\s+", "", inline.group(1)) if inline else sql


_STARTS = frozenset((*READS, "EXPLAIN", "SHOW"))


def _plain_spaces(sql: str) -> str:
    """No-break and zero-width spaces between words become spaces; in literals and comments they stay."""
    if sql.isascii():
        return sql
    return "".join(re.sub(r"[^\x00-\x7f]", " ", t.text) if t.kind == "space" else t.text for t in tokens(sql))


def _single(sql: str) -> str:
    """The one statement of the text, from its first character to its last that is not `;` or a comment."""
    statements = 0
    open_statement = False
    start = end = 0
    for token in tokens(sql):
        if token.kind in ("space", "comment"):
            continue
        if token.text == ";" and token.kind == "other":
            open_statement = False
            if not statements:
                start = token.start + 1
            continue
        if not open_statement:
            statements += 1
            open_statement = True
            if statements > 1:
                _refuse_several(sql[token.start :])
        end = token.start + len(token.text)
    if not statements:
        what = "only a comment" if sql.strip(" \t\r\n;") else "empty"
        raise SqlTextError(f"The SQL is {what}. Send one SELECT statement.")
    return sql[start:end].lstrip()


def _refuse_several(rest: str) -> None:
    second = next(tokens(rest)).text
    never = second.upper() not in _STARTS
    raise SqlTextError(
        f"There is more than one statement (the second begins with {second[:30]!r}). Send one statement; "
        "combine reads with WITH or UNION ALL." + (f" {NEVER}" if never else ""),
        never=never,
    )


def _kind(tokens: list[Token], text: str) -> Kind:
    first = next((t for t in tokens if t.text != "("), None)
    word = first.text.upper() if first and first.kind == "word" else ""
    if word == "SHOW":
        return "show"
    if word == "EXPLAIN":
        return "explain"
    if word not in READS:
        message, never = refusal(word, text)
        raise SqlTextError(message, never=never)
    _refuse_writes(tokens)
    return "query"


def _refuse_writes(tokens: list[Token]) -> None:
    """What makes a query write: SELECT INTO, row locks, a WITH that writes inside or at its end."""
    words = [t.text.upper() if t.kind == "word" else t.text for t in tokens]
    if (main := _after_with(words)) in WRITES:
        raise SqlTextError(refusal(main, "")[0], never=True)
    for here, (word, after) in enumerate(itertools.pairwise([*words, ""])):
        if word == "(" and after in WRITES and words[here - 1] in ("AS", "MATERIALIZED"):
            raise SqlTextError(refusal(after, "")[0], never=True)
        if word == "INTO":
            raise SqlTextError(f"SELECT INTO creates a table: leave out INTO. {NEVER}", never=True)
        if word == "FOR" and after in ("UPDATE", "SHARE", "NO", "KEY"):
            raise SqlTextError(f"Rows cannot be locked: leave out FOR {after}. {NEVER}", never=True)


def _after_with(words: list[str]) -> str:
    """The word that begins the statement a WITH stands before, "" where there is none."""
    depth = 0
    for before, word in itertools.pairwise(words if words and words[0] == "WITH" else ()):
        depth += (word == "(") - (word == ")")
        if depth == 0 and before == ")" and word in (*READS, *WRITES):
            return word
    return ""


def _called(sql: str) -> list[tuple[str, str]]:
    """The names that stand before a bracket, as (schema or "", name): functions, among other things.

    Raises:
        SqlTextError: a name in a form that cannot be read here.
    """
    names = []
    found = significant(sql)
    for here, (token, after) in enumerate(itertools.pairwise(found)):
        if token.name is None:
            continue
        if token.text[0] in "uU" and token.kind == "quoted" and after.text.upper() == "UESCAPE":
            raise SqlTextError("A name with UESCAPE is not taken. Write it as it is, in double quotes.")
        if after.text == "(":
            schema = found[here - 2].name if here > 1 and found[here - 1].text == "." else ""
            names.append((schema or "", token.name))
    return names


def _explained(tokens: list[Token]) -> int:
    """Where the query begins that an EXPLAIN explains.

    Raises:
        SqlTextError: it is no query.
    """
    rest = tokens[1:]
    if rest and rest[0].text == "(" and not (len(rest) > 1 and rest[1].text.upper() in (*READS, "(")):
        close = next((i for i, t in enumerate(rest) if t.text == ")"), len(rest) - 1)
        rest = rest[close + 1 :]
    while rest and rest[0].text.upper() in ("ANALYZE", "ANALYSE", "VERBOSE"):
        rest = rest[1:]
    first = next((t for t in rest if t.text != "("), None)
    word = first.text.upper() if first and first.kind == "word" else ""
    if word not in READS:
        raise SqlTextError(f"EXPLAIN is taken of a SELECT only, not of {word or 'nothing'}. {NEVER}", never=True)
    _refuse_writes(rest)
    return rest[0].start
