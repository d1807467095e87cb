"""`okf-compiler` as people use it: the real command."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command import SCRIPTS, run

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "data" / "shop"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("", encoding="utf-8")
    shutil.copytree(SHOP, tmp_path / "data" / "shop")
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_committed_shop_bundle_is_what_its_documents_give(workspace: Path) -> None:
    committed = ROOT / "bundles" / "compiled" / "shop"
    shutil.copytree(committed, workspace / "bundles" / "compiled" / "shop")
    result = run("okf-compiler", "compile", "shop", cwd=workspace)
    assert result.returncode == 0, result.stderr
    assert "shop: 12 tables, 85 columns, 50 rules" in result.stdout
    assert "(unchanged)" in result.stdout
    assert tree(workspace / "bundles/compiled/shop") == tree(committed)


def test_into_an_empty_folder_only_dates_differ(workspace: Path) -> None:
    assert run("okf-compiler", "compile", "shop", "--out", "out", cwd=workspace).returncode == 0
    comparison = filecmp.dircmp(workspace / "out" / "shop", ROOT / "bundles" / "compiled" / "shop")
    assert (comparison.left_only, comparison.right_only) == ([], [])
    assert run("okf-compiler", "validate", "out/shop", cwd=workspace).stdout == "out/shop: 0 errors, 0 warnings\n"


def test_all_goes_on_after_a_database_that_fails(workspace: Path) -> None:
    broken = workspace / "data" / "broken"
    broken.mkdir()
    (broken / "broken_schema.txt").write_bytes(b"\xff\xfe\x00")
    result = run("okf-compiler", "compile", "all", cwd=workspace)
    assert result.returncode == 1
    assert "broken: " in result.stderr and "1 of 2 databases were not compiled" in result.stderr
    assert (workspace / "bundles/compiled/shop/index.md").is_file()
    assert not (workspace / "bundles/compiled/broken").exists()


def test_a_rule_that_names_no_column_is_reported(workspace: Path) -> None:
    rules = (
        "name,definition\nDead stock,days since orders.last_rented > 90\nKept,orders.hidden_one and orders.order_id\n"
    )
    (workspace / "rules.csv").write_text(rules, encoding="utf-8")
    hidden = "--hide=orders.hidden_one"
    result = run("okf-compiler", "compile", "shop", "--rules", "rules.csv", hidden, "--out", "out", cwd=workspace)
    assert result.returncode == 0, result.stderr
    assert [line.strip() for line in result.stdout.splitlines() if "no such column" in line] == [
        "rules.csv:2: orders.last_rented: no such column; rule Dead stock"
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["compile"], 2, "Missing argument 'NAME'"),
        (["compile", "shpo"], 2, "did you mean 'shop'?"),
        (["compile", "shop", "--data", "nowhere"], 2, "nowhere"),
        (["validate", "nowhere"], 2, "nowhere"),
        (["compile", "all", "--data", "config.yaml"], 2, "config.yaml"),
    ],
)
def test_calls_that_cannot_work(workspace: Path, arguments: list[str], status: int, said: str) -> None:
    result = run("okf-compiler", *arguments, cwd=workspace)
    assert (result.returncode, said in result.stderr, "Traceback" in result.stderr) == (status, True, False), result


def test_a_full_disk_leaves_nothing_half_written(workspace: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [SCRIPTS / "okf-compiler", "validate", "."], cwd=workspace, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 1
    assert b"Cannot write the output: No space left on device" in result.stderr

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    result = subprocess.run(
        [SCRIPTS / "okf-compiler", "compile", "shop"],
        cwd=workspace,
        preexec_fn=limit,
        capture_output=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert result.returncode == 1, result
    assert b"Traceback" not in result.stderr
    assert not (workspace / "bundles/compiled/shop").exists()


def test_another_configuration_and_single_keys(workspace: Path) -> None:
    elsewhere = workspace / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.yaml").write_text("agent: {bundles: made, raw_docs: ../data}\n", encoding="utf-8")
    result = run("okf-compiler", "compile", "shop", "--config", "elsewhere/other.yaml", cwd=workspace)
    assert (result.returncode, (elsewhere / "made" / "shop" / "index.md").is_file()) == (0, True), result.stderr
    assert run("okf-compiler", "stats", "shop", "--set", "agent.bundles=elsewhere/made", cwd=workspace).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--config", "nope.yaml"), "There is no configuration nope.yaml."),
        (("--set", "agent.bundels=x"), "does not read agent.bundels; did you mean 'bundles'? It reads agent."),
        (("--set", "databse.port=1"), "there is no section 'databse'; did you mean 'database'?"),
        (("--set", "database.prot=1"), "there is no such key; did you mean 'port'?"),
        (("--set", "database"), "write a key and a value: --set database.port=5433"),
    ],
)
def test_a_configuration_that_cannot_be(workspace: Path, arguments: tuple[str, ...], said: str) -> None:
    result = run("okf-compiler", "inspect", "shop", *arguments, cwd=workspace)
    assert (result.returncode, said in result.stderr, result.stdout) == (2, True, ""), result.stderr
