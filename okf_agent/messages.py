"""What goes to the model first, and what it asks for in a reply, however that is written."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from okf_agent import prompts
from okf_agent.events import Message
from okf_agent.knowledge import Knowledge
from okf_agent.models.arguments import printable
from okf_agent.models.reply import Reply, ToolCall, sent_call
from okf_agent.models.written_calls import calls_in_text
from okf_agent.models.written_sql import sql_in_text
from okf_agent.prompts import framing
from okf_agent.run import Question
from okf_agent.tools import Tool, run_sql, submit_answer

DECORATION = re.compile(r"(?:\(\)|:\d+)+$")
"""What models and their servers put behind the name of a tool."""


def tools_of(knowledge: Knowledge, max_rows: int) -> tuple[Tool, ...]:
    """Those that the knowledge brings, then the two that every run has; submit_answer is the last."""
    return (*knowledge.tools, run_sql.tool(max_rows), submit_answer.tool())


def first_messages(question: Question, knowledge: Knowledge, *, has_content: bool) -> list[Message]:
    """The instructions with the knowledge, what was said before, and the question.

    Instructions come first and hold nothing of the question, so that providers can cache them; where one reply is
    asked for, everything is one message, and what is the same for many questions stands at its beginning. The date
    stands behind the knowledge, so that what is cached before it stays so over midnight.
    """
    knows = "\n\n".join(knowledge.sections)
    text = f"{question.text}\n\n{knowledge.signposts}" if knowledge.signposts else question.text
    today = question.day.told()
    if knowledge.reply == "sql":
        content = "" if has_content else prompts.say("content_none_sql")
        asked = prompts.load(
            knowledge.prompt, database=question.database, content=content, knowledge=knows, question=text, today=today
        )
        return [*question.conversation, {"role": "user", "content": printable(framing.unmarked(asked))}]
    content = prompts.say("content_ready" if has_content else "content_none")
    system = prompts.load("instructions.md", database=question.database, content=content, knowledge=knows, today=today)
    return [
        {"role": "system", "content": printable(framing.unmarked(system))},
        *question.conversation,
        {"role": "user", "content": printable(framing.unmarked(text))},
    ]


def with_real_names(reply: Reply, offered: Sequence[Tool]) -> Reply:
    """The reply with calls of `functions.run_sql`, `run_sql<|channel|>commentary` and the like named as the tool is."""
    names = {tool.name: tool.name for tool in offered}
    calls = tuple(replace(call, name=real_name(call.name, names)) for call in reply.tool_calls)
    if calls == reply.tool_calls:
        return reply
    sent = [
        {**message, "function": {**message["function"], "name": call.name}} if call.name in names else message
        for call, message in zip(calls, reply.message["tool_calls"], strict=True)
    ]
    return replace(reply, tool_calls=calls, message={**reply.message, "tool_calls": sent})


def real_name(name: str, names: Collection[str]) -> str:
    """The one of `names` that a model's name certainly means, else the name as it is.

    Marks of a chat template behind it, a namespace before it, a number or brackets, letter case and `-` say nothing.

    >>> [real_name(n, ["run_sql"]) for n in ("functions.run_sql:0", "run_sql<|channel|>commentary", "Run-SQL()", "sql")]
    ['run_sql', 'run_sql', 'run_sql', 'sql']
    """
    bare = DECORATION.sub("", name.partition("<|")[0].strip())
    found = re.split(r"[./:]|__", bare)[-1].replace("-", "_").casefold()
    return found if found in names else name


def with_written_calls(reply: Reply, offered: Sequence[Tool]) -> Reply:
    """The reply with the tool calls that its text holds, as if they had been made properly."""
    before, written = calls_in_text(reply.content, [tool.name for tool in offered])
    if not written:
        return reply
    calls = tuple(ToolCall(f"call_{uuid.uuid4().hex[:12]}", name, arguments) for name, arguments in written)
    message = {**reply.message, "content": before, "tool_calls": [sent_call(call) for call in calls]}
    return replace(reply, content=before, tool_calls=calls, message=message)


def submissions(reply: Reply, submit: Tool) -> list[ToolCall]:
    """The answer in a last reply: its call of submit_answer, or one made of the SQL in its text."""
    made = [call for call in reply.tool_calls if call.name == submit.name][:1]
    sql = sql_in_text(reply.content)
    if made or not sql:
        return made
    answer = reply.content.replace(sql, "").replace("```sql", "").replace("```", "").strip()
    return [ToolCall("", submit.name, json.dumps({"sql": sql, "answer": answer}))]
