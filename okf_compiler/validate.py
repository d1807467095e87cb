"""The rules of OKF v0.2 held against a bundle. An error breaks conformance; everything else is a warning."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from okf_compiler import frontmatter, markdown
from okf_compiler.bundle import LARGEST_FILE, files, is_concept
from okf_compiler.errors import UserError
from okf_compiler.frontmatter import FormatError
from okf_compiler.indexes import OKF_VERSION

_LINK = re.compile(r"(?<!\\)\]\((?:<([^<>\n]*)>|([^()\s]*(?:\([^()\s]*\)[^()\s]*)*))(?:[ \t]+[\"'(][^\n]{0,300}?)?\)")
_DEFINED = re.compile(r"^ {0,3}\[(?!\^)[^\[\]\n]+\]:[ \t]*(?:<([^<>\n]*)>|(\S+))[ \t]*(?:[\"'(].*)?$", re.MULTILINE)
"""The address of a link such as `[text][name]`, which stands on a line of its own: `[name]: /address.md`."""
_PASSWORD = re.compile(r"(?<![a-z0-9+.-])[a-z0-9+.-]++://[^\s/:@]*:[^\s/@]+@", re.IGNORECASE)
_KEY = re.compile(r"^([\w-]+):(?:\s|$)", re.MULTILINE)
_URI = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2}))?")
_ACTOR = re.compile(r"^(?:\S[^\s/]*+/\S+|(?:human|process):\S+)")
_CITES = re.compile(r"\[\^([^\[\]\s]+)\](?!:)")
_FOOTNOTE = re.compile(r"^\[\^([^\]\s]+)\]:", re.MULTILINE)
_INDEX_ENTRY = re.compile(r"^[*-] +\[", re.MULTILINE)
_STATUSES = ("draft", "stable", "deprecated")


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    severity: Literal["error", "warning"]
    path: str
    """Within the bundle, with a leading `/`."""
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.severity}: {self.message} [{self.code}]"


def validate(folder: Path) -> list[Finding]:
    """Every finding in the bundle, by path and line.

    Raises:
        UserError: there is no such folder, or a file cannot be read.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.", status=2)
    try:
        content = {path: _beginning(folder / path) for path in files(folder)}
        links = [p for p in folder.rglob("*") if p.is_symlink()]
    except OSError as error:
        raise UserError(f"{error.filename or folder} cannot be read: {error.strerror}.") from None
    skipped = [
        _warning("symbolic-link", f"/{p.relative_to(folder).as_posix()}", 1, "symbolic links are not read")
        for p in links
    ]
    return sorted([*check(content), *skipped], key=lambda f: (f.path, f.line, f.code))


def _beginning(file: Path) -> bytes:
    """Return a file's bytes; of one that is too large, enough to tell."""
    with file.open("rb") as handle:
        return handle.read(LARGEST_FILE + 1)


def check(content: Mapping[str, bytes], *, links: bool = True) -> Iterator[Finding]:
    """Findings in files given as relative path -> bytes; without `links` these need not be the whole bundle."""
    known = {*content, *(path[:-3] for path in content if path.endswith(".md"))}
    known |= {parent for path in content for parent in _parents(path)}
    for path, data in content.items():
        if not path.lower().endswith(".md"):
            continue
        place = f"/{path}"
        if len(data) > LARGEST_FILE:
            said = f"has more than {LARGEST_FILE:,} bytes, so no model reads it: take it apart"
            yield _warning("too-large", place, 1, said)
            continue
        yield from _passwords(place, data)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            yield _error("not-utf8", place, data.count(b"\n", 0, error.start) + 1, "is not UTF-8")
            continue
        try:
            front, body, first = frontmatter.split(text)
            values = frontmatter.load(front) if front is not None else None
        except FormatError as error:
            yield _error("bad-frontmatter", place, error.line, str(error))
            continue
        if is_concept(path):
            yield from check_concept(place, values, front or "")
            yield from check_body(place, values or {}, body, first)
        elif path.rpartition("/")[2].lower() == "index.md":
            yield from _index(place, values, body, first)
        else:
            yield from _log(place, values, body, first)
            continue  # it tells of concepts that are gone by now, too
        if links:
            yield from _links(place, body, first, known)


def check_concept(path: str, values: Mapping[str, Any] | None, front: str = "") -> Iterator[Finding]:
    """Findings in a concept's frontmatter (None: there is none); `front` is its text, for line numbers."""
    if values is None:
        yield _error("no-frontmatter", path, 1, "a concept begins with frontmatter between two lines `---`")
        return
    key, times = next(iter(Counter(_KEY.findall(front)).most_common(1)), ("", 0))
    if times > 1:
        yield _warning("key-twice", path, _line(front, key), f"{key} stands twice; the last one counts")
    kind = values.get("type")
    if not isinstance(kind, str) or not kind.strip():
        got = f"it is {kind!r}; put it in quotes" if "type" in values and kind is not None else "it is missing"
        yield _error("no-type", path, _line(front, "type"), f"type must be a text that is not empty: {got}")
    for key in ("title", "description"):
        if not isinstance(values.get(key), str) or not str(values[key]).strip():
            yield _warning(f"no-{key}", path, _line(front, key), f"{key} is missing or no text")
    for key, code, fault in _optional_keys(values):
        yield _warning(code, path, _line(front, key), fault)
    if kind == "Attested Computation" and not values.get("runtime"):
        yield _warning("no-runtime", path, 1, "an Attested Computation names its runtime")


def check_body(path: str, values: Mapping[str, Any], body: str, first: int) -> Iterator[Finding]:
    """Findings in what stands below a concept's frontmatter; `first` is the line on which it begins."""
    if "# Citations" in body and (match := re.search(r"^# Citations\s*$", markdown.without_code(body), re.MULTILINE)):
        line = first + body.count("\n", 0, match.start())
        yield _warning("old-form", path, line, "a section `# Citations` is the old form of sources")
    if "[^" in body:
        text = markdown.without_code(body)
        sources = values.get("sources")
        known = {s.get("id") for s in sources if isinstance(s, dict)} if isinstance(sources, list) else set()
        known |= set(_FOOTNOTE.findall(text))
        for match, line in _with_lines(_CITES, text, first):
            if match[1] not in known:
                yield _warning("unknown-source", path, line, f"cites [^{match[1]}], which is no id of its sources")
    if values.get("type") == "Attested Computation" and not values.get("computation"):
        fences = len(list(markdown.fences(body)))
        if fences != 1:
            yield _warning("no-computation", path, first, f"needs one computation, by path or fenced; it has {fences}")


def _optional_keys(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(key, code, fault) for each optional key that is there in another form than the format's."""
    tags = values.get("tags")
    if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        yield "tags", "bad-tags", "tags must be a list of texts"
    sources = values.get("sources")
    if sources is not None and not (
        isinstance(sources, list) and all(isinstance(s, dict) and s.get("resource") for s in sources)
    ):
        yield "sources", "bad-sources", "sources must be a list of entries that each have a resource"
    resource = values.get("resource", "x")
    if not isinstance(resource, str) or not resource.strip():
        yield "resource", "bad-resource", "resource must be a URI"
    parameters = values.get("parameters", [])
    if values.get("type") == "Attested Computation" and not (
        isinstance(parameters, list)
        and all(isinstance(p, dict) and p.get("name") and p.get("type") for p in parameters)
    ):
        yield "parameters", "bad-parameters", "parameters must be a list of entries that each have a name and a type"
    if "generated" in values:
        yield from _stamp("generated", values["generated"])
    verified = values.get("verified", [])
    for mark in verified if isinstance(verified, list) else [verified]:
        yield from _stamp("verified", mark)
    status = values.get("status", "stable")
    if not isinstance(status, str) or status not in _STATUSES:
        yield "status", "bad-status", f"status is one of {', '.join(_STATUSES)}"
    if "stale_after" in values and not _INSTANT.fullmatch(str(values["stale_after"])):
        yield "stale_after", "bad-instant", "stale_after must be an ISO 8601 date-time with an offset"
    if "timestamp" in values:
        yield "timestamp", "old-form", "timestamp is the old form of generated.at"


def _stamp(key: str, value: Any) -> Iterator[tuple[str, str, str]]:
    """A mapping {by, at}."""
    by = value.get("by") if isinstance(value, dict) else None
    if not isinstance(by, str):
        yield key, f"bad-{key}", f"{key} needs `by`: <producer>/<version>, human:<id> or process:<id>"
    elif not _ACTOR.fullmatch(by):
        yield key, "bad-actor", f"{by!r} is not <producer>/<version>, human:<id> or process:<id>"
    if isinstance(value, dict) and "at" in value and not _INSTANT.fullmatch(str(value["at"])):
        yield key, "bad-instant", f"{key}.at must be an ISO 8601 date-time with an offset"


def _index(path: str, values: dict[str, Any] | None, body: str, first: int) -> Iterator[Finding]:
    entry = _INDEX_ENTRY.search(body)
    if entry and not re.search(r"^#+ ", body[: entry.start()], re.MULTILINE):
        line = first + body.count("\n", 0, entry.start())
        yield _warning("index-heading", path, line, "an index's entries stand under headings")
    if values is None:
        return
    if path.lower() != "/index.md":
        yield _error("index-frontmatter", path, 1, "only the root index may have frontmatter")
    elif set(values) != {"okf_version"}:
        yield _error("index-frontmatter", path, 1, "the root index's frontmatter holds okf_version alone")
    elif values["okf_version"] != OKF_VERSION:
        version = values["okf_version"]
        yield _warning("okf-version", path, 2, f'okf_version is {version!r}; this reads "{OKF_VERSION}", a text')


def _log(path: str, values: dict[str, Any] | None, body: str, first: int) -> Iterator[Finding]:
    if values is not None:
        yield _error("log-frontmatter", path, 1, "a log has no frontmatter")
    days: list[str] = []
    for number, line in enumerate(markdown.without_code(body).split("\n"), first):
        if not line.startswith("## "):
            continue
        day = line[3:].strip()
        if not _is_date(day):
            yield _error("log-heading", path, number, f"a log's headings are `## YYYY-MM-DD`, not {line!r}")
        elif days and day > days[-1]:
            yield _warning("log-order", path, number, "the newest day stands first")
        days.append(day)


def _is_date(day: str) -> bool:
    try:
        return _DATE.fullmatch(day) is not None and date.fromisoformat(day) is not None
    except ValueError:
        return False


def _passwords(path: str, data: bytes) -> Iterator[Finding]:
    """A warning for each line with a URL that holds a password; it does not show it."""
    if b"://" not in data or b"@" not in data:
        return
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if _PASSWORD.search(line):
            yield _warning(
                "password", path, number, "holds a URL with a password: take it out, and change the password"
            )


def _parents(path: str) -> Iterator[str]:
    """The folders that a relative path lies in, the root included."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield from ("", ".")


def _links(path: str, body: str, first: int, known: AbstractSet[str]) -> Iterator[Finding]:
    """A warning for each link to a file or folder of the bundle that is not among the known ones."""
    if "](" not in body and "]:" not in body:
        return
    body = markdown.without_code(body)
    for match, line in chain(_with_lines(_LINK, body, first), _with_lines(_DEFINED, body, first)):
        address = match[1] if match[1] is not None else match[2]
        if not address or address.startswith(("#", "//")) or _URI.match(address):
            continue
        if _target(path, address) not in known:
            yield _warning("broken-link", path, line, f"links to {address}, which is not in the bundle")


def _with_lines(pattern: re.Pattern[str], text: str, first: int) -> Iterator[tuple[re.Match[str], int]]:
    """Yield each match with its line, counted from `first`."""
    line, at = first, 0
    for match in pattern.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield match, line


def _target(path: str, address: str) -> str:
    """The relative path of the file that a link leads to."""
    address = re.split(r"[#?]", address, maxsplit=1)[0]
    if "%" in address:
        address = unquote(address)
    base = "" if address.startswith("/") else posixpath.dirname(path)
    return posixpath.normpath(f"{base}/{address}").strip("/")


def _line(front: str, key: str) -> int:
    """The file's line on which a top-level key stands; 1 where it does not."""
    lines = front.split("\n")
    return next((n for n, line in enumerate(lines, 2) if line.startswith(f"{key}:")), 1)


def _error(code: str, path: str, line: int, message: str) -> Finding:
    return Finding(code, "error", path, line, message)


def _warning(code: str, path: str, line: int, message: str) -> Finding:
    return Finding(code, "warning", path, line, message)
