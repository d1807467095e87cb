"""One difference between documents and a database."""

from __future__ import annotations

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
