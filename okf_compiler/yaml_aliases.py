"""How much a YAML text says: by aliases of aliases, three hundred characters can say more than a disk holds."""

from __future__ import annotations

import yaml

_AT_MOST = 10
"""Times what a text of that length could say without aliases."""
_ALWAYS = 1_000
"""Nodes that any text may say."""


def multiply(text: str, *nodes: yaml.Node | None) -> bool:
    """Whether what the documents of a text say, with each alias written out, is far more than the text."""
    if "&" not in text or "*" not in text:
        return False
    sizes: dict[int, int] = {}
    return sum(_size(node, sizes) for node in nodes if node is not None) > _AT_MOST * len(text) + _ALWAYS


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """The nodes below and with one, each as often as it is said; one inside itself counts nothing there."""
    if id(node) not in sizes:
        sizes[id(node)] = 0
        inner = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = (part for item in inner for part in (item if isinstance(item, tuple) else (item,)))
        sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]
