"""One difference between documents and a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    """What kind of difference: `missing-column`, `unheld-value`, …"""
    severity: Literal["error", "warning", "info"]
    """error: queries written from the documents fail; warning: they can be wrong; info: worth knowing."""
    place: str
    """`table`, `table.column`, `table.column->field->field` or `rule <id>`."""
    text: str
    """What differs, with the numbers that show it."""


def lines(name: str, findings: Sequence[Finding]) -> Iterator[str]:
    """The findings as a person reads them, a summary last."""
    for finding in findings:
        yield f"{finding.severity}: {finding.place}: {finding.text} [{finding.code}]"
    counts = {s: sum(f.severity == s for f in findings) for s in ("error", "warning", "info")}
    yield f"{name}: {counts['error']} errors, {counts['warning']} warnings, {counts['info']} notes"
