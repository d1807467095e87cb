"""The shop that ships with the project: 30 questions with answers, in LiveSQLBench's form, by our own strict rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from okf_agent.evaluation.suites import livesqlbench
from okf_agent.evaluation.suites.model import Suite, SuiteDatabase


def load(name: str, folder: Path) -> Suite:
    """The suite in `folder`, the shop's own.

    Raises:
        UserError: a line that is no task.
    """
    suite = livesqlbench.load(name, folder)
    dump = folder / "shop.sql"
    files = {path.name: path for path in (*suite.files.values(), *sorted(folder.glob("shop_*")), dump)}
    return replace(suite, scorer="rows", databases=(SuiteDatabase("shop", root=folder.parent, dump=dump),), files=files)
