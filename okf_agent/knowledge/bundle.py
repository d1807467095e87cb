"""The bundle, by progressive disclosure: its root index in the instructions, its files through read_file.

After the question stand its signposts, so that a model need not read the smaller indexes first.
"""

from __future__ import annotations

from okf_agent import prompts
from okf_agent.bundles import reading
from okf_agent.knowledge.model import Knowledge, Sources
from okf_agent.prompts import framing
from okf_agent.search import signposts
from okf_agent.tools import read_file
from okf_compiler.errors import UserError


def prepare(question: str, sources: Sources) -> Knowledge:
    """The root index as a section, the question's signposts, and read_file.

    Raises:
        UserError: there is no bundle, or it cannot be read.
    """
    bundle = sources.need_bundle()
    index = reading.read(bundle, "/")
    if index.failed:
        raise UserError(f"The index of the bundle {bundle} cannot be read: {index.text}")
    section = prompts.load("bundle.md", index=framing.inside(index.text))
    found = signposts.for_question(question, bundle) if sources.cell.signposts else ""
    return Knowledge((section,), (read_file.tool(),), signposts=found)
