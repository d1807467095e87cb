"""`ask --json` and `context --json` print one JSON object whatever happens: here what went wrong before it began."""

from __future__ import annotations

import json
from types import TracebackType

import click

from okf_compiler.console import without_passwords

INTERRUPTED = 130


class OneObject:
    """Prints the exception that leaves the `with` as the object, unless another was begun, or none is wanted."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self._begun = False

    def begin(self) -> None:
        """The object is being written: no other may follow."""
        self._begun = True

    def __enter__(self) -> OneObject:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        interrupted = isinstance(error, KeyboardInterrupt | click.Abort)
        told = interrupted or (isinstance(error, Exception) and not isinstance(error, click.exceptions.Exit))
        if not self.wanted or self._begun or error is None or not told:
            return
        said = error.format_message() if isinstance(error, click.ClickException) else str(error)
        status = getattr(error, "status", getattr(error, "exit_code", 1))
        data = {
            "stop_reason": "interrupted" if interrupted else "error",
            "error": "" if interrupted else without_passwords(said),
            "exit_status": INTERRUPTED if interrupted else status,
        }
        click.echo(json.dumps(data))


class JsonCommand(click.Command):
    """A command whose `--json` also counts where the call itself is wrong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with OneObject("--json" in args):
            return super().parse_args(ctx, args)
