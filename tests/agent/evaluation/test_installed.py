"""A changed prompt or a changed line of code that answers is another configuration."""

import shutil
from pathlib import Path

import pytest

import okf_agent
import okf_compiler
from okf_agent.evaluation import installed


def test_prompts_and_code_are_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "okf_agent/prompts/pack.md": {"prompts"},
        "okf_agent/agent.py": {"code"},
        "okf_agent/packing/choose.py": {"code"},
        "okf_agent/search/synonyms.txt": {"code"},
        "okf_compiler/profiling/text.py": {"code"},
        "okf_agent/results/terminal.py": set(),
        "okf_agent/evaluation/report.py": set(),
        "okf_compiler/readers/dbt.py": set(),
    }
    for package in (okf_agent, okf_compiler):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, tmp_path / package.__name__, ignore=shutil.ignore_patterns("*.pyc"))
        monkeypatch.setattr(package, "__file__", str(tmp_path / package.__name__ / "__init__.py"))
    before = installed.installed_hashes()
    changed = {}
    for name in expected:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        content = file.read_bytes() if file.exists() else b""
        file.write_bytes(content + b"# more\n")
        changed[name] = {part for part, value in installed.installed_hashes().items() if value != before[part]}
        file.write_bytes(content.replace(b"\n", b"\r\n"))  # as a checkout on Windows has it
        assert installed.installed_hashes() == before
    assert changed == expected


def test_what_is_named_exists() -> None:
    agent, compiler = (Path(str(package.__file__)).parent for package in (okf_agent, okf_compiler))
    names = [agent / name for name in installed.NO_SAY] + [compiler / name for name in installed.COMPILER]
    assert [place for place in names if not place.exists()] == []
