"""Knowledge recall and precision: the rules a run opened against the rules its task needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from okf_agent.evaluation import navigation
from okf_compiler.loaded import derived


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
    return {path: id for id, path in derived(folder, navigation.rules_of).items()} if folder.is_dir() else {}


def _path(path: str) -> str:
    """A bundle path as read_file takes it, in one form."""
    return "/" + path.strip().lstrip("/").removesuffix(".md") + ".md"
