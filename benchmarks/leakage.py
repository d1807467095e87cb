"""Where the leak guard's thresholds lie: what documents and rules share with gold, and which partial plants are caught.

    OKF_TEST_DATA=… python benchmarks/leakage.py

Four distributions of the share of a secret's words that one passage of a document holds:

- golds of Defog, superhero and BIRD's history, and evidence of the latter two, against the documents of their
  databases (must not stop);
- fifty rules written as SQL against golds that compute them within a larger query (must not stop);
- a seeded sample of golds and evidence with a part of 30 to 100 % planted in prose, as it is, or with every alias
  renamed (ought to stop from a good part on);
- golds against the other golds of their database, as if a team had these among its documents (for information).
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from okf_agent.evaluation.leakage import EVIDENCE, GOLD, WORD, Passage, Secret, is_leak, passage, words

ROOT = Path(__file__).parents[1]
RULES = ROOT / "tests" / "agent" / "evaluation" / "fixtures" / "sql_rules.jsonl"
SEED = 240
SAMPLE = 200
"""Secrets of each kind that are planted."""
PARTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BEFORE = "# Net revenue\n\nWhat customers paid, as finance reports it at the end of the month. For example:\n\n"
AFTER = "\n\nAsk the finance team before you use it, since the books are closed on the third working day."


def main() -> None:
    data = Path(os.environ.get("OKF_TEST_DATA") or sys.exit("OKF_TEST_DATA is not set"))
    golds, evidence = secrets(data)
    documents = texts_of(data)
    print(f"{len(golds)} golds, {len(evidence)} pieces of evidence")
    for what, hidden in (("gold", golds), ("evidence", evidence)):
        found = [best(secret, documents[database]) for database, secret in hidden if documents[database]]
        show(f"{what} in the documents of its database", hidden[0][1].kind, found)
    rules = [json.loads(line) for line in RULES.read_text(encoding="utf-8").splitlines()]
    show("rules as SQL", GOLD, [passage(Secret("", GOLD, rule["gold"]), rule["rule"]) for rule in rules])
    together = [(Secret("", GOLD, one["gold"]), [two["rule"] for two in rules]) for one in rules]
    show("rules as SQL, all in one file", GOLD, [passage(one, "\n".join(text)) for one, text in together])
    draw = random.Random(SEED)
    for what, hidden in (("gold", golds), ("evidence", evidence)):
        long = [secret for _, secret in hidden if len(words(secret.text)) >= 12]
        sample = draw.sample(long, min(SAMPLE, len(long)))
        for part in PARTS:
            plants = [(secret, BEFORE + cut(secret.text, part, draw) + AFTER) for secret in sample]
            show(f"{what}, {part:.0%} planted", sample[0].kind, [passage(*plant) for plant in plants])
        if what == "gold":
            show("gold, whole, aliases renamed", GOLD, [passage(s, renamed(s.text)) for s in sample])
            show("gold, without its tail", GOLD, [passage(s, main_part(s.text)) for s in sample])
    others = defaultdict(list)
    for database, secret in golds:
        others[database].append(secret)
    found = [
        best(secret, [other.text for other in others[database] if other.text != secret.text])
        for database, secret in draw.sample(golds, SAMPLE)
    ]
    show("gold among other golds of its database", GOLD, found)


def secrets(data: Path) -> tuple[list[tuple[str, Secret]], list[tuple[str, Secret]]]:
    """Return (database, secret) of every gold query, and of every piece of evidence."""
    golds, evidence = [], []
    for line in (data / "defog" / "tasks.jsonl").read_text(encoding="utf-8").splitlines():
        task = json.loads(line)
        if not task["instance_id"].startswith("idk"):
            golds += [(task["db_name"], Secret(task["instance_id"], GOLD, sql)) for sql in task["query"].split(";")]
    for file in (data / "bird-superhero" / "questions.json", data / "bird-history" / "dev.json"):
        for task in json.loads(file.read_text(encoding="utf-8")):
            golds.append((task["db_id"], Secret(str(task["question_id"]), GOLD, task["SQL"])))
            evidence.append((task["db_id"], Secret(str(task["question_id"]), EVIDENCE, task["evidence"])))
    return tuple([each for each in found if len(words(each[1].text)) >= 7] for found in (golds, evidence))  # type: ignore[return-value]


def texts_of(data: Path) -> dict[str, list[str]]:
    """Return the documents of each database: files, or the schema of one that has none."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in (data / "defog").iterdir():
        if folder.is_dir():
            found[folder.name] = [file.read_text(encoding="utf-8") for file in folder.iterdir()]
    for database in json.loads((data / "bird-history" / "dev_tables.json").read_text(encoding="utf-8")):
        found[database["db_id"]].append(json.dumps(database))
    described = (data / "bird-superhero" / "database_description").glob("*.csv")
    found["superhero"] += [file.read_text(encoding="utf-8-sig", errors="replace") for file in described]
    return found


def best(secret: Secret, documents: Iterable[str]) -> Passage:
    found = [passage(secret, document) for document in documents]
    return max(found, key=lambda each: (is_leak(secret.kind, each), each.share), default=Passage())


def cut(text: str, part: float, draw: random.Random) -> str:
    """Return so much of a text, in one piece, beginning anywhere."""
    spots = list(WORD.finditer(text))
    size = max(1, round(part * len(spots)))
    begin = draw.randint(0, len(spots) - size)
    return text[spots[begin].start() : spots[begin + size - 1].end()]


def renamed(sql: str) -> str:
    """Return a query with BIRD's aliases T1, T2, … and Defog's single letters under other names."""
    return re.sub(r"\b(?:T\d|[a-z]{1,2})(?=\.|\b\s+(?:ON|JOIN|WHERE|INNER|LEFT))", lambda m: f"q{m[0].lower()}", sql)


def main_part(sql: str) -> str:
    """Return a query without what comes after its WHERE: grouping, order and limit."""
    return re.split(r"\b(?:GROUP BY|ORDER BY|LIMIT)\b", sql, flags=re.IGNORECASE)[0]


def show(what: str, kind: str, found: Sequence[Passage]) -> None:
    """Print quantiles of the shares, and how many stop an evaluation."""
    shares = sorted(each.share for each in found)
    stopped = sum(is_leak(kind, each) for each in found)
    marks = [shares[round(q * (len(shares) - 1))] for q in (0.5, 0.9, 0.99, 1)]
    with_source = max((each.share for each in found if each.has_source), default=0.0)
    print(
        f"{what:45} {len(found):5}  median {marks[0]:4.0%}  90 % {marks[1]:4.0%}  99 % {marks[2]:4.0%}  "
        f"most {marks[3]:4.0%}, with FROM {with_source:4.0%}  stop {stopped:4} ({stopped / len(found):.1%})"
    )


if __name__ == "__main__":
    main()
