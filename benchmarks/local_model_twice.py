"""Ask the embedded model five questions of the shop again and again, and say whether a reply ever changes.

    python benchmarks/local_model_twice.py

Each prompt is sent to a fresh server, repeated at once, sent again after another question, and again after a restart
of the server. Replies are compared to the letter, and the seconds of each are printed. Exit status 1 if one differs.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from okf_agent.models import local_model
from okf_agent.models.weights import CODER, cache_folder

PROJECT = Path(__file__).parents[1]
QUESTIONS = 5
ROUNDS = ("anew", "repeated", "after another", "after a restart")


def main() -> int:
    tasks = [json.loads(line) for line in (PROJECT / "data/shop/tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    prompts = [messages(task["query"]) for task in tasks[:QUESTIONS]]
    told: list[list[str]] = [[] for _ in prompts]
    seconds: dict[str, list[float]] = {name: [] for name in ROUNDS}

    def ask(address: str, number: int, name: str) -> None:
        begin = time.monotonic()
        told[number].append(reply(address, prompts[number]))
        seconds[name].append(time.monotonic() - begin)

    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        (cache / CODER.file).symlink_to(cache_folder() / CODER.file)
        with local_model.serve(cache) as address:
            for number in range(len(prompts)):
                ask(address, number, "anew")  # another question was asked before, so nothing of it is cached
                ask(address, number, "repeated")
            for number in range(len(prompts)):
                ask(address, number, "after another")
        local_model.stop(cache)
        time.sleep(2)
        with local_model.serve(cache) as address:
            for number in range(len(prompts)):
                ask(address, number, "after a restart")
        local_model.stop(cache)
    print(f"{platform.platform()}, Python {platform.python_version()}, {QUESTIONS} questions")
    for name in ROUNDS:
        print(f"  {name:<16} {' '.join(f'{each:5.1f}' for each in seconds[name])} s")
    changed = [number + 1 for number, replies in enumerate(told) if len(set(replies)) > 1]
    print("every reply the same" if not changed else f"replies differ: questions {changed}")
    return bool(changed)


def messages(question: str) -> list[dict[str, Any]]:
    """What a pack's model is told, by the product's own command."""
    command: list[str | Path] = [Path(sys.executable).with_name("okf-agent"), "context", question, "--db", "shop"]
    done = subprocess.run([*command, "--knowledge", "pack", "--json"], cwd=PROJECT, capture_output=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["messages"]
    return found


def reply(address: str, told: list[dict[str, Any]]) -> str:
    body = {"messages": told, "temperature": 0.0, "max_tokens": local_model.REPLY_TOKENS}
    request = urllib.request.Request(
        f"{address}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=local_model.REPLY_SECONDS) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


if __name__ == "__main__":
    sys.exit(main())
