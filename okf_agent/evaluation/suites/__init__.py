"""Suites: sets of questions over databases. One file a family, one line a suite in `SUITES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from okf_agent.config import Config
from okf_agent.downloads.published import SUITES as PUBLISHED
from okf_agent.evaluation.suites import bird, defog, livesqlbench, pins, shop, user
from okf_agent.evaluation.suites.model import Suite, SuiteDatabase
from okf_agent.tasks import TASK_FILES, Task
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings

__all__ = [
    "SUITES", "Listed", "Suite", "SuiteDatabase", "Task", "hold_pins", "listed", "load",
]  # fmt: skip

hold_pins = pins.hold


@dataclass(frozen=True)
class Known:
    """A suite that the project knows by name."""

    read: Callable[[str, Path], Suite]
    marks: tuple[str, ...]
    """Files one of which the folder must have."""
    get: str = ""
    """How to get it, in words; "" for `okf-agent data get NAME`."""
    folders: tuple[str, ...] = ()
    """Names its folder may have in a data root, besides the suite's and the one that `data get` gives it."""


SUITES: Mapping[str, Known] = {
    "shop": Known(shop.load, ("tasks.jsonl",), "`okf-agent init --demo`"),
    "livesqlbench-base-lite": Known(livesqlbench.load, TASK_FILES),
    "livesqlbench-base-full": Known(livesqlbench.load, TASK_FILES),
    "livesqlbench-large": Known(livesqlbench.load, TASK_FILES),
    "defog": Known(defog.load, (defog.TASKS_FILE,)),
    "bird-minidev": Known(bird.load, bird.TASK_FILES, folders=("minidev", "MINIDEV")),
    "bird-superhero": Known(
        bird.load,
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


def listed(config: Config) -> tuple[Listed, ...]:
    """Every suite that the project knows, here or missing."""
    return tuple(Listed(name, _find(config.settings, name), _get(name)) for name in SUITES)


def load(name: str, config: Config) -> Suite:
    """A suite by its name, or of your own by the path of its file or folder.

    Raises:
        UserError: there is no such suite, it is not here (says how to get it), or one of its lines is broken.
    """
    if name in SUITES:
        folder = _find(config.settings, name)
        if folder is None:
            roots = ", ".join(str(root) for root in config.settings.data_roots)
            raise UserError(f"The suite {name} is not in {roots}. To get it: {_get(name)}", status=2)
        return pins.pinned(SUITES[name].read(name, folder), folder, config)
    path = next((each for each in (Path(name), config.settings.root / name) if each.exists()), None)
    if path is not None:
        return pins.pinned(user.load(path, config.settings), None, config)
    raise UserError(
        f"There is no suite {name!r}, and no such file{did_you_mean(name, SUITES)}\n"
        f"Known: {', '.join(SUITES)}, or a .jsonl file of questions with gold SQL.",
        status=2,
    )


def _get(name: str) -> str:
    return SUITES[name].get or f"`okf-agent data get {name}`"


def _find(settings: Settings, name: str) -> Path | None:
    """The first folder of a data root, or data root, under one of the suite's names, that has its tasks."""
    published = [PUBLISHED[name].folder] if name in PUBLISHED else []
    folders = [*dict.fromkeys((name, *published, *SUITES[name].folders))]
    for root in settings.data_roots:
        candidates = [root / each for each in folders] + ([root] if root.name in folders else [])
        for folder in candidates:
            if any((folder / mark).is_file() for mark in SUITES[name].marks):
                return folder
    return None
