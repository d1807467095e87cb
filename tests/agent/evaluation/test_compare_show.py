"""`eval compare` and `eval show` on a generated evaluation, and what gold explains of a run over the shop."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.eval_folders import Size, make_evaluation, write_lines

from okf_agent.evaluation import figures
from okf_agent.evaluation.compare import Side, compare, paired
from okf_agent.evaluation.explain import Explainer
from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.show import show
from okf_agent.evaluation.store import Evaluation
from okf_compiler.bundle import bundle_hash
from okf_compiler.errors import UserError

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_evaluation(tmp_path_factory.mktemp("evals") / "small", Size(tasks=20, result_chars=100))


def verdicts(folder: Path, right: dict[str, list[bool]], database: str = "") -> Path:
    """An evaluation with these verdicts, by cell, of tasks 0, 1, …; four tasks a database."""
    make_evaluation(folder, Size(cells=tuple(right), tasks=len(next(iter(right.values()))), repeat=1))
    runs: list[dict[str, Any]] = [json.loads(line) for line in (folder / "runs.jsonl").open(encoding="utf-8")]
    seen = dict.fromkeys(right, 0)
    scores = []
    for run in runs:
        cell = run["cell"]["name"]
        number = seen[cell]
        seen[cell] += 1
        run |= {"task_id": f"t{number}", "database": database or f"d{number // 4}"}
        strict = right[cell][number]
        scores.append({"run_id": run["run_id"], "cell": cell, "strict": strict, "lenient": strict})
    write_lines(folder / "runs.jsonl", runs)
    write_lines(folder / "scores.jsonl", scores)
    return folder


def test_two_cells_are_paired_by_task(tmp_path: Path) -> None:
    one = [True, True, False, False, False, False, False, False]
    other = [True, False, True, True, True, True, False, False]
    folder = verdicts(tmp_path / "e", {"pack": one, "bundle": other})
    text = compare(Side(folder, "pack"), Side(folder, "bundle"))
    assert "e:bundle against e:pack, 8 tasks" in text
    assert "difference: +37.5 (" in text and "bootstrap over 2 databases (few databases" in text
    assert "right in both 1, only in e:pack 1, only in e:bundle 4, in neither 2: p 0.3750" in text  # 2·(1 + 5)/2⁵
    assert "only in e:bundle: t2 t3 t4 t5" in text and "only in e:pack: t1" in text


def test_two_evaluations_are_compared_by_cells_of_one_name(tmp_path: Path) -> None:
    a = verdicts(tmp_path / "a", {"pack": [True, False, False], "bundle": [True, True, True]})
    b = verdicts(tmp_path / "b", {"pack": [True, True, False], "search": [False, False, False]}, "one")
    assert "b:pack against a:pack, 3 tasks" in compare(Side(a), Side(b))
    assert "b:search against a:bundle" in compare(Side(a, "bundle"), Side(b, "search"))
    assert "b:pack against a:pack" in compare(Side(a, "pack"), Side(b))
    assert "bootstrap over tasks" in compare(Side(b, "pack"), Side(b, "search"))
    assert "different files" not in compare(Side(a), Side(b))
    facts = (b / "eval.json").read_text(encoding="utf-8")
    (b / "eval.json").write_text(facts.replace("0" * 64, "1" * 64), encoding="utf-8")
    assert "different files" in compare(Side(a), Side(b))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (("", "pakc"), ("", "bundle"), "did you mean"),
        (("", "bundle"), ("nowhere", ""), "no evaluation"),
    ],
)
def test_a_wrong_name_is_answered_with_the_near_one(
    folder: Path, a: tuple[str, str], b: tuple[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        compare(Side(folder / a[0], a[1]), Side(folder / b[0], b[1]))


def test_cells_that_cannot_be_matched_must_be_named(tmp_path: Path) -> None:
    a = verdicts(tmp_path / "a", {"pack": [True], "bundle": [True]})
    b = verdicts(tmp_path / "b", {"schema": [True], "search": [False]})
    with pytest.raises(UserError, match="Which cells"):
        compare(Side(a), Side(b))


def test_a_task_is_counted_once_whatever_its_repeats(folder: Path) -> None:
    cells = figures.read(Evaluation.load(folder))
    found = paired(cells[0], cells[2])
    assert found.difference.n == found.both + found.neither + len(found.only_a) + len(found.only_b) == 19


def test_show_has_question_verdicts_steps_and_no_escape_sequence(folder: Path) -> None:
    text = show(folder, "shop_0")
    assert text.startswith("shop_0 (shop) in small\nHow many active customers does shop have")
    assert text.count("━━ ") == 6 and "━━ bundle, run 2: " in text
    assert "SQL (ran):\n    SELECT c.region" in text and "step 1: " in text and "calls submit_answer:" in text
    assert "\x1b" not in text and "\\x1b[31m" in text and "[red]no markup[/red]" in text


def test_show_says_why_an_answer_is_wrong(folder: Path) -> None:
    wrong = next(run for cell in figures.read(Evaluation.load(folder)) for run in cell.runs if run.miss)
    assert wrong.miss
    assert f"  {wrong.miss.kind}: {wrong.miss.evidence}" in show(folder, wrong.task_id)
    assert "unscored" in show(folder, "superhero_13")


def test_show_says_that_it_was_gold_that_failed(tmp_path: Path) -> None:
    folder = verdicts(tmp_path / "e", {"pack": [True]})
    line = json.loads((folder / "scores.jsonl").read_text(encoding="utf-8"))
    write_lines(folder / "scores.jsonl", [{**line, "strict": None, "gold_error": "ERROR: no such table"}])
    assert "unscored" in (text := show(folder, "t0")) and "\n  gold fails: ERROR: no such table" in text


def test_show_suggests_the_nearest_task(folder: Path) -> None:
    with pytest.raises(UserError, match=r"did you mean.*shop_0"):
        show(folder, "shop0")


def test_gold_explains_a_run_over_the_shop() -> None:
    sql = "SELECT count(*) FROM orders WHERE is_test = false"
    answers = {"t": Gold("t", (sql,), rules=(3, 2)), "u": Gold("u", (sql,))}
    explainer = Explainer(answers, ROOT / "bundles" / "compiled")
    opened = ["/index.md", "/knowledge/valid-order.md", "/knowledge/net-revenue.md", "/tables/orders.md"]
    run = {"task_id": "t", "database": "shop", "mode": "bundle", "files_opened": opened, "failed_reads": 1}
    answer = {"sql": sql.replace("false", "true"), "answer": "", "checked": "ran"}
    run |= {"stop_reason": "submitted", "answer": answer}
    miss = explainer.miss(run, {})
    assert miss and (miss.kind, miss.evidence) == ("knowledge not opened", "never opened /knowledge/active-customer.md")
    found = explainer.navigation(run)
    assert found and found.detours == ("/knowledge/net-revenue.md",) and found.reads_per_needed == 1.0
    assert explainer.navigation({**run, "mode": "pack"}) is None
    told = explainer.miss({**run, "mode": "pack"}, {})
    assert told and told.kind == "wrong value"
    assert explainer.miss({**run, "task_id": "other"}, {}) is None
    elsewhere = Explainer(answers, ROOT / "nowhere" / "compiled").miss(run, {})
    assert elsewhere and elsewhere.kind == "wrong value"


def test_detours_are_counted_in_the_bundle_that_was_read_and_in_no_other(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled"
    shutil.copytree(ROOT / "bundles" / "compiled" / "shop", compiled / "shop")
    shutil.copytree(ROOT / "bundles" / "shop-by-hand", tmp_path / "shop")
    answers = {"t": Gold("t", ("SELECT count(*) FROM orders",))}
    opened = ["/index.md", "/tables/customers.md"]
    run = {"task_id": "t", "database": "shop", "mode": "bundle", "files_opened": opened}
    told: list[str] = []
    explainer = Explainer(answers, compiled, told.append)
    for folder in (compiled / "shop", tmp_path / "shop"):
        assert explainer.navigation({**run, "bundle_hash": bundle_hash(folder)})
    assert not told
    for _ in range(2):
        assert explainer.navigation({**run, "bundle_hash": "0" * 64}) is None
    assert told == ["The bundle of shop is not the one that was asked with: detours are not counted."]
