"""What a description claims about a column's values, read conservatively: a phrase that can be doubted is no claim."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["values", "examples", "range", "percent", "unique", "key", "not null", "has null", "date", "time",
               "unit", "case noise", "reference", "type"]  # fmt: skip

_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "‑": "-", "`": "'"})
_CLOSED = re.compile(
    r"""(?: \b(?:currently\s+)?possible\s+(?:values|categories|enumerations|options)(?:\s+(?:include|are))?\s*:?
      | \bcontains\s+values\s*:
      | \b(?:accepted|allowed|valid|permitted)\s+values\s*(?:are|include|:)
      | \bvalues\s*:  | \bone\s+of\s*:?  | \benum\s*: | \bmust\s+be\s+either\b )(?!\s*(?:might|like|such)\b)\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_ENUM_LIST = re.compile(r"\benum\s*\(\w+\)[^.()]*\((?P<list>[^()]*,[^()]*)\)", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:values?\s+like|codes?\s+like|combinations\s+like|like(?=\s+')|such\s+as|e\.g\.,?|"
    r"possible\s+values\s+might\s+include|common\s+values\s+are)\s*:?\s*",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\s*+(?:,\s*+(?:or|and)\b|,|;|/|\bor\b|\band\b)*+\s*+(?:'((?:[^']|'(?=\w))+)'|\"([^\"]+)\")")
_UNFINISHED = re.compile(r"\betc\b|\.\.\.|…|\bothers?\s*$", re.IGNORECASE)
_NUMBER = r"[-−]?\d+(?:\.\d+)?"
_RANGES = (
    re.compile(
        rf"\b(?:rang(?:e|es|ing)|scale|score|scored|values?|rated|bounded|goes)\s+(?:\w+\s+){{0,2}}?(?:from|of|between)?\s*"
        rf"(?P<low>{_NUMBER})\s*%?\s*(?:to|-|–|—|and)\s*(?P<high>{_NUMBER})(?![\w.]*[/\d-])", re.IGNORECASE),
    re.compile(rf"\bbetween\s+(?P<low>{_NUMBER})\s*%?\s+and\s+(?P<high>{_NUMBER})\b", re.IGNORECASE),
    re.compile(rf"[(\[]\s*(?P<low>{_NUMBER})\s*%?\s*(?:to|-|–|—)\s*(?P<high>{_NUMBER})\s*%?\s*(?:scale)?\s*[)\]]"),
)  # fmt: skip
_UNIQUE = re.compile(
    r"\bunique(?:\s+\w+){0,3}?\s+(?:identifier|id|key|code|reference|name)\b|\buniquely\s+identif|\bmust\s+be\s+unique\b"
    r"|\bunique\s+across\b",
    re.IGNORECASE,
)
_PART = re.compile(
    r"\bcomposite\b|\bpart\s+of\b|\bcombination\b|\bnot\s+(?:\w+\s+)?unique\b|\bor\s+unique\b", re.IGNORECASE
)
_KEY = re.compile(r"\bprimary\s+key\b|\bPK\b", re.IGNORECASE)
_NOT_NULL = re.compile(r"\bnot\s+null\b|\bnever\s+(?:null|empty|missing)\b|\bcannot\s+be\s+null\b", re.IGNORECASE)
_HAS_NULL = re.compile(r"\bcontains\s+null\b|\bnull\s+(?:means|indicates|if|when|where)\b", re.IGNORECASE)
_DATE = re.compile(
    r"(?<!\w)(?:yyyy([-/.])mm\1dd|(?:dd([-/.])mm|mm([-/.])dd)[-/.]yyyy)(?!\w)(?P<time>\s+hh)?", re.IGNORECASE
)
_TIME = re.compile(r"\bdate\s+and\s+time\b", re.IGNORECASE)
_UNIT = re.compile(
    rf"\bex(?:ample)?\s*[:.]\s*{_NUMBER}(?:e-?\d+)?\s+(?P<unit>[A-Za-z$%][^\s,.;/]*/[^\s,;]*[^\s,.;])", re.IGNORECASE
)
_NOISE = re.compile(r"\bcase\s+variations?\b|\bmixed[\s-]case\b|\bdata\s+noise\b", re.IGNORECASE)
_REFERENCE = re.compile(
    r"\bFK\s+to\s+(?P<a>\w+)|\breferenc(?:es|ing)\s+(?P<b>\w+)\s*\(\s*(?P<c>\w+)\s*\)", re.IGNORECASE
)
_TYPE = re.compile(
    r"^\s*(?P<type>text|varchar|char|smallint|integer|int|bigint|real|numeric|decimal|boolean|date|timestamp|uuid)"
    r"(?:\(\d+(?:,\s*\d+)?\))?\.\s",
    re.IGNORECASE,
)
LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class Claim:
    kind: Kind
    quote: str
    """The words of the description that say so."""
    values: tuple[str, ...] = ()
    """Listed values or examples; the unit; the pattern of a date; the table (and column) referred to."""
    low: float = 0
    high: float = 0


def claims(text: str | None) -> list[Claim]:
    """Every claim of one description, in no order that matters.

    >>> [(c.kind, c.values) for c in claims("Risk. Possible values: Low, High. Contains NULL when unknown.")]
    [('values', ('Low', 'High')), ('has null', ())]
    >>> [(c.kind, c.low, c.high) for c in claims("Total score, ranging from 0 to 27.")]
    [('range', 0.0, 27.0)]
    """
    if not text:
        return []
    plain = text.translate(_QUOTES)
    return [*_lists(plain), *_numbers(plain), *_keys(plain), *_nulls(plain), *_forms(plain)]


def _lists(text: str) -> Iterator[Claim]:
    closed = [(m.start(), m.end()) for m in _CLOSED.finditer(text)]
    for start, end in closed:
        values, _ = listed_values(text[end:])
        if len(values) > 1:
            unfinished = _UNFINISHED.search(_sentence(text[end:].lstrip(" :(")))
            yield Claim("examples" if unfinished else "values", _clip(text[start:]), values)
    for found in [] if closed else _ENUM_LIST.finditer(text):
        inner = found["list"]
        open_list = _OPEN.match(inner)
        values = listed_values(inner[open_list.end() :] if open_list else inner)[0]
        if len(values) > 1:
            kind: Kind = "examples" if open_list or _UNFINISHED.search(inner) else "values"
            yield Claim(kind, _clip(found[0]), values)
    if not closed and not _ENUM_LIST.search(text):
        for found in _OPEN.finditer(text):
            values, quoted = listed_values(text[found.end() :])
            if quoted and not _NOISE.search(text[max(0, found.start() - 60) : found.start()]):
                yield Claim("examples", _clip(text[found.start() :]), values)


def listed_values(text: str) -> tuple[tuple[str, ...], bool]:
    """The values that a text begins with, and whether they stand in quotes."""
    text = text.lstrip(" :")
    text = text[1:] if text.startswith("(") else text
    quoted: list[str] = []
    position = 0
    while found := _QUOTED.match(text, position):
        quoted.append((found[1] or found[2]).strip())
        position = found.end()
    if quoted:
        return tuple(dict.fromkeys(quoted)), True
    separator = ";" if ";" in _sentence(text) else ","
    parts = [re.sub(r"^(?:or|and)\s+", "", p.strip()) for p in _sentence(text).split(separator)]
    values = [p for p in parts if p and len(p) <= LONGEST_VALUE]
    return (tuple(dict.fromkeys(values)), False) if len(values) == len(parts) else ((), False)


def _sentence(text: str) -> str:
    """Up to the first closing bracket or the full stop that ends a sentence."""
    return re.split(r"[)\]]|\*\*|\.(?=\s|$|\*)|\n", text, maxsplit=1)[0].strip()


def _numbers(text: str) -> Iterator[Claim]:
    for pattern in _RANGES:
        found = pattern.search(text)
        if found:
            low, high = (float(found[name].replace("−", "-")) for name in ("low", "high"))
            if low < high:
                yield Claim("range", _clip(found[0]), low=low, high=high)
                return
    if re.search(r"\bas\s+(?:an?\s+)?(?:\w+\s+)?percentage\b", text, re.IGNORECASE):
        yield Claim("percent", "as percentage", low=0, high=100)


def _keys(text: str) -> Iterator[Claim]:
    if _PART.search(text):
        return
    key, unique = _KEY.search(text), _UNIQUE.search(text)
    if key and not re.search(r"\bforeign\s+key\b|\bFK\b", text, re.IGNORECASE):
        yield Claim("key", key[0])
    elif unique and not re.search(r"\breference\s+to\b|\bFK\b|\bforeign\b", text, re.IGNORECASE):
        yield Claim("unique", unique[0])
    for found in _REFERENCE.finditer(text):
        yield Claim("reference", found[0], tuple(n for n in (found["a"] or found["b"], found["c"]) if n))


def _nulls(text: str) -> Iterator[Claim]:
    has, never = _HAS_NULL.search(text), _NOT_NULL.search(text)
    if has:
        yield Claim("has null", has[0])
    elif never:
        yield Claim("not null", never[0])


def _forms(text: str) -> Iterator[Claim]:
    if found := _DATE.search(text):
        if not found["time"]:
            pattern = re.sub(r"[ymd]+", lambda m: rf"\d{{{len(m[0])}}}", found[0].lower().replace(".", r"\."))
            yield Claim("date", found[0], (pattern,))
    elif found := _TIME.search(text):
        yield Claim("time", found[0])
    if found := _UNIT.search(text):
        yield Claim("unit", found[0], (found["unit"],))
    if found := _TYPE.search(text):
        yield Claim("type", found["type"], (found["type"],))
    if found := _NOISE.search(text):
        yield Claim("case noise", found[0])


def _clip(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:79] + "…"
