"""Questions with what they need, and databases of all sizes to ask them in: what `navigation.py` goes through."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlglot
import yaml
from sqlglot import exp

from okf_compiler.bundle import Concept, load
from okf_compiler.compile import compile_database
from okf_compiler.documents import Documents, list_databases
from okf_compiler.readers import livesqlbench
from okf_compiler.settings import load_settings
from okf_compiler.tokens import tokens

SHOP = Path(__file__).parents[1] / "data" / "shop"
LABELS = Path(__file__).parent / "labels"
SUITES = {"livesqlbench-base-lite": "tasks_base_lite.yaml", "livesqlbench-base-full-v1": "tasks_base_full.yaml"}
"""Folder of a suite -> its labels."""
MADE_SQL = "SELECT " + ", ".join(f"some_table.some_column_{n}" for n in range(40))
"""Where no query is given: as long as a query of Base-Lite may be, about 1,000 characters."""
RULE_ID = re.compile(r"rule (\S+)$")
APART = 1_000
"""Between the rule numbers of one database and the next, where several are made into one."""


@dataclass(frozen=True)
class Task:
    """A question and what it needs, as labelled."""

    text: str
    rules: tuple[str, ...]
    through: tuple[str, ...]
    tables: tuple[str, ...]
    sql: str = MADE_SQL


@dataclass(frozen=True)
class Place:
    """A database's documents and compiled bundle."""

    documents: Documents
    bundle: Path
    concepts: Mapping[str, Concept]
    profiles: Path | None = None
    """The folder with what was measured, where something was."""

    @property
    def tokens(self) -> int:
        """Of the three documents."""
        files = (self.documents.schema, self.documents.meanings, self.documents.rules)
        return sum(tokens(file.read_text(encoding="utf-8-sig")) for file in files if file.is_file())

    def paths(self, task: Task) -> tuple[list[str], list[str]]:
        """Paths of what the question names, and of what is reached from there: rules and tables."""
        rules = {}
        for concept in self.concepts.values():
            if found := RULE_ID.search(str((concept.frontmatter.get("sources") or [{}])[-1].get("title"))):
                rules[found[1]] = concept.path
        tables = {c.title.lower(): c.path for c in self.concepts.values() if c.type == "PostgreSQL Table"}
        named, reached = ([rules[id] for id in ids] for ids in (task.rules, task.through))
        return named, reached + [tables[name.lower()] for name in task.tables]


def shop_tasks() -> list[Task]:
    """The answerable questions of the shop. Its gold is for benchmarks and scorers alone."""
    queries = {t["instance_id"]: t["query"] for t in _lines(SHOP / "tasks.jsonl")}
    return [
        Task(queries[g["instance_id"]], tuple(map(str, g["external_knowledge"])), (), _tables(sql), sql)
        for g in _lines(SHOP / "gold.jsonl")
        for sql in g["sol_sql"][:1]
    ]


def suite_tasks(root: Path) -> dict[str, list[Task]]:
    """The labelled questions of the suite in the folder `root`, by database."""
    queries = {t["instance_id"]: t["query"] for t in _lines(root / "livesqlbench_data.jsonl")}
    found: dict[str, list[Task]] = {}
    for id, label in yaml.safe_load((LABELS / SUITES[root.name]).read_text(encoding="utf-8"))["tasks"].items():
        rules, through = (tuple(map(str, label[what])) for what in ("rules", "through"))
        found.setdefault(label["database"], []).append(Task(queries[id], rules, through, tuple(label["tables"])))
    return found


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8-sig").splitlines() if line]


def _tables(sql: str) -> tuple[str, ...]:
    tree = sqlglot.parse_one(sql, dialect="postgres")
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    return tuple(dict.fromkeys(t.name for t in tree.find_all(exp.Table) if t.name not in own))


def place(documents: Documents, folder: Path, profiles: Path | None = None) -> Place:
    compile_database(livesqlbench.read(documents), folder)
    return Place(documents, folder, load(folder).concepts, profiles if profiles and profiles.is_dir() else None)


def documents_in(root: Path) -> Mapping[str, Documents]:
    return list_databases(load_settings(root, {"agent": {"raw_docs": str(root.resolve())}}))


def cut(shop: Documents, tasks: Sequence[Task], folder: Path) -> Documents:
    """The shop's documents without the tables and rules that the tasks do not need."""
    tables = {table for task in tasks for table in task.tables}
    ids = {id for task in tasks for id in task.rules}
    schema = "".join(text for name, text in _blocks(shop) if name in tables)
    meanings = {key: meaning for key, meaning in _meanings(shop).items() if key.split("|")[1] in tables}
    return _write(folder, schema, meanings, [rule for rule in _lines(shop.rules) if str(rule["id"]) in ids])


def together(
    databases: Mapping[str, Documents], tasks: Mapping[str, Sequence[Task]], folder: Path
) -> tuple[Documents, list[Task]]:
    """Several databases as one, with the questions to all of them.

    A database is left out if it has a table of a name that is taken; rules get new numbers.
    """
    schema, meanings, rules, asked, taken = "", dict[str, Any](), list[dict[str, Any]](), list[Task](), set[str]()
    for number, (name, documents) in enumerate(databases.items()):
        blocks = list(_blocks(documents))
        if taken & {table.lower() for table, _ in blocks}:
            continue
        taken |= {table.lower() for table, _ in blocks}
        schema += "".join(f"{text.rstrip()}\n\n\n" for _, text in blocks)
        meanings |= {f"x|{key.partition('|')[2]}": meaning for key, meaning in _meanings(documents).items()}
        for rule in _lines(documents.rules):
            children = rule["children_knowledge"]
            moved = [id + number * APART for id in children] if isinstance(children, list) else children
            rules.append({**rule, "id": rule["id"] + number * APART, "children_knowledge": moved})
        for task in tasks[name]:
            named, through = (tuple(str(int(id) + number * APART) for id in ids) for ids in (task.rules, task.through))
            asked.append(replace(task, rules=named, through=through))
    return _write(folder, schema, meanings, rules), asked


def _write(folder: Path, schema: str, meanings: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> Documents:
    folder.mkdir()
    (folder / "schema.txt").write_text(schema, encoding="utf-8")
    (folder / "meanings.json").write_text(json.dumps(meanings, indent=2, ensure_ascii=False), encoding="utf-8")
    lines = "".join(json.dumps(rule, ensure_ascii=False) + "\n" for rule in rules)
    (folder / "rules.jsonl").write_text(lines, encoding="utf-8")
    schema_file, meanings_file, rules_file = (folder / n for n in ("schema.txt", "meanings.json", "rules.jsonl"))
    return Documents("x", folder, schema_file, meanings_file, rules_file, dump=None)


def _blocks(documents: Documents) -> Iterator[tuple[str, str]]:
    """The tables of a schema document, each with its text."""
    text = documents.schema.read_text(encoding="utf-8-sig")
    for block in re.split(r"(?=^CREATE TABLE)", text, flags=re.MULTILINE):
        if name := re.match(r'CREATE TABLE "?(\w+)', block):
            yield name[1], block


def _meanings(documents: Documents) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(documents.meanings.read_text(encoding="utf-8-sig"))
    return found
