"""Text that a terminal shows and does not obey, whoever wrote it: a model, a document, a cell, a file's name."""

from __future__ import annotations

import json
import re

DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_BEYOND_CONTROLS = (
    "\x7f-\x9f"  # C1: escape sequences in one character, line ends
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # direction, invisible, line ends
    "\ud800-\udfff\U000e0000-\U000e007f"  # no characters; tags
)
ACTIVE = re.compile(f"[\x00-\x1f{_BEYOND_CONTROLS}]")
_ACTIVE_IN_JSON = re.compile(f"[{_BEYOND_CONTROLS}]")


def inert(text: str) -> str:
    r"""One line of it: controls, line ends and direction marks are written out.

    >>> inert("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    return ACTIVE.sub(lambda m: m.group().encode("unicode_escape").decode("ascii"), text)


def inert_lines(text: str) -> str:
    r"""Lines of it: as `inert`, with line ends and tabs kept.

    >>> inert_lines("a\x1b[31mb\r\n\tc")
    'a\\x1b[31mb\n\tc'
    """
    if ACTIVE.search(text) is None:
        return text
    return "\n".join("\t".join(map(inert, line.removesuffix("\r").split("\t"))) for line in text.split("\n"))


def inert_json(text: str) -> str:
    r"""The same JSON, with every character that `inert` writes out as an escape; the line ends between values stay.

    >>> inert_json('["a\u2028b"]')
    '["a\\u2028b"]'
    """
    return _ACTIVE_IN_JSON.sub(lambda m: json.dumps(m.group())[1:-1], text)
