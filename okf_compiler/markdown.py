"""Markdown as bundles have it: text put in so that it stays what it was, and links, code and sections read back.

The grammar of fences, code and links is here alone. Whoever wrote a text, reading it takes time in proportion to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>.*)")
_HEADING = re.compile(r"^# ", re.MULTILINE)
_ESCAPED = re.compile(r"([\\`\[\]])")
_CELL = re.compile(r"(?<!\\)\|")
_TICKS = re.compile("`+")
_LINK = re.compile(
    r"(?<!!)\[(?P<title>(?:\\.|[^\[\]\\\n])*+)\]"
    r"\((?P<angle><)?(?P<path>/(?(angle)[^<>#\n]*|[^()\s<>#]*)\.md)(?:#[^()\s<>]*)?>?\)"
)
"""A link to a file of the bundle, as `link` writes it."""
_LINK_OR_ESCAPE = re.compile(rf"\\.|{_LINK.pattern}")
"""An escape is passed over, so that no link begins at a bracket which has one."""
_SPACED = re.compile(r"[\s()]")
_BLOCK = re.compile(r"^ {0,3}(?:#|```|~~~|---|===|\[[^\]]+\]:)", re.MULTILINE)


def one_line(text: str) -> str:
    """The text with every run of white space as one space, if it has a line break; else as it stands."""
    return " ".join(text.split()) if _LINE_BREAK.search(text) or "\t" in text else text.strip()


def cell(text: str) -> str:
    """Text for a table cell: word for word, but for the two signs that would end the cell.

    >>> cell("a|b\\nc")
    'a\\\\|b<br>c'
    """
    return _LINE_BREAK.sub("<br>", text.replace("|", "\\|"))


def uncell(text: str) -> str:
    """What `cell` was given; backslashes before a bar are gone."""
    return text.strip().replace("\\|", "|").replace("<br>", "\n")


def code(text: str) -> str:
    """The text as code, whatever backticks it holds.

    >>> code("a"), code("a`b")
    ('`a`', '`` a`b ``')
    """
    text = one_line(text)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (max(map(len, _TICKS.findall(text))) + 1)
    return f"{fence} {text} {fence}"


def uncode(text: str) -> str:
    """Return what `code` was given; text that is not code as it stands."""
    spans = list(_code_spans(text))
    return _inside(text, *spans[0]) if spans and spans[0] == (0, len(text)) else text


def codes(text: str) -> list[str]:
    """Return what stands in a text as code.

    >>> codes("`a` and `` b`c ``")
    ['a', 'b`c']
    """
    return [_inside(text, *span) for span in _code_spans(text)]


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each piece of code: between two runs of as many backticks, on one line."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    closing: dict[int, int] = {}
    """Number of each run that opens code -> number of the run that closes it."""
    after: dict[int, int] = {}
    """Length of a run -> number of the first such run behind, on this line."""
    line_ends_at = len(text)
    for number in range(len(runs) - 1, -1, -1):
        start, end = runs[number]
        if text.find("\n", end, line_ends_at) >= 0:
            after.clear()
        if end - start in after:
            closing[number] = after[end - start]
        after[end - start] = number
        line_ends_at = start
    number = 0
    while number < len(runs):
        if number in closing:
            start, number = runs[number][0], closing[number]
            yield start, runs[number][1]
        number += 1


def _inside(text: str, start: int, end: int) -> str:
    """Return what stands in a piece of code, without its backticks and one space beside them."""
    marks = text[start:end]
    length = len(marks) - len(marks.lstrip("`"))
    return marks[length : len(marks) - length].removeprefix(" ").removesuffix(" ")


def link(title: str, path: str) -> str:
    """A link whose text shows the title, brackets included.

    >>> link("Rate [%]", "/knowledge/rate.md")
    '[Rate \\\\[%\\\\]](/knowledge/rate.md)'
    """
    text = _ESCAPED.sub(r"\\\1", one_line(title)) or path
    return f"[{text}](<{path}>)" if _SPACED.search(path) else f"[{text}]({path})"


def links(text: str) -> list[str]:
    """Return the paths of the bundle's files that a text links to, in its order, each once; a link in code is none.

    >>> links("* [a \\[b\\]](/x.md), `[y](/y.md)`, [z](</z (2).md>)")
    ['/x.md', '/z (2).md']
    """
    found = _LINK_OR_ESCAPE.finditer(_blanked(text, _code_spans(text)))
    return [*dict.fromkeys(match["path"] for match in found if match["path"])]


def first_link(line: str) -> re.Match[str] | None:
    """Return the first link of a line, with its `title` and `path`."""
    return next((match for match in _LINK_OR_ESCAPE.finditer(line) if match["path"]), None)


def replace_links(text: str, shown: Callable[[re.Match[str]], str]) -> str:
    """Return the text with each link, which has a `title` and a `path`, as `shown` gives it."""
    return _LINK_OR_ESCAPE.sub(lambda match: shown(match) if match["path"] else match[0], text)


def without_code(text: str) -> str:
    """Return the text with spaces for everything in fences and code; its lines stay where they are."""
    text = _blanked(text, fences(text)) if "```" in text or "~~~" in text else text
    return _blanked(text, _code_spans(text)) if "`" in text else text


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], "\n".join(" " * len(line) for line in text[start:end].split("\n"))]
        at = end
    return "".join([*parts, text[at:]]) if parts else text


def plain(text: str) -> str:
    """One line in which nothing is a link: for descriptions that stand in an index."""
    return one_line(text).replace("](", "]\\(")


def verbatim(text: str) -> str:
    """A block that shows the text word for word; fenced where a line of it would be read as a heading or rule."""
    if not _BLOCK.search(text):
        return text
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def unverbatim(text: str) -> str:
    """Return what `verbatim` was given."""
    first, _, rest = text.partition("\n")
    inside, line_break, last = rest.rstrip().rpartition("\n")
    mark = _FENCE.match(first)
    return inside if mark and line_break and last == mark["mark"] else text


def fences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each fenced block with its marks; one that is never closed goes to the end."""
    opened, begin, at = "", 0, 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not opened:
            if mark["mark"][0] == "~" or "`" not in mark["rest"]:
                opened, begin = mark["mark"], at
        elif mark and mark["mark"].startswith(opened) and not mark["rest"].strip():
            yield begin, at + len(line)
            opened = ""
        at += len(line) + 1
    if opened:
        yield begin, len(text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table; the cells are put in as they are given."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def rows(text: str) -> Iterator[list[str]]:
    """The rows of the markdown tables in a text as their cells, below the header."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return ([part.strip() for part in _CELL.split(line)[1:-1]] for line in lines[2:])


@dataclass(frozen=True, slots=True)
class Part:
    """A `# heading` and what stands under it, up to the next one; the heading of a text's beginning is ""."""

    heading: str
    text: str


def sections(body: str) -> list[Part]:
    """Return the body taken apart at its first-level headings; a `#` inside a fence is none."""
    body = body.replace("\r\n", "\n")
    fenced = _blanked(body, fences(body)) if "```" in body or "~~~" in body else body
    begins = [match.start() for match in _HEADING.finditer(fenced)]
    found = [Part("", body[: begins[0] if begins else len(body)].strip("\n"))]
    for begin, end in pairwise([*begins, len(body)]):
        heading, _, text = body[begin + 2 : end].partition("\n")
        found.append(Part(heading.strip(), text.strip("\n")))
    return [part for part in found if part.heading or part.text]


def join(parts: Iterable[Part]) -> str:
    """The body that `sections` takes apart into these parts."""
    blocks = (f"# {p.heading}\n\n{p.text}".rstrip("\n") if p.heading else p.text for p in parts)
    return "\n\n".join(blocks) + "\n"
