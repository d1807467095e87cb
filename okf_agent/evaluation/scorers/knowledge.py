"""Knowledge recall and precision: the rules a run opened against the rules its task needs."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from okf_compiler import bundle

_RULE = re.compile(r", rule (?P<id>.+)$")


def recall_and_precision(
    needed: Iterable[int | str], opened: Iterable[str], folder: Path
) -> tuple[float | None, float | None]:
    """Of the rules needed, the part that was opened; of the rules opened, the part that was needed.

    `needed` are ids as the sources have them, or paths in the bundle; `opened` a record's `files_opened`; `folder`
    the bundle. None for what has nothing to be a part of.
    """
    rules = rules_of(folder)
    paths = {rule_id: path for path, rule_id in rules.items()}
    wanted = {paths.get(str(rule), _path(str(rule))) for rule in needed}
    found = {_path(path) for path in opened} & (rules.keys() | wanted)
    hits = len(wanted & found)
    return (hits / len(wanted) if wanted else None, hits / len(found) if found and wanted else None)


def rules_of(folder: Path) -> Mapping[str, str]:
    """Path in the bundle -> the rule's id in its source, of every concept that is a rule with an id."""
    if not folder.is_dir():
        return {}
    inside = folder / "knowledge"
    return _rules_of(folder, inside.stat().st_mtime_ns if inside.is_dir() else 0)


@functools.lru_cache(maxsize=64)
def _rules_of(folder: Path, _changed: int) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for concept in bundle.load(folder).concepts.values():
        for source in concept.frontmatter.get("sources") or ():
            named = _RULE.search(str(source.get("title", ""))) if isinstance(source, dict) else None
            if named:
                found[_path(concept.path)] = named["id"]
    return found


def _path(path: str) -> str:
    """A bundle path as read_file takes it, in one form."""
    return "/" + path.strip().lstrip("/").removesuffix(".md") + ".md"
