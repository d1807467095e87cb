"""`okf-agent context`: what a model would be told, without a model."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from okf_agent.commands.options import configured, question_options, say, with_knowledge
from okf_agent.results.one_object import JsonCommand, OneObject
from okf_compiler.inert import inert_lines
from okf_compiler.options import json_option, print_json

if TYPE_CHECKING:
    from okf_agent.cell import Cell
    from okf_agent.config import Config


@click.command(cls=JsonCommand)
@click.argument("question", required=False, default="")
@question_options
@json_option
def context(
    question: str, db: str | None, model: str | None, bundle: Path | None, as_json: bool, without: str, **options: Any
) -> None:
    """Print the exact text a model would see of QUESTION, with its tokens by part. No model is called."""
    with OneObject(as_json) as one:
        from okf_agent.commands.first_prompt import see, shown
        from okf_compiler.documents import only_database

        config = configured()
        cell = _cell(config, model, with_knowledge(options)["knowledge"], without)
        seen = see(config, db or only_database(config.settings), question, cell, bundle, say)
        one.begin()
        if as_json:
            print_json(seen.as_json())
            return
        text = "\n".join(shown(seen))
        click.echo(inert_lines(text))


def _cell(config: Config, model: str | None, knowledge: str | None, without: str) -> Cell:
    """The cell that `ask` would ask with. Where only a key is missing, the model that lacks it: none is needed here.

    Without any key `ask` goes to the embedded model, which has one kind of knowledge; another that is named stands
    for the configured model.
    """
    from okf_agent.cell import LOCAL_MODE, choose_cell, configured_cell
    from okf_compiler.errors import UserError

    if model is None and knowledge in (None, LOCAL_MODE):
        with contextlib.suppress(UserError):
            return choose_cell(config, None, knowledge, say, without)
    return configured_cell(config, model or config.model.name, knowledge, without)
