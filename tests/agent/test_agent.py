"""Whole conversations over real HTTP and a real PostgreSQL: good ones, odd ones, endless ones."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import hubs
from support.endpoint import Endpoint, Scripted, calls, error, reply, submit, text

from okf_agent import agent
from okf_agent.config import ModelSection, Price
from okf_agent.engines import Server
from okf_agent.events import Event, Instructions, Notice, ToolFinished, ToolStarted
from okf_agent.knowledge import Knowledge, Sources, prepare
from okf_agent.llm import Model
from okf_agent.results.answers import ENDS, ended
from okf_agent.run import Limits, Question, Run
from okf_agent.sql.database import Database
from okf_agent.tools import Context
from okf_compiler.inert import ACTIVE
from okf_compiler.settings import DatabaseSection

ASKED = "How many hubs are there?"
COUNT = "SELECT count(*) FROM hubs"
RULE = "/knowledge/utilization.md"
GOOD = submit(COUNT, "There are 4 hubs.")


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[Database]:
    with Database(postgres.agent, hubs.make_database(postgres), DatabaseSection()) as database:
        yield database


class Asker:
    """Asks the question over an endpoint, and keeps what happened."""

    def __init__(self, bundle: Path, database: Database) -> None:
        self.bundle = bundle
        self.database: Database | None = database
        self.events: list[Event] = []
        self.limits = Limits()
        self.knowledge: Knowledge | None = None
        self.on_event: Callable[[Event], None] = self.events.append
        self.section: dict[str, Any] = {"retry_wait_s": 0.01}
        self.cancelled: threading.Event | None = None

    def __call__(self, endpoint: Endpoint, question: str = ASKED) -> Run:
        section = {"name": "openai/scripted", "api_base": endpoint.url, **self.section}
        run = agent.run(
            Question(question, "hubs", hubs.DAY),
            self.knowledge or prepare("bundle", question, Sources("hubs", bundle=self.bundle)),
            Model(ModelSection.model_validate(section), cancelled=self.cancelled),
            Context(bundle=self.bundle, database=self.database),
            self.limits,
            self.on_event,
        )
        assert endpoint.missing == 0
        return run


@pytest.fixture
def ask(tmp_path: Path, database: Database) -> Asker:
    return Asker(hubs.write_bundle(tmp_path / "bundle"), database)


def last(endpoint: Endpoint) -> dict[str, Any]:
    """The last message of the last request."""
    message: dict[str, Any] = endpoint.requests[-1]["messages"][-1]
    return message


def test_a_question_is_read_up_queried_and_answered(ask: Asker) -> None:
    script = [
        calls(("read_file", {"paths": [RULE, "/tables/hubs.md"]}), ("run_sql", {"sql": COUNT})),
        GOOD,
    ]
    with Endpoint(script) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.error) == ("submitted", "")
    assert run.answer is not None and run.result is not None
    assert (run.answer.answer, run.answer.rows_total, run.answer.checked) == ("There are 4 hubs.", 1, "ran")
    assert run.result.rows == (("4",),)
    tally = run.tally
    assert (tally.llm_calls, tally.sql_attempts, tally.sql_errors) == (2, 1, 0)
    assert tally.tool_calls == {"read_file": 1, "run_sql": 1, "submit_answer": 1}
    assert tally.files_opened == [RULE, "/tables/hubs.md"] and tally.database_seconds > 0
    read, rows = endpoint.told()
    assert "0.85" in read and "4" in rows
    assert [m["role"] for m in endpoint.requests[1]["messages"]] == ["system", "user", "assistant", "tool", "tool"]


def test_the_prefix_of_every_request_stays_the_same(ask: Asker) -> None:
    script = [calls(("read_file", {"paths": [RULE]})), calls(("run_sql", {"sql": COUNT})), text("Hm."), GOOD]
    with Endpoint(script) as endpoint:
        ask(endpoint)
    for earlier, later in zip(endpoint.requests, endpoint.requests[1:], strict=False):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert later["tools"] == earlier["tools"]


def test_a_greeting_is_declined_at_once(ask: Asker) -> None:
    with Endpoint([submit("", "Hello! Ask me about the hubs.")]) as endpoint:
        run = ask(endpoint, "hi")
    assert run.stop_reason == "declined" and run.answer is not None and run.answer.sql == ""
    assert (run.tally.llm_calls, run.tally.sql_attempts, run.tally.files_opened) == (1, 0, [])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("run_sql", '{"sql": "SELECT 1'), "not valid JSON"),
        (("run_sql", "[]"), "must be a JSON object"),
        (("query_database", {"sql": "SELECT 1"}), "read_file, run_sql, submit_answer"),
        (("", {"sql": "SELECT 1"}), "read_file, run_sql, submit_answer"),
        (("run_sql", {"sql": "INSERT INTO hubs VALUES (9)"}), "ever"),
        (("run_sql", {"sql": "SELECT nmae FROM hubs"}), "name"),
        (("read_file", {"paths": ["/knowledge/utilisation.md"]}), RULE),
        (("read_file", {"paths": ["/\ud800.md"]}), r"\ud800"),
    ],
)
def test_an_error_is_text_for_the_model_and_the_run_goes_on(ask: Asker, call: Any, told: str) -> None:
    with Endpoint([calls(call), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted"
    assert last(endpoint)["role"] == "tool" and told in last(endpoint)["content"]
    runnable = call[0] in ("run_sql", "read_file") and isinstance(call[1], dict)
    assert sum(isinstance(e, ToolStarted) for e in ask.events) == 1 + runnable, "a broken call never runs"


def test_a_call_cut_off_by_the_token_limit_is_told_apart(ask: Asker) -> None:
    with Endpoint([calls(("run_sql", '{"sql": "SELECT 1'), finish_reason="length"), GOOD]) as endpoint:
        ask(endpoint)
    told = last(endpoint)["content"]
    assert "cut off" in told and "limit of 4096 tokens" in told and "not valid JSON" not in told


def test_prose_is_nudged_and_an_empty_reply_stays_out(ask: Asker) -> None:
    with Endpoint([text("Let me think."), reply(None), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted"
    messages = endpoint.requests[-1]["messages"][2:]
    assert [m["role"] for m in messages] == ["assistant", "user", "user"]
    assert messages[0]["content"] == "Let me think." and "read_file, run_sql" in messages[1]["content"]
    assert "empty" in messages[2]["content"]


def test_three_prose_replies_end_in_a_last_call(ask: Asker) -> None:
    with Endpoint([text("a"), text("b"), text("c"), text("still prose")]) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.answer, run.tally.llm_calls) == ("no_tool_calls", None, 4)
    assert run.tally.limits_hit == ["no_tool_calls"]


def test_a_tool_call_between_prose_replies_starts_the_count_again(ask: Asker) -> None:
    look = calls(("run_sql", {"sql": COUNT}))
    with Endpoint([text("a"), text("b"), look, text("c"), text("d"), GOOD]) as endpoint:
        assert ask(endpoint).stop_reason == "submitted"


def test_a_call_written_as_text_is_run_and_sent_back_as_a_call(ask: Asker) -> None:
    written = f"I count. <tool_call>{json.dumps({'name': 'run_sql', 'arguments': {'sql': COUNT}})}</tool_call>"
    with Endpoint([text(written), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.tally.tool_calls == {"run_sql": 1, "submit_answer": 1}
    sent, result = endpoint.requests[1]["messages"][2:]
    assert sent["content"] == "I count." and sent["tool_calls"][0]["function"]["name"] == "run_sql"
    assert result["tool_call_id"] == sent["tool_calls"][0]["id"]


def test_the_last_call_keeps_sql_that_runs_and_the_reason(ask: Asker) -> None:
    ask.limits = Limits(max_steps=2)
    script = [calls(("run_sql", {"sql": "SELECT 1"})), calls(("run_sql", {"sql": "SELECT 2"})), GOOD]
    with Endpoint(script) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "step_limit" and run.tally.limits_hit == ["step_limit"]
    assert run.answer is not None and (run.answer.sql, run.answer.checked) == (COUNT, "ran")
    assert run.result is not None and run.tally.llm_calls == 3
    assert "limit of 2 steps" in last(endpoint)["content"]
    assert [t["function"]["name"] for t in endpoint.requests[-1]["tools"]] == ["submit_answer"]


@pytest.mark.parametrize(
    ("final", "sql"),
    [
        (text(f"My best:\n```sql\n{COUNT}\n```"), COUNT),
        (submit("SELECT nmae FROM hubs", "x"), None),
        (submit("", "I do not know."), None),
        (calls(("run_sql", {"sql": COUNT})), None),
        (error(400, "no"), None),
        (reply(None), None),
    ],
)
def test_what_the_last_call_may_give(ask: Asker, final: Scripted, sql: str | None) -> None:
    ask.limits = Limits(max_steps=1)
    with Endpoint([calls(("run_sql", {"sql": "SELECT 1"})), final]) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.error) == ("step_limit", "")
    assert (run.answer.sql if run.answer else None) == sql


def test_tokens_and_dollars_have_limits(ask: Asker) -> None:
    look = calls(("run_sql", {"sql": "SELECT 1"}))
    ask.limits = Limits(max_tokens=200)
    with Endpoint([look, look, GOOD]) as endpoint:
        assert ask(endpoint).stop_reason == "token_limit"
    ask.limits = Limits(max_cost_usd=0.001)
    ask.section["prices"] = {"openai/scripted": Price(input=10.0, output=0.0)}
    with Endpoint([look, GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "cost_limit" and run.tally.cost_usd == pytest.approx(0.002)


def test_seconds_have_a_limit_also_within_a_reply(ask: Asker) -> None:
    with Endpoint([GOOD]) as endpoint:
        ask(endpoint)  # the first call of a process takes longer
    ask.events.clear()
    ask.limits = Limits(max_seconds=2)
    ask.on_event = lambda event: (ask.events.append(event), isinstance(event, ToolStarted) and time.sleep(1.1))[0]
    with Endpoint([calls(*[("run_sql", {"sql": COUNT})] * 20), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "time_limit" and run.answer is not None
    results = [event for event in ask.events if isinstance(event, ToolFinished) and event.name == "run_sql"]
    late = [event for event in results if "was not run" in event.text]
    assert len(results) == 20, "providers want a result for every call"
    assert 1 <= run.tally.sql_attempts == 20 - len(late) <= 2


def test_no_call_of_a_reply_begins_after_the_run_was_stopped_from_outside(ask: Asker) -> None:
    cancelled = threading.Event()
    ask.cancelled = cancelled
    ask.on_event = lambda event: (ask.events.append(event), isinstance(event, ToolStarted) and cancelled.set())[0]
    with Endpoint([calls(*[("run_sql", {"sql": COUNT})] * 5)]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "interrupted" and run.tally.sql_attempts == 1


def test_seconds_have_a_limit_also_within_a_call(ask: Asker) -> None:
    ask.limits = Limits(max_seconds=0.4)
    begin = time.monotonic()
    with Endpoint([reply("late", delay=2), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "time_limit" and time.monotonic() - begin < 2
    assert run.answer is not None and run.answer.sql == COUNT


def test_an_endless_loop_of_the_same_failing_query_ends_and_runs_it_once(ask: Asker) -> None:
    with Endpoint([calls(("run_sql", {"sql": "SELECT nmae FROM hubs"}))], forever=True) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.answer, run.tally.llm_calls) == ("no_tool_calls", None, 5)
    assert run.tally.limits_hit == ["repeated_calls"]
    assert (run.tally.sql_attempts, run.tally.sql_errors) == (4, 4)
    assert sum("exactly this query" in told for told in endpoint.told()) == 3
    assert "only repeated calls" in last(endpoint)["content"]


def test_an_answer_goes_back_once_with_the_reason(ask: Asker) -> None:
    with Endpoint([submit(COUNT, "There are 7 hubs."), GOOD]) as endpoint:
        run = ask(endpoint)
    assert "7 in the answer" in last(endpoint)["content"] and run.answer is not None
    assert run.answer.answer == "There are 4 hubs." and run.tally.ungrounded_numbers == []
    assert run.tally.sql_attempts == 0 and run.tally.tool_calls == {"submit_answer": 2}


def test_an_answer_that_was_sent_back_stands_as_it_is_the_second_time(ask: Asker) -> None:
    wrong = submit(COUNT, "There are 7 hubs.")
    with Endpoint([wrong, wrong]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted" and run.tally.ungrounded_numbers == ["7"]


def test_numbers_of_the_question_and_of_rules_that_were_read_count_as_seen(ask: Asker) -> None:
    script = [calls(("read_file", {"paths": [RULE]})), submit(COUNT, "Of 4 hubs, 0.85 is full, as asked for 2030.")]
    with Endpoint(script) as endpoint:
        run = ask(endpoint, "How many hubs in 2030?")
    assert run.tally.ungrounded_numbers == [] and run.tally.llm_calls == 2


def test_numbers_of_an_index_say_nothing_of_the_data(ask: Asker) -> None:
    said = submit(COUNT, "Of 4 hubs, 61 or 62 or 63.")
    script = [calls(("read_file", {"paths": ["/tables/index.md"]})), said, said]
    with Endpoint(script) as endpoint:
        run = ask(endpoint)
    assert run.tally.ungrounded_numbers == ["61", "62", "63"]


def test_without_content_nothing_is_run(ask: Asker) -> None:
    ask.database = None
    with Endpoint([submit(COUNT, "The number of hubs.")]) as endpoint:
        run = ask(endpoint)
    assert "no content" in endpoint.requests[0]["messages"][0]["content"]
    assert run.stop_reason == "submitted" and run.answer is not None and run.result is None
    assert (run.answer.checked, run.answer.rows_total) == ("not_run", None)


def test_too_long_a_conversation_is_shortened_and_goes_on(ask: Asker) -> None:
    (ask.bundle / "knowledge" / "long.md").write_text("word " * 2000, encoding="utf-8")
    overflow = error(400, "maximum context length is 8192 tokens", code="context_length_exceeded")
    script = [calls(("read_file", {"paths": ["/knowledge/long.md"]})), overflow, GOOD]
    with Endpoint(script) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted" and run.tally.shortened == 1 and run.tally.llm_calls == 2
    assert len(endpoint.told()[0]) < 1000 < len(endpoint.told(1)[0]) and "cut here" in endpoint.told()[0]


def test_a_conversation_that_cannot_be_shortened_is_an_error(ask: Asker) -> None:
    with Endpoint([error(400, "maximum context length", code="context_length_exceeded")]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "error" and "maximum context length" in run.error


def test_a_model_error_is_the_runs_error(ask: Asker) -> None:
    with Endpoint([error(401, "bad key")]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "error" and "PROVIDERS.md" in run.error and run.answer is None


def test_waiting_is_said_and_counted_apart(ask: Asker) -> None:
    with Endpoint([error(429, "slow down", retry_after="0.2"), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.tally.rate_limit_wait_seconds == pytest.approx(0.2, abs=0.05)
    assert any(isinstance(e, Notice) and "slow down" in e.text for e in ask.events)


def test_waiting_in_vain_is_counted_too(ask: Asker) -> None:
    ask.section["retries"] = 2
    with Endpoint([error(429, "slow down", retry_after="0.1")], forever=True) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "error" and run.tally.rate_limit_wait_seconds == pytest.approx(0.2, abs=0.05)
    assert 0 < run.tally.model_seconds < 2 and run.tally.llm_calls == 0


def test_ctrl_c_is_an_end_like_others(ask: Asker) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, ToolStarted):
            raise KeyboardInterrupt

    ask.on_event = interrupt
    with Endpoint([GOOD]) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.tally.llm_calls, run.answer) == ("interrupted", 1, None)


def test_many_runs_at_once_do_not_mix(ask: Asker) -> None:
    runs: list[Run] = []
    with Endpoint([GOOD], forever=True) as endpoint:
        threads = [threading.Thread(target=lambda: runs.append(ask(endpoint))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [r.stop_reason for r in runs] == ["submitted"] * 8 and {r.tally.llm_calls for r in runs} == {1}


# One reply with SQL.

PACK = Knowledge(("CREATE TABLE hubs (id integer, used numeric)",), reply="sql")


def test_one_reply_with_sql_is_an_answer_made_of_its_rows(ask: Asker) -> None:
    ask.knowledge = PACK
    with Endpoint([text(f"```sql\n{COUNT};\n```")]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted" and run.answer is not None
    assert (run.answer.sql, run.answer.answer, run.answer.checked) == (COUNT, "count: 4", "ran")
    assert "tools" not in endpoint.requests[0] and run.tally.tool_calls == {} and run.tally.database_seconds > 0


@pytest.mark.parametrize(
    ("first", "second", "sql", "checked"),
    [
        ("SELECT nmae FROM hubs", COUNT, COUNT, "ran"),
        ("SELECT nmae FROM hubs", "SELECT mane FROM hubs", "SELECT mane FROM hubs", "error"),
        ("SELECT id FROM hubs WHERE id > 9", COUNT, COUNT, "ran"),
        ("SELECT max(used) FROM hubs WHERE id > 9", COUNT, COUNT, "ran"),
        # What comes back is final, also where it is worse.
        ("SELECT id FROM hubs WHERE id > 9", "SELECT nmae FROM hubs", "SELECT nmae FROM hubs", "error"),
        (
            "SELECT id FROM hubs WHERE id > 9",
            "SELECT id FROM hubs WHERE id > 8",
            "SELECT id FROM hubs WHERE id > 8",
            "no_rows",
        ),
    ],
)
def test_sql_that_fails_gets_one_repair_round(ask: Asker, first: str, second: str, sql: str, checked: str) -> None:
    ask.knowledge = PACK
    with Endpoint([text(f"```sql\n{first}\n```"), text(f"```sql\n{second}\n```")]) as endpoint:
        run = ask(endpoint)
    assert run.answer is not None and (run.answer.sql, run.answer.checked) == (sql, checked)
    assert run.tally.llm_calls == 2 and "```sql block" in last(endpoint)["content"]


@pytest.mark.parametrize(
    ("reply", "fact"),
    [
        ("```sql\nSELECT nmae FROM hubs\n```", 'column "nmae" does not exist'),
        ("```sql\nSELECT id FROM hubs WHERE id > 9\n```", "no rows"),
        ("```sql\nSELECT max(used) FROM hubs WHERE id > 9\n```", "a single NULL"),
        ("```sql\nSELECT id FROM hubs WHERE id != NULL\n```", "compares with NULL by an operator, which is never true"),
        ("I would count the hubs.", "no ```sql block"),
    ],
)
def test_a_reply_goes_back_with_the_fact(ask: Asker, reply: str, fact: str) -> None:
    ask.knowledge = PACK
    with Endpoint([text(reply), text(f"```sql\n{COUNT}\n```")]) as endpoint:
        run = ask(endpoint)
    assert fact in last(endpoint)["content"]
    assert run.answer is not None and (run.answer.sql, run.answer.checked) == (COUNT, "ran")
    ask.knowledge = replace(PACK, repair=False)
    with Endpoint([text(reply)]) as endpoint:
        run = ask(endpoint)
    assert run.tally.llm_calls == 1 and run.answer is not None and run.answer.sql != COUNT


def test_a_count_that_was_measured_is_no_answer(ask: Asker) -> None:
    """A pack shows row counts; an answer that repeats one, without a query, is marked."""
    section = "<tables>\nCREATE TABLE hubs ( -- 4,711 rows\n);\n</tables>"
    ask.knowledge = Knowledge((section, "<rules>\n- Busy: used > 80\n</rules>"), reply="sql",
                              grounds=("<rules>\n- Busy: used > 80\n</rules>",))  # fmt: skip
    with Endpoint(
        [text("There are 4,711 hubs; busy is above 80."), text("There are 4,711 hubs; busy is above 80.")]
    ) as end:
        run = ask(end)
    assert run.stop_reason == "declined" and run.answer and run.answer.checked == "not_run"
    assert run.tally.ungrounded_numbers == ["4,711"]


def test_a_reply_that_gives_something_does_not_go_back(ask: Asker) -> None:
    ask.knowledge = PACK
    with Endpoint([text(f"```sql\n{COUNT}\n```\nIt counts.")]) as endpoint:
        assert ask(endpoint).tally.llm_calls == 1


def test_a_pack_is_one_message_that_ends_in_the_question(ask: Asker) -> None:
    ask.knowledge = PACK
    with Endpoint([text(f"```sql\n{COUNT}\n```")]) as endpoint:
        ask(endpoint)
    (message,) = endpoint.requests[0]["messages"]
    assert message["role"] == "user" and PACK.sections[0] in message["content"]
    assert message["content"].endswith(f"Question: {ASKED}")


def test_a_repair_that_cannot_be_had_leaves_the_first_answer(ask: Asker) -> None:
    ask.knowledge = PACK
    with Endpoint([text("```sql\nSELECT nmae FROM hubs\n```"), error(400, "no more")]) as endpoint:
        run = ask(endpoint)
    assert run.stop_reason == "submitted" and run.answer is not None and run.answer.checked == "error"


def test_a_reply_without_sql_declines_when_it_is_said_twice(ask: Asker) -> None:
    ask.knowledge = PACK
    with Endpoint([text("There are none."), text("The data has no prices.")]) as endpoint:
        run = ask(endpoint)
    assert run.tally.llm_calls == 2
    assert run.stop_reason == "declined" and run.answer is not None
    assert run.answer.answer == "The data has no prices."


@pytest.mark.parametrize(
    ("empty", "said"),
    [
        (text(""), "reply was empty"),
        (reply(None), "reply was empty"),
        (text("<think>SELECT 9 FROM hubs</think>"), "reply was empty"),
        (text("", finish_reason="length"), r"cut off at model.max_tokens \(77\)"),
        (text("Let me see. The hubs are", finish_reason="length"), r"cut off at model.max_tokens \(77\)"),
    ],
)
def test_a_single_reply_without_anything_is_no_refusal_to_answer(ask: Asker, empty: Scripted, said: str) -> None:
    ask.knowledge = PACK
    ask.section |= {"max_tokens": 77}
    with Endpoint([empty, empty]) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.answer) == ("error", None) and re.search(said, run.error)
    with Endpoint([empty, text(f"```sql\n{COUNT}\n```")]) as endpoint:
        run = ask(endpoint)
    assert run.answer is not None and run.answer.sql == COUNT


@pytest.mark.parametrize(
    ("prose", "why"),
    [(text("Hm", finish_reason="length"), "cut_off"), (text(""), "empty"), (text("Hm"), "no_tool_calls")],
)
def test_what_kept_a_model_from_calling_tools_is_named(ask: Asker, prose: Scripted, why: str) -> None:
    with Endpoint([prose] * 4) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.tally.limits_hit) == ("no_tool_calls", [why]) and ENDS[why] == ended(run)
    assert ("max_tokens" in ended(run)) == (why == "cut_off")


@pytest.mark.parametrize(
    ("stopped", "said"),
    [
        (reply(None, finish_reason="content_filter"), "content filter stopped the reply"),
        (reply(None, refusal="I cannot help with that."), "The model refused: I cannot help with that."),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["bundle", "pack"])
def test_a_refusal_ends_the_run_with_its_words(
    ask: Asker, stopped: Scripted, said: str, stream: bool, mode: str
) -> None:
    ask.section |= {"stream": stream}
    ask.knowledge = PACK if mode == "pack" else None
    with Endpoint([stopped]) as endpoint:
        run = ask(endpoint)
    assert (run.stop_reason, run.tally.llm_calls) == ("error", 1) and said in run.error
    assert run.tally.input_tokens == 100, "it was paid"


THOUGHT_CALL = '{"name": "submit_answer", "arguments": {"sql": "SELECT 207", "answer": "207"}}'


@pytest.mark.parametrize(
    "thinking",
    [
        f"Maybe I should hand in {THOUGHT_CALL} but no…</think>I will read the rule first.",
        f"<think>Maybe {THOUGHT_CALL}",
        f"<think>Maybe {THOUGHT_CALL}</think>I will read the rule first.",
        f"[THINK]Maybe {THOUGHT_CALL}[/THINK]I will read the rule first.",
        f"a</think>b {THOUGHT_CALL}</think>I will read the rule first.",
    ],
)
def test_what_a_model_only_thought_is_no_call(ask: Asker, thinking: str) -> None:
    with Endpoint([text(thinking), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.answer is not None and run.answer.sql == COUNT and run.tally.llm_calls == 2
    assert "207" not in json.dumps(endpoint.requests[-1]["messages"])


def test_a_call_behind_a_thought_is_made(ask: Asker) -> None:
    call = json.dumps({"name": "submit_answer", "arguments": {"sql": COUNT, "answer": "There are 4 hubs."}})
    with Endpoint([text(f"SELECT 9?</think><tool_call>{call}</tool_call>")]) as endpoint:
        run = ask(endpoint)
    assert run.answer is not None and run.answer.sql == COUNT


@pytest.mark.parametrize(
    "name",
    ["run_sql<|channel|>commentary", "functions.run_sql", "functions.run_sql:0", "default_api:run_sql", "Run-SQL()"],
)
def test_a_tool_by_another_name_is_the_tool_where_that_is_certain(ask: Asker, name: str) -> None:
    with Endpoint([calls((name, {"sql": COUNT})), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.tally.tool_calls == {"run_sql": 1, "submit_answer": 1} and run.tally.sql_attempts == 1
    (sent,) = endpoint.requests[1]["messages"][-2]["tool_calls"]
    assert sent["function"]["name"] == "run_sql"


@pytest.mark.parametrize(
    "name", ["sql_run", "run_sql2", "\x1b]52;c;aGk=\x07\x1b[2J", "run sql; x", "x" * 100, "r\u202eun"]
)
def test_a_tool_that_is_none_is_an_error_that_moves_no_terminal(ask: Asker, name: str) -> None:
    with Endpoint([calls((name, '{"a\x1b[2J": "\x9b31m"}'), finish_reason="\x1b[2Jstop"), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.succeeded and run.tally.sql_attempts == 0
    assert not ACTIVE.search("".join(map(str, [e for e in ask.events if not isinstance(e, Instructions)])))
    (sent,) = endpoint.requests[1]["messages"][-2]["tool_calls"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", sent["function"]["name"]), "providers take no other"


GROQ = Scripted(
    {
        "error": {
            "message": "Failed to call a function. Please adjust your prompt.",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": "I will run a query with <function",
        }
    },
    400,
)


def test_a_call_that_its_server_could_not_read_is_a_failed_call(ask: Asker) -> None:
    with Endpoint([GROQ, GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.succeeded and run.tally.llm_calls == 2 and run.tally.tokens is None
    assert "could not be read" in last(endpoint)["content"]


def test_a_call_that_its_server_could_not_read_and_we_can_is_made(ask: Asker) -> None:
    body = json.loads(json.dumps(GROQ.body))
    body["error"]["failed_generation"] = json.dumps(
        {"name": "submit_answer", "arguments": {"sql": COUNT, "answer": "4"}}
    )
    with Endpoint([Scripted(body, 400)]) as endpoint:
        run = ask(endpoint)
    assert run.answer is not None and run.answer.sql == COUNT


def test_a_malformed_call_gets_a_word_of_its_own(ask: Asker) -> None:
    with Endpoint([text("", finish_reason="malformed_function_call"), GOOD]) as endpoint:
        run = ask(endpoint)
    assert run.succeeded and "could not be read" in last(endpoint)["content"]


def test_tokens_that_nobody_counted_are_unknown(ask: Asker) -> None:
    body = GOOD.body
    assert isinstance(body, dict)
    with Endpoint([calls(("run_sql", {"sql": COUNT})), Scripted({k: v for k, v in body.items() if k != "usage"})]) as e:
        run = ask(e)
    assert (run.tally.tokens, run.tally.input_tokens, run.tally.output_tokens) == (None, None, None)
    assert run.tally.tokens_known == 110, "the limit still counts what is known"


def test_a_number_of_a_document_goes_back_where_the_query_disagrees(ask: Asker) -> None:
    ask.knowledge = replace(prepare("bundle", ASKED, Sources("hubs", bundle=ask.bundle)), grounds=("rows: 1,000",))
    with Endpoint([submit(COUNT, "There are 1,000 hubs."), GOOD]) as endpoint:
        run = ask(endpoint)
    assert "1,000 in the answer stands in a document" in endpoint.told()[-1] and "4" in endpoint.told()[-1]
    assert run.succeeded and run.tally.document_numbers == []
    with Endpoint([submit(COUNT, "There are 1,000 hubs.")] * 2) as endpoint:
        run = ask(endpoint)
    assert run.succeeded and run.tally.document_numbers == ["1,000"]


@pytest.mark.parametrize(
    ("sql", "said", "pointed_out"),
    [
        ("", "There are 1,000 hubs.", ["1,000"]),
        (COUNT, "There are 4 hubs; the document says 1,000.", ["1,000"]),
        ("SELECT count(*) FROM hubs WHERE id < 1000", "4 hubs have a number below 1,000.", []),
    ],
)
def test_a_number_of_a_document_is_pointed_out(ask: Asker, sql: str, said: str, pointed_out: list[str]) -> None:
    ask.knowledge = replace(prepare("bundle", ASKED, Sources("hubs", bundle=ask.bundle)), grounds=("rows: 1,000",))
    with Endpoint([submit(sql, said)]) as endpoint:
        run = ask(endpoint)
    assert run.tally.llm_calls == 1 and run.tally.document_numbers == pointed_out
    assert run.tally.ungrounded_numbers == []
