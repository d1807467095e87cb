"""The agent loop: a question, a model and tools go in; a run comes out, whatever happens on the way.

Read it from the top: `run` is the way in and the only way out. `_Loop.steps` is a conversation with tool calls,
`_Loop.one_reply` a single reply with SQL and one repair round. Both end in an answer that `submit_answer.check_answer`
has run, or in a reason why there is none. All of it stands in this one file, long as it is, so that a run
can be followed without another.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from okf_agent import prompts
from okf_agent.events import (
    AnswerChecked,
    Answered,
    Event,
    Instructions,
    LimitReached,
    Message,
    ModelFailed,
    ModelReplied,
    Notice,
    Shortened,
    StepStarted,
    StopReason,
    Told,
    ToolStarted,
    Writing,
)
from okf_agent.knowledge import Knowledge
from okf_agent.llm import ContextOverflow, Model, OutOfTime
from okf_agent.messages import first_messages, submissions, tools_of, with_real_names, with_written_calls
from okf_agent.models.arguments import ArgumentError, parse_arguments, printable
from okf_agent.models.bounded import Cancelled
from okf_agent.models.errors import redact
from okf_agent.models.reply import Reply, ToolCall
from okf_agent.models.written_sql import sql_in_text
from okf_agent.prompts import framing
from okf_agent.run import Limits, Question, Run, Tally
from okf_agent.tools import Check, Context, Tool, ToolResult, submit_answer, unknown_tool
from okf_compiler.errors import UserError

PROSE_REPLIES = 3
"""Replies in a row without a tool call, after which the last call comes."""
REPEATED_STEPS = 3
"""Steps in a row that only repeat earlier calls, after which it comes too; the one before is nudged."""
KEPT_CHARS = 400
"""Of a tool result that is shortened."""
NULL_COMPARED = re.compile(r"(?:[<>!]=|<>|[=<>])\s*NULL\b", re.IGNORECASE)
"""Never true, and no error: small models write it for IS NULL."""
RECENT_RESULTS = 2
"""Tool results at the end of the conversation that are shortened last of all."""


def run(
    question: Question,
    knowledge: Knowledge,
    model: Model,
    context: Context,
    limits: Limits,
    on_event: Callable[[Event], None],
) -> Run:
    """Answer a question. Always returns: an error or Ctrl-C is a stop reason, not an exception.

    Only what `on_event` raises on its own account reaches the caller as it is.
    """
    loop = _Loop(question, knowledge, model, context, limits, on_event)
    error = ""
    reason: StopReason
    try:
        reason = loop.steps() if knowledge.reply == "tools" else loop.one_reply()
    except (KeyboardInterrupt, Cancelled):
        reason = "interrupted"
    except (UserError, ContextOverflow) as problem:
        reason, error = "error", str(problem)
    except OutOfTime as problem:
        reason, error = "time_limit", str(problem)
        loop.emit(LimitReached("time_limit"))
    return Run(
        stop_reason=reason,
        tally=loop.tally,
        error=redact(error),
        seconds=time.monotonic() - loop.started,
        result=context.check.result if context.check else None,
        sql_error=context.check.sql_error if context.check else "",
    )


class _Loop:
    """One conversation: its messages, and what it has used so far."""

    def __init__(
        self,
        question: Question,
        knowledge: Knowledge,
        model: Model,
        context: Context,
        limits: Limits,
        on_event: Callable[[Event], None],
    ) -> None:
        self.model = model
        self.knowledge = knowledge
        self.context = context
        self.limits = limits
        self.on_event = on_event
        self.made: set[str] = set()
        """Calls made, and the texts of those that failed, as far as the conversation still shows them."""
        self.tally = Tally()
        self.started = time.monotonic()
        self.tools = tools_of(knowledge, context.max_rows)
        self.messages = first_messages(question, knowledge, has_content=context.database is not None)
        # Rules that are pasted count as seen as those that are read do; so does what was said before.
        alone = knowledge.reply == "sql"  # one message, which begins with what the sections hold
        told = [question.text] if alone else [str(message["content"]) for message in self.messages[1:]]
        for text in knowledge.grounds:
            context.evidence.add_document(text)
        for text in told:
            context.evidence.add_text(text)
        self.emit(Instructions(tuple(self.messages)))

    # Steps with tools.

    def steps(self) -> StopReason:
        """Model calls and tool calls in turn, until an answer stands or a limit is reached."""
        prose = repeated = 0
        while not (limit := self.limit_reached()):
            try:
                reply = self.ask(self.tools)
            except OutOfTime:
                return self.last_call("time_limit")
            if not reply.tool_calls:
                prose += 1
                if prose == PROSE_REPLIES:
                    return self.last_call("no_tool_calls", "cut_off" if reply.cut else "empty" * reply.empty)
                self.nudge(reply)
                continue
            prose = 0
            repeated = 0 if self.run_calls(reply) else repeated + 1
            if self.context.check:
                return self.finish(self.context.check)
            if repeated == REPEATED_STEPS:
                return self.last_call("no_tool_calls", "repeated_calls")
            if repeated == REPEATED_STEPS - 1:
                self.tell(prompts.say("nudge_repeated"))
        return self.last_call(limit)

    def run_calls(self, reply: Reply) -> bool:
        """Run all calls of a reply, in order, and add their results to the conversation; whether one was new.

        A call is not new if the same was made before, or if it failed with the words that another failed with. Once
        the time is over, the calls that are left are answered and not run.

        Raises:
            Cancelled: the run was stopped from outside.
        """
        self.messages.append(reply.message)
        new = False
        for call in reply.tool_calls:
            if self.model.cancelled.is_set():
                raise Cancelled
            if self.out_of_time():
                result = self.keep_result(call, ToolResult(prompts.say("too_late"), failed=True))
            else:
                result = self.run_call(call, reply)
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
            traces = {f"{call.name} {call.arguments}", *([result.text] if result.failed else [])}
            new = new or not traces & self.made
            self.made |= traces
        return new

    def run_call(self, call: ToolCall, reply: Reply) -> ToolResult:
        """Run one call. One of an unknown tool, or one that was cut off, becomes an error for the model."""
        tool = next((t for t in self.tools if t.name == call.name), None)
        if tool is None:
            result = ToolResult(unknown_tool(call.name, self.tools), failed=True)
        else:
            try:
                arguments = parse_arguments(tool, call.arguments)
            except ArgumentError as error:
                # A reply that reached the limit ends in the middle of its last call.
                cut = reply.cut and call is reply.tool_calls[-1]
                limit = self.model.section.max_tokens
                text = prompts.say("arguments_cut", name=tool.name, max_tokens=limit) if cut else str(error)
                result = ToolResult(text, failed=True)
            else:
                self.emit(ToolStarted(self.context.step, tool.name, arguments))
                result = tool.run(arguments, self.context)
        return self.keep_result(call, result)

    def keep_result(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """The result as the model gets it, and in the record."""
        result = replace(result, text=printable(framing.unmarked(result.text)))
        self.emit(result.finished(self.context.step, call.name))
        return result

    def nudge(self, reply: Reply) -> None:
        """Tell the model that only tool calls count. An empty reply stays out of the conversation."""
        empty = not reply.content.strip()
        if not empty:
            self.messages.append(reply.message)
        names = ", ".join(tool.name for tool in self.tools)
        if reply.unread:
            self.tell(prompts.say("nudge_unread", tools=names))
        elif reply.cut:
            self.tell(prompts.say("nudge_cut", max_tokens=self.model.section.max_tokens, tools=names))
        else:
            self.tell(prompts.say("nudge_empty" if empty else "nudge", tools=names))

    def last_call(self, reason: StopReason, why: str = "") -> StopReason:
        """Ask once for the best answer so far. SQL that runs is kept as the answer; the reason stays."""
        self.emit(LimitReached(reason, why))
        said = prompts.say(f"reason_{why or reason}", limit=self.limit_of(reason))
        self.tell(prompts.say("last_call", reason=said))
        submit = self.tools[-1]
        try:
            reply = self.ask([submit], seconds=self.model.section.timeout_s)
        except (UserError, ContextOverflow, OutOfTime) as error:
            self.emit(Notice(f"there was no last answer: {error}"))
            return reason
        self.context.sent_back_at = 0  # nothing goes back any more
        for call in submissions(reply, submit):
            self.run_call(call, reply)
        check = self.context.check
        if check and check.answer.sql and check.answer.checked != "error":
            self.finish(check)
        else:
            self.context.check = None
        return reason

    # One reply with SQL.

    def one_reply(self) -> StopReason:
        """A reply that holds the SQL, and one more if it holds none, or SQL that fails or gives nothing.

        What comes back is final, whatever it is; the first reply stands only where nothing comes back.
        """
        reply = self.ask()
        check = self.check_reply(reply)
        problem = prompts.say("repair_no_sql") if not check.answer.sql else _problem(check)
        if problem and self.knowledge.repair and not self.limit_reached():
            if reply.content.strip():
                self.messages.append(reply.message)
            self.tell(problem)
            try:
                reply = self.ask()
                check = self.check_reply(reply)
            except (UserError, ContextOverflow, OutOfTime) as error:
                self.emit(Notice(f"there was no corrected reply: {error}"))
        if not check.answer.sql and (reply.cut or reply.empty):
            raise UserError(self.without_sql(reply))
        return self.finish(check)

    def without_sql(self, reply: Reply) -> str:
        """Why a reply that should hold SQL holds nothing, for a person."""
        if reply.cut:
            limit = self.model.section.max_tokens
            return (
                f"The reply was cut off at model.max_tokens ({limit}) before it held any SQL.\n"
                "Raise model.max_tokens in config.yaml, or choose a model that thinks less."
            )
        return "The model's reply was empty.\nTry again, or choose another model with --model."

    def check_reply(self, reply: Reply) -> Check:
        """The check of the SQL in a reply; a reply without SQL says why there is none."""
        sql = sql_in_text(reply.content)
        check = submit_answer.check_answer(sql, None if sql else reply.content.strip(), self.context)
        self.emit(AnswerChecked(self.context.step, check.answer.checked, check.seconds, check.sql_error))
        return check

    # What both have in common.

    def finish(self, check: Check) -> StopReason:
        """The one way an answer comes to stand."""
        self.context.check = check
        columns, rows = (check.result.columns, check.result.rows) if check.result else ((), ())
        self.emit(Answered(check.answer, check.ungrounded_numbers, columns, rows, check.document_numbers))
        return "submitted" if check.answer.sql else "declined"

    def ask(self, offered: Sequence[Tool] = (), seconds: float | None = None) -> Reply:
        """One model call, the next step, with tool calls found in its text if it made none.

        Raises:
            UserError: the model refused, or a filter stopped it; and see llm.Model.complete.
            ContextOverflow, OutOfTime: see there.
        """
        self.context.step += 1
        self.emit(StepStarted(self.context.step))
        if seconds is None:
            seconds = self.limits.max_seconds - (time.monotonic() - self.started)
        reply = self.call_model([tool.spec() for tool in offered], seconds)
        if offered:
            reply = with_real_names(reply, self.tools) if reply.tool_calls else with_written_calls(reply, offered)
        calls = tuple({"name": c.name, "arguments": c.arguments} for c in reply.tool_calls)
        self.emit(
            ModelReplied(self.context.step, reply.content, calls, reply.finish_reason, reply.usage, reply.reasoning)
        )
        if reply.stopped:
            raise UserError(reply.stopped)
        return reply

    def call_model(self, specs: Sequence[Message], seconds: float) -> Reply:
        """The reply to the conversation, which is shortened as often as the model finds it too long."""
        begin, waited = time.monotonic(), 0.0

        def on_wait(pause: float, problem: str) -> None:
            nonlocal waited
            waited += pause
            self.emit(Notice(f"waiting {pause:.0f} s before the model is called again: {problem}"))

        while True:
            try:
                return self.model.complete(self.messages, specs, seconds=seconds, on_wait=on_wait, on_text=self.on_text)
            except ContextOverflow as error:
                if self.shorten():
                    continue
                problem: Exception = error
            except (UserError, OutOfTime) as error:
                problem = error
            working = time.monotonic() - begin - waited
            self.emit(ModelFailed(self.context.step, redact(str(problem)), working, waited))
            raise problem

    def shorten(self) -> bool:
        """Cut the older half of the long tool results; False if there is none left to cut."""
        long = [m for m in self.messages if m["role"] == "tool" and len(m["content"]) > 2 * KEPT_CHARS]
        older = long[:-RECENT_RESULTS] or long
        cut = older[: (len(older) + 1) // 2]
        note = prompts.say("shortened")
        for message in cut:
            message["content"] = f"{message['content'][:KEPT_CHARS]}\n{note}"
        if cut:
            self.context.forget()
            self.made.clear()
            self.emit(Shortened(len(cut)))
        return bool(cut)

    def limit_reached(self) -> StopReason | None:
        """The limit that this run has reached, if any."""
        if self.context.step >= self.limits.max_steps:
            return "step_limit"
        if self.out_of_time():
            return "time_limit"
        if self.tally.tokens_known >= self.limits.max_tokens:
            return "token_limit"
        if self.tally.cost_known_usd >= self.limits.max_cost_usd:
            return "cost_limit"
        return None

    def out_of_time(self) -> bool:
        return time.monotonic() - self.started >= self.limits.max_seconds

    def limit_of(self, reason: StopReason) -> float:
        """The figure behind a stop reason."""
        figures: dict[str, float] = {
            "step_limit": self.limits.max_steps,
            "time_limit": self.limits.max_seconds,
            "token_limit": self.limits.max_tokens,
            "cost_limit": self.limits.max_cost_usd,
            "no_tool_calls": PROSE_REPLIES,
        }
        return figures[reason]

    def tell(self, text: str) -> None:
        """Say something to the model outside of any tool result."""
        text = framing.unmarked(text)  # an error may quote a cell
        self.messages.append({"role": "user", "content": text})
        self.emit(Told(self.context.step, text))

    def on_text(self, text: str) -> None:
        self.emit(Writing(self.context.step, text))

    def emit(self, event: Event) -> None:
        self.tally.add(event)
        self.on_event(event)


def _problem(check: Check) -> str:
    """What a reply's SQL goes back with: the fact, and no hint of the result; "" for SQL that gave something."""
    if not check.problem:
        return ""
    never = prompts.say("repair_null") if NULL_COMPARED.search(check.answer.sql) else ""
    return prompts.say("repair", problem=f"{check.problem} {never}".rstrip())
