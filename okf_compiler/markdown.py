"""Text put into markdown so that it stays what it was: cells, link texts, one-line descriptions, headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^# ", re.MULTILINE)
_ESCAPED = re.compile(r"([\\`\[\]])")
_CELL = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"(?<!`)(?P<fence>`+)(?!`) ?(?P<code>.+?) ?(?<!`)(?P=fence)(?!`)")
LINK = re.compile(
    r"(?<!!)\[(?P<title>(?:\\.|[^\[\]\\\n])*)\]"
    r"\((?P<angle><)?(?P<path>/(?(angle)[^<>#\n]*|[^()\s<>#]*)\.md)(?:#[^()\s<>]*)?>?\)"
)
"""A link to a file of the bundle, as `link` writes it."""
_LINK_OR_CODE = re.compile(rf"{LINK.pattern}|{CODE.pattern}")
_FENCED = re.compile(r"\A(`{3,}|~{3,})[^\n]*\n(.*)\n\1\s*\Z", re.DOTALL)
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
    fence = "`" * (max(len(run) for run in re.findall("`+", text)) + 1)
    return f"{fence} {text} {fence}"


def uncode(text: str) -> str:
    """What `code` was given; text that is not code as it stands."""
    found = CODE.fullmatch(text)
    return found["code"] if found else text


def codes(text: str) -> list[str]:
    """What stands in a text as code.

    >>> codes("`a` and `` b`c ``")
    ['a', 'b`c']
    """
    return [found["code"] for found in CODE.finditer(text)]


def link(title: str, path: str) -> str:
    """A link whose text shows the title, brackets included.

    >>> link("Rate [%]", "/knowledge/rate.md")
    '[Rate \\\\[%\\\\]](/knowledge/rate.md)'
    """
    text = _ESCAPED.sub(r"\\\1", one_line(title)) or path
    return f"[{text}](<{path}>)" if _SPACED.search(path) else f"[{text}]({path})"


def links(text: str) -> list[str]:
    """Paths of the bundle's files that a text links to, in its order, each once; a link inside code is none.

    >>> links("* [a \\[b\\]](/x.md), `[y](/y.md)`, [z](</z (2).md>)")
    ['/x.md', '/z (2).md']
    """
    return [*dict.fromkeys(found["path"] for found in _LINK_OR_CODE.finditer(text) if found["path"])]


def plain(text: str) -> str:
    """One line in which nothing is a link: for descriptions that stand in an index."""
    return one_line(text).replace("](", "]\\(")


def verbatim(text: str) -> str:
    """A block that shows the text word for word; fenced where a line of it would be read as a heading or rule."""
    if not _BLOCK.search(text):
        return text
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def unverbatim(text: str) -> str:
    """What `verbatim` was given."""
    fenced = _FENCED.match(text)
    return fenced[2] if fenced else text


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
    """The body taken apart at its first-level headings; a `#` inside a fence is none."""
    if "```" not in body and "~~~" not in body:
        lead, *rest = _HEADING.split(body.replace("\r\n", "\n"))
        found = [Part("", lead.strip("\n"))]
        found += [Part(heading.strip(), text.strip("\n")) for heading, _, text in (r.partition("\n") for r in rest)]
        return [part for part in found if part.heading or part.text]
    parts: list[Part] = []
    lines: list[str] = []
    heading = fence = ""
    for line in body.replace("\r\n", "\n").split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        if not fence and line.startswith("# "):
            parts.append(Part(heading, "\n".join(lines).strip("\n")))
            heading, lines = line[2:].strip(), []
        else:
            lines.append(line)
    parts.append(Part(heading, "\n".join(lines).strip("\n")))
    return [part for part in parts if part.heading or part.text]


def join(parts: Iterable[Part]) -> str:
    """The body that `sections` takes apart into these parts."""
    blocks = (f"# {p.heading}\n\n{p.text}".rstrip("\n") if p.heading else p.text for p in parts)
    return "\n\n".join(blocks) + "\n"
