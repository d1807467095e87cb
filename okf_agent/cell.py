"""A cell: a model, a way of giving it knowledge, and switches. What an evaluation compares with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from okf_agent.models.providers import LOCAL, choose_model
from okf_compiler.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from okf_agent.config import Config


@dataclass(frozen=True)
class Mode:
    """A way of giving a model knowledge."""

    help: str
    reads_bundle: bool = False
    """A run's record names the bundle's content."""
    opens_files: bool = False
    """The model chooses which concepts it reads, so that a run says which it opened and which it missed."""


KNOWLEDGE: Mapping[str, Mode] = {
    "bundle": Mode("read the bundle, file by file", reads_bundle=True, opens_files=True),
    "search": Mode("search the bundle, and read what is found", reads_bundle=True, opens_files=True),
    "raw": Mode("paste the three documents"),
    "schema": Mode("the tables and their keys alone: no meanings, no rules", reads_bundle=True),
    "pack": Mode("one prompt with what the question needs, and one reply", reads_bundle=True),
}
"""All of them, by name; the file of that name in okf_agent/knowledge/ does it."""
SWITCHES = ("profiles", "rules", "values", "repair", "signposts")
"""What `--without` turns off: what is on unless config.yaml says otherwise."""
LOCAL_MODE = "pack"
"""The embedded model cannot drive a conversation with tools; this mode is one prompt and one reply."""


@dataclass(frozen=True)
class Cell:
    """How questions are asked; a line of the record has all of it but the name."""

    model: str
    """A LiteLLM model name, or `local`."""
    knowledge: str = "bundle"
    """How knowledge arrives: a name in `KNOWLEDGE`."""
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
            UserError: no such way of giving knowledge; the embedded model with one that calls tools.
        """
        check_knowledge(self.knowledge)
        if self.model == LOCAL and self.knowledge != LOCAL_MODE:
            raise UserError(
                f"The embedded model takes one prompt and gives one reply (--knowledge {LOCAL_MODE}); "
                f"{self.knowledge} needs a model that calls tools. Put a key into .env or name a model with --model, "
                "see PROVIDERS.md.",
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


def opens_files(mode: object) -> bool:
    """Whether a record's mode is one whose model chooses what it reads; an MCP client's is not known."""
    return isinstance(mode, str) and mode in KNOWLEDGE and KNOWLEDGE[mode].opens_files


def check_knowledge(name: str) -> None:
    """Refuse a way of giving knowledge that there is not.

    Raises:
        UserError: names the nearest one.
    """
    if name not in KNOWLEDGE:
        known = ", ".join(KNOWLEDGE)
        near = did_you_mean(name, KNOWLEDGE)
        raise UserError(f"There is no knowledge mode {name!r}{near} The modes are {known}.", status=2)


def choose_cell(
    config: Config, model: str | None, knowledge: str | None, say: Callable[[str], None], without: str = ""
) -> Cell:
    """The cell to ask with. `model`, `knowledge` and `without` are what the user named, the rest is configured.

    The embedded model has one way of its own, unless another is asked for by name: that is refused.

    Raises:
        UserError: the model's key is missing, or names do not exist or do not go together.
    """
    choice = choose_model(model, config.model.name, config.model.api_base)
    if choice.notice:
        say(choice.notice)
    return configured_cell(config, choice.name, knowledge, without)


def configured_cell(config: Config, model: str, knowledge: str | None = None, without: str = "") -> Cell:
    """The cell of a model, whose key is not asked for.

    Raises:
        UserError: names do not exist or do not go together.
    """
    configured = LOCAL_MODE if model == LOCAL else config.agent.knowledge
    cell = Cell(
        model,
        knowledge or configured,
        find_value=config.agent.find_value,
        signposts=config.agent.signposts,
    )
    off: dict[str, Any] = dict.fromkeys(_switches(without), False)
    cell = replace(cell, **off)
    cell.check()
    return cell


def _switches(without: str) -> list[str]:
    """The names in a list such as `profiles,rules`.

    Raises:
        UserError: one of them is no switch.
    """
    names = [name for each in without.split(",") if (name := each.strip().replace("-", "_"))]
    for name in names:
        if name not in SWITCHES:
            known = ", ".join(SWITCHES)
            near = did_you_mean(name, SWITCHES)
            raise UserError(f"--without {without}: there is no switch {name!r}{near} There are {known}.", status=2)
    return names
