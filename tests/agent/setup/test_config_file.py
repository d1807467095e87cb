"""Files of people's, edited: what comes out, and what is refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml
from dotenv import dotenv_values

from okf_agent.setup.config_file import IGNORED, add_variables, ignore_files, set_keys
from okf_compiler.errors import UserError

WANTED = {("database", "engine"): "server", ("databases", "pagila", "rules"): ["data/pagila/glossary.yaml"]}
NEW = "databases:\n  pagila:\n    rules: [data/pagila/glossary.yaml]\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"database:\n  engine: server\n\n{NEW}"),
        ("# only a comment\n", f"# only a comment\n\ndatabase:\n  engine: server\n\n{NEW}"),
        ("model: {name: x}", f"model: {{name: x}}\n\ndatabase:\n  engine: server\n\n{NEW}"),
        ("database:\n  engine: docker  # why\n  port: 1\n", f"database:\n  engine: server  # why\n  port: 1\n\n{NEW}"),
        ("database:\n\nmodel:\n  name: x\n", f"database:\n  engine: server\n\nmodel:\n  name: x\n\n{NEW}"),
        (
            "database:\n  hide:\n    - a.b\n  # end of it\n\n# next\nmodel: {}\n",
            f"database:\n  hide:\n    - a.b\n  engine: server\n  # end of it\n\n# next\nmodel: {{}}\n\n{NEW}",
        ),
        (
            "databases:\n    shop:\n        dump: x.sql\ndatabase: {engine: server}\n",
            "databases:\n    shop:\n        dump: x.sql\n    pagila:\n      rules: [data/pagila/glossary.yaml]\n"
            "database: {engine: server}\n",
        ),
        (
            '{"database": {"port": 1}, "databases": {}}',
            '{"database": {"port": 1, "engine": "server"}, '
            '"databases": {"pagila": {"rules": ["data/pagila/glossary.yaml"]}}}',
        ),
        ("database:\r\n  engine: 'docker'\r\n", "database:\n  engine: server\n\n" + NEW),
        ("\ufeffmodel: {}\n", f"model: {{}}\n\ndatabase:\n  engine: server\n\n{NEW}"),
    ],
)  # fmt: skip
def test_keys_are_set_and_the_rest_stays(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(before.encode())
    set_keys(file, WANTED)
    text = file.read_bytes().decode()
    assert text.replace("\r\n", "\n") == after
    assert ("\r\n" in before) == ("\r\n" in text)
    assert yaml.safe_load(text)["databases"]["pagila"]["rules"] == ["data/pagila/glossary.yaml"]
    assert set_keys(file, WANTED) == []
    assert file.read_bytes().decode() == text


@pytest.mark.parametrize(
    "before",
    [
        "base: &b {engine: embedded}\ndatabase: *b\n",
        "database: {engine: embedded,}\ndatabases: {shop: {},}\n",
    ],
)
def test_what_cannot_be_edited_without_harm_is_left_with_the_lines_to_add(tmp_path: Path, before: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(before, encoding="utf-8")
    with pytest.raises(UserError, match=r"Add by hand:\ndatabase\.engine: server\ndatabases\.pagila\.rules: \["):
        set_keys(file, WANTED)
    assert file.read_text("utf-8") == before


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("", "abc", "NAME=abc\n"),
        ("# c\nNAME=\nB=1\n", "abc", "# c\nNAME=abc\nB=1\n"),
        ("B=1", "abc", "B=1\nNAME=abc\n"),
        ("NAME=theirs\n", "abc", "NAME=theirs\n"),
        ("", "p@ss #1'\\", "NAME='p@ss #1\\'\\\\'\n"),
        ("NAME=\n", "a\\1 $B ${C}", "NAME='a\\\\1 $B ${C}'\n"),
    ],
)
def test_variables_are_added_where_there_is_none(tmp_path: Path, before: str, value: str, after: str) -> None:
    file = tmp_path / ".env"
    if before:
        file.write_text(before, encoding="utf-8")
    added = add_variables(file, {"NAME": value})
    assert file.read_text("utf-8") == after
    assert added == ([] if "theirs" in before else ["NAME"])
    if added:
        assert dotenv_values(file, interpolate=False)["NAME"] == value


def test_a_new_file_with_secrets_is_for_its_owner_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    old, fresh = tmp_path / "old", tmp_path / "fresh"
    old.write_text("B=1\n", encoding="utf-8")
    old.chmod(0o640)
    (tmp_path / "link").symlink_to(old)
    add_variables(tmp_path / "link", {"NAME": "x"})
    add_variables(fresh, {"NAME": "x"})
    assert (tmp_path / "link").is_symlink()
    assert [stat.S_IMODE(file.stat().st_mode) for file in (old, fresh)] == [0o640, 0o600]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "".join(f"{line}\n" for line in IGNORED)),
        (
            "*.log\nruns\n.env",
            "*.log\nruns\n.env\n" + "".join(f"{e}\n" for e in IGNORED if e not in ("/runs/", "/.env")),
        ),
        ("a\r\n", "a\r\n" + "".join(f"{line}\r\n" for line in IGNORED)),
        ("\udcff\n", "\udcff\n" + "".join(f"{line}\n" for line in IGNORED)),
    ],
)
def test_git_is_told_what_to_leave_alone_and_keeps_its_lines(tmp_path: Path, before: str | None, after: str) -> None:
    file = tmp_path / ".gitignore"
    if before is not None:
        file.write_bytes(before.encode("utf-8", "surrogateescape"))
    ignore_files(tmp_path)
    assert file.read_bytes().decode("utf-8", "surrogateescape") == after
    assert ignore_files(tmp_path) == []
