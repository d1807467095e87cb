"""What broke comparable tools, and more faults of the same kinds.

The conversations here need no database: what runs queries is tested in test_agent.py and test_tools.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import hubs
from support.endpoint import Endpoint, Scripted, calls, error, reply, submit, text, tool_call

from okf_agent import agent
from okf_agent.config import ModelSection, Price, TraceSection
from okf_agent.events import Event, ModelReplied, ToolFinished, ToolStarted, Writing
from okf_agent.knowledge import Sources, prepare
from okf_agent.llm import Model
from okf_agent.records.json_lines import read_lines
from okf_agent.records.trace import RUNS_FILE, Header, Recorder
from okf_agent.run import Limits, Question, Run
from okf_agent.tools import Context

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

SQL = "SELECT count(*) FROM hubs"
GOOD = submit(SQL, "The number of hubs.")
RULE = "/knowledge/utilization.md"


class Asker:
    """Asks a question about a database without content, and keeps what happened."""

    def __init__(self, folder: Path) -> None:
        self.bundle = hubs.write_bundle(folder / "bundle")
        self.runs = folder / "runs"
        self.events: list[Event] = []
        self.limits = Limits()
        self.section: dict[str, Any] = {"name": "openai/scripted", "retry_wait_s": 0.01}
        self.line: dict[str, Any] = {}

    def __call__(self, endpoint: Endpoint) -> Run:
        model = Model(ModelSection.model_validate({"api_base": endpoint.url, **self.section}))
        header = Header(database="hubs", model=model.name, question="How many hubs?", mode="bundle")
        with Recorder(self.runs, header, TraceSection()) as recorder:

            def on_event(event: Event) -> None:
                self.events.append(event)
                recorder.on_event(event)

            knowledge = prepare("bundle", "How many hubs?", Sources("hubs", bundle=self.bundle))
            question = Question("How many hubs?", "hubs", hubs.DAY)
            run = agent.run(question, knowledge, model, Context(bundle=self.bundle), self.limits, on_event)
            self.line = recorder.finish(run)
        assert endpoint.missing == 0
        assert json.loads((self.runs / RUNS_FILE).read_text(encoding="utf-8").splitlines()[-1]) == self.line
        return run

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def ask(tmp_path: Path) -> Asker:
    return Asker(tmp_path)


@pytest.mark.parametrize("arguments", ["", None, "null", "[]", "0", '"str"', "{", "not json", '{"paths": {}}', "{}"])
def test_arguments_that_are_no_object_run_nothing(ask: Asker, arguments: str | None) -> None:
    with Endpoint([calls(("read_file", arguments)), GOOD]) as endpoint:
        assert ask(endpoint).stop_reason == "submitted"
    (told,) = endpoint.told()
    assert "read_file" in told and ("Nothing was run" in told or "nothing was run" in told)
    assert [e.name for e in ask.of(ToolStarted)] == ["submit_answer"]


@pytest.mark.parametrize("name", ["run_sql_", "runsql", "sql.run", "query", "", "𝔯un_sql", "x" * 5000])
def test_a_tool_name_that_is_nearly_right_is_told_the_real_ones(ask: Asker, name: str) -> None:
    with Endpoint([calls((name, {"sql": SQL})), GOOD]) as endpoint:
        assert ask(endpoint).stop_reason == "submitted"
    assert "read_file, run_sql, submit_answer" in endpoint.told()[0] and len(endpoint.told()[0]) < 1000


# Loops.


def looping(ask: Asker, *script: Scripted) -> Run:
    """A run whose model plays the script again and again."""
    with Endpoint([*script] * 10) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.tally.limits_hit) == ("no_tool_calls", ["repeated_calls"])
    assert "only repeated calls" in endpoint.requests[-1]["messages"][-1]["content"]
    return run


def test_an_unknown_tool_again_and_again_ends(ask: Asker) -> None:
    assert looping(ask, calls(("query_database", {"sql": SQL}))).tally.llm_calls == 5


def test_the_same_file_again_and_again_ends(ask: Asker) -> None:
    assert looping(ask, calls(("read_file", {"paths": [RULE]}))).tally.llm_calls == 5


def test_two_calls_in_turn_end(ask: Asker) -> None:
    assert looping(ask, calls(("read_file", {"paths": [RULE]})), calls(("run_sql", {"sql": SQL}))).tally.llm_calls == 6


def test_broken_arguments_again_and_again_end(ask: Asker) -> None:
    run = looping(ask, calls(("run_sql", '{"sql": "SELECT 1')))
    assert run.tally.sql_attempts == 0 and ask.of(ToolStarted) == []


def test_failing_paths_that_are_spelt_alike_end(ask: Asker) -> None:
    looping(ask, calls(("read_file", {"paths": ["/nothing.md"]})), calls(("read_file", '{"paths":["/nothing.md"]}')))


def test_prose_between_the_same_calls_does_not_save_a_loop(ask: Asker) -> None:
    looping(ask, calls(("run_sql", {"sql": SQL})), text("Let me try that again."))


def test_a_loop_is_warned_and_one_new_call_gets_it_out(ask: Asker) -> None:
    same = calls(("run_sql", {"sql": SQL}))
    new = calls(("run_sql", {"sql": SQL}), ("read_file", {"paths": [RULE]}))
    with Endpoint([same, same, same, new, same, same, GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted" and run.tally.limits_hit == []
    told = [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "user"]
    assert sum("bring nothing new" in content for content in told) == 2


def test_what_was_cut_may_be_read_again(ask: Asker) -> None:
    (ask.bundle / "knowledge" / "long.md").write_text("word " * 2000, encoding="utf-8")
    read = calls(("read_file", {"paths": ["/knowledge/long.md"]}))
    overflow = error(400, "maximum context length", code="context_length_exceeded")
    with Endpoint([read, overflow, read, overflow, read, overflow, read, GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted" and run.tally.shortened == 3 and "word word" in endpoint.told()[-1]


def test_every_call_of_a_reply_gets_its_result(ask: Asker) -> None:
    many = [("read_file", {"paths": [f"/tables/hubs.md#{n}"]}) for n in range(60)]
    with Endpoint([calls(*many), GOOD]) as endpoint:
        ask(endpoint)
    *_, assistant = (m for m in endpoint.requests[1]["messages"] if m["role"] == "assistant")
    results = [m["tool_call_id"] for m in endpoint.requests[1]["messages"] if m["role"] == "tool"]
    assert results == [call["id"] for call in assistant["tool_calls"]] and len(results) == 60


def test_calls_after_the_answer_of_a_reply_change_nothing(ask: Asker) -> None:
    both = calls(
        ("submit_answer", {"sql": SQL, "answer": "One."}), ("submit_answer", {"sql": "SELECT 2", "answer": "x"})
    )
    with Endpoint([both]) as endpoint:
        run = ask(endpoint)
    assert run.answer is not None and (run.answer.sql, run.answer.answer) == (SQL, "One.")


# Replies of odd shapes.

HEAD = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
ODD: dict[str, tuple[Scripted, str]] = {
    "reasoning and nothing else": (reply(None, reasoning_content="Hm."), "submitted"),
    "cut off in the middle of thinking": (reply("", finish_reason="length", reasoning_content="Hm."), "submitted"),
    "a content filter": (reply("", finish_reason="content_filter"), "error"),
    "no choices": (Scripted({**HEAD, "choices": []}), "submitted"),
    "an error in a good response": (Scripted({"error": {"message": "upstream overloaded", "code": 502}}), "error"),
    "no JSON": (Scripted(b"<html>busy</html>"), "error"),
    "nothing": (Scripted(b""), "error"),
    "white space only": (text(" \n\t "), "submitted"),
    "calls that end in stop": (calls(("run_sql", {"sql": SQL}), finish_reason="stop"), "submitted"),
    "an empty list of calls": (reply("Hm.", tool_calls=[]), "submitted"),
    "usage of nothing": (text("Hm.", usage=dict.fromkeys(USAGE, 0)), "submitted"),
    "a call of no type": (reply(None, [{**tool_call("run_sql", {"sql": SQL}), "type": None}]), "submitted"),
    "half a surrogate pair": (text("\ud83d Hm."), "submitted"),
    "five million characters": (text("x" * 5_000_000), "submitted"),
    "a body that breaks off": (Scripted(b'{"id": "1", "choices": [', missing=500), "error"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_a_reply_of_an_odd_shape_ends_in_no_traceback(ask: Asker, name: str) -> None:
    odd, reason = ODD[name]
    ask.section["retries"] = 0
    with Endpoint([odd, GOOD], forever=True) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == reason and "Traceback" not in run.error
    assert (run.error != "") == (reason == "error")


@pytest.mark.parametrize(
    "passing",
    [Scripted(b"<html>502</html>", 502), Scripted(b'{"id": "1"', missing=100), error(500, "x"), error(408, "x")],
)
def test_what_passes_is_tried_again(ask: Asker, passing: Scripted) -> None:
    with Endpoint([passing, GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted" and run.tally.llm_calls == 1 and len(endpoint.requests) == 2


@pytest.mark.parametrize("named", ["nan", "-5", "soon", "", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_wait_that_makes_no_sense_is_not_taken_at_its_word(ask: Asker, named: str) -> None:
    with Endpoint([error(429, "slow down", retry_after=named), GOOD]) as endpoint:
        assert ask(endpoint).stop_reason == "submitted"


@pytest.mark.parametrize("named", ["inf", "1e300", "86400"])
def test_a_wait_longer_than_the_run_may_take_ends_it(ask: Asker, named: str) -> None:
    ask.limits = Limits(max_seconds=30)
    with Endpoint([error(429, "slow down", retry_after=named), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "time_limit" and run.tally.rate_limit_wait_seconds == 0


# Time and streams.


def test_a_server_that_trickles_is_held_to_a_wall_clock(ask: Asker) -> None:
    ask.section |= {"timeout_s": 0.5, "retries": 0}
    slow = Scripted(b"x" * 4000, trickle=0.1)  # a byte now and then: never a silence of half a second
    with Endpoint([slow], forever=True) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "error" and "model.timeout_s" in run.error and run.seconds < 60


def test_a_stream_of_signs_of_life_is_held_to_it_too(ask: Asker) -> None:
    ask.section |= {"timeout_s": 0.5, "retries": 0, "stream": True}
    slow = Scripted(b": still here\n\n" * 400, headers={"Content-Type": "text/event-stream"}, trickle=0.1)
    with Endpoint([slow], forever=True) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "error" and "model.timeout_s" in run.error and run.seconds < 60


@pytest.mark.parametrize("stream", [False, True])
def test_the_runs_time_ends_a_reply_that_is_being_written(ask: Asker, stream: bool) -> None:
    ask.section["stream"] = stream
    ask.limits = Limits(max_seconds=0.8)
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    piece = {**chunk, "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}
    body = b"data: %s\n\n" % json.dumps(piece).encode() * 400 if stream else b"x" * 4000
    kind = {"Content-Type": "text/event-stream"} if stream else {}
    with Endpoint([Scripted(body, headers=kind, trickle=0.001 if stream else 0.1), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "time_limit" and run.answer is not None and run.answer.sql == SQL


def test_a_streams_text_arrives_piece_by_piece_before_the_reply(ask: Asker) -> None:
    ask.section["stream"] = True
    with Endpoint([calls(("run_sql", {"sql": SQL}), content="I count the hubs."), GOOD]) as endpoint:
        ask(endpoint)
    pieces = [e.text for e in ask.of(Writing)]
    assert "".join(pieces) == "I count the hubs." and len(pieces) > 1
    assert ask.events.index(ask.of(Writing)[-1]) < ask.events.index(ask.of(ModelReplied)[0])
    steps = [*read_lines(ask.runs / "steps" / f"{ask.line['run_id']}.jsonl")]
    assert "Writing" not in {step["event"] for step in steps}


def test_a_stream_that_breaks_off_is_no_answer(ask: Asker) -> None:
    ask.section |= {"stream": True, "retries": 0}
    chunk = (
        b'data: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, '
    )
    begun = chunk + b'"delta": {"role": "assistant", "content": "```sql SELECT 1"}, "finish_reason": null}]}\n\n'
    kind = {"Content-Type": "text/event-stream"}
    with Endpoint([Scripted(begun, headers=kind, missing=500), GOOD], forever=True) as endpoint:
        run = ask(endpoint)
    assert run.answer is None or run.answer.sql == SQL


def test_a_streamed_run_has_tokens_and_cost_in_its_record(ask: Asker) -> None:
    ask.section |= {"stream": True, "prices": {"openai/scripted": Price(input=1.0, output=2.0)}}
    with Endpoint([calls(("run_sql", {"sql": SQL})), GOOD]) as endpoint:
        ask(endpoint)
    assert (ask.line["input_tokens"], ask.line["output_tokens"]) == (200, 20)
    assert ask.line["cost_usd"] == pytest.approx((200 * 1 + 20 * 2) / 1e6)


def test_a_model_without_a_price_works_and_its_cost_is_unknown(ask: Asker) -> None:
    with Endpoint([GOOD]) as endpoint:
        ask(endpoint)
    assert (ask.line["stop_reason"], ask.line["cost_usd"], ask.line["cost_known_usd"]) == ("submitted", None, 0.0)


def test_a_price_of_nothing_is_a_cost_of_nothing(ask: Asker) -> None:
    ask.section["prices"] = {"openai/scripted": Price(input=0, output=0)}
    with Endpoint([GOOD]) as endpoint:
        ask(endpoint)
    assert ask.line["cost_usd"] == 0.0


# Ends and records.


@pytest.mark.parametrize("kind", [ModelReplied, ToolFinished])
@pytest.mark.parametrize("raised", [KeyboardInterrupt, lambda: RuntimeError("the terminal is gone")])
def test_an_end_at_any_event_leaves_its_line(ask: Asker, kind: type[Any], raised: Callable[[], BaseException]) -> None:
    failing = raised()
    real = Recorder.on_event

    class Failing(Recorder):
        def on_event(self, event: Event) -> None:
            real(self, event)
            if isinstance(event, kind):
                raise failing

    header = Header(database="hubs", model="m", question="q", mode="bundle")
    with Endpoint([GOOD]) as endpoint:
        model = Model(ModelSection(name="openai/scripted", api_base=endpoint.url))
        try:
            with Failing(ask.runs, header, TraceSection()) as recorder:
                knowledge = prepare("bundle", "q", Sources("hubs", bundle=ask.bundle))
                recorder.finish(
                    agent.run(
                        Question("q", "hubs", hubs.DAY),
                        knowledge,
                        model,
                        Context(ask.bundle),
                        Limits(),
                        recorder.on_event,
                    )
                )
        except RuntimeError as error:
            assert error is failing
    (line,) = [json.loads(one) for one in (ask.runs / RUNS_FILE).read_text(encoding="utf-8").splitlines()]
    assert line["stop_reason"] == ("interrupted" if isinstance(failing, KeyboardInterrupt) else "error")
    assert line["llm_calls"] == 1


def test_odd_text_of_a_model_makes_whole_lines(ask: Asker) -> None:
    said = "\ud83d\u2028 \x00 \x85 \U0001f600 end\r\n"
    with Endpoint([submit("", said)], forever=True) as endpoint:
        ask(endpoint)
    text_of = (ask.runs / RUNS_FILE).read_bytes()
    assert text_of.count(b"\n") == 1 and json.loads(text_of)["answer"]["answer"].strip().endswith("end")
