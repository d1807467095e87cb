"""About how many tokens a text costs a model. An estimate: no model's own tokenizer takes part.

A tokenizer is heavy to install, takes seconds to load, fetches its tables from the network, and every model has
another one. Measured with OpenAI's cl100k and o200k on LiveSQLBench's documents and the shop's bundle, one token has
3.4 to 4.2 bytes of UTF-8 in every kind of file; 3.7 is the middle, so an estimate is within 15 % there.
"""

from __future__ import annotations

import math

BYTES_PER_TOKEN = 3.7


def tokens(text: str) -> int:
    """The estimate for a text.

    >>> tokens("a" * 37), tokens("ä" * 37), tokens("")
    (10, 20, 0)
    """
    return math.ceil(size(text) / BYTES_PER_TOKEN)


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
