"""What a client may offer while a person types an argument of a prompt or of a resource's address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import mcp_types as types

from okf_agent.mcp_server.databases import Databases
from okf_agent.prompts import framing

MOST = 100
"""Values in one answer, by the protocol."""
RULE_ARGUMENTS = ("rule", "first", "second")
"""Arguments of prompts that are a rule's title."""


def complete(databases: Databases, seen: Sequence[str], params: types.CompleteRequestParams) -> types.CompleteResult:
    """Return the values that begin with what was typed, then those that have it inside.

    Raises:
        UserError: a bundle cannot be read.
    """
    chosen = (params.context.arguments or {}) if params.context else {}
    template = isinstance(params.ref, types.ResourceTemplateReference)
    typed = params.argument.value.lower()
    values = [*dict.fromkeys(_values(databases, seen, params.argument.name, chosen, template))]
    begin = [value for value in values if value.lower().startswith(typed)]
    found = begin + [value for value in values if typed in value.lower() and value not in begin]
    completion = types.Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)
    return types.CompleteResult(completion=completion)


def _values(
    databases: Databases, seen: Sequence[str], argument: str, chosen: Mapping[str, str], template: bool
) -> Iterable[str]:
    if argument == "database":
        return seen
    named = chosen.get("database")
    names = [named] if named in seen else seen
    concepts = [concept for name in names if name for concept in databases.concepts(name).values()]
    if argument == "path":
        return [concept.path.lstrip("/") for concept in concepts]
    if template:  # an address has the file's name, a prompt the title
        folder = {"table": "tables/", "rule": "knowledge/"}.get(argument, "")
        return [concept.id.removeprefix(folder) for concept in concepts if folder and concept.id.startswith(folder)]
    if argument in RULE_ARGUMENTS:
        return [framing.one_line(concept.title) for concept in concepts if not concept.is_table]
    return []
