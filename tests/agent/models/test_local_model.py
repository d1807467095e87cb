"""The local model's server: one for all, there for as long as it is used. Needs the weights in the cache."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import filelock
import pytest

from okf_agent.ask import Workspace
from okf_agent.config import Price, load_config
from okf_agent.models import local_model
from okf_agent.models.weights import CODER, cache_folder
from okf_compiler.errors import UserError

SERVE = """
import sys, time
from pathlib import Path
from okf_agent.models.local_model import serve
with serve(Path(sys.argv[1]), idle_seconds=float(sys.argv[2])) as api_base:
    print(api_base, flush=True)
    time.sleep(float(sys.argv[3]))
"""


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """A cache of its own that has the user's weights, so that the user's server is left alone."""
    pytest.importorskip("xllamacpp")
    weights = cache_folder() / CODER.file
    if not weights.is_file():
        pytest.skip(f"the local model is not in {weights.parent}; `okf-agent prepare` fetches it")
    (tmp_path / CODER.file).hardlink_to(weights) if _same_device(weights, tmp_path) else (
        tmp_path / CODER.file
    ).symlink_to(weights)
    yield tmp_path
    local_model.stop(tmp_path)


def _same_device(one: Path, two: Path) -> bool:
    return one.stat().st_dev == two.stat().st_dev


def _serve_in_child(cache: Path, idle: float, hold: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SERVE, str(cache), str(idle), str(hold)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def _answers(api_base: str) -> bool:
    try:
        with urllib.request.urlopen(api_base + "/models", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _gone(api_base: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _answers(api_base):
            return True
        time.sleep(0.1)
    return False


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with (
        pytest.raises(UserError, match=r"pip install 'okf-sql-agent\[local\]'"),
        local_model.serve(tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_server_waits_for_its_first_user_and_leaves_after_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child's own loop, without the model: its state file, its leases and its clock."""
    monkeypatch.setattr(local_model, "POLL_SECONDS", 0.02)
    place = local_model.Place(tmp_path, tmp_path / "weights", "test")
    place.leases.mkdir()
    running = local_model.Running(1, "http://127.0.0.1:9/secret")
    place.state.write_text(json.dumps(asdict(running)), encoding="utf-8")
    ended = threading.Event()

    def stay() -> None:
        local_model._stay(place, running, 0.5, threading.Event())
        ended.set()

    threading.Thread(target=stay, daemon=True).start()
    assert not ended.wait(0.2), "it ended before its first user could come"
    with place.lock:
        assert not ended.wait(0.6), "it ended while a user was coming in"
        lease = filelock.FileLock(place.leases / "one")
        lease.acquire()
    assert not ended.wait(0.8), "it ended while it was in use"
    lease.release()
    assert not ended.wait(0.1), "it ended at once"
    assert ended.wait(10), "it outlived its last user"
    assert not place.state.exists()


@pytest.mark.slow
def test_it_answers_and_only_under_its_secret_path(cache: Path) -> None:
    with local_model.serve(cache) as api_base:
        question = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8}
        request = urllib.request.Request(
            api_base + "/chat/completions",
            data=json.dumps(question).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            answer = json.load(reply)
        assert answer["choices"][0]["message"]["content"]
        assert answer["usage"]["prompt_tokens"] > 0
        without = "/".join(api_base.split("/")[:3]) + "/v1/models"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(without, timeout=5)


@pytest.mark.slow
def test_two_that_start_at_once_share_one_and_it_leaves_when_unused(cache: Path) -> None:
    processes = [_serve_in_child(cache, idle=1, hold=3) for _ in range(2)]
    first, second = (_first_line(p) for p in processes)
    assert first == second
    assert [p.wait(60) for p in processes] == [0, 0]
    assert _answers(first), "it stays a while after its last user"
    with local_model.serve(cache, idle_seconds=1) as again:
        assert again == first
        time.sleep(2.5)
        assert _answers(again), "longer than its idle time, but in use"
    assert _gone(again, 10)
    assert not list((cache / "server").glob("*.json"))


@pytest.mark.slow
def test_a_killed_user_does_not_keep_it(cache: Path) -> None:
    user = _serve_in_child(cache, idle=1, hold=60)
    api_base = _first_line(user)
    user.kill()
    user.wait()
    assert _gone(api_base, 10)


@pytest.mark.slow
def test_a_killed_server_is_replaced(cache: Path) -> None:
    with local_model.serve(cache) as first:
        local_model.stop(cache)
        assert _gone(first, 10)
    with local_model.serve(cache) as second:
        assert second != first
        assert _answers(second)


@pytest.mark.slow
def test_it_answers_the_same_way_again(cache: Path) -> None:
    """Anew, repeated, after another question, and after a restart of its server."""
    rules = " ".join(f"Rule {n}: column c{n} counts only where flag f{n} is false." for n in range(60))
    first, other = (f"Write PostgreSQL. {rules}\nSum c{n} and c{n + 1} of table t." for n in (3, 41))

    def reply(api_base: str, prompt: str) -> str:
        body = {"messages": [{"role": "user", "content": prompt}], "temperature": 0.0, "max_tokens": 60}
        request = urllib.request.Request(
            api_base + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as response:
            told = json.load(response)
        assert told["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0) == 0
        return str(told["choices"][0]["message"]["content"])

    with local_model.serve(cache) as api_base:
        replies = [reply(api_base, first), reply(api_base, first)]
        reply(api_base, other)
        replies.append(reply(api_base, first))
        assert local_model.stop(cache, unused_only=True) == (0, 1), "it is in use"
    assert local_model.stop(cache, unused_only=True) == (1, 0)
    assert _gone(api_base, 10)
    with local_model.serve(cache) as api_base:
        replies.append(reply(api_base, first))
    assert len(set(replies)) == 1, replies


@pytest.mark.slow
def test_weights_that_are_not_weights_are_one_message(cache: Path) -> None:
    (cache / CODER.file).unlink()
    with (cache / CODER.file).open("wb") as file:
        file.truncate(CODER.size)
    with pytest.raises(UserError, match="local model's server"), local_model.serve(cache):
        pass


def test_the_embedded_model_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def serve(**_: object) -> Iterator[str]:
        yield "http://127.0.0.1:9/v1"

    (tmp_path / "config.yaml").write_text("{}\n", encoding="utf-8")
    monkeypatch.setattr(local_model, "serve", serve)
    with Workspace(load_config(tmp_path)) as workspace:
        model = workspace.model("local")
    assert model.section.prices[model.name] == Price(input=0, output=0)
