"""The options that commands of `okf-agent` share, and the configuration they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_agent.cell import KNOWLEDGE, SWITCHES
from okf_compiler.console import tell
from okf_compiler.options import config_given

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from okf_agent.config import Config


def configured() -> Config:
    """The configuration, as `--config` and `--set` say.

    Raises:
        UserError: it is broken.
    """
    from okf_agent.config import load_config

    file, changes = config_given()
    return load_config(file=file, changes=changes)


def say(line: str) -> None:
    """Tell the person something that is no result."""
    tell(line)


def complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What the shell offers for an argument: names of that kind that begin with what was typed."""

    def offer(context: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
        from okf_agent.interactive.completions import names

        return names(kind, typed, *config_given(context), database=context.params.get("db"))

    return offer


def with_knowledge(options: dict[str, Any]) -> dict[str, Any]:
    """The options with `--raw` made into `--knowledge raw`.

    Raises:
        UsageError: both are given and differ.
    """
    given = {name: value for name, value in options.items() if name != "raw"}
    if options.get("raw"):
        if given.get("knowledge") not in (None, "raw"):
            raise click.UsageError(f"--raw and --knowledge {given['knowledge']} do not go together. Give one of them.")
        given["knowledge"] = "raw"
    return given


db_option = click.option(
    "--db",
    metavar="DB",
    shell_complete=complete("databases"),
    help="The database; not needed where there is only one.",
)
raw_option = click.option("--raw", is_flag=True, help="The same as --knowledge raw.")
knowledge_option = click.option(
    "--knowledge", metavar="NAME", shell_complete=complete("knowledge"),
    help=f"How the model gets its knowledge: {', '.join(KNOWLEDGE)}.",
)  # fmt: skip
without_option = click.option(
    "--without", metavar="NAMES", default="",
    help=f"Parts to leave out, with commas: {', '.join(SWITCHES)}.",
)  # fmt: skip
model_option = click.option(
    "--model", metavar="NAME", shell_complete=complete("models"),
    help="A LiteLLM model name, or `local` for the embedded model.",
)  # fmt: skip
bundle_option = click.option(
    "--bundle", type=click.Path(path_type=Path), metavar="DIR", help="Read this bundle instead of the compiled one."
)


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a question is asked of and with: the prompt, `ask` and `context` take the same."""
    for option in (bundle_option, model_option, without_option, raw_option, knowledge_option, db_option):
        command = option(command)
    return command


chart_option = click.option(
    "--chart/--no-chart", default=None, help="Draw the rows always, or never; without: where it helps."
)
unsafe_option = click.option("--unsafe-role", is_flag=True, help="Go on even if the role can do more than read.")
