"""How a question gets its knowledge, one mode a file: a new one is a file here and its line in `cell.KNOWLEDGE`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from okf_agent.cell import KNOWLEDGE, check_knowledge
from okf_agent.knowledge.model import Knowledge, Prepare, Sources
from okf_agent.tools import find_value

__all__ = ["MODES", "Knowledge", "Prepare", "Sources", "prepare"]

MODES: Mapping[str, Prepare] = {name: import_module(f"{__name__}.{name}").prepare for name in KNOWLEDGE}


def prepare(mode: str, question: str, sources: Sources) -> Knowledge:
    """The knowledge that `mode` gives to `question`.

    Raises:
        UserError: there is no such mode, or one of its sources is missing or unreadable.
    """
    check_knowledge(mode)
    prepared = MODES[mode](question, sources)
    if sources.cell.find_value and prepared.reply == "tools" and find_value.offered(sources.values):
        return replace(prepared, tools=(*prepared.tools, find_value.tool()))
    return prepared
