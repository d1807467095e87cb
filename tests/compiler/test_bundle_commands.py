"""The commands that look after bundles, as people run them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import run
from support.documents import RULES, write_documents
from support.read_only import read_only

ROOT = Path(__file__).parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("", encoding="utf-8")
    write_documents(tmp_path / "data")
    assert run("okf-compiler", "compile", "x", cwd=tmp_path).returncode == 0
    return tmp_path


def test_check_says_whether_a_bundle_is_what_its_sources_give(workspace: Path) -> None:
    assert run("okf-compiler", "compile", "x", "--check", cwd=workspace).returncode == 0
    write_documents(workspace / "data", rules=RULES[:2])
    done = run("okf-compiler", "compile", "all", "--check", cwd=workspace)
    assert (done.returncode, "not what its sources give" in done.stdout) == (1, True)
    assert (workspace / "bundles/compiled/x/knowledge/slow-delivery.md").is_file()


def test_inspect(workspace: Path) -> None:
    done = run("okf-compiler", "inspect", "x", cwd=workspace)
    assert done.stdout.startswith("x: 2 tables, 6 columns, 2 of them without a meaning, 3 rules (")
    assert "  orders        4 columns    1 joins  without a meaning: id, customer_id\n" in done.stdout
    found = json.loads(run("okf-compiler", "inspect", "x", "--json", cwd=workspace).stdout)
    assert found["tables"]["customers"] == {"columns": 2, "without_meaning": [], "joins": 1}


def test_diff_says_what_changed_inside(workspace: Path) -> None:
    bundle = workspace / "bundles/compiled/x"
    shutil.copytree(bundle, workspace / "old")
    changed = [{**RULES[0], "definition": "OV = total * 2"}, RULES[1]]
    schema = (
        (workspace / "data/x/x_schema.txt").read_text(encoding="utf-8").replace("total numeric(10,2)", "total real")
    )
    write_documents(workspace / "data", schema=schema, rules=changed)
    assert run("okf-compiler", "compile", "x", cwd=workspace).returncode == 0
    done = run("okf-compiler", "diff", "old", bundle, cwd=workspace)
    for line in (
        "changed: Order Value (OV) (/knowledge/order-value.md)\n  Definition: changed\n",
        "removed: Slow Delivery (/knowledge/slow-delivery.md)\n",
        "  Schema: changed `total`: numeric(10,2) | What was paid. -> real | What was paid.\n",
        "0 added, 1 removed, 2 changed\n",
    ):
        assert line in done.stdout
    assert run("okf-compiler", "diff", bundle, bundle, cwd=workspace).stdout == "0 added, 0 removed, 0 changed\n"
    told = run("okf-compiler", "diff", "old", bundle, "--json", cwd=workspace).stdout
    assert [json.loads(line)["what"] for line in told.splitlines()] == ["changed", "removed", "changed"]


def test_stats(workspace: Path) -> None:
    done = run("okf-compiler", "stats", "x", "--json", cwd=workspace)
    found = json.loads(done.stdout)
    assert list(found["raw"]) == ["x_schema.txt", "x_column_meaning_base.json", "x_kb.jsonl"]
    size = len((workspace / "bundles/compiled/x/index.md").read_bytes())
    assert found["indexes"]["/index.md"] == pytest.approx(size / 3.7, abs=1)
    assert "largest concepts:\n" in run("okf-compiler", "stats", "bundles/compiled/x", cwd=workspace).stdout


def test_verify_marks_a_concept(workspace: Path) -> None:
    file = workspace / "bundles/compiled/x/tables/orders.md"
    assert run("okf-compiler", "verify", file, "--by", "human:ann", cwd=workspace).returncode == 0
    assert "verified:\n- {by: 'human:ann', at: '" in file.read_text(encoding="utf-8")
    assert run("okf-compiler", "verify", file, "--by", "ann", cwd=workspace).returncode == 2
    assert run("okf-compiler", "verify", file.parent / "index.md", "--by", "human:ann", cwd=workspace).returncode == 2
    assert "(unchanged)" in run("okf-compiler", "compile", "x", cwd=workspace).stdout


def test_the_bundle_by_hand_conforms_with_one_warning(workspace: Path) -> None:
    shutil.copytree(ROOT / "bundles" / "shop-by-hand", workspace / "hand")
    done = run("okf-compiler", "validate", "--json", "hand", cwd=workspace)
    assert done.returncode == 0
    assert [(f["code"], f["severity"], f["path"], f["line"]) for f in map(json.loads, done.stdout.splitlines())] == [
        ("broken-link", "warning", "/words/net-revenue.md", 13)
    ]
    assert run("okf-compiler", "validate", "--strict", "hand", cwd=workspace).returncode == 1
    assert run("okf-compiler", "index", "--check", "hand", cwd=workspace).returncode == 0
    (workspace / "hand/tables/index.md").unlink()
    assert run("okf-compiler", "index", "--check", "hand", cwd=workspace).returncode == 1
    assert run("okf-compiler", "index", "hand", cwd=workspace).returncode == 0
    assert "Written by people" in (workspace / "hand/index.md").read_text(encoding="utf-8")


NAMED = ("x", "bundles/compiled/x", "./bundles/compiled/x/")


@pytest.mark.parametrize("given", NAMED)
@pytest.mark.parametrize("call", [("validate",), ("index",), ("stats",), ("inspect",), ("compile", "--check")])
def test_a_bundle_is_given_by_its_name_or_its_folder(workspace: Path, call: tuple[str, ...], given: str) -> None:
    done = run("okf-compiler", *call, given, cwd=workspace)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("given", ["data/x", *NAMED])
def test_a_database_is_given_by_its_name_its_documents_or_its_bundle(workspace: Path, given: str) -> None:
    assert run("okf-compiler", "inspect", given, cwd=workspace).stdout.startswith("x: 2 tables")
    assert run("okf-agent", "read", given, "/index.md", cwd=workspace).stdout.startswith("=== /index.md")


def test_names_work_from_below_the_workspace(workspace: Path) -> None:
    below = workspace / "data"
    assert run("okf-compiler", "validate", "x", cwd=below).returncode == 0
    assert (
        run("okf-compiler", "diff", "x", "../bundles/compiled/x", cwd=below).stdout == "0 added, 0 removed, 0 changed\n"
    )
    done = run("okf-compiler", "verify", "x/knowledge/order-value.md", "--by", "human:ann", cwd=below)
    assert done.returncode == 0, done.stderr
    assert "human:ann" in (workspace / "bundles/compiled/x/knowledge/order-value.md").read_text("utf-8")


def test_a_bundle_that_people_wrote_has_a_name_too(workspace: Path) -> None:
    shutil.copytree(workspace / "bundles/compiled/x", workspace / "bundles/mine")
    assert run("okf-compiler", "validate", "mine", cwd=workspace).stdout.endswith("mine: 0 errors, 0 warnings\n")


@pytest.mark.parametrize("call", [("validate",), ("index",), ("index", "--check"), ("stats",), ("diff", "x")])
@pytest.mark.parametrize("given", ["y", "no/such/folder"])
def test_a_bundle_that_is_not_there_is_named_and_nothing_is_left_behind(
    workspace: Path, call: tuple[str, ...], given: str
) -> None:
    before = sorted(workspace.rglob("*"))
    done = run("okf-compiler", *call, given, cwd=workspace)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert ("There is no bundle 'y' in " if given == "y" else f"There is no bundle in {given}. ") in done.stderr
    assert sorted(workspace.rglob("*")) == before


@pytest.fixture
def moved(workspace: Path) -> Iterator[Path]:
    """The workspace at another path, where nobody may write."""
    place = workspace / "moved" / "here"
    place.mkdir(parents=True)
    for name in ("config.yaml", "data", "bundles"):
        (workspace / name).rename(place / name)
    with read_only(place):
        yield place


def test_a_read_only_workspace_at_another_path(moved: Path) -> None:
    for call in (("compile", "x"), ("compile", "x", "--check"), ("index", "x"), ("validate", "x"), ("stats", "x")):
        done = run("okf-compiler", *call, cwd=moved)
        assert done.returncode == 0, done.stderr
    for call in (("read", "x", "/index.md"), ("context", "--db", "x", "How much?")):
        done = run("okf-agent", *call, cwd=moved)
        assert done.returncode == 0, done.stderr


def test_what_changes_in_a_read_only_workspace_is_refused(moved: Path) -> None:
    elsewhere = moved.parent / "data"
    shutil.copytree(moved / "data", elsewhere)
    write_documents(elsewhere, rules=RULES[:2])
    done = run("okf-compiler", "compile", "x", "--data", elsewhere, cwd=moved)
    assert done.returncode == 1
    assert re.search(r"bundles/compiled(/x)? cannot be written", done.stderr), done.stderr


def test_an_index_in_capital_letters_is_an_index(workspace: Path) -> None:
    bundle = workspace / "bundles/foreign"
    shutil.copytree(workspace / "bundles/compiled/x", bundle)
    for name in ("", "tables", "knowledge"):
        (bundle / name / "index.md").rename(bundle / name / "INDEX.MD")
    (bundle / "INDEX.MD").write_text((bundle / "INDEX.MD").read_text("utf-8") + "\n# Ours\n\nAsk Ann.\n", "utf-8")
    for path in ("/", "/index.md", "/Index.md", "/tables/"):
        done = run("okf-agent", "read", "foreign", path, cwd=workspace)
        assert done.returncode == 0 and "has no index" not in done.stdout and "# " in done.stdout
    assert run("okf-compiler", "validate", "foreign", cwd=workspace).returncode == 0
    assert run("okf-compiler", "index", "foreign", cwd=workspace).returncode == 0
    assert "Ask Ann." in (bundle / "index.md").read_text("utf-8")
    assert not [*bundle.rglob("INDEX.MD")]
