"""The bundle, by progressive disclosure: its root index in the instructions, its files through read_file."""

from __future__ import annotations

from okf_agent import prompts, reading, tools
from okf_agent.knowledge import Knowledge, Sources
from okf_compiler.settings import UserError


def prepare(_question: str, sources: Sources) -> Knowledge:
    """The root index as a section, and read_file.

    Raises:
        UserError: there is no bundle, or its index cannot be read.
    """
    if sources.bundle is None or not sources.bundle.is_dir():
        raise UserError(
            f"There is no bundle of {sources.database}. Make one with "
            f"`okf-compiler compile {sources.database}`, or ask with --raw."
        )
    index = reading.read(sources.bundle, "/")
    if index.failed:
        raise UserError(f"The index of the bundle {sources.bundle} cannot be read: {index.text}")
    return Knowledge("bundle", (prompts.load("bundle.md", index=index.text),), (tools.read_file(),))
