"""The bytes of compiled bundles, over every database at hand."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.databases import loaded, url
from support.frozen import hold

from okf_agent.engines import Server

PROJECT = Path(__file__).parents[2]
MOMENT = re.compile(r"at: '?\d{4}-\d\d-\d\d[T ][\d:.+Z]+'?|^## \d{4}-\d\d-\d\d$", re.MULTILINE)
"""When a concept was generated, and the days of the log."""
SAMPLES = {
    "northwind": "northwind/northwind.sql",
    "pagila": "neon/pagila.sql",
    "chinook": "neon/chinook.sql",
    "periodic_table": "neon/periodic_table.sql",
    "happiness_index": "neon/happiness_index.sql",
}


def content(bundle: Path) -> str:
    """A line for each file of a bundle: its path and the digest of its bytes, without dates."""
    lines = []
    for file in sorted(bundle.rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            text = MOMENT.sub("at", file.read_bytes().decode("utf-8", "surrogateescape"))
            digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
            lines.append(f"{file.relative_to(bundle).as_posix()} {digest}")
    return "\n".join(lines)


def compiled(folder: Path, config: dict[str, Any], names: list[str]) -> dict[str, str]:
    """The bundles that `okf-compiler compile` makes in a workspace of this configuration."""
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    for name in names:
        done = run("okf-compiler", "compile", name, cwd=folder)
        assert done.returncode == 0, done.stderr
    bundles = folder / "bundles" / "compiled"
    return {each.name: content(each) for each in sorted(bundles.iterdir()) if each.is_dir()}


def test_shop(tmp_path: Path) -> None:
    hold("bundle_shop", compiled(tmp_path, {"agent": {"raw_docs": str(PROJECT / "data")}}, ["shop"]))


@pytest.mark.parametrize(
    "root", ["livesqlbench-base-lite", "livesqlbench-base-lite-postgres", "livesqlbench-base-full-v1"]
)
def test_livesqlbench(tmp_path: Path, test_data: Path, root: str) -> None:
    found = compiled(tmp_path, {"agent": {"raw_docs": str(test_data / root)}}, ["all"])
    hold(f"bundles_{root}", found, digests=True)


def test_dictionaries_and_dbt(tmp_path: Path, test_data: Path) -> None:
    defog = sorted(each.stem for each in (test_data / "defog").glob("*/*.json"))
    databases: dict[str, Any] = {name: {"columns": str(test_data / "defog" / name / f"{name}.json")} for name in defog}
    databases["superhero"] = {"columns": str(test_data / "bird-superhero" / "database_description")}
    for name in ("jaffle-shop", "jaffle-sl-template", "tuva"):
        databases[name.replace("-", "_")] = {"dbt": str(test_data / "dbt" / name)}
    found = compiled(tmp_path, {"databases": databases}, [*databases])
    hold("bundles_dictionaries", found, digests=True)


@pytest.mark.slow
def test_live_catalogues(tmp_path: Path, test_data: Path, postgres: Server) -> None:
    found = {}
    assert postgres.admin is not None
    (tmp_path / "config.yaml").write_text("{}")
    for name, dump in SAMPLES.items():
        loaded(postgres, f"frozen_{name}", test_data / "samples" / dump)
        source = url(dict(postgres.admin), f"frozen_{name}")
        done = run("okf-compiler", "compile", name, "--from", source, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found[name] = content(tmp_path / "bundles" / "compiled" / name).replace(f"frozen_{name}", name)
    hold("bundles_live", found, digests=True)
