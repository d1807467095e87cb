"""The prompt: follow-up questions, every command, and what a person sees first. Typed lines, as in a pipe."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from support.endpoint import Scripted, error, submit
from support.workspace import ACTIVE, QUESTION, SQL, Workspace

from okf_agent.config import load_config
from okf_agent.events import Answer
from okf_agent.interactive.commands import COMMANDS
from okf_agent.interactive.conversation import MAX_TURNS, Turn, messages
from okf_agent.interactive.greeting import examples, greeting
from okf_agent.interactive.line_editor import _Commands
from okf_agent.interactive.prompt import completions

BY_STATE = "SELECT order_state, count(*) AS orders FROM orders GROUP BY 1 ORDER BY 1"


def converse(workspace: Workspace, *lines: str, script: list[Scripted]) -> CompletedProcess[str]:
    result = workspace.agent(script=script, typed="".join(line + "\n" for line in lines))
    assert result.returncode == 0, result.stderr
    return result


def test_a_follow_up_sees_the_conversation_and_new_starts_afresh(workspace: Workspace) -> None:
    script = [*ACTIVE, submit(BY_STATE, "By state."), submit("", "Hello."), submit(SQL, "52.")]
    result = converse(workspace, QUESTION, "And by state?", "Hi", "/new", "Again?", script=script)
    assert "52 customers are active." in result.stdout, result.stderr
    requests = workspace.endpoint.requests
    earlier = requests[4]["messages"][1:-1]
    assert [message["role"] for message in earlier] == ["user", "assistant"]
    assert earlier[0]["content"] == QUESTION
    for said in ("52 customers are active.", SQL, "[52]"):
        assert said in earlier[1]["content"]
    assert [m["content"] for m in requests[5]["messages"] if m["role"] == "user"][:2] == [QUESTION, "And by state?"]
    assert len(requests[6]["messages"]) == 2, "after /new a question stands alone"
    first, second, third, fourth = workspace.records()[-4:]
    assert [r["follows"] for r in (first, second, third, fourth)] == [None, first["run_id"], second["run_id"], None]


def test_a_run_without_an_answer_is_no_part_of_the_conversation(workspace: Workspace) -> None:
    result = converse(workspace, "One?", "Two?", script=[error(401, "Incorrect API key"), submit(SQL, "52.")])
    assert "does not accept the key" in result.stderr
    assert len(workspace.endpoint.requests[1]["messages"]) == 2
    assert [record["follows"] for record in workspace.records()] == [None, None]


def test_only_the_last_turns_and_the_first_rows_are_told() -> None:
    turns = [Turn(f"r{n}", f"q{n}", Answer("SELECT 1", f"a{n}", 1, "ran"), None) for n in range(MAX_TURNS + 3)]
    told = messages(turns)
    assert (len(told), told[0]["content"]) == (2 * MAX_TURNS, "q3")


def test_every_command_about_the_last_answer(workspace: Workspace) -> None:
    file = workspace.root / "rows.csv"
    file.unlink(missing_ok=True)
    lines = [QUESTION, "/sql", "/rows", "/save rows.csv", "/save rows.csv", "/save -f rows.csv", "/why", "/right yes",
             "/wrong no, it is 51", "/cost", "/runs 5", "/sql SELECT g FROM generate_series(1, 30) AS g", "/rows 25",
             "/save all.json", "/compare"]  # fmt: skip
    result = converse(workspace, *lines, script=[*ACTIVE, submit("SELECT 51", "51 customers.")])
    out = result.stdout
    assert out.count("count(DISTINCT customer_id)") >= 2, "/sql shows the query again"
    assert file.read_text(encoding="utf-8") == "count\n52\n"
    assert "is there already" in result.stderr and "/save -f" in result.stderr
    assert out.count("1 row written to rows.csv") == 2
    assert "Tables read: /tables/orders.md" in out
    assert "customers.status only says whether the login works." in " ".join(out.split()), "/why gives whole rules"
    assert "1 run, 4 model calls, 400 tokens in, 40 out" in out
    assert "20 of 30 rows" in out and "25 of 30 rows" in out
    assert len(json.loads((workspace.root / "all.json").read_text(encoding="utf-8"))) == 30
    assert "only bundle: 52" in out and "only raw: 51" in out
    said = [json.loads(line) for line in (workspace.root / "runs/feedback.jsonl").read_text("utf-8").splitlines()]
    run_id = workspace.records()[0]["run_id"]
    assert [(s["run_id"], s["verdict"], s["note"]) for s in said] == [
        (run_id, "right", "yes"),
        (run_id, "wrong", "no, it is 51"),
    ]
    assert "wrong: no, it is 51" in out, "/runs shows what was said"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/why", "There is no question yet"),
        ("/compare", "There is no question yet"),
        ("/right", "There is no question yet"),
        ("/rows", "There is no query yet"),
        ("/save x.csv", "There is no query yet"),
        ("/sql", "There is no query yet"),
        ("/sql DELETE FROM orders", "read"),
        ("/sql SELECT nothing", "nothing"),
        ("/cots", "did you mean '/cost'?"),
        ("/db shpo", "did you mean 'shop'?"),
        ("/runs many", "/runs takes how many"),
    ],
)
def test_commands_that_cannot_work_say_why_and_the_prompt_goes_on(workspace: Workspace, line: str, said: str) -> None:
    result = converse(workspace, line, "/db", script=[])
    assert said in result.stderr
    assert "* shop" in result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("word", ["exit", "quit", "QUIT;", "quit()", "\\q", ":q", "exit ;", "bye"])
def test_a_word_that_leaves_elsewhere_leaves(workspace: Workspace, word: str) -> None:
    result = converse(workspace, word, "/db", script=[])
    assert "* shop" not in result.stdout, "nothing after it is done"
    assert workspace.endpoint.requests == []


@pytest.mark.parametrize(
    ("word", "said"),
    [("help", "/save"), ("?", "/save"), ("\\h", "/save"), ("clear", ""), ("cls", ""), ("\\l", "* shop"), ("\\dt", "")],
)
def test_a_word_that_is_a_command_elsewhere_is_no_question(workspace: Workspace, word: str, said: str) -> None:
    result = converse(workspace, word, script=[])
    assert said in result.stdout
    assert workspace.endpoint.requests == [] and (word != "\\dt" or "There is no command" in result.stderr)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("SELECT 4711 AS mine", "4711"),
        ("select order_state from orders limit 1", "1 row,"),
        ("with o as (select 4711 as mine)\\\nselect * from o;", "4711"),
        ("explain select * from orders", "Seq Scan"),
        ("select nothing from orders", "nothing"),
        ("delete from orders where true", "read"),
    ],
)
def test_sql_is_run_and_no_model_is_asked(workspace: Workspace, line: str, shown: str) -> None:
    result = converse(workspace, line, script=[])
    assert shown in result.stdout + result.stderr and "no model was asked" in result.stderr
    assert workspace.endpoint.requests == []


@pytest.mark.parametrize(
    "line", ["Select the customers from Berlin", "With which carrier (2 of them)?", "exit the shop?"]
)
def test_a_question_that_begins_like_a_statement_is_a_question(workspace: Workspace, line: str) -> None:
    converse(workspace, line, script=[submit("", "Hello.")])
    assert workspace.records()[-1]["question"] == line


def test_only_an_answer_is_judged(workspace: Workspace) -> None:
    shutil.rmtree(workspace.root / "runs", ignore_errors=True)
    lines = ["One?", "/right", "Two?", "/right", "/wrong"]
    result = converse(workspace, *lines, script=[submit(SQL, "52."), error(401, "Incorrect API key")])
    assert 'the answer to "One?" is right' in result.stdout
    for verdict in ("right", "wrong"):
        assert f'"Two?" has no answer that could be {verdict}: it failed.' in result.stderr
    (said,) = (workspace.root / "runs/feedback.jsonl").read_text("utf-8").splitlines()
    assert json.loads(said)["run_id"] == workspace.records()[0]["run_id"]


def test_a_question_that_was_never_asked_is_not_the_last_answer(workspace: Workspace) -> None:
    shutil.rmtree(workspace.root / "runs", ignore_errors=True)
    lines = ["One?", "/knowledge raw", "/db elsewhere", "Two?", "/right"]
    folder = workspace.root / "bundles/compiled/elsewhere"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text("# Index\n", encoding="utf-8")
    result = converse(workspace, *lines, script=[submit(SQL, "52.")])
    assert "has no" in result.stderr and '"Two?" was ended before it was asked' in result.stderr
    assert not (workspace.root / "runs/feedback.jsonl").exists()


def test_the_rules_of_the_conversation_count_for_a_follow_up(workspace: Workspace) -> None:
    follow_up = submit(SQL.replace("2025-07-01", "2025-06-01"), "Fewer.")
    why = converse(workspace, QUESTION, "And by the end of May?", "/why", script=[*ACTIVE, follow_up]).stdout
    assert "Buying decides" in " ".join(why.partition("Fewer.")[2].split())
    alone = converse(workspace, QUESTION, "/new", "And by the end of May?", "/why", script=[*ACTIVE, follow_up]).stdout
    assert "Tables read" not in alone.partition("Fewer.")[2]
    assert "the next question stands alone" in alone


def test_rows_and_save_refuse_what_they_cannot_do(workspace: Workspace) -> None:
    lines = ["/sql SELECT 1 AS one", "/rows 0", "/rows x", "/save", "/save rows.xlsx", "/save no/such/x.csv"]
    result = converse(workspace, *lines, script=[])
    for said in ("/rows takes a number", "Name a file", "does not say a format", "cannot be written"):
        assert said in result.stderr


@pytest.mark.parametrize(
    ("model", "said"),
    [("gpt-4o", "OPENAI_API_KEY is not set, and gpt-4o needs it"), ("nosuch/x", "No provider is known for the model")],
)
def test_a_model_that_cannot_be_asked_is_refused_when_it_is_chosen(workspace: Workspace, model: str, said: str) -> None:
    arguments = ("--model", "anthropic/x", "--set", "model.api_base=null")
    env = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": ""}
    result = workspace.agent(*arguments, script=[], typed=f"/model {model}\n", env=env)
    assert said in result.stderr
    assert "answers, in mode" not in result.stdout and workspace.endpoint.requests == []


def test_another_model_answers_and_the_embedded_one_has_one_mode(workspace: Workspace) -> None:
    lines = ["/model openai/other", "Hi", "/model local", "/raw", "/knowledge"]
    result = converse(workspace, *lines, script=[submit("", "Hello.")])
    assert (workspace.records()[0]["model"], workspace.endpoint.requests[0]["model"]) == ("openai/other", "other")
    assert "local answers, in mode pack." in result.stdout
    assert "needs a model that calls tools" in result.stderr
    assert "\n* pack " in result.stdout, "what cannot work changes nothing"


def test_several_lines_and_help(workspace: Workspace) -> None:
    result = converse(workspace, "How many\\", "customers?", "/help", script=[submit(SQL, "52.")])
    assert workspace.records()[0]["question"] == "How many\ncustomers?"
    for name in COMMANDS:
        assert f"{name} " in result.stdout


def test_the_first_screen_fits_and_shows_three_questions(workspace: Workspace) -> None:
    result = converse(workspace, script=[])
    lines = result.stderr.splitlines()[-5:]
    assert lines[0] == "shop (12 tables, 50 rules), read by bundle, answered by openai/scripted."
    assert "/help" in lines[1] and "/save FILE" in lines[1]
    assert result.stdout == ""
    assert lines[2:] == [
        "  How many active customers do we have?",
        "  How many valid orders are there?",
        "  How many customers live in Germany?",
    ]
    bundle = workspace.root / "bundles/compiled/shop"
    config = load_config(workspace.root)
    for width in (20, 80, 200):
        shown = [*greeting(config, "shop", bundle, "bundle", "a/very-long-model-name" * 9, width)]
        assert len(shown) == 5 and max(map(len, shown)) <= width
    (workspace.root / "data/shop/tasks.jsonl").rename(workspace.root / "tasks.kept")
    try:
        made = examples(config, "shop", bundle)
        assert made == [
            "What is the average order value?",
            "How many active customers are there?",
            "What is the collected amount?",
        ]
    finally:
        (workspace.root / "tasks.kept").rename(workspace.root / "data/shop/tasks.jsonl")


def test_suggested_questions_are_what_a_person_would_ask_each_once(tmp_path: Path) -> None:
    """Rules of one name, a class that cannot be counted, tables in a schema and in the singular."""
    (tmp_path / "config.yaml").write_text("", encoding="utf-8")
    for path, type_, title in (
        ("tables/customer", "PostgreSQL Table", "sales.customer_category"),
        ("tables/stock", "PostgreSQL Table", "stock_items"),
        ("knowledge/active", "Business Rule", "Busy Category"),
        ("knowledge/active-2", "Business Rule", "busy category"),
        ("knowledge/year", "Business Rule", "Fiscal Year"),
    ):
        file = tmp_path / "bundles" / f"{path}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ntype: {type_}\ntitle: {title}\ndescription: d\n---\n\nText.\n", encoding="utf-8")
    assert examples(load_config(tmp_path), "shop", tmp_path / "bundles") == [
        "How many busy categories are there?",
        "How many customer categories are there?",
        "How many stock items are there?",
    ]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/co", ["/compare", "/cost"]),
        ("/db s", ["shop"]),
        ("/model openai/gpt", ["openai/gpt-5-mini"]),
        ("/save data/sh", ["op"]),
        ("How many /c", []),
        ("/why x", []),
    ],
)
def test_completion(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, typed: str, offered: list[str]) -> None:
    monkeypatch.chdir(workspace.root)
    workspace.configure("http://127.0.0.1:9/v1")
    completer: Any = _Commands(completions(load_config(workspace.root)))
    found = [c.text for c in completer.get_completions(Document(typed), CompleteEvent())]
    assert found == offered


def test_several_databases_and_nobody_to_choose(workspace: Workspace) -> None:
    folder = workspace.root / "data" / "other"
    folder.mkdir()
    (folder / "other_schema.txt").write_text('CREATE TABLE "a" (\nid bigint NOT NULL\n);\n', encoding="utf-8")
    try:
        result = workspace.agent(script=[], typed="Hello\n")
        assert (result.returncode, "Choose one with --db: other, shop" in result.stderr) == (2, True)
    finally:
        shutil.rmtree(folder)
