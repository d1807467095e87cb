"""What an evaluation is: its suite, tasks, cells and configuration, as eval.json keeps them; and what has changed."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from okf_agent.cell import Cell
from okf_agent.config import Config
from okf_agent.evaluation import installed
from okf_agent.evaluation.store import Evaluation
from okf_agent.evaluation.suites import pins
from okf_agent.evaluation.suites.model import Suite
from okf_agent.models.providers import LOCAL
from okf_agent.prepare import Ready
from okf_agent.records.trace import versions
from okf_agent.tasks import Task
from okf_compiler import profiling
from okf_compiler.bundle import bundle_hash
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings

MODEL_KEYS = {"temperature", "max_tokens"}
LIMIT_KEYS = {"max_steps", "max_seconds", "max_tokens", "max_cost_usd"}
ROW_KEYS = {"max_rows", "max_cell_chars", "statement_timeout_s"}
OWN_SERVER = "own_server"
"""Whether `model.api_base` was set. Not where it is: a server may move, and an address may hold a password."""
SHOWN = 12
"""Changes that a message lists."""


@dataclass(frozen=True)
class EvalOptions:
    """The arguments of `eval run`. What is None or empty comes from the evaluation of that name, if there is one."""

    suite: str | None = None
    cells: str | None = None
    model: str | None = None
    tasks: tuple[str, ...] = ()
    """Task ids or patterns: `shop_1`, `disaster_*`."""
    limit: int | None = None
    repeat: int | None = None
    workers: int | None = None
    """Questions asked at once; None: as many as `at_once` says."""
    name: str | None = None
    budget: float | None = None
    executor: str | None = None
    judge: str | None = None
    cache: bool = False
    unsafe_role: bool = False
    despite_leaks: bool = False
    """Go on although a model may read the answers."""
    config_given: tuple[str, ...] = ()
    """`--config` and `--set` as they were given, for the command that goes on."""


AT_ONCE = 4
"""Questions asked at once where nothing is said."""


def at_once(wanted: EvalOptions, cells: Sequence[Cell]) -> int:
    """How many questions are asked at once: one of the embedded model, which shares its processors between them."""
    return wanted.workers or (1 if any(cell.model == LOCAL for cell in cells) else AT_ONCE)


@dataclass(frozen=True)
class Planned:
    """What is about to be asked."""

    suite: Suite
    cells: tuple[Cell, ...]
    tasks: tuple[Task, ...]
    wanted: EvalOptions
    begun: Evaluation | None
    """The evaluation that goes on; None for a new one."""


def choose_tasks(suite: Suite, patterns: Sequence[str], limit: int | None) -> tuple[Task, ...]:
    """The query tasks whose id fits one of the patterns (all, without one), the first `limit` of them.

    Raises:
        UserError: a pattern that fits none; the nearest id is suggested.
    """
    queries = suite.queries
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(task.id, pattern) for task in queries):
            if any(fnmatch.fnmatchcase(task.id, pattern) for task in suite.management):
                raise UserError(
                    f"{pattern} changes the database (a management task): out of scope for a role that can only read.",
                    status=2,
                )
            near = did_you_mean(pattern, [task.id for task in queries])
            raise UserError(f"The suite {suite.name} has no task {pattern!r}{near}", status=2)
    chosen = [t for t in queries if not patterns or any(fnmatch.fnmatchcase(t.id, p) for p in patterns)]
    if not chosen:
        raise UserError(f"The suite {suite.name} has no question that a role that can only read could answer.")
    return tuple(chosen[:limit])


def facts(name: str, planned: Planned, configurations: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The content of eval.json; `configurations` by the cell's name."""
    suite, wanted = planned.suite, planned.wanted
    return {
        "name": name,
        "suite": suite.name,
        "suite_argument": wanted.suite,
        "suite_hash": suite.hash,
        "scorer": suite.scorer,
        "cells": [{"name": cell.name, **cell.settings()} for cell in planned.cells],
        "tasks": [task.id for task in planned.tasks],
        "out_of_scope": len(suite.management),
        "repeat": wanted.repeat or 1,
        "judge": wanted.judge,
        "started_at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "versions": versions(),
        "budget_usd": wanted.budget,
        "notes": list(suite.notes),
        "configuration": {cell: dict(values) for cell, values in configurations.items()},
    }


def configuration(config: Config, cell: Cell, bundles: Mapping[str, str]) -> dict[str, Any]:
    """Everything that may move a cell's results, flat: `{"settings.knowledge": "pack", "prompts": hash, …}`.

    `bundles` are the hashes of `contents`; prompts and code are hashed as they lie here.
    """
    limits = config.agent.model_dump(include=LIMIT_KEYS) | config.settings.database.model_dump(include=ROW_KEYS)
    parts = {
        "settings": cell.settings(),
        "model": config.model.model_dump(include=MODEL_KEYS),
        "limits": limits,
        "bundle": bundles,
    }
    flat = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
    return flat | installed.installed_hashes()


def documents_of(ready: Ready) -> list[Path]:
    """The documents that a cell in mode raw pastes."""
    found = ready.documents
    return [each for each in (found.schema, found.meanings, found.rules) if each.is_file()] if found else []


def contents(settings: Settings, databases: Mapping[str, Ready]) -> dict[str, str]:
    """Hashes of what a model reads of each database: its bundle, its documents, and what was measured ("": nothing)."""
    hashes = {}
    for name, ready in databases.items():
        hashes[name] = bundle_hash(ready.bundle)
        hashes[f"{name}, documents"] = _hash_of(*(file.read_bytes() for file in documents_of(ready)))
        profile = profiling.load(settings.profiles / name)
        hashes[f"{name}, measured"] = _hash_of(repr(profile.tables).encode()) if profile else ""
    return hashes


def _hash_of(*parts: bytes) -> str:
    return sha256(b"\0".join(part.replace(b"\r\n", b"\n") for part in parts)).hexdigest()


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two eval.json that should be one evaluation, in words; budget, time and versions may.

    The suite's files were held against what they were before anything was loaded: `refuse_other_files`.
    """
    found = [
        f"{key}: {before.get(key)!r} then, {after.get(key)!r} now"
        for key in ("suite", "repeat", "judge", "leaks")
        if before.get(key) != after.get(key)
    ]
    if OWN_SERVER in before and before[OWN_SERVER] != after.get(OWN_SERVER):
        then, now = ("set" if each.get(OWN_SERVER) else "not set" for each in (before, after))
        found.append(f"model.api_base: {then} then, {now} now")
    found += _in_lists("tasks", before.get("tasks", ()), after.get("tasks", ()))
    old_cells, new_cells = ([c["name"] for c in each.get("cells", ())] for each in (before, after))
    found += _in_lists("cells", old_cells, new_cells)
    for name in set(old_cells) & set(new_cells):
        old, new = (each.get("configuration", {}).get(name, {}) for each in (before, after))
        found += [f"cell {name}, {_difference(key, old.get(key), new.get(key))}" for key in _keys(old, new)]
    return sorted(found)


def refuse_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Let an evaluation go on only with what it began with.

    Raises:
        UserError: something differs; says what.
    """
    if found := changes(before, after):
        raise _began_otherwise(before, found)


def refuse_other_files(before: Mapping[str, Any], suite: Suite) -> None:
    """Let an evaluation go on only with the questions, gold and data that it began with.

    Raises:
        UserError: a file of the suite is another one now.
    """
    if before.get("suite") == suite.name and before.get("suite_hash") != suite.hash:
        which = ", ".join(pins.differences(suite))
        raise _began_otherwise(before, [f"the suite's files have another content{f': {which}' if which else ''}"])


def _began_otherwise(before: Mapping[str, Any], found: Sequence[str]) -> UserError:
    shown = "\n".join(f"  {line}" for line in found[:SHOWN])
    more = f"\n  … and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return UserError(
        f"The evaluation {before.get('name')} began otherwise:\n{shown}{more}\n"
        "Undo the change to go on with it, or give another --name to begin a new one.",
        status=2,
    )


def _in_lists(what: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
    gone = [name for name in before if name not in set(after)]
    new = [name for name in after if name not in set(before)]
    return [
        f"{what} {verb}: {', '.join(names[:SHOWN])}{' …' if len(names) > SHOWN else ''}"
        for verb, names in (("left out", gone), ("added", new))
        if names
    ]


def _keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]


def _difference(key: str, old: Any, new: Any) -> str:
    if key in ("code", "prompts") or key.startswith("bundle."):
        return f"{key}: another content"
    return f"{key}: {old!r} then, {new!r} now"
