"""Text that a terminal shows and does not obey, whoever wrote it: a model, a document, a cell, a file's name."""

from __future__ import annotations

import re

ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 and C1: escape sequences, line ends
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # direction, invisible, line ends
    "\ud800-\udfff\U000e0000-\U000e007f]"  # no characters; tags
)


def inert(text: str) -> str:
    r"""One line of it: controls, line ends and direction marks are written out.

    >>> inert("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    return ACTIVE.sub(lambda m: m.group().encode("unicode_escape").decode("ascii"), text)


def inert_lines(text: str) -> str:
    r"""The same with its line ends kept.

    >>> inert_lines("a\x1b[31mb\r\nc")
    'a\\x1b[31mb\nc'
    """
    return "\n".join(inert(line.removesuffix("\r")) for line in text.split("\n"))
