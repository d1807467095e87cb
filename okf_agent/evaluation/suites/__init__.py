"""Suites: sets of questions over databases. One file a family, one line a suite in `SUITES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from okf_agent.config import Config
from okf_agent.evaluation.suites import bird, defog, livesqlbench, pins, shop, user
from okf_agent.evaluation.suites.databases import check_rows, configured
from okf_agent.evaluation.suites.model import Suite, SuiteDatabase
from okf_agent.tasks import TASK_FILES, Task
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings

__all__ = [
    "SUITES", "Listed", "Suite", "SuiteDatabase", "Task",
    "check_pins", "check_rows", "configured", "listed", "load", "names",
]  # fmt: skip

check_pins = pins.check


@dataclass(frozen=True)
class Known:
    """A suite that the project knows by name."""

    read: Callable[[str, Path], Suite]
    folders: tuple[str, ...]
    """Names its folder has in a data root."""
    marks: tuple[str, ...]
    """Files one of which the folder must have."""
    get: str = ""
    """How to get it, in words; "" for `okf-agent data get NAME`."""


_LITE, _FULL, _LARGE = "livesqlbench-base-lite", "livesqlbench-base-full", "livesqlbench-large"
SUITES: Mapping[str, Known] = {
    "shop": Known(shop.load, ("shop",), ("tasks.jsonl",), "`okf-agent init --demo`"),
    _LITE: Known(livesqlbench.load, (_LITE,), TASK_FILES),
    _FULL: Known(livesqlbench.load, (_FULL, f"{_FULL}-v1"), TASK_FILES),
    _LARGE: Known(livesqlbench.load, (_LARGE, f"{_LARGE}-v1"), TASK_FILES),
    "defog": Known(defog.load, ("defog",), (defog.TASKS_FILE,)),
    "bird-minidev": Known(bird.load, ("bird-minidev", "minidev", "MINIDEV"), bird.TASK_FILES),
    "bird-superhero": Known(
        bird.load,
        ("bird-superhero",),
        bird.TASK_FILES,
        "put questions.json (its 129 questions of BIRD's dev.json), superhero.sqlite and database_description/ of "
        "BIRD's dev set into data/bird-superhero",
    ),
}


@dataclass(frozen=True)
class Listed:
    """A line of `eval list`."""

    name: str
    folder: Path | None
    """Where it is; None: missing."""
    get: str
    """How to get it."""


def names(config: Config) -> tuple[str, ...]:
    """The suites that are here and can be loaded by name."""
    return tuple(each.name for each in listed(config) if each.folder)


def listed(config: Config) -> tuple[Listed, ...]:
    """Every suite that the project knows, here or missing."""
    return tuple(Listed(name, _find(config.settings, known), _get(name)) for name, known in SUITES.items())


def load(name: str, config: Config) -> Suite:
    """A suite by its name, or of your own by the path of its file or folder.

    Raises:
        UserError: there is no such suite, it is not here (says how to get it), or one of its lines is broken.
    """
    if name in SUITES:
        folder = _find(config.settings, SUITES[name])
        if folder is None:
            roots = ", ".join(str(root) for root in config.settings.data_roots)
            raise UserError(f"The suite {name} is not in {roots}. To get it: {_get(name)}", status=2)
        return pins.pinned(SUITES[name].read(name, folder), folder, config)
    path = next((each for each in (Path(name), config.settings.root / name) if each.exists()), None)
    if path is not None:
        return pins.pinned(user.load(path, config.settings), None, config)
    raise UserError(
        f"There is no suite {name!r}{did_you_mean(name, SUITES)}\n"
        f"Known: {', '.join(SUITES)}, or a .jsonl file of questions with gold SQL.",
        status=2,
    )


def _get(name: str) -> str:
    return SUITES[name].get or f"`okf-agent data get {name}`"


def _find(settings: Settings, known: Known) -> Path | None:
    """The first folder of a data root, or data root, under one of the suite's names, that has its tasks."""
    for folder in _candidates(settings, known.folders):
        if any((folder / mark).is_file() for mark in known.marks):
            return folder
    return None


def _candidates(settings: Settings, folders: tuple[str, ...]) -> Iterator[Path]:
    for root in settings.data_roots:
        yield from (root / name for name in folders)
        if root.name in folders:
            yield root
