"""Conversations in the providers' own shapes, thinking included: nothing is lost between turns.

The replies are written from the providers' documentation, not recorded: Anthropic's "Extended thinking with tool
use" (/v1/messages), Google's "Thought signatures" (generateContent), OpenAI's chat completions.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from support import hubs
from support.endpoint import Endpoint, Scripted, calls, submit

from okf_agent import agent
from okf_agent.config import ModelSection
from okf_agent.knowledge import Sources, prepare
from okf_agent.llm import Model
from okf_agent.run import Limits, Question, Run
from okf_agent.tools import Context

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
SQL = "SELECT count(*) FROM hubs"
RULE = "/knowledge/utilization.md"


def converse(endpoint: Endpoint, name: str, bundle: Path) -> Run:
    """A whole run over an endpoint that speaks the provider's protocol."""
    base = endpoint.url if name.startswith("openai") else endpoint.url.removesuffix("/v1")
    run = agent.run(
        Question("How many hubs?", "hubs", hubs.DAY),
        prepare("bundle", "How many hubs?", Sources("hubs", bundle=bundle)),
        Model(ModelSection(name=name, api_base=base, retries=0)),
        Context(bundle=bundle),
        Limits(),
        lambda _: None,
    )
    assert (run.stop_reason, run.error, endpoint.missing) == ("submitted", "", 0)
    return run


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return hubs.write_bundle(tmp_path / "bundle")


def claude(*content: dict[str, Any]) -> Scripted:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    return Scripted({**head, "content": [*content], "stop_reason": "tool_use", "stop_sequence": None, "usage": usage})


CLAUDE: list[list[dict[str, Any]]] = [
    [
        {"type": "thinking", "thinking": "I read the rule and the table.", "signature": "c2lnbmVk/1=="},
        {"type": "text", "text": "I read first."},
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"paths": [RULE]}},
        {"type": "tool_use", "id": "toolu_2", "name": "read_file", "input": {"paths": ["/tables/hubs.md"]}},
    ],
    [
        {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"},
        {"type": "tool_use", "id": "toolu_3", "name": "run_sql", "input": {"sql": SQL}},
    ],
    [{"type": "tool_use", "id": "toolu_4", "name": "submit_answer", "input": {"sql": SQL, "answer": "The hubs."}}],
]


def test_anthropics_blocks_come_back_as_they_were(bundle: Path) -> None:
    with Endpoint([claude(*content) for content in CLAUDE]) as endpoint:
        run = converse(endpoint, "anthropic/claude-sonnet-4-5", bundle)
    assert (run.tally.input_tokens, run.tally.cached_tokens) == (300, 270) and run.tally.cost_usd
    final = endpoint.requests[-1]["messages"]
    sent = [m["content"] for m in final if m["role"] == "assistant"]
    assert [[block for block in content if block["type"] != "text"] for content in sent] == [
        [block for block in content if block["type"] != "text"] for content in CLAUDE[:2]
    ]
    assert {"type": "text", "text": "I read first."} in sent[0]
    results = [
        b["tool_use_id"] for m in final if m["role"] == "user" for b in m["content"] if b["type"] == "tool_result"
    ]
    assert results == ["toolu_1", "toolu_2", "toolu_3"]


def gemini(*parts: dict[str, Any]) -> Scripted:
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 108, "thoughtsTokenCount": 3}
    candidate = {"content": {"role": "model", "parts": [*parts]}, "finishReason": "STOP", "index": 0}
    return Scripted({"candidates": [candidate], "usageMetadata": usage | {"cachedContentTokenCount": 60}})


def test_geminis_signatures_come_back_beside_their_calls(bundle: Path) -> None:
    def call(name: str, **args: Any) -> dict[str, Any]:
        return {"functionCall": {"name": name, "args": args}}

    script = [
        # Of parallel calls only the first is signed.
        gemini(
            {"text": "I read both.", "thought": True},
            call("read_file", paths=[RULE]) | {"thoughtSignature": "c2lnbmVkLTE="},
            call("read_file", paths=["/tables/hubs.md"]),
        ),
        gemini(call("run_sql", sql=SQL) | {"thoughtSignature": "c2lnbmVkLTI="}),
        gemini(call("submit_answer", sql=SQL, answer="The hubs.")),
    ]
    with Endpoint(script) as endpoint:
        run = converse(endpoint, "gemini/gemini-2.5-flash", bundle)
    assert (run.tally.cached_tokens, run.tally.reasoning_tokens) == (180, 9) and run.tally.cost_usd
    turns = [c["parts"] for c in endpoint.requests[-1]["contents"] if c["role"] == "model"]
    made = [[(p["function_call"]["name"], p.get("thoughtSignature")) for p in parts] for parts in turns]
    assert [name for parts in made for name, _ in parts] == ["read_file", "read_file", "run_sql"]
    assert (made[0][0][1], made[1][0][1]) == ("c2lnbmVkLTE=", "c2lnbmVkLTI=")
    told = [p for c in endpoint.requests[-1]["contents"] if c["role"] != "model" for p in c["parts"]]
    assert sum("function_response" in part for part in told) == 3


def test_openais_calls_come_back_and_what_it_adds_does_not_break_it(bundle: Path) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 80,
        "total_tokens": 1080,
        "prompt_tokens_details": {"cached_tokens": 900, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 64, "accepted_prediction_tokens": 0},
    }
    added = {"refusal": None, "annotations": [], "usage": usage}
    two = (("read_file", {"paths": [RULE]}), ("run_sql", {"sql": SQL}))
    with Endpoint([calls(*two, **added), submit(SQL, "The hubs.")]) as endpoint:
        run = converse(endpoint, "openai/gpt-5-mini", bundle)
    assert (run.tally.cached_tokens, run.tally.reasoning_tokens) == (900, 64) and run.tally.cost_usd
    sent = next(m for m in endpoint.requests[-1]["messages"] if m["role"] == "assistant")
    assert {*sent} == {"role", "content", "tool_calls"}
    assert [c["id"] for c in sent["tool_calls"]] == ["call_1", "call_2"]


def test_opentelemetry_gets_a_span_of_every_call(bundle: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    litellm: Any = importlib.import_module("litellm")
    from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    callback = OpenTelemetry(config=OpenTelemetryConfig(exporter="console"), tracer_provider=provider)
    litellm.callbacks.append(callback)
    try:
        with Endpoint([calls(("run_sql", {"sql": SQL})), submit(SQL, "The hubs.")]) as endpoint:
            converse(endpoint, "openai/gpt-5-mini", bundle)
        spans = wait_for(exporter)
    finally:
        litellm.callbacks.remove(callback)
    tokens = [span.attributes.get("gen_ai.usage.input_tokens") for span in spans if span.attributes]
    assert tokens.count(100) >= 2


def wait_for(exporter: Any) -> Any:
    """The spans, once LiteLLM's own thread has delivered those of two calls."""
    import time

    end = time.monotonic() + 60
    while time.monotonic() < end:
        spans = exporter.get_finished_spans()
        if sum("gen_ai.usage.input_tokens" in (span.attributes or {}) for span in spans) >= 2:
            return spans
        time.sleep(0.1)
    raise AssertionError(f"only {[span.name for span in exporter.get_finished_spans()]}")
