"""`okf-agent context`: what a model would be told, without a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from okf_agent.commands.options import (
    bundle_option,
    configured,
    db_option,
    knowledge_option,
    raw_option,
    with_knowledge,
    without_option,
)
from okf_agent.results.one_object import JsonCommand, OneObject
from okf_compiler.inert import inert_lines


@click.command(cls=JsonCommand)
@click.argument("question", required=False, default="")
@db_option
@knowledge_option
@raw_option
@without_option
@click.option("--model", metavar="NAME", help="`local` for the embedded model, which is told less; no key is needed.")
@bundle_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object: messages, tools, tokens by part.")
def context(
    question: str, db: str | None, model: str | None, bundle: Path | None, as_json: bool, without: str, **options: Any
) -> None:
    """Print the exact text a model would see of QUESTION, with its tokens by part. No model is called."""
    with OneObject(as_json) as one:
        from okf_agent.cell import configured_cell
        from okf_agent.commands.first_prompt import see, shown
        from okf_agent.prepare import default_database

        config = configured()
        cell = configured_cell(config, model or config.model.name, with_knowledge(options)["knowledge"], without)
        seen = see(config, db or default_database(config), question, cell, bundle, _say)
        one.begun = True
        if as_json:
            click.echo(json.dumps(seen.as_json(), ensure_ascii=False))
            return
        text = "\n".join(shown(seen))
        click.echo(inert_lines(text) if sys.stdout.isatty() else text)


def _say(line: str) -> None:
    click.echo(line, err=True)
