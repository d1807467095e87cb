"""How large a bundle is for a model that reads it, in estimated tokens, beside the documents it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from okf_compiler.bundle import files, is_concept
from okf_compiler.documents import Documents
from okf_compiler.errors import UserError
from okf_compiler.indexes import INDEX_TOKENS
from okf_compiler.tokens import tokens

_LARGEST = 10
_INDEXES_SHOWN = 20


def sizes(folder: Path, documents: Documents | None = None) -> dict[str, Any]:
    """Tokens of the bundle's concepts and indexes by path, and of the documents where they are known.

    Raises:
        UserError: a file cannot be read.
    """
    counted = {f"/{path}": _tokens(folder / path) for path in files(folder) if path.lower().endswith(".md")}
    concepts = {path: count for path, count in counted.items() if is_concept(path)}
    indexes = {path: count for path, count in counted.items() if path.rpartition("/")[2].lower() == "index.md"}
    raw = [documents.schema, documents.meanings, documents.rules] if documents else []
    return {
        "bundle": sum(counted.values()),
        "concepts": dict(sorted(concepts.items(), key=lambda item: (-item[1], item[0]))),
        "indexes": indexes,
        "raw": {file.name: _tokens(file) for file in raw if file.is_file()},
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The sizes as a person reads them."""
    concepts, indexes, raw = found["concepts"], found["indexes"], found["raw"]
    yield f"{found['bundle']:>9,} tokens in the bundle, about: {len(concepts)} concepts, {len(indexes)} indexes"
    if raw:
        yield f"{sum(raw.values()):>9,} tokens in the documents: " + ", ".join(f"{n} {c:,}" for n, c in raw.items())
    shown = sorted(indexes.items(), key=lambda item: -item[1])[:_INDEXES_SHOWN]
    yield f"indexes (the limit is {INDEX_TOKENS:,}):"
    yield from (f"{count:>9,}  {path}" for path, count in shown)
    if len(indexes) > len(shown):
        yield f"           and {len(indexes) - len(shown)} smaller ones"
    yield "largest concepts:"
    yield from (f"{count:>9,}  {path}" for path, count in list(concepts.items())[:_LARGEST])


def _tokens(file: Path) -> int:
    try:
        return tokens(file.read_bytes().decode("utf-8", "replace"))
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None
