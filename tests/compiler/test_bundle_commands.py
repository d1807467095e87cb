"""The commands that look after bundles, as people run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.command import run
from support.documents import RULES, write_documents

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
