"""Model calls over real HTTP: what is sent, what comes back, what is tried again, what people are told."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from support.endpoint import Endpoint, Scripted, calls, error, reply, text

from okf_agent.config import ModelSection, Price
from okf_agent.events import Message
from okf_agent.llm import ContextOverflow, Model, OutOfTime
from okf_agent.models import check as model_check
from okf_agent.models.errors import redact
from okf_agent.models.reply import Reply
from okf_compiler.errors import UserError

# LiteLLM's own use of pydantic, when it reads a stream.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
ASK: list[Message] = [{"role": "user", "content": "How many?"}]
TOOL = {"type": "function", "function": {"name": "run_sql", "description": "", "parameters": {"type": "object"}}}


def model(endpoint: Endpoint, name: str = "openai/scripted", **section: Any) -> Model:
    return Model(ModelSection(name=name, api_base=endpoint.url, **{"retry_wait_s": 0.01, **section}))


def test_a_request_carries_the_settings_and_the_tools() -> None:
    with Endpoint([text("hello")]) as endpoint:
        answer = model(endpoint, temperature=0.3, max_tokens=77).complete(ASK, [TOOL])
    assert (answer.content, answer.tool_calls, answer.finish_reason) == ("hello", (), "stop")
    (request,) = endpoint.requests
    assert request["messages"] == ASK and request["tools"] == [TOOL]
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("scripted", 0.3, 77)


@pytest.mark.parametrize("stream", [False, True])
def test_usage_comes_as_the_provider_reports_it(stream: bool) -> None:
    usage = {
        "prompt_tokens": 1200,
        "completion_tokens": 80,
        "total_tokens": 1280,
        "prompt_tokens_details": {"cached_tokens": 1000},
        "completion_tokens_details": {"reasoning_tokens": 50},
    }
    with Endpoint([reply("x", usage=usage, delay=0.05)]) as endpoint:
        found = model(endpoint, stream=stream).complete(ASK).usage
    assert endpoint.requests[0].get("stream", False) == stream
    assert (found.input_tokens, found.cached_tokens) == (1200, 1000)
    assert (found.output_tokens, found.reasoning_tokens) == (80, 50)
    assert found.cost_usd is None, "nobody knows the price of this model"
    assert 0.05 <= found.seconds < 5 and found.wait_seconds == 0


def test_a_price_of_ones_own_gives_the_cost_and_counts_the_cache() -> None:
    prices = {"openai/scripted": Price(input=2.0, cached=0.5, output=10.0)}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}
    with Endpoint([reply("x", usage=usage)]) as endpoint:
        found = model(endpoint, prices=prices).complete(ASK).usage
    assert found.cost_usd == pytest.approx((400 * 2.0 + 600 * 0.5 + 100 * 10.0) / 1e6)


@pytest.mark.parametrize("name", ["openai/scripted", "openai/gpt-4o-mini"])
@pytest.mark.parametrize(
    ("sent", "cached", "made"),
    [
        (-1_000_000, 0, 10),
        (100, 1_000_000, 10),
        (100, -5, -10),
        (10**400, 0, 10),
        (100, 0, 10**400),
        (-(10**400), 0, 1),
    ],
    ids=["negative", "more cached than sent", "all negative", "huge", "huge reply", "hugely negative"],
)
def test_counts_that_cannot_be_true_make_no_sum_untrue(name: str, sent: int, cached: int, made: int) -> None:
    usage = {"prompt_tokens": sent, "completion_tokens": made, "prompt_tokens_details": {"cached_tokens": cached}}
    prices = {"openai/scripted": Price(input=2.0, cached=0.5, output=10.0)}
    with Endpoint([reply("x", usage=usage)]) as endpoint:
        try:
            found = model(endpoint, name, prices=prices).complete(ASK).usage
        except UserError:  # LiteLLM takes it for no answer
            return
    assert 0 <= found.cached_tokens <= found.input_tokens <= 10**9 and 0 <= found.output_tokens <= 10**9
    assert found.cost_usd is None or 0 <= found.cost_usd < 1e6


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param('{"sql":' + "[" * 100_000 + "]" * 100_000 + "}", id="deep"),
        pytest.param('{"sql":1' + "0" * 10_000 + "}", id="long number"),
    ],
)
def test_arguments_that_no_parser_takes_are_an_error_or_broken(stream: bool, arguments: str) -> None:
    with Endpoint([calls(("run_sql", arguments))]) as endpoint:
        try:
            found = model(endpoint, stream=stream).complete(ASK, [TOOL])
        except UserError:
            return
    assert found.message["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("stream", [False, True])
def test_a_price_that_litellm_knows_gives_the_cost(stream: bool) -> None:
    with Endpoint([text("x")]) as endpoint:
        found = model(endpoint, "openai/gpt-4o-mini", stream=stream).complete(ASK).usage
    assert found.cost_usd == pytest.approx(100 * 0.15e-6 + 10 * 0.6e-6)


def test_a_stream_gives_the_same_reply() -> None:
    written = calls(
        ("run_sql", {"sql": "SELECT 1"}), ("read_file", "{broken"), content="I look.", reasoning_content="Hm, yes."
    )
    with Endpoint([written, written]) as endpoint:
        whole, streamed = (
            model(endpoint, "deepseek/x", stream=stream).complete(ASK, [TOOL]) for stream in (False, True)
        )
    assert streamed.message == whole.message and streamed.tool_calls == whole.tool_calls
    assert (streamed.content, streamed.reasoning, streamed.finish_reason) == ("I look.", "Hm, yes.", "tool_calls")


def test_reported_usage_may_be_missing() -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
    with Endpoint([Scripted({"id": "1", "object": "chat.completion", "created": 1, "model": "m", **body})]) as e:
        found = model(e).complete(ASK)
    assert (found.content, found.usage.input_tokens, found.usage.cost_usd) == ("x", None, None)


def test_a_stream_without_counts_has_none_made_up() -> None:
    body = text('x "usage": {').body
    assert isinstance(body, dict)
    with Endpoint([Scripted({**body, "usage": None})]) as endpoint:
        found = model(endpoint, stream=True).complete(ASK).usage
    assert (found.input_tokens, found.output_tokens, found.cost_usd) == (None, None, None)


@pytest.mark.parametrize("arguments", ['{"sql": "SELECT 1"', "not json", None, "", "[]", "null", '"str"'])
def test_broken_arguments_stay_visible_and_are_never_sent_back(arguments: str | None) -> None:
    with Endpoint([calls(("run_sql", arguments)), text("done")]) as endpoint:
        client = model(endpoint)
        first = client.complete(ASK, [TOOL])
        (call,) = first.tool_calls
        assert call.arguments == (arguments or "")
        result = {"role": "tool", "tool_call_id": call.id, "content": "broken"}
        client.complete([*ASK, first.message, result], [TOOL])
    (sent,) = endpoint.requests[1]["messages"][1]["tool_calls"]
    assert json.loads(sent["function"]["arguments"]) == {}


def test_empty_content_beside_calls_is_sent_as_an_empty_string() -> None:
    with Endpoint([calls(("run_sql", {"sql": "SELECT 1"})), text("done")]) as endpoint:
        client = model(endpoint)
        first = client.complete(ASK, [TOOL])
        client.complete([*ASK, first.message, {"role": "tool", "tool_call_id": "call_1", "content": "1"}], [TOOL])
    sent = endpoint.requests[1]["messages"][1]
    assert sent["content"] == "" and sent["tool_calls"][0]["function"]["arguments"] == '{"sql": "SELECT 1"}'


def test_calls_without_an_id_of_their_own_get_one() -> None:
    call = {"type": "function", "function": {"name": "run_sql", "arguments": "{}"}}
    with Endpoint([reply(None, [call | {"id": "a"}, call | {"id": "a"}, call | {"id": ""}])]) as endpoint:
        found = model(endpoint).complete(ASK, [TOOL])
    ids = [c.id for c in found.tool_calls]
    assert ids[0] == "a" and all(ids) and len(set(ids)) == 3
    assert [c["id"] for c in found.message["tool_calls"]] == ids


@pytest.mark.parametrize(
    ("name", "kept"), [("deepseek/deepseek-reasoner", True), ("openai/scripted", False), ("groq/x", False)]
)
def test_reasoning_goes_back_to_those_who_need_it_and_to_no_other(name: str, kept: bool) -> None:
    with Endpoint([calls(("run_sql", {}), reasoning_content="I think."), text("done")]) as endpoint:
        client = model(endpoint, name)
        first = client.complete(ASK, [TOOL])
        assert first.reasoning == "I think."
        client.complete([*ASK, first.message, {"role": "tool", "tool_call_id": "call_1", "content": "1"}], [TOOL])
    assert endpoint.requests[1]["messages"][1].get("reasoning_content") == ("I think." if kept else None)


SQL_TOOL = {
    "type": "function",
    "function": {
        "name": "run_sql",
        "description": "Run it",
        "parameters": {"type": "object", "properties": {"sql": {"type": "string"}}},
    },
}


def two_turns(endpoint: Endpoint, name: str) -> Reply:
    """The first reply of a conversation over an endpoint, after a second turn has carried it back."""
    client = Model(ModelSection(name=name, api_base=endpoint.url.removesuffix("/v1")))
    begin = [{"role": "system", "content": "You count."}, *ASK]
    first = client.complete(begin, [SQL_TOOL])
    (call,) = first.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("run_sql", {"sql": "SELECT 1"})
    client.complete([*begin, first.message, {"role": "tool", "tool_call_id": call.id, "content": "1"}], [SQL_TOOL])
    return first


def test_anthropics_thinking_comes_back_signed_and_its_cache_is_marked() -> None:
    # The shape of a reply of /v1/messages with extended thinking, after Anthropic's documentation.
    content = [
        {"type": "thinking", "thinking": "Count them.", "signature": "signed"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "run_sql", "input": {"sql": "SELECT 1"}},
    ]
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0}
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content}
    with Endpoint([Scripted({**body, "stop_reason": "tool_use", "usage": usage})], forever=True) as endpoint:
        first = two_turns(endpoint, "anthropic/claude-sonnet-4-5")
    assert (first.content, first.reasoning) == ("I look.", "Count them.")
    assert (first.usage.input_tokens, first.usage.cached_tokens) == (110, 100) and first.usage.cost_usd
    earlier, later = endpoint.requests
    assert later["messages"][1] == {"role": "assistant", "content": content}
    assert earlier["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert later["messages"][-1]["content"][0]["cache_control"] == {"type": "ephemeral"}


def test_geminis_thought_signature_comes_back_beside_its_call() -> None:
    # The shape of a reply of generateContent with thoughts, after Google's documentation.
    call = {"functionCall": {"name": "run_sql", "args": {"sql": "SELECT 1"}}, "thoughtSignature": "c2lnbmVk"}
    parts = [{"text": "Count them.", "thought": True}, call]
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 18, "thoughtsTokenCount": 3}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    with Endpoint([Scripted({"candidates": [candidate], "usageMetadata": usage})], forever=True) as endpoint:
        first = two_turns(endpoint, "gemini/gemini-2.5-flash")
    assert first.reasoning == "Count them." and first.usage.reasoning_tokens == 3
    _, sent, result = endpoint.requests[1]["contents"]
    (part,) = sent["parts"]
    assert part["thoughtSignature"] == "c2lnbmVk" and part["function_call"]["args"] == {"sql": "SELECT 1"}
    assert result["parts"][0]["function_response"]["name"] == "run_sql"


def date_header() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)


@pytest.mark.parametrize(("header", "least", "most"), [(lambda: "0.3", 0.3, 1), (date_header, 0.9, 2.1)])
def test_a_rate_limit_is_waited_for_as_long_as_the_provider_says(
    header: Callable[[], str], least: float, most: float
) -> None:
    waits: list[tuple[float, str]] = []
    script = [error(429, "slow down", retry_after=header()), text("x")]
    with Endpoint(script) as endpoint:
        found = model(endpoint).complete(ASK, on_wait=lambda *wait: waits.append(wait))
    assert found.content == "x" and len(waits) == 1 and "slow down" in waits[0][1]
    assert least <= found.usage.wait_seconds <= most
    assert found.usage.seconds < least + 1, "waiting is no model time"


def test_waits_double_where_no_time_is_named() -> None:
    waits: list[float] = []
    with Endpoint([error(503, "overloaded")] * 3 + [text("x")]) as endpoint:
        model(endpoint, retry_wait_s=0.02).complete(ASK, on_wait=lambda seconds, _: waits.append(seconds))
    assert waits == [0.02, 0.04, 0.08]


def test_tries_end() -> None:
    endpoint = Endpoint([error(429, "slow down")], forever=True)
    with endpoint, pytest.raises(UserError, match="rate limit did not clear"):
        model(endpoint, retries=2).complete(ASK)
    assert len(endpoint.requests) == 3


def test_a_wait_past_the_time_limit_is_not_begun() -> None:
    begin = time.monotonic()
    with Endpoint([error(429, "slow down", retry_after="60")]) as endpoint, pytest.raises(OutOfTime):
        model(endpoint).complete(ASK, seconds=10)
    assert time.monotonic() - begin < 5 and len(endpoint.requests) == 1


def test_a_call_is_cut_off_at_the_time_limit() -> None:
    begin = time.monotonic()
    with Endpoint([reply("late", delay=3)]) as endpoint, pytest.raises(OutOfTime):
        model(endpoint, retry_wait_s=5).complete(ASK, seconds=0.5)
    assert time.monotonic() - begin < 2.5


@pytest.mark.parametrize(
    "response",
    [
        error(400, "This model's maximum context length is 8192 tokens. Your messages resulted in 9000 tokens."),
        error(400, "too much", code="context_length_exceeded"),
        error(400, "the request exceeds the available context size. try increasing the context size"),
        error(413, "Request too large for the model"),
    ],
)
def test_too_long_a_conversation_is_told_apart(response: Scripted) -> None:
    with Endpoint([response]) as endpoint, pytest.raises(ContextOverflow):
        model(endpoint).complete(ASK)


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (error(401, "Incorrect API key provided: sk-abcdefghijkl", code="invalid_api_key"), "Check OPENAI_API_KEY"),
        (error(404, "The model `scripted` does not exist", code="model_not_found"), "no such model"),
        (error(400, "scripted does not support tools"), "cannot call tools"),
        (error(404, "No endpoints found that support tool use."), "cannot call tools"),
        (error(429, "You exceeded your quota", code="insufficient_quota"), "waiting does not help"),
        (error(402, "Insufficient credits"), "waiting does not help"),
        (error(400, "temperature: out of range"), "temperature: out of range"),
    ],
)
def test_errors_that_stay_are_told_at_once_with_a_remedy(response: Scripted, said: str) -> None:
    with Endpoint([response], forever=True) as endpoint, pytest.raises(UserError) as caught:
        model(endpoint).complete(ASK, [TOOL])
    assert said in str(caught.value) and "abcdefghijkl" not in str(caught.value)
    assert caught.value.status == 1 and len(endpoint.requests) == 1


def test_no_server_is_told_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(UserError, match="Nothing answers at"):
            Model(ModelSection(name="openai/x", api_base=base)).complete(ASK)


def test_an_unknown_provider_is_told_with_the_form_of_a_name() -> None:
    with pytest.raises(UserError, match="provider/model"):
        Model(ModelSection(name="no-such-model")).complete(ASK)


def test_a_body_that_is_no_answer_is_told() -> None:
    endpoint = Endpoint([Scripted(b"<html>gateway</html>")], forever=True)
    with endpoint, pytest.raises(UserError, match="could not be called"):
        model(endpoint, retries=1).complete(ASK)


def test_secrets_are_taken_out_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value")
    assert redact("key very-secret-value, nvapi-0123456789abcdef, x") == "key ***, nvapi-***, x"


@pytest.mark.parametrize(
    ("response", "status", "said"),
    [
        (calls(("run_sql", {"sql": "SELECT 1"})), 0, "openai/scripted: calls tools\n100 tokens in (0 cached), 10 out"),
        (text("SELECT 1"), 1, "did not call the tool"),
        (calls(("run_sql", "{broken")), 1, "did not call the tool"),
        (error(401, "bad key"), 2, "PROVIDERS.md"),
    ],
)
def test_a_model_is_checked(
    response: Scripted,
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with Endpoint([response], forever=True) as endpoint:
        (tmp_path / "config.yaml").write_text(f"model:\n  api_base: {endpoint.url}\n", encoding="utf-8")
        assert model_check.main(["openai/scripted"]) == status
    printed = capsys.readouterr()
    assert said in (printed.out if status < 2 else printed.err)


@pytest.mark.slow
def test_the_check_is_a_command_and_quiet_otherwise(tmp_path: Path) -> None:
    with Endpoint([calls(("run_sql", {"sql": "SELECT 1"}))]) as endpoint:
        (tmp_path / "config.yaml").write_text(f"model:\n  api_base: {endpoint.url}\n", encoding="utf-8")
        command = [sys.executable, "-m", "okf_agent.models.check", "openai/scripted"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 2)


def test_importing_the_module_does_not_import_litellm() -> None:
    code = "import sys, okf_agent.agent, okf_agent.llm, okf_agent.records.trace; sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
