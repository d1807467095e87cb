"""How a question gets its knowledge, one mode a file. A new mode is one file and one line in `MODES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from okf_agent.cell import Cell
from okf_agent.tools import Tool
from okf_compiler.settings import Documents, UserError, did_you_mean


@dataclass(frozen=True)
class Sources:
    """Where a mode finds its knowledge. What a mode does not use may be None."""

    database: str
    documents: Documents | None = None
    bundle: Path | None = None
    profiles: Path | None = None
    """The folder with what was measured in the data; None where nothing was, or where it is not shown."""
    cell: Cell = field(default_factory=lambda: Cell(""))
    """The switches."""


@dataclass(frozen=True)
class Knowledge:
    """What a mode puts into a run."""

    mode: str
    sections: tuple[str, ...]
    """Parts of the instructions, in order."""
    tools: tuple[Tool, ...] = ()
    """Tools beside run_sql and submit_answer."""
    reply: Literal["tools", "sql"] = "tools"
    """`tools`: steps with tool calls. `sql`: one reply with the SQL, and one repair round."""
    holds_rules: bool = True
    """Whether the sections hold rules, whose numbers an answer may use; an index only says where they are."""
    hints: str = ""
    """What stands after the question: knowledge that was chosen for it."""


Prepare: TypeAlias = Callable[[str, Sources], Knowledge]
"""`prepare(question, sources)`; raises UserError where a source is missing or cannot be read."""


def prepare(mode: str, question: str, sources: Sources) -> Knowledge:
    """The knowledge that `mode` gives to `question`.

    Raises:
        UserError: there is no such mode, or one of its sources is missing or unreadable.
    """
    if mode not in MODES:
        raise UserError(f"There is no knowledge mode {mode!r}{did_you_mean(mode, MODES)}", status=2)
    return MODES[mode](question, sources)


# At the end, because the modes use the classes above.
from okf_agent.knowledge import bundle, pack, raw  # noqa: E402

MODES: dict[str, Prepare] = {
    "bundle": bundle.prepare,
    "pack": pack.prepare,
    "raw": raw.prepare,
}
READ_BUNDLE = frozenset({"bundle", "pack"})
"""The modes that read the bundle, so that a run's record names its content."""
