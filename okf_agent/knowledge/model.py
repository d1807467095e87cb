"""What every mode takes and gives: where knowledge is found, and what of it goes into a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from okf_agent.cell import Cell
from okf_agent.tools import Tool
from okf_compiler.documents import Documents
from okf_compiler.errors import UserError


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
    values: Path | None = None
    """The folder with the value index: the same, also where profiles are not shown."""
    hide: tuple[str, ...] = ()
    """Columns kept back by now, measured or not."""
    pack_tokens: int = 12_000
    """Tokens of a pack, about."""

    def need_bundle(self) -> Path:
        """The bundle's folder.

        Raises:
            UserError: there is none.
        """
        if self.bundle is None or not self.bundle.is_dir():
            raise UserError(
                f"There is no bundle of {self.database}. Make one with "
                f"`okf-compiler compile {self.database}`, or ask with --knowledge raw."
            )
        return self.bundle


@dataclass(frozen=True)
class Knowledge:
    """What a mode puts into a run."""

    sections: tuple[str, ...]
    """Parts of the instructions, in order."""
    tools: tuple[Tool, ...] = ()
    """Tools beside run_sql and submit_answer."""
    reply: Literal["tools", "sql"] = "tools"
    """`tools`: steps with tool calls. `sql`: one reply with the SQL, and one repair round."""
    grounds: tuple[str, ...] = ()
    """The sections whose numbers an answer may use: rules are, an index and what was measured are not."""
    signposts: str = ""
    """What stands after the question: knowledge that was chosen for it."""
    prompt: str = "pack.md"
    """Of a reply with SQL: the file of the one message, which takes the sections and the question."""
    repair: bool = True
    """Of a reply with SQL: whether one that fails, or gives nothing, goes back once."""


Prepare: TypeAlias = Callable[[str, Sources], Knowledge]
"""`prepare(question, sources)`; raises UserError where a source is missing or cannot be read."""
