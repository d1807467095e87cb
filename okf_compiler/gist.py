"""What a table is about, in one line made of its columns' meanings. No model takes part."""

from __future__ import annotations

import re
from collections.abc import Iterator

from okf_compiler import markdown
from okf_compiler.model import Column, Table

_CHARS = 185
_PHRASE_CHARS = 42
_FULL_NAME = re.compile(r"full name\s*:\s*'([^']+)'", re.IGNORECASE)
_TYPE = re.compile(
    r"^(?:(?:an?|the)\s+)?(?:(?:primary key\s*\()?"
    r"(?:VARCHAR|CHAR|CHARACTER(?: VARYING)?|TEXT|INTEGER|INT|BIGINT|SMALLINT|"
    r"BIGSERIAL|SERIAL|NUMERIC|DECIMAL|REAL|FLOAT|DOUBLE(?: PRECISION)?|BOOLEAN|BOOL|DATE|TIMESTAMP(?:TZ)?|TIME|UUID|"
    r"JSONB?|BYTEA|enum)\b\s*(?:\([^()]*\))*\)?\s*(?:(?:column|value|field|array|flag|count|string)\b)?[\s.,:;-]*)?",
    re.IGNORECASE,
)
_NULLS = re.compile(r"^(?:(?:not )?null(?:able)?|unique|required)\b[\s.,:;]*", re.IGNORECASE)
_VERB = re.compile(
    r"^(?:(?:that|which|is|currently)\s+)*(?:for|of|indicating|describing|specifying|representing|denoting|capturing|"
    r"naming|storing|showing|noting|recording|giving|labell?ing|logging|tagging|measuring|containing|holding|"
    r"describes|indicates|specifies|represents|stores|shows|records|contains|holds)\s+",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_END = re.compile(r"[.;:(\[,\n—–]|\s-\s|\s(?:such as|e\.g|i\.e|possible|in the range|from 0)\b", re.I)
_IDENTIFIES = re.compile(
    r"identif\w*\s+(?:code\s+)?(?:for\s+|of\s+)?(?:each|every|an?|the|this)\s+"
    r"(?:specific\s+|individual\s+|unique\s+)?([^.;:,(\[]+)",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"(?:from|or|and|with|in|at|as)\b.*|(?:possible )?values?|column|field|number|code|text|(?<!\w)\w+_enum\b.*",
    re.IGNORECASE,
)
"""A phrase that says nothing without its column's name."""
_OPEN_ENDED = re.compile(
    r"(?:of|the|an?|for|to|in|and|or|with|by|on|it|that|was|is|as|at|from|its|their)", re.IGNORECASE
)
_TAIL = re.compile(
    r"(?<!\s)\s+(?:in|within|of|from|on) (?:the|this) .*$|(?<!\s)\s+(?:record|entry|row|table)s?$", re.IGNORECASE
)
_KEY = re.compile(r"\b(?:primary key|foreign key|referenc\w+|FK\b|PK\b|identif\w+)", re.IGNORECASE)


def table_gist(table: Table) -> str:
    """A description for a table whose documents have none: what a row is, and what its columns say.

    What a row is comes from the meaning of the key, what stands behind it from the meanings of the other columns, a
    few words of each, and a column's name where it has no meaning.
    """
    if not table.columns:
        return "Its columns are not documented."
    refers = sorted({key.ref_table for key in table.foreign_keys if key.ref_table != table.name})
    end = (
        f" ({len(table.columns)} column{'s' * (len(table.columns) != 1)}"
        + (f"; refers to {', '.join(refers)}" if refers else "")
        + ")"
    )
    row = _row(table)
    phrases = list(dict.fromkeys(_phrases(table)))
    shown: list[str] = []
    for phrase in phrases:
        if shown and len("; ".join([row, *shown, phrase])) > _CHARS - min(len(end), 60):
            break
        shown.append(phrase)
    text = "; ".join(shown) + ("; …" if len(shown) < len(phrases) else "")
    return markdown.one_line((f"{row}: " if row else "") + text + end + ".")


def phrase(meaning: str) -> str:
    """A few words of a column's meaning: the thing it says the column holds.

    >>> phrase("An enum (HazType_enum) describing the primary hazard type; possible values include 'Flood'.")
    'primary hazard type'
    >>> phrase("Full name: 'Lunar Phase'. Explanation: The current phase of the Moon.")
    'Lunar Phase'
    >>> phrase("A TIMESTAMP, local time. When the order was placed, or the basket saved.")
    'when the order was placed'
    """
    full = _FULL_NAME.search(meaning)
    if full:
        return full[1].strip()
    rest = " ".join(meaning.split())
    rest = _NULLS.sub("", _TYPE.sub("", rest, count=1))
    if rest.lower().startswith("local time. "):
        rest = rest[len("local time. ") :]
    rest = _ARTICLE.sub("", _VERB.sub("", rest))
    cut = _END.search(rest, 1)
    words = (rest[: cut.start()] if cut else rest).strip(" '\"").split(" ")
    length = len(" ".join(words))
    if length > _PHRASE_CHARS:
        while len(words) > 1 and (length > _PHRASE_CHARS or _OPEN_ENDED.fullmatch(words[-1])):
            length -= len(words.pop()) + 1
    text = " ".join(words)
    return text[0].lower() + text[1:] if text[1:2].islower() else text


def _phrases(table: Table) -> Iterator[str]:
    """Of every column, but for keys, which are said to refer; a table of nothing else has only their names."""
    keys = {*table.primary_key, *(c for key in table.foreign_keys for c in key.columns)}
    columns = [c for c in table.columns if c.name not in keys and not _KEY.search(c.meaning or "")]
    yield from map(_of, columns) if columns else (c.name for c in table.columns)


def _of(column: Column) -> str:
    words = phrase(column.meaning) if column.meaning else ""
    return words if any(c.isalpha() for c in words) and not _EMPTY.fullmatch(words) else column.name


def _row(table: Table) -> str:
    """What one row is, as the meaning of a primary key of one column says it; else nothing."""
    if len(table.primary_key) != 1:
        return ""
    key = table.column(table.primary_key[0])
    found = _IDENTIFIES.search(key.meaning or "") if key else None
    words = _TAIL.sub("", found[1].strip()).split() if found else []
    return f"Each {' '.join(words)}" if 0 < len(words) <= 5 else ""
