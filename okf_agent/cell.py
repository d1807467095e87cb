"""A cell: a model, a way of giving it knowledge, and switches. What an evaluation compares with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from okf_agent.providers import LOCAL
from okf_compiler.settings import UserError, did_you_mean

LOCAL_MODE = "pack"
"""The embedded model cannot drive a conversation with tools; this mode is one prompt and one reply."""


@dataclass(frozen=True)
class Cell:
    """How questions are asked; a line of the record has all of it but the name."""

    model: str
    """A LiteLLM model name, or `local`."""
    knowledge: str = "bundle"
    """How knowledge arrives: a name in okf_agent.knowledge.MODES."""
    profiles: bool = True
    """What was measured in the data stands where columns are shown: in pack, bundle and search."""
    rules: bool = True
    """The pack holds the rules that the question needs."""
    values: bool = True
    """The pack says in which columns the values that the question names occur."""
    repair: bool = True
    """SQL of a pack's reply that fails, or gives nothing, goes back once."""
    find_value: bool = False
    """The tool find_value, in every mode with tools."""
    signposts: bool = True
    """The question's best matches stand beside it as paths: in bundle and search."""
    hints: bool = False
    """A benchmark's evidence stands beside the question; only an evaluation has any."""
    name: str = ""
    """What an evaluation calls it."""

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            UserError: the embedded model with a mode that calls tools.
        """
        if self.model == LOCAL and self.knowledge != LOCAL_MODE:
            raise UserError(
                f"The embedded model takes one prompt and gives one reply (mode {LOCAL_MODE}); {self.knowledge} needs "
                "a model that calls tools. Put a key into .env or name a model with --model, see PROVIDERS.md.",
                status=2,
            )

    def settings(self) -> dict[str, Any]:
        """Everything but the name, as the record and an evaluation keep it."""
        return {key: value for key, value in asdict(self).items() if key != "name"}


def cell_from(values: Mapping[str, Any]) -> Cell:
    """The cell that a mapping describes: `model` and any other field.

    Raises:
        UserError: an unknown key, one of the wrong type, or no model; names the nearest key.
    """
    known = {each.name: bool if each.type == "bool" else str for each in fields(Cell)}
    for key, value in values.items():
        if key not in known:
            raise UserError(f"A cell has no key {key!r}{did_you_mean(str(key), known)}", status=2)
        if not isinstance(value, known[key]):
            kind = "true or false" if known[key] is bool else "a text"
            raise UserError(f"A cell's {key!r} must be {kind}, not {value!r}.", status=2)
    if not values.get("model"):
        raise UserError("A cell needs a model: a LiteLLM name, or local.", status=2)
    return Cell(**values)
