"""`python -m okf_agent.models.check [MODEL]`: does a model answer, does it call tools, and what does that cost."""

from __future__ import annotations

import argparse
import sys

from okf_agent import prompts
from okf_agent.config import ModelSection, load_config
from okf_agent.llm import ContextOverflow, Model, OutOfTime
from okf_agent.models.arguments import ArgumentError, parse_arguments
from okf_agent.models.providers import LOCAL
from okf_agent.models.reply import Reply
from okf_agent.tools import run_sql
from okf_compiler.errors import UserError


def main(arguments: list[str] | None = None) -> int:
    """Call the model once and print what came; 0 if it called the tool it was asked to call, else 1 (2: no call)."""
    parser = argparse.ArgumentParser(prog="python -m okf_agent.models.check", description=__doc__)
    parser.add_argument("model", nargs="?", help="a LiteLLM model name; default: model.name of config.yaml")
    asked = parser.parse_args(arguments).model
    try:
        section = load_config().model
        if asked:
            section = section.model_copy(update={"name": asked})
        reply = check(section)
    except (UserError, ContextOverflow, OutOfTime) as error:
        print(error, file=sys.stderr)
        return 2
    good = calls_the_tool(reply)
    cost = "unknown" if reply.usage.cost_usd is None else f"${reply.usage.cost_usd:.6f}"
    print(f"{section.name}: {'calls tools' if good else 'answered, but did not call the tool it was asked to call'}")
    if reply.stopped:
        print(reply.stopped)
    sent, written = ("unknown" if c is None else c for c in (reply.usage.input_tokens, reply.usage.output_tokens))
    print(
        f"{sent} tokens in ({reply.usage.cached_tokens} cached), {written} out, "
        f"cost {cost}, {reply.usage.seconds:.1f} s"
    )
    return 0 if good else 1


def check(section: ModelSection) -> Reply:
    """The model's reply to a request to run `SELECT 1`.

    Raises:
        UserError: the model cannot be called, or is the embedded one, which has no address of its own.
    """
    if section.name == LOCAL:
        raise UserError("The embedded model is checked with a question: okf-agent ask --model local QUESTION", status=2)
    messages = [{"role": "user", "content": prompts.say("check_model")}]
    return Model(section).complete(messages, [run_sql.tool(20).spec()], seconds=section.timeout_s)


def calls_the_tool(reply: Reply) -> bool:
    """Whether the reply is a call of run_sql with arguments that can be read."""
    tool = run_sql.tool(20)
    try:
        return any(call.name == tool.name and parse_arguments(tool, call.arguments) for call in reply.tool_calls)
    except ArgumentError:
        return False


if __name__ == "__main__":
    raise SystemExit(main())
