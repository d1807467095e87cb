"""The command that sets up a database of one's own: init."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from okf_agent.commands.options import configured, model_option, say
from okf_compiler.options import config_given

if TYPE_CHECKING:
    from okf_agent.config import Config
    from okf_agent.setup.initialise import Done


@click.command()
@click.argument("name", required=False)
@click.option("--from", "url", metavar="URL", help="Take this database: postgresql://user@host:5432/database.")
@click.option("--yes", is_flag=True, help="Make the read-only role and ask the first question without asking back.")
@click.option("--question", metavar="TEXT", help="Ask this first; without: about the largest hub of tables.")
@click.option("--no-question", is_flag=True, help="Ask no first question.")
@click.option("--demo", is_flag=True, help="Put the demo shop into this folder instead, with config.yaml.")
@model_option
def init(name: str | None, url: str | None, demo: bool, yes: bool, no_question: bool, **asked: str | None) -> None:
    """Set up a PostgreSQL database of your own: connection, role, bundle, and files to describe it in.

    Which one: --from URL, or the PG* variables, or NAME on the server of config.yaml. A password goes into PGPASSWORD
    or the URL; none is printed, or written anywhere but .env. Safe to repeat; what you edited is kept.

    Exit status: 1 where the role is still to be made, or the first question failed.
    """
    from okf_agent.setup.initialise import InitOptions, initialise
    from okf_compiler.settings import CONFIG_FILE

    config = configured()
    if demo:
        if name or url:
            raise click.UsageError("--demo takes no database. Leave it out, or leave out NAME and --from.")
        _lay_out_demo(config)
        return
    file, changes = config_given()
    file = file or config.settings.root / CONFIG_FILE
    asking = sys.stdin.isatty() and sys.stdout.isatty()
    wanted = InitOptions(file.resolve(), name, url, changes)
    done = initialise(config, wanted, click.echo, lambda text: yes or (asking and click.confirm(text)))
    if done.todo:
        say(f"Questions cannot be asked yet: {done.todo}")
        sys.exit(1)
    sys.exit(0 if no_question else _first_question(done, yes, asking, **asked))


def _lay_out_demo(config: Config) -> None:
    from okf_agent.setup import demo

    root = config.settings.root
    copied = demo.lay_out(root)
    click.echo(f"New in {root}: {', '.join(copied)}" if copied else f"Everything was in {root} already.")
    click.echo('Next: okf-agent ask "How many active customers do we have?" --db shop')


def _first_question(done: Done, yes: bool, asking: bool, *, question: str | None, model: str | None) -> int:
    """Ask it, if there is a model; the exit status."""
    from okf_agent.commands.ask import AskOptions, run
    from okf_agent.models.providers import LOCAL, choose_model
    from okf_agent.results.one_object import OneObject

    example = question or done.example
    by_hand = f'okf-agent ask --db {shlex.quote(done.name)} "{example}"'
    section = done.config.model
    choice = choose_model(model, section.name, section.api_base)
    if choice.name == LOCAL and model is None and section.name != LOCAL:
        click.echo(
            f"5. First question: no model has its key yet, so nothing is asked. Put one into .env (see PROVIDERS.md), "
            f"or take the small embedded model, which is often wrong: {by_hand}"
        )
        return 0
    if question is None and not yes:
        if not asking:
            click.echo(f"5. First question, by hand: {by_hand}")
            return 0
        example = click.prompt("5. First question", default=example)
    click.echo(f"5. First question, to {choice.name}: {example}")
    return run(done.config, AskOptions(question=example, db=done.name, model=model), OneObject(False))
