"""`log.md`: what was added, changed and removed, newest day first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from okf_compiler import markdown
from okf_compiler.bundle import Concept

_NAMES_IN_LOG = 20
_DAY = re.compile(r"^## ", re.MULTILINE)


def log_entry(created: str | None, changes: Mapping[str, Sequence[Concept]]) -> str:
    """A line of the log: what a new bundle holds, or what was added, changed and removed."""
    if created:
        return f"* **Creation**: {created}"
    said = []
    for what, concepts in changes.items():
        links = [
            markdown.code(c.title) if what == "removed" else markdown.link(c.title, c.path)
            for c in concepts[:_NAMES_IN_LOG]
        ]
        if len(concepts) > _NAMES_IN_LOG:
            links.append(f"{len(concepts) - _NAMES_IN_LOG} more")
        if links:
            said.append(f"{what} {', '.join(links)}")
    return f"* **Update**: {'; '.join(said)}."


def add_to_log(log: str | None, date: str, entry: str) -> str:
    """The log with the entry as the first one of its day (`YYYY-MM-DD`), days newest first; nothing else moves."""
    if not log or not log.strip():
        return f"# Log\n\n## {date}\n\n{entry}\n"
    log = log.replace("\r\n", "\n")
    first = _DAY.search(log)
    if not first:
        return f"{log.rstrip()}\n\n## {date}\n\n{entry}\n"
    heading, _, rest = log[first.start() :].partition("\n")
    if heading.strip() == f"## {date}":
        return f"{log[: first.start()]}{heading}\n\n{entry}\n{rest.lstrip(chr(10))}"
    return f"{log[: first.start()]}## {date}\n\n{entry}\n\n{log[first.start() :]}"
