"""`okf-agent ask` for scripts: where its question comes from, what goes where, formats, files, comparison, status."""

from __future__ import annotations

import csv
import json
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from support.command import SCRIPTS, run_inside
from support.endpoint import Endpoint, Scripted, calls, error, submit, text
from support.workspace import ACTIVE, QUESTION, SQL, Workspace

from okf_agent.results.one_object import OneObject
from okf_compiler.errors import UserError

BY_STATE = "SELECT order_state, count(*) AS orders FROM orders GROUP BY 1 ORDER BY 1"
SERIES = "SELECT g AS id, CASE WHEN g % 2 = 0 THEN NULL ELSE 'é' || g END AS note FROM generate_series(1, {}) AS g"


def test_the_question_comes_from_standard_input(workspace: Workspace) -> None:
    for arguments in (["ask", "-"], ["ask"]):
        result = workspace.agent(*arguments, script=ACTIVE[3:], typed="\ufeffHow many\ncustomers?\n")
        assert result.returncode == 0, result.stderr
        assert result.stderr.endswith(f" · run {workspace.records()[-1]['run_id']}\n")
        assert workspace.records()[-1]["question"] == "How many\ncustomers?"
    empty = workspace.agent("ask", "-", script=[], typed=" \n")
    assert (empty.returncode, "standard input" in empty.stderr) == (2, True)


def test_repeated_rows_are_noted_to_the_model_and_beside_the_answer(workspace: Workspace) -> None:
    sql = "SELECT sum(o.shipping_fee_cents) AS fees FROM orders o JOIN order_items i ON i.order_id = o.order_id"
    script = [calls(("run_sql", {"sql": sql})), submit(sql, "The fees are in the table.")]
    result = workspace.agent("ask", "What did shipping bring?", script=script)
    assert result.returncode == 0, result.stderr
    note = "by the join with order_items; sum(o.shipping_fee_cents) counts a row more than once."
    assert "Note: orders: " in result.stdout and note in " ".join(result.stdout.split())
    told = workspace.endpoint.requests[-1]["messages"][-1]
    assert told["role"] == "tool" and "\nNote: orders: " in told["content"] and note in told["content"]
    shown = run_inside("sql", "shop", sql, cwd=workspace.root)
    assert shown.returncode == 0 and note in " ".join(shown.stdout.split())


def test_quiet_prints_only_the_answer(workspace: Workspace) -> None:
    answer = "52 customers are active.\nOf 52 in all."
    result = workspace.agent("ask", QUESTION, "--quiet", script=[submit(SQL, answer)])
    assert (result.returncode, result.stdout, result.stderr) == (0, answer + "\n", "")


def test_json_is_one_object_with_everything(workspace: Workspace) -> None:
    result = workspace.agent("ask", QUESTION, "--json", script=ACTIVE)
    everything = json.loads(result.stdout)
    (record,) = workspace.records()
    assert {name: everything[name] for name in record} == record
    assert (everything["rows"], everything["columns"], everything["types"]) == ([{"count": 52}], ["count"], ["bigint"])
    assert [rule["path"] for rule in everything["rules"]] == [
        "/knowledge/active-customer.md",
        "/knowledge/valid-order.md",
    ]
    assert everything["exit_status"] == result.returncode == 0
    assert "4 model calls" in result.stderr


def test_json_has_all_rows_also_those_that_are_not_shown(workspace: Workspace) -> None:
    result = workspace.agent("ask", "All?", "--json", script=[submit(SERIES.format(5_000), "Many.")])
    rows = json.loads(result.stdout)["rows"]
    assert (len(rows), rows[0], rows[-1]) == (5_000, {"id": 1, "note": "é1"}, {"id": 5_000, "note": None})


@pytest.mark.parametrize(
    ("script", "arguments", "status", "found"),
    [
        ([submit("", "Hello.")], [], 0, {"stop_reason": "declined", "rows": None}),
        ([text("Hm.")] * 3 + [text("Hm.")], [], 1, {"stop_reason": "no_tool_calls", "answer": None, "rows": None}),
        ([submit("SELECT nothing", "It is 1.")] * 2, [], 1, {"stop_reason": "submitted", "rows": None}),
        ([submit("SELECT 1 WHERE false", "None.")] * 2, [], 0, {"stop_reason": "submitted", "rows": []}),
        ([], ["--db", "shpo"], 1, {"stop_reason": "error"}),
    ],
)
def test_json_and_status_of_every_end(
    workspace: Workspace, script: list[Scripted], arguments: list[str], status: int, found: dict[str, object]
) -> None:
    result = workspace.agent("ask", "x", "--json", *arguments, script=script)
    everything = json.loads(result.stdout)
    assert result.returncode == everything["exit_status"] or "--db" in arguments
    assert (result.returncode != 0) == (status != 0)
    assert {name: everything.get(name) for name in found} == found


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["x", "--task", "shop_1"], 2, "not both"),
        (["--task", "shop_x"], 2, "There is no task"),
        (["x", "--quiet"], 2, "do not go together"),
        (["x", "--set", "agent.max_stepz=2"], 2, "did you mean 'max_steps'?"),
        (["x", "--config", "none.yaml"], 2, "There is no configuration"),
        (["x", "--outptu", "a.csv"], 2, "No such option"),
        (["x", "--format", "xml"], 2, "is not one of"),
        (["x", "-o", "no/such/rows.csv"], 2, "cannot be written"),
        (["x", "--db", "shpo"], 2, "did you mean 'shop'?"),
    ],
)
def test_json_is_one_object_also_where_the_call_is_wrong(
    workspace: Workspace, arguments: list[str], status: int, said: str
) -> None:
    result = workspace.agent("ask", *arguments, "--json", script=[])
    told = json.loads(result.stdout)
    assert (result.returncode, told["exit_status"], told["stop_reason"]) == (status, status, "error")
    assert said in told["error"] and said in result.stderr


def test_json_is_one_object_also_where_the_file_cannot_be_written(workspace: Workspace) -> None:
    pipe = workspace.root / "pipe.csv"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.open("rb").close(), daemon=True).start()
    result = workspace.agent("ask", "x", "--json", "-o", "pipe.csv", script=[submit(SERIES.format(100_000), "Many.")])
    told = json.loads(result.stdout)
    assert (result.returncode, told["exit_status"], len(told["rows"])) == (1, 1, 100_000)
    assert "Broken pipe" in told["output_error"] and "Broken pipe" in result.stderr


ROWS = "a\n1\n"


@pytest.mark.parametrize(
    ("target", "stdout", "stderr"),
    [
        ("/dev/null", "", ""),
        ("/dev/stdout", ROWS, ""),
        ("/proc/self/fd/1", ROWS, ""),
        ("/dev/stderr", "", ROWS),
        ("out", "", ""),
    ],
)
def test_rows_go_to_whatever_can_be_written(workspace: Workspace, target: str, stdout: str, stderr: str) -> None:
    """Standard streams are pipes here; `out` is a link to the null device."""
    link = workspace.root / "out"
    link.unlink(missing_ok=True)
    link.symlink_to("/dev/null")
    script = [submit("SELECT 1 AS a", "It is 1.")]
    result = workspace.agent("ask", "x", "-o", target, script=script, process=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(stdout) and stderr in result.stderr
    assert f"1 row written to {target}" in result.stderr and "It is 1." in result.stdout


def test_a_standard_output_that_is_a_file_keeps_answer_and_rows(workspace: Workspace) -> None:
    with Endpoint([submit("SELECT 1 AS a", "It is 1.")]) as endpoint:
        workspace.configure(endpoint.url)
        file = workspace.root / "kept.txt"
        with file.open("wb") as out:
            subprocess.run([SCRIPTS / "okf-agent", "ask", "x", "-o", "/dev/stdout"], cwd=workspace.root, stdout=out,
                           stderr=subprocess.DEVNULL, check=True, timeout=120)  # fmt: skip
    said = file.read_text(encoding="utf-8")
    assert "It is 1." in said and said.endswith(ROWS)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/dev/full", "it is always full"),
        ("loop.csv", "cannot be written"),
        ("x" * 300 + ".csv", "File name too long"),
        ("socket.csv", "it is a socket"),
        ("/proc/rows.csv", "cannot be written"),
        ("runs.csv", "it is a folder"),
        ("no/such/rows.csv", "there is no folder"),
    ],
)
def test_what_cannot_be_written_spends_nothing(workspace: Workspace, target: str, said: str) -> None:
    (workspace.root / "runs.csv").mkdir(exist_ok=True)
    loop = workspace.root / "loop.csv"
    loop.unlink(missing_ok=True)
    loop.symlink_to("loop.csv")
    place = workspace.root / "socket.csv"
    place.unlink(missing_ok=True)
    before = Path.cwd()
    os.chdir(workspace.root)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.csv")
        os.chdir(before)
        result = workspace.agent("ask", "x", "-o", target, script=[])
    assert result.returncode == 2 and said in result.stderr, result.stderr
    assert workspace.endpoint.requests == []


def test_json_is_one_object_also_where_rows_cannot_be_had_any_more(workspace: Workspace) -> None:
    script = [submit(SERIES.format(3_000_000), "Many.")]
    result = workspace.agent("ask", "x", "--json", "--set", "database.export_timeout_s=0.1", script=script)
    told = json.loads(result.stdout)
    assert (result.returncode, told["exit_status"], told["rows"]) == (1, 1, None)
    assert "export_timeout_s" in told["rows_error"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyboardInterrupt(), {"stop_reason": "interrupted", "error": "", "exit_status": 130}),
        (UserError("No.", status=2), {"stop_reason": "error", "error": "No.", "exit_status": 2}),
        (RuntimeError("a fault"), {"stop_reason": "error", "error": "a fault", "exit_status": 1}),
    ],
)
def test_what_ends_the_command_becomes_its_object_unless_one_was_begun(
    capsys: pytest.CaptureFixture[str], error: BaseException, told: dict[str, object]
) -> None:
    with pytest.raises(type(error)), OneObject(True):
        raise error
    assert json.loads(capsys.readouterr().out) == told
    for wanted, begun in ((False, False), (True, True)):
        with pytest.raises(type(error)), OneObject(wanted) as one:
            if begun:
                one.begin()
            raise error
        assert capsys.readouterr().out == ""


def test_what_a_model_call_failed_with_stands_on_lines_of_its_own(workspace: Workspace) -> None:
    result = workspace.agent("ask", "x", script=[error(401, "no such key")])
    assert "no such key\nThe provider does not accept the key." in result.stderr


def test_a_format_prints_the_rows_alone_and_all_of_them(workspace: Workspace) -> None:
    expected = {
        "csv": "order_state,orders\n",
        "json": '[\n{"order_state":',
        "markdown": "| order\\_state | orders |\n| --- | ---: |\n",
        "table": "order_state | orders",
    }
    for format, beginning in expected.items():
        result = workspace.agent("ask", "By state?", "--format", format, script=[submit(BY_STATE, "So many.")])
        assert result.stdout.startswith(beginning), result.stdout
        assert "So many." in result.stderr and "So many." not in result.stdout
    long = workspace.agent("ask", "All?", "--format", "csv", script=[submit(SERIES.format(3_000), "Many.")])
    assert len([*csv.reader(long.stdout.splitlines())]) == 3_001


def test_a_file_is_written_whole_or_not_at_all(workspace: Workspace) -> None:
    file = workspace.root / "out.csv"
    script = [submit(SERIES.format(20_000), "Many.")]
    result = workspace.agent("ask", "All?", "-o", "out.csv", script=script)
    assert result.returncode == 0, result.stderr
    assert "20,000 rows written to out.csv" in result.stderr and "Many." in result.stdout
    written = file.read_text(encoding="utf-8")
    assert (written.count("\n"), written.splitlines()[-2:]) == (20_001, ["19999,é19999", "20000,"])

    fails_late = "SELECT 1 / (g - 15000) AS x FROM generate_series(1, 20000) AS g"
    broken = workspace.agent("ask", "All?", "-o", "out.csv", script=[submit(fails_late, "Many.")] * 2)
    assert broken.returncode == 1
    assert file.read_text(encoding="utf-8") == written
    assert [*workspace.root.glob("*.part"), *workspace.root.glob(".*.part")] == []

    declined = workspace.agent("ask", "Hi", "-o", "hi.csv", script=[submit("", "Hello.")])
    assert (declined.returncode, (workspace.root / "hi.csv").exists()) == (1, False)
    assert "was not written" in declined.stderr


def test_writing_a_whole_result_has_a_time_limit_of_its_own(workspace: Workspace) -> None:
    arguments = ["ask", "All?", "-o", "long.csv", "--set"]
    script = [submit(SERIES.format(3_000_000), "Many.")]
    result = workspace.agent(*arguments, "database.export_timeout_s=0.1", script=script)
    assert (result.returncode, (workspace.root / "long.csv").exists()) == (1, False)
    assert "stopped after 0.1 s (database.export_timeout_s)" in result.stderr


def test_cells_that_a_spreadsheet_would_run_can_be_guarded(workspace: Workspace) -> None:
    sql = "SELECT '=HYPERLINK(\"x\")' AS a, '@b' AS b, -1 AS c"
    for to_file in ([], ["-o", "guarded.csv"]):
        result = workspace.agent(
            "ask", "All?", "--format", "csv", "--guard-formulas", *to_file, script=[submit(sql, "x")]
        )
        assert result.returncode == 0, result.stderr
        text = (workspace.root / "guarded.csv").read_text(encoding="utf-8") if to_file else result.stdout
        assert text == 'a,b,c\n"\'=HYPERLINK(""x"")",\'@b,-1\n'


@pytest.mark.slow
def test_a_million_rows(workspace: Workspace) -> None:
    result = workspace.agent("ask", "All?", "-o", "big.csv", "-q", script=[submit(SERIES.format(1_000_000), "Many.")])
    assert (result.returncode, result.stdout) == (0, "Many.\n")
    with (workspace.root / "big.csv").open(encoding="utf-8") as lines:
        assert sum(1 for _ in lines) == 1_000_001


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--json", "--quiet"], "--json and --quiet do not go together"),
        (["--json", "--format", "csv"], "--json and --format do not go together"),
        (["--compare", "--raw"], "--compare and --knowledge raw do not go together"),
        (["--output", "rows.xlsx"], "its name does not say a format"),
        (["--output", "no/such/rows.csv"], "no/such/rows.csv cannot be written"),
        (["--output", "runs.csv/", "--format", "csv"], "cannot be written"),
        (["--set", "agent.max_stepz=2"], "did you mean 'max_steps'?"),
        (["--config", "none.yaml"], "There is no configuration none.yaml"),
        (["--format", "xml"], "'xml' is not one of"),
    ],
)
def test_calls_that_cannot_work_spend_nothing(workspace: Workspace, arguments: list[str], said: str) -> None:
    (workspace.root / "runs.csv").mkdir(exist_ok=True)
    result = workspace.agent("ask", "x", *arguments, script=[])
    assert result.returncode == 2, result.stderr
    assert said in result.stderr
    assert workspace.endpoint.requests == []


def test_set_and_config_count_before_and_after_the_command(workspace: Workspace) -> None:
    script = [calls(("read_file", {"paths": ["/tables/orders.md"]})), submit(SQL, "52.")]
    for arguments in (["--set", "agent.max_steps=1", "ask", "x"], ["ask", "x", "--set", "agent.max_steps=1"]):
        result = workspace.agent(*arguments, script=script)
        assert (result.returncode, "The best answer so far" in result.stdout) == (1, True), result.stderr
    other = workspace.root / "other.yaml"
    with Endpoint([submit(SQL, "52.")]) as endpoint:
        workspace.configure(endpoint.url)
        (workspace.root / "config.yaml").rename(other)
        workspace.configure("http://127.0.0.1:9/v1")
        assert run_inside("ask", "x", "--config", "other.yaml", cwd=workspace.root).returncode == 0


def test_compare_shows_both_side_by_side(workspace: Workspace) -> None:
    other = "SELECT count(*) FROM customers WHERE status = 'active'"
    script = [*ACTIVE, submit(other, "Some are active.")]
    result = workspace.agent("ask", QUESTION, "--compare", script=script)
    assert result.returncode == 0, result.stderr
    for shown in ("bundle", "raw", "52 customers are active.", "Some are active.", "400 in, 40 out", "only bundle: 52"):
        assert shown in result.stdout
    assert [record["mode"] for record in workspace.records()] == ["bundle", "raw"]

    same = workspace.agent("ask", QUESTION, "--compare", "--json", script=[ACTIVE[3], ACTIVE[3]])
    both = json.loads(same.stdout)
    assert (both["same_rows"], both["all_rows_compared"], both["only_in"]) == (True, True, {"bundle": [], "raw": []})
    assert [run["rows"] for run in both["runs"]] == [[["52"]], [["52"]]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "local"], "needs a model that calls tools"),
        (["--bundle", "by-hand", "--db", "elsewhere"], "has no documents to paste"),
    ],
)
def test_a_comparison_of_which_one_half_is_impossible_asks_nothing(
    workspace: Workspace, arguments: list[str], said: str
) -> None:
    (workspace.root / "by-hand").mkdir(exist_ok=True)
    (workspace.root / "by-hand" / "index.md").write_text("# Index\n", encoding="utf-8")
    result = workspace.agent("ask", "How many?", "--compare", *arguments, script=[])
    assert result.returncode != 0 and said in result.stderr, result.stderr
    assert workspace.endpoint.requests == []


def test_the_half_of_a_comparison_that_worked_is_shown(workspace: Workspace) -> None:
    script = [submit("SELECT 51 AS half", "Halfway."), error(500, "outage")]
    both = workspace.agent("ask", "How many?", "--compare", script=script)
    assert both.returncode == 1 and "Halfway." in both.stdout and "outage" in both.stdout

    def answer(_: dict[str, Any]) -> Scripted:
        """Put a file in the place of the folder of records, so that the second one cannot be begun."""
        shutil.rmtree(workspace.root / "kept")
        (workspace.root / "kept").write_text("", encoding="utf-8")
        return script[0]

    for how in ([], ["--json"]):
        (workspace.root / "kept").unlink(missing_ok=True)
        with Endpoint(answer=answer) as endpoint:
            workspace.configure(endpoint.url, runs="kept")
            one = run_inside("ask", "How many?", "--compare", *how, cwd=workspace.root)
        assert one.returncode == 1 and "Halfway." in one.stdout and "could not be written" in one.stderr


def test_a_query_that_does_not_run_is_shown_with_its_reason(workspace: Workspace) -> None:
    wrong = submit("SELECT late FROM orders", "So many are late.")
    result = workspace.agent("ask", "How many are late?", script=[wrong, wrong])
    assert (result.returncode, workspace.records()[-1]["answer"]["checked"]) == (1, "error")
    assert workspace.records()[-1]["sql_errors"] == 2 and "2 SQL errors" in result.stderr
    assert 'The query does not run. ERROR: column "late" does not exist' in result.stdout
    in_pack = text("```sql\nSELECT late FROM orders\n```")
    result = workspace.agent("ask", "How many are late?", "--knowledge", "pack", script=[in_pack, in_pack])
    assert 'The query does not run. ERROR: column "late" does not exist' in result.stdout
    assert workspace.records()[-1]["sql_errors"] == 2 and "2 SQL errors" in result.stderr
    steps = workspace.agent("runs", "show", script=[])
    assert 'its query does not run: ERROR: column "late" does not exist' in steps.stdout


def test_beside_the_answer_stand_its_rules_and_a_chart(workspace: Workspace) -> None:
    result = workspace.agent("ask", QUESTION, script=ACTIVE)
    assert "Rests on" in result.stdout and "Active Customer" in result.stdout
    assert "Buying decides" in " ".join(result.stdout.split())
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []
    script = [submit(BY_STATE, "By state.")]
    drawn, suppressed = (
        workspace.agent("ask", "By state?", *how, script=script).stdout for how in ([], ["--no-chart"])
    )
    assert "█" in drawn and "█" not in suppressed
    forced = workspace.agent("ask", QUESTION, "--chart", script=[submit(SQL, "52 customers.")]).stdout
    assert "No chart" in forced
    cut = workspace.agent("ask", "All?", script=[submit(SERIES.format(100), "Many.")]).stdout
    assert "Shown are the first 20 of 100 rows" in cut and "█" not in cut


def test_a_chart_has_all_rows_where_the_first_are_shown(workspace: Workspace) -> None:
    sql = "SELECT 'day ' || g AS day, g AS orders FROM generate_series(1, 32) AS g"
    result = workspace.agent("ask", "Per day?", script=[submit(sql, "32 days, the last has 32.")])
    table, _, chart = result.stdout.partition("  orders\n")
    assert "day 20" in table and "day 21" not in table
    assert [line.split()[1] for line in chart.splitlines() if "█" in line or "▏" in line] == [
        str(day) for day in range(1, 33)
    ]
    assert "Shown are the first 20 of 32 rows" in chart


@pytest.mark.parametrize("width", ["80", "200"])
def test_no_line_is_wider_than_the_terminal(workspace: Workspace, width: str) -> None:
    sql = "SELECT o.*, c.* FROM orders o JOIN customers c USING (customer_id) ORDER BY order_id LIMIT 2"
    result = workspace.agent("ask", "All?", script=[submit(sql, "So. " * 100)], env={"COLUMNS": width})
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= int(width)
    assert "row 1" in result.stdout, "rows too wide for a table are shown a cell a line"
    assert "is_test" in result.stdout and "order_state" in result.stdout, "no name is broken up"


def test_completion_scripts_and_what_they_offer(workspace: Workspace) -> None:
    assert workspace.agent("read", "shop", "/", script=[]).returncode == 0, "the bundle is there"
    for shell in ("bash", "zsh", "fish"):
        result = workspace.agent("completion", shell, script=[])
        assert (result.returncode, "_OKF_AGENT_COMPLETE" in result.stdout) == (0, True)
    for words, typed, offered in (
        ("okf-agent a", "1", "ask"),
        ("okf-agent ask --db ", "3", "shop"),
        ("okf-agent ask --task shop_1", "3", "shop_12"),
        ("okf-agent read shop /knowledge/act", "3", "/knowledge/active-customer.md"),
        ("okf-agent ask --form", "2", "--format"),
    ):
        env = {"_OKF_AGENT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": typed}
        result = workspace.agent(script=[], env=env)
        assert offered in [line.partition(",")[2] for line in result.stdout.splitlines()], (words, result.stdout)


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "NO_COLOR": "1"},
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_console_of_another_encoding_shows_what_it_can(workspace: Workspace, env: dict[str, str]) -> None:
    answer = "Über → 日本 \U0001f389 \x1b[1mred"
    sql = "SELECT 'Zürich → ' || g AS city, g AS orders FROM generate_series(1, 3) AS g"
    with Endpoint([submit(sql, answer)]) as endpoint:
        workspace.configure(endpoint.url)
        result = subprocess.run(
            [SCRIPTS / "okf-agent", "ask", "Wörds → ?"], cwd=workspace.root, env={**os.environ, "COLUMNS": "80", **env},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=180, check=False,
        )  # fmt: skip
    assert (result.returncode, b"Traceback" in result.stderr) == (0, False), result.stderr
    assert b"\x1b" not in result.stdout
    assert b"orders" in result.stdout and b"rich" in result.stdout
    assert workspace.records()[0]["question"] == "Wörds → ?"
