"""Three prompts for people: answer a question, explain a rule, compare two definitions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

import mcp_types as types

from okf_agent import prompts
from okf_agent.bundles import reading
from okf_agent.mcp_server.served import Served
from okf_compiler.errors import UserError, did_you_mean

DATABASE = ("database", "The database; not needed where there is only one.", False)
PROMPTS: Mapping[str, tuple[str, str, tuple[tuple[str, str, bool], ...]]] = {
    "answer_question": (
        "Answer a question",
        "Answer a question about the data, with its SQL and the rules it used.",
        (("question", "The question in plain language.", True), DATABASE),
    ),
    "explain_rule": (
        "Explain a rule",
        "Explain what a business rule means and how it is worked out.",
        (("rule", "The rule's title.", True), DATABASE),
    ),
    "compare_definitions": (
        "Compare two definitions",
        "Say how two rules differ, and on which rows.",
        (("first", "A rule's title.", True), ("second", "Another rule's title.", True), DATABASE),
    ),
}
"""By name: title, description, and arguments as (name, description, required)."""


def listing() -> types.ListPromptsResult:
    """The prompts with their arguments."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                title=title,
                description=description,
                arguments=[types.PromptArgument(name=a, description=d, required=r) for a, d, r in arguments],
            )
            for name, (title, description, arguments) in PROMPTS.items()
        ]
    )


def get(served: Served, databases: Sequence[str], name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """A prompt, filled in.

    Raises:
        UserError: there is no such prompt, an argument is missing, or a rule is in no bundle.
    """
    if name not in PROMPTS:
        raise UserError(f"There is no prompt {name!r}{did_you_mean(name, PROMPTS)}")
    _, description, known = PROMPTS[name]
    for argument, _, required in known:
        if required and not arguments.get(argument, "").strip():
            raise UserError(f"The prompt {name} needs `{argument}`.")
    text = _FILL[name](served, _database(databases, arguments.get("database")), arguments)
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=description, messages=[message])


def _database(databases: Sequence[str], asked: str | None) -> str:
    if not asked and len(databases) == 1:
        return databases[0]
    if not asked or asked not in databases:
        near = did_you_mean(asked, databases) if asked else "."
        said = f"There is no database {asked!r} here{near}" if asked else "The prompt needs `database`."
        raise UserError(f"{said} The databases are: {', '.join(databases)}.")
    return asked


def _answer(_served: Served, database: str, arguments: Mapping[str, str]) -> str:
    return prompts.load("mcp/answer_question.md", database=database, question=arguments["question"].strip())


def _explain(served: Served, database: str, arguments: Mapping[str, str]) -> str:
    title, text = _rule(served, database, arguments["rule"])
    return prompts.load("mcp/explain_rule.md", database=database, rule=title, text=text)


def _compare(served: Served, database: str, arguments: Mapping[str, str]) -> str:
    first, text = _rule(served, database, arguments["first"])
    second, other = _rule(served, database, arguments["second"])
    return prompts.load(
        "mcp/compare_definitions.md", database=database, first=first, second=second, text=f"{text}\n\n{other}"
    )


def _rule(served: Served, database: str, asked: str) -> tuple[str, str]:
    """The title and the file of the rule with this title, path or short form.

    Raises:
        UserError: no rule is called so; names near ones.
    """
    concepts = served.concepts(database)
    wanted = asked.strip().lower()
    by_name = {c.title.lower(): c for c in concepts.values()}
    by_name |= {title.partition(" (")[0]: concept for title, concept in [*by_name.items()]}
    concept = by_name.get(wanted) or concepts.get(wanted.strip("/").removesuffix(".md"))
    if concept is None:
        near = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.5)
        titles = [*dict.fromkeys(by_name[each].title for each in near)]
        hint = f" Near it: {', '.join(titles)}." if titles else ""
        raise UserError(f"The bundle of {database} has no rule {asked!r}.{hint}")
    text = reading.read(served.bundles[database], concept.path).text
    return concept.title, f"=== {concept.path} ===\n{text}"


_FILL: Mapping[str, Callable[[Served, str, Mapping[str, str]], str]] = {
    "answer_question": _answer,
    "explain_rule": _explain,
    "compare_definitions": _compare,
}
