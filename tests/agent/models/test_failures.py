"""Failures of model calls over real HTTP: which are tried again, which end at once, and in what words."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from typing import Any

import pytest
from support.endpoint import Endpoint, Scripted, error, text

from okf_agent.config import ModelSection
from okf_agent.events import Message
from okf_agent.llm import ContextOverflow, Model
from okf_compiler.errors import UserError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::ResourceWarning")
ASK: list[Message] = [{"role": "user", "content": "How many?"}]


def model(endpoint: Endpoint, **section: Any) -> Model:
    values = {"name": "openai/scripted", "api_base": endpoint.url, "retry_wait_s": 0.01, "retries": 3, **section}
    return Model(ModelSection(**values))


OVERFLOWS = [
    "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 204000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Unable to submit request because the input token count is 33000 but model only supports up to 32768.",
    "Input is too long for requested model.",
    "Malformed input request: expected maxLength: 400000, actual: 500000, please reformat your input and try again.",
    "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion.",
    "Please reduce the length of the messages or completion. Current length is 8500 while limit is 8192",
    "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 1000 `max_new_tokens`",
    "`inputs` must have less than 1024 tokens. Given: 1500",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try a shorter prompt",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "prompt too long; exceeded max context length by 200 tokens",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Range of input length should be [1, 30720]",
    "The input (131393 tokens) is longer than the model's context length (131072 tokens).",
    "Requested token count exceeds the model's maximum context length of 4096 tokens.",
    "Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)",
    "invalid params, context window exceeds limit (2013)",
    "Prompt exceeds max length",
    "tokens in prompt over limit",
    "The prompt is too long: 150000, model maximum context length: 131072",
    "prompt token count of 150000 exceeds the limit of 128000",
    "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
    "The estimated number of input and maximum output tokens (8600) exceeded this model context window limit (8192).",
    "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576.",
    "Total tokens of image and text exceed max message tokens",
    "Total message token length exceed model limit",
    "Input length 33000 exceeds the maximum length 32768",
]
NO_OVERFLOWS = [
    "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for this model",
    "max_tokens is too large: 30000. This model supports at most 16384 completion tokens",
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 130 instead.",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.",
    "temperature: the maximum is 1",
    "Invalid value for 'stop': at most 4 sequences",
    "scripted does not exist",
]


@pytest.mark.parametrize("said", OVERFLOWS)
@pytest.mark.parametrize("status", [400, 413])
def test_a_conversation_that_does_not_fit_is_known_by_its_kind(said: str, status: int) -> None:
    with Endpoint([error(status, said)]) as endpoint, pytest.raises(ContextOverflow, match="does not fit the model"):
        model(endpoint).complete(ASK)


@pytest.mark.parametrize("said", NO_OVERFLOWS)
def test_another_limit_is_none_of_the_conversation(said: str) -> None:
    with Endpoint([error(400, said)]) as endpoint, pytest.raises(UserError):
        model(endpoint).complete(ASK)
    assert len(endpoint.requests) == 1


RATE = "Rate limit reached for model `x` on tokens per minute (TPM): Limit 6000, Used 5900, Requested 500."


def test_a_rate_limit_of_tokens_is_waited_for() -> None:
    with Endpoint([error(429, RATE, retry_after="0.05"), text("x")]) as endpoint:
        assert model(endpoint).complete(ASK).content == "x"


def body(**changes: Any) -> Scripted:
    sent = text("x").body
    assert isinstance(sent, dict)
    return Scripted({**sent, **changes})


def choice(**changes: Any) -> Scripted:
    return body(
        choices=[{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop", **changes}]
    )


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (Scripted(b"<html>gateway</html>"), "is no reply of a model: <html>gateway</html>"),
        (Scripted({"hello": 1}), 'is no reply of a model: {"hello": 1}'),
        (Scripted(b"[1, 2]"), "is no reply of a model"),
        (Scripted(b""), "is no reply of a model: nothing"),
        (body(choices="x"), "is no reply of a model"),
        (body(usage="many"), "is no reply of a model"),
        (choice(message=None), "is no reply of a model"),
        (choice(message={"role": "assistant", "content": 5}), "is no reply of a model"),
        (choice(message={"role": "assistant", "tool_calls": [{"id": 1, "function": "x"}]}), "is no reply of a model"),
        (Scripted(b"[" * 100_000), "is no reply of a model"),
        (Scripted({"error": {"message": "no such route", "code": 404}}), "no such route"),
        (Scripted({"error": {"message": "model is not loaded", "code": 400}, "choices": []}), "model is not loaded"),
        (
            choice(finish_reason="error", error={"message": "provider out of credit", "code": 402}),
            "provider out of credit",
        ),
        (error(429, "Rate limit exceeded: free-models-per-day"), "waiting does not help"),
        (error(429, "on tokens per day (TPD): Limit 100000, Used 99000", retry_after="1"), "waiting does not help"),
        (error(429, "Quota exceeded for metric GenerateRequestsPerDayPerProjectPerModel-FreeTier"), "does not help"),
        (error(429, "You have reached your weekly usage limit"), "waiting does not help"),
        (
            error(400, "The response was filtered due to the prompt violating the content management policy"),
            "filter",
        ),
        (error(400, "Unsupported value: 'temperature' does not support 0 with this model."), "model.temperature to 1"),
        (
            error(400, "max_tokens is too large: 30000. This model supports at most 16384 completion tokens"),
            "max_tokens in",
        ),
    ],
)
def test_what_stays_as_it_is_ends_at_once(response: Scripted, said: str) -> None:
    with Endpoint([response], forever=True) as endpoint, pytest.raises(UserError) as caught:
        model(endpoint).complete(ASK)
    assert said in str(caught.value) and len(endpoint.requests) == 1
    assert "Traceback" not in str(caught.value) and "site-packages" not in str(caught.value)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "passing", [error(503, "busy"), error(529, "overloaded"), error(408, "late"), error(500, "oops")]
)
def test_what_passes_is_tried_again(passing: Scripted, stream: bool) -> None:
    with Endpoint([passing, passing, text("x")]) as endpoint:
        assert model(endpoint, stream=stream).complete(ASK).content == "x"


@pytest.mark.parametrize(
    "passing",
    [
        Scripted({"error": {"message": "Upstream error from the provider", "code": 502}}),
        choice(finish_reason="error", error={"message": "Upstream is overloaded", "code": 503}),
        Scripted(b'{"id": "1", "choices": [', missing=100),
    ],
)
def test_an_upstream_error_or_half_a_reply_with_status_200_is_tried_again(passing: Scripted) -> None:
    with Endpoint([passing, text("x")]) as endpoint:
        assert model(endpoint).complete(ASK).content == "x"


def test_an_upstream_error_that_stays_is_told_in_its_own_words() -> None:
    upstream = Scripted({"error": {"message": "Upstream error from Acme", "code": 502}})
    with (
        Endpoint([upstream], forever=True) as endpoint,
        pytest.raises(UserError, match="called: Upstream error from Acme"),
    ):
        model(endpoint).complete(ASK)
    assert len(endpoint.requests) == 4


def test_an_error_in_a_stream_is_told_in_its_own_words() -> None:
    sent = b'data: {"error": {"message": "The model was unloaded", "code": 400}}\n\ndata: [DONE]\n\n'
    events = Scripted(sent, headers={"Content-Type": "text/event-stream"})
    with Endpoint([events], forever=True) as endpoint, pytest.raises(UserError, match="called: The model was unloaded"):
        model(endpoint, stream=True).complete(ASK)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("key", ["k\u00e9y", "line\nend"])
def test_a_key_that_no_request_can_carry_is_told_at_once(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    begin = time.monotonic()
    with Endpoint([text("x")]) as endpoint, pytest.raises(UserError) as caught:
        model(endpoint, retry_wait_s=20).complete(ASK)
    assert time.monotonic() - begin < 15 and key not in str(caught.value)


def test_a_missing_key_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    begin = time.monotonic()
    with pytest.raises(UserError, match="does not accept the key"):
        Model(ModelSection(name="gpt-4o", retry_wait_s=20)).complete(ASK)
    assert time.monotonic() - begin < 15


@pytest.mark.parametrize("name", ["openai/mine", "azure/mine"])
def test_a_model_that_takes_its_limit_by_another_name_gets_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with Endpoint([error(400, said), text("x"), text("y")]) as endpoint:
        client = model(endpoint, name=name, max_tokens=77)
        assert client.complete(ASK).content == "x" and client.complete(ASK).content == "y"
    assert [r.get("max_tokens") for r in endpoint.requests] == [77, None, None]
    assert endpoint.requests[2]["max_completion_tokens"] == 77


def packed(data: bytes, how: str) -> Scripted:
    made = gzip.compress(data) if how == "gzip" else zlib.compress(data)
    return Scripted(made, headers={"Content-Encoding": how})


def test_a_packed_reply_is_read_and_none_is_asked_for() -> None:
    data = json.dumps(text("x").body).encode()
    with Endpoint([packed(data, "gzip"), packed(data, "deflate")]) as endpoint:
        assert [model(endpoint).complete(ASK).content for _ in range(2)] == ["x", "x"]
    assert {headers["Accept-Encoding"] for headers in endpoint.headers} == {"identity"}


@pytest.mark.parametrize("name", ["openai/mine", "anthropic/claude-sonnet-4-5"])
def test_a_bomb_is_not_unpacked(name: str) -> None:
    bomb = packed(b" " * 300_000_000, "gzip")
    with Endpoint([bomb], forever=True) as endpoint, pytest.raises(UserError, match="far more than a reply can be"):
        model(endpoint, name=name).complete(ASK)
    assert len(endpoint.requests) == 1
