"""A suite of as many questions as wanted over the shop, and a model that answers them: what an evaluation is tried on.

    python -m support.evaluations SECONDS   # the model alone, in a process of its own; prints its address

The model is right but for every fifth question. In a mode with tools it hands its query in at once, and for every
tenth question reads a file and runs the query before.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from support.endpoint import Endpoint, Scripted, calls, submit, text

ASKED = re.compile(r"number below (\d+) are there")
FILE = "/tables/customers.md"


def write_suite(file: Path, count: int) -> Path:
    """The suite as a user writes one: a line a question, with its gold."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        for number in range(1, count + 1):
            task = {
                "id": f"count_{number}",
                "database": "shop",
                "question": f"How many customers with a number below {number} are there?",
                "sql": gold_sql(number),
                "difficulty": ("easy", "hard")[number % 2],
            }
            out.write(json.dumps(task) + "\n")
    return file


def gold_sql(number: int) -> str:
    return f"SELECT count(*) FROM customers WHERE customer_id < {number}"


def is_right(task_id: str) -> bool:
    return int(task_id.removeprefix("count_")) % 5 != 0


def answer(request: dict[str, Any]) -> Scripted:
    """The next reply to a conversation."""
    said = [str(m.get("content") or "") for m in request["messages"] if m["role"] == "user"]
    number = next(int(found[1]) for each in said if (found := ASKED.search(each)))
    sql = gold_sql(number) if number % 5 else f"SELECT count(*) + 1 FROM customers WHERE customer_id < {number}"
    tools = {tool["function"]["name"] for tool in request.get("tools", ())}
    if not tools:
        return text(f"```sql\n{sql}\n```")
    done = sum(1 for message in request["messages"] if message["role"] == "tool")
    steps = [calls(("read_file", {"paths": [FILE]}))] if "read_file" in tools and number % 10 == 0 else []
    steps += [calls(("run_sql", {"sql": sql}))] if number % 10 == 0 else []
    return steps[done] if done < len(steps) else submit(sql, "As the query says.")


def main() -> None:
    with Endpoint(answer=answer) as endpoint:
        print(endpoint.url, flush=True)
        time.sleep(float(sys.argv[1]))


if __name__ == "__main__":
    main()
