"""Texts from outside: bounded before they are worked on, so that no client holds up the others, and never believed."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from support.endpoint import Endpoint
from support.mcp_lines import started
from support.mcp_server import configured, over_http, post, wait_until
from support.workspace import Workspace

from okf_agent.cell import Cell
from okf_agent.search.text import stems
from okf_compiler.linking.words import level

LONG = 900_000
CALLS: list[tuple[str, Any]] = [
    ("ask", lambda text: {"question": text}),
    ("search", lambda text: {"query": text}),
    ("find_value", lambda text: {"values": [text]}),
    ("run_sql", lambda text: {"sql": text}),
    ("read_file", lambda text: {"paths": [text]}),
    ("list_databases", lambda text: {text: "1"}),
]


@contextmanager
def beats(port: int) -> Iterator[list[float]]:
    """Ask a server for its health all the time; gives the seconds of each answer."""
    taken: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            begin = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
                answer.read()
            taken.append(time.monotonic() - begin)
            over.wait(0.05)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            yield taken
        finally:
            over.set()
            asking.result(60)


@pytest.mark.parametrize("unit", ["y", "ed", "_", "é", "'"])
def test_a_huge_text_holds_nobody_up(shop: Workspace, unit: str) -> None:
    text = (unit * LONG)[: LONG // len(unit.encode("utf-8"))]

    with Endpoint([], forever=True) as endpoint:
        shop.configure(endpoint.url)
        with over_http(configured(shop, max_request_bytes=8_000_000), cell=Cell("openai/scripted")) as running:
            with beats(running.port) as taken:
                for name, arguments in CALLS:
                    begin = time.monotonic()
                    body = post(running.port, name, arguments(text))
                    with urllib.request.urlopen(_request(running.port, body), timeout=60) as answer:
                        assert b'"isError":' in answer.read()
                    assert time.monotonic() - begin < 5, name
                wait_until(lambda: len(taken) > 1, "the health was asked for")
            assert max(taken) < 2
        assert not endpoint.requests, "a question was put to a model"


def _request(port: int, raw: bytes) -> urllib.request.Request:
    head, _, body = raw.partition(b"\r\n\r\n")
    headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n")[1:])
    return urllib.request.Request(f"http://127.0.0.1:{port}/mcp", body, headers)


@pytest.mark.parametrize("word", ["y" * 500_000, "ies" * 200_000, "s" * 500_000])
def test_the_stem_of_a_huge_word_takes_no_time(word: str) -> None:
    begin = time.monotonic()
    stems(f"active {word}")
    level(word)
    assert time.monotonic() - begin < 1


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("", "ask needs `question`"),
        (" \n\t", "ask needs `question`"),
        ("y" * 20_001, "`question` of ask has 20,001 characters; the most is 20,000"),
    ],
)
def test_a_question_that_is_none_is_refused_with_the_reason(shop: Workspace, question: str, said: str) -> None:
    with started(shop) as client:
        client.hello()
        client.call("ask", {"question": question}, 1)
        result = client.answer(1)["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith(said)


@pytest.mark.parametrize("name", ["editor, token alice", "editor,token alice", "editor\n, token\talice"])
def test_a_client_cannot_call_itself_the_holder_of_a_token(shop: Workspace, name: str) -> None:
    with started(shop, "--no-ask") as client:
        client.hello(name=name, version="1, token bob")
        client.call("read_file", {"paths": ["/"]}, 1)
        client.answer(1)
        assert client.process.stdin
        client.process.stdin.close()
        assert client.process.wait(30) == 0
    (record,) = shop.records()
    assert record["client"] == "mcp editor token alice 1 token bob"
    assert json.dumps(record).count(", token") == 0
