"""Three prompts for people: answer a question, explain a rule, compare two definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mcp_types as types

from okf_agent import prompts
from okf_agent.bundles import reading
from okf_agent.mcp_server.calls import Calls, Client, Ctx
from okf_agent.mcp_server.completions import complete
from okf_agent.mcp_server.databases import ClientError, Databases, one_of
from okf_agent.models.arguments import QUOTED_CHARS, quote
from okf_agent.prompts import framing
from okf_compiler.errors import did_you_mean, near_names


@dataclass(frozen=True)
class Prompt:
    """A prompt as a person chooses it."""

    title: str
    description: str
    needs: Mapping[str, str]
    """Its arguments, and what each means."""
    fill: Callable[[Databases, str, Mapping[str, str]], str]
    """Its text, from the database and the arguments."""


class Prompts:
    """The prompts of one server, and what completes their arguments and the addresses of resources."""

    def __init__(self, databases: Databases, calls: Calls) -> None:
        self._databases = databases
        self._calls = calls

    async def list(self, _ctx: Ctx, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Answer `prompts/list`."""
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        *(types.PromptArgument(name=a, description=d, required=True) for a, d in prompt.needs.items()),
                        DATABASE,
                    ],
                )
                for name, prompt in PROMPTS.items()
            ]
        )

    async def get(self, ctx: Ctx, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Answer `prompts/get`."""
        return await self._calls.look(ctx, lambda client: self._filled(client, params.name, params.arguments or {}))

    async def complete(self, ctx: Ctx, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Answer `completion/complete`."""
        return await self._calls.look(ctx, lambda client: complete(self._databases, client.databases, params))

    def _filled(self, client: Client, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
        """Return a prompt, filled in.

        Raises:
            ClientError: there is no such prompt, an argument is missing, or a rule is in no bundle.
            UserError: the bundle cannot be read.
        """
        if name not in PROMPTS:
            raise ClientError(f"There is no prompt {quote(repr(name))}{did_you_mean(name[:QUOTED_CHARS], PROMPTS)}")
        prompt = PROMPTS[name]
        for argument in prompt.needs:
            if not arguments.get(argument, "").strip():
                raise ClientError(f"The prompt {name} needs `{argument}`.")
        database = one_of(arguments.get("database") or None, client.databases)
        text = prompt.fill(self._databases, database, arguments)
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])


def _answer(_databases: Databases, database: str, arguments: Mapping[str, str]) -> str:
    question = framing.unmarked(arguments["question"].strip())
    return prompts.load("mcp/answer_question.md", database=database, question=question)


def _explain(databases: Databases, database: str, arguments: Mapping[str, str]) -> str:
    title, text = _rule(databases, database, arguments["rule"])
    return prompts.load("mcp/explain_rule.md", database=database, rule=title, text=text)


def _compare(databases: Databases, database: str, arguments: Mapping[str, str]) -> str:
    first, text = _rule(databases, database, arguments["first"])
    second, other = _rule(databases, database, arguments["second"])
    return prompts.load(
        "mcp/compare_definitions.md", database=database, first=first, second=second, text=f"{text}\n\n{other}"
    )


def _rule(databases: Databases, database: str, asked: str) -> tuple[str, str]:
    """Return the title and the file, as content, of the rule with this title, path or short form.

    Raises:
        ClientError: no rule is called so; names near ones.
    """
    concepts = databases.concepts(database)
    wanted = asked.strip().lower()
    # A client may have the title as we show it, or as it stands in the file.
    by_name = {framing.one_line(c.title).lower(): c for c in concepts.values()}
    by_name |= {c.title.lower(): c for c in concepts.values()}
    by_name |= {title.partition(" (")[0]: concept for title, concept in [*by_name.items()]}
    concept = by_name.get(wanted) or concepts.get(wanted.strip("/").removesuffix(".md"))
    if concept is None:
        near = near_names(wanted[:QUOTED_CHARS], by_name, 3)
        titles = [*dict.fromkeys(by_name[each].title for each in near)]
        hint = f" Near it: {', '.join(titles)}." if titles else ""
        raise ClientError(f"The bundle of {database} has no rule {quote(repr(asked))}.{hint}")
    text = reading.read(databases.bundles[database], concept.path).text
    return framing.one_line(concept.title), framing.under(concept.path, framing.beneath(text))


DATABASE = types.PromptArgument(
    name="database", description="The database; not needed where there is only one.", required=False
)
PROMPTS: Mapping[str, Prompt] = {
    "answer_question": Prompt(
        "Answer a question",
        "Answer a question about the data, with its SQL and the rules it used.",
        {"question": "The question in plain language."},
        _answer,
    ),
    "explain_rule": Prompt(
        "Explain a rule",
        "Explain what a business rule means and how it is worked out.",
        {"rule": "The rule's title."},
        _explain,
    ),
    "compare_definitions": Prompt(
        "Compare two definitions",
        "Say how two rules differ, and on which rows.",
        {"first": "A rule's title.", "second": "Another rule's title."},
        _compare,
    ),
}
"""By name."""
