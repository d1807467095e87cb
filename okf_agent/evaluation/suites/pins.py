"""Pins: what a suite's inputs are by SHA-256, and how many rows its tables have when they are loaded completely.

In order: what `okf-agent data get` wrote down beside the files it brought; the committed `<suite>.json` in this
folder's `pinned/`, for data that is public and fixed; else what the inputs were when the suite was first run here, in
`runs/suites/<suite>.json`. Questions of one's own may change: they are pinned anew, and it is said. Row counts are for
one dump: where a database's dump is another, they are not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from okf_agent.config import Config
from okf_agent.downloads.suites import LOCK
from okf_agent.evaluation.suites.model import Suite, digest
from okf_agent.prepare import Say
from okf_compiler.errors import UserError
from okf_compiler.whole_file import write_whole

COMMITTED = Path(__file__).parent / "pinned"


def pinned(suite: Suite, folder: Path | None, config: Config) -> Suite:
    """The suite with its pins; `folder` is where its publisher's files lie, None for one of the user's own.

    Raises:
        UserError: a file of pins is damaged.
    """
    committed = _read(COMMITTED / f"{suite.name}.json") if folder else {}
    brought = _read(folder / LOCK).get("files", {}) if folder else {}
    fetched = {name: entry["sha256"] for name, entry in brought.items() if name in suite.files and entry.get("sha256")}
    first = _first_run(suite, config)
    files = fetched or committed.get("files") or _read(first).get("files", {})
    counts = {
        name: entry["tables"]
        for name, entry in committed.get("row_counts", {}).items()
        if dump_digest(suite, name) in (None, entry["dump"])
    }
    is_first = not fetched and not committed.get("files")
    return replace(suite, pins=files, row_counts=counts, pins_file=first if is_first else None)


def hold(suite: Suite, say: Say) -> None:
    """Hold the inputs against their pins before they are used. Where nothing pins them they are pinned now; so are
    questions of one's own that changed, with a word about it.

    Raises:
        UserError: an input of a public suite is not as pinned; says how to go on.
    """
    changed = differences(suite)
    if changed and suite.own:
        say(
            f"{suite.name} was changed since it was last run here: {', '.join(changed)}. That is all right; its "
            "figures are of other questions or data than earlier ones."
        )
    elif changed:
        listed = "\n  ".join(f"{name} {how}" for name, how in changed.items())
        remedy = "Bring back the files as they are published."
        if suite.pins_file:
            remedy = f"Bring back the files as they were, or delete {suite.pins_file} to go on with these."
        raise UserError(f"The suite {suite.name} is not the one its figures are known for:\n  {listed}\n{remedy}")
    if suite.pins_file and (changed or not suite.pins_file.is_file()):
        _keep(suite, suite.pins_file)


def differences(suite: Suite) -> dict[str, str]:
    """The inputs that are not what was pinned, each with what is the matter, in words."""
    found = {}
    for name, sha256 in suite.pins.items():
        path = suite.files.get(name)
        if path is None:
            found[name] = "is missing"
        elif digest(path) != sha256:
            found[name] = "has another content than the one pinned"
    return found


def _keep(suite: Suite, file: Path) -> None:
    files = {name: digest(path) for name, path in sorted(suite.files.items())}
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps({"files": files}, indent=1) + "\n")


def dump_digest(suite: Suite, database: str) -> str | None:
    """The SHA-256 of a database's dump or SQLite file; None where it has none."""
    found = next((each for each in suite.databases if each.name == database), None)
    source = (found.dump or found.sqlite) if found else None
    return digest(source) if source else None


def _first_run(suite: Suite, config: Config) -> Path:
    return config.runs / "suites" / f"{suite.name}.json"


def _read(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read ({error}); bring it back, or delete it to pin anew.") from None
    return content if isinstance(content, dict) else {}
