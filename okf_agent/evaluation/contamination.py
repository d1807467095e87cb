"""Who saw the hold-out with which configuration: a cell that was changed afterwards is contaminated, for good.

`runs/evals/holdout.jsonl` gets a line the first time that a cell meets the hold-out of a suite in an evaluation, and
whenever its configuration differs from the last time. Lines are only appended, and each holds the hash of the one
before, so that an edited registry is seen. A cell is known by its name and its suite: whoever renames a changed cell
gets round this, and so does whoever deletes the whole file. It reminds honest people; it is no proof against others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock

import okf_agent
import okf_compiler
from okf_agent.records.json_lines import LOCK_SECONDS, append_line, read_lines
from okf_compiler.errors import UserError

REGISTRY = "holdout.jsonl"
NO_SAY = (
    "access",
    "commands",
    "downloads",
    "engines",
    "evaluation",
    "interactive",
    "loading",
    "mcp_server",
    "records",
    "results",
    "setup",
)
"""What of the agent does not decide how a question is answered; all else does, but for the prompts, held apart."""
PROMPTS = "prompts"
COMPILER = ("bundle.py", "inert.py", "link_text.py", "markdown.py", "profiling", "sql_names.py", "tokens.py")
"""What of the compiler writes for a model while a question is asked. What it compiles is held by the bundle's hash."""


@dataclass(frozen=True)
class Mark:
    """Why a cell's results on the hold-out do not count as clean."""

    cell: str
    changed: tuple[str, ...]
    """The parts of the configuration that differ from an earlier time, such as `prompts` or `settings.model`."""
    since: str
    """When the hold-out had been seen before: ISO 8601 with an offset."""
    evaluation: str
    """In which evaluation that was."""

    def __str__(self) -> str:
        changed = ", ".join(self.changed)
        return f"contaminated: {changed} changed after the hold-out was seen ({self.evaluation}, {self.since})"


def installed_hashes() -> dict[str, str]:
    """The hashes of the prompts and of the code that answers, as installed here."""
    agent, compiler = (Path(str(package.__file__)).parent for package in (okf_agent, okf_compiler))
    code = [place for place in agent.iterdir() if place.name not in (*NO_SAY, PROMPTS)]
    code += [compiler / name for name in COMPILER]
    return {"prompts": _hash_of([agent / PROMPTS]), "code": _hash_of(code)}


def saw_holdout(evals: Path, suite: str, cell: str, evaluation: str, configuration: Mapping[str, Any]) -> Mark | None:
    """Register that a cell is about to meet the hold-out of a suite; gives its mark if it is contaminated.

    Call it before the first held-out question is asked. The same configuration in the same evaluation is registered
    once, however often the evaluation is resumed.

    Raises:
        UserError: the registry cannot be written, or was edited.
    """
    path = evals / REGISTRY
    evals.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(path.name + ".chain.lock"), timeout=LOCK_SECONDS):
        entries = _entries(path)
        # As JSON gives it back, so that a tuple is not taken for another value than its list.
        plain = json.loads(json.dumps(configuration, sort_keys=True, default=str))
        mine = [e for e in entries if (e["suite"], e["cell"], e["evaluation"]) == (suite, cell, evaluation)]
        if not mine or _changed(mine[-1]["configuration"], plain):
            entry = {
                "suite": suite,
                "cell": cell,
                "evaluation": evaluation,
                "at": datetime.now().astimezone().isoformat(timespec="seconds"),
                "configuration": plain,
                "previous": _line_hash(entries[-1]) if entries else "",
            }
            append_line(path, entry, "The registry of figures from held-out questions")
            entries.append(entry)
    return _mark(entries, suite, cell, evaluation)


def marks(evals: Path, suite: str, cells: Iterable[str], evaluation: str) -> dict[str, Mark]:
    """The marks of an evaluation's cells, by name; a cell that is clean, or saw no hold-out, has none.

    Raises:
        UserError: the registry was edited.
    """
    entries = _entries(evals / REGISTRY)
    found = {cell: _mark(entries, suite, cell, evaluation) for cell in cells}
    return {cell: mark for cell, mark in found.items() if mark}


def _mark(entries: list[dict[str, Any]], suite: str, cell: str, evaluation: str) -> Mark | None:
    """The first earlier sight of the hold-out under another configuration than one this evaluation used."""
    seen: list[dict[str, Any]] = []
    for entry in entries:
        if (entry["suite"], entry["cell"]) != (suite, cell):
            continue
        if entry["evaluation"] == evaluation:
            for earlier in seen:
                if changed := _changed(earlier["configuration"], entry["configuration"]):
                    return Mark(cell, changed, earlier["at"], earlier["evaluation"])
        seen.append(entry)
    return None


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts that differ. A database that only one of the two asked is no difference."""
    names = [*dict.fromkeys((*before, *after))]
    both = [name for name in names if not name.startswith("bundle.") or (name in before and name in after)]
    return tuple(name for name in both if before.get(name) != after.get(name))


def _entries(path: Path) -> list[dict[str, Any]]:
    entries = [*read_lines(path)]
    previous = ""
    for number, entry in enumerate(entries, start=1):
        if entry.get("previous") != previous or not isinstance(entry.get("configuration"), dict):
            raise UserError(
                f"{path}:{number}: this registry of who saw the hold-out was edited. Bring back the file as it was; "
                f"without it no result on the hold-out can be called clean."
            )
        previous = _line_hash(entry)
    return entries


def _line_hash(entry: Mapping[str, Any]) -> str:
    return sha256(json.dumps(entry, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _hash_of(places: Iterable[Path]) -> str:
    """One hash over files and folders of a package: names and contents, line ends as on Linux."""
    total = sha256()
    for place in sorted(places):
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and file.suffix != ".pyc":
                content = file.read_bytes().replace(b"\r\n", b"\n")
                name = file.relative_to(place.parent).as_posix()
                total.update(f"{name}\0{sha256(content).hexdigest()}\0".encode())
    return total.hexdigest()
