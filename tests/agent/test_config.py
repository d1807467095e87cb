"""config.yaml, `--config` and `--set`: values that arrive, and errors that name key, line and the nearest real key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from okf_agent.config import load_config
from okf_compiler.errors import UserError

CONFIG = """\
model:
  name: openai/x

agent:
  max_steps: 7
database: {max_rows: 5}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def test_single_keys_win_over_the_file_and_leave_the_others(root: Path) -> None:
    changes = ["agent.max_steps=20", "database.hide=[a.b]", "model.name=groq/y", "databases.shop.schema=s"]
    config = load_config(root, changes=changes)
    assert (config.agent.max_steps, config.model.name) == (20, "groq/y")
    assert (config.settings.database.hide, config.settings.database.max_rows) == (("a.b",), 5)
    assert config.settings.databases["shop"].schema_name == "s"
    assert load_config(root, changes=["agent.max_steps=1", "agent.max_steps=2"]).agent.max_steps == 2


def test_another_file_makes_its_folder_the_workspace(root: Path) -> None:
    other = root / "deep" / "cheap.yaml"
    other.parent.mkdir()
    other.write_text("agent: {max_steps: 3}", encoding="utf-8")
    config = load_config(file=other)
    assert (config.agent.max_steps, config.settings.root) == (3, other.parent)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent:\n\n  max_stepz: 1", "config.yaml:3: agent.max_stepz: there is no such key; did you mean 'max_steps'?"),
        ("# one\nmodle:\n  name: x", "config.yaml:2: there is no section 'modle'; did you mean 'model'?"),
        ("model:\n  name: x\n  max_tokens: many", "config.yaml:3: model.max_tokens: Input should be a valid integer"),
        ("agent: {raw_docs: 5}", "config.yaml:1: agent.raw_docs"),
        (
            "databases:\n  shop:\n    schem: x",
            "config.yaml:3: databases.shop.schem: there is no such key; did you mean",
        ),
        ("model:\n  prices:\n    a/b:\n      input: 1", "config.yaml:3: model.prices.a/b.output: Field required"),
        (
            "model:\n  prices:\n    a/b:\n      inptu: 1\n      output: 2",
            "config.yaml:4: model.prices.a/b.inptu: there is no such key; did you mean 'input'?",
        ),
        ("database:\n  hide: customers.email", "config.yaml:2: database.hide: Input should be a list"),
        (
            "database:\n  statement_timeout_s: -1",
            "config.yaml:2: database.statement_timeout_s: Input should be greater",
        ),
        (
            "database:\n  host: postgresql://u:s3cret@h/db",
            "config.yaml:2: database.host: Value error, a name, an address",
        ),
        ("database:\n  host: u:s3cret@h", "the login and its password belong in .env"),
        ("database:\n  host: host=h password=s3cret", "config.yaml:2: database.host: Value error, a name, an address"),
        ("database: {port: 99999}", "config.yaml:1: database.port: Input should be less than 65536"),
        ("trace: 5", "config.yaml:1: trace is a section with keys, not a value: `trace:`, and below it"),
        (
            "# one\ndatabase: server",
            "config.yaml:2: database is a section with keys, not a value: `database:`, and below",
        ),
        ("- model", "config.yaml: this is no mapping"),
        ("model:\n\tname: x", "config.yaml:2: the line is indented with a tab. Indent it with spaces."),
        ("model:\n  name: x\n \tmax_tokens: 5", "config.yaml:3: the line is indented with a tab"),
        (
            "model:\n  name: 'x\nagent:\n  max_steps: 5",
            "found unexpected end of stream while scanning a quoted scalar that begins in line 2",
        ),
        ("model:\n  name: x: y", "config.yaml:2: this is not YAML: mapping values are not allowed"),
        ("model:\n  name: a\x07b", "config.yaml:2: there is a control character"),
        ("model: " + "[" * 5_000, "config.yaml"),
    ],
)
def test_a_broken_file(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_config(tmp_path)
    assert said in str(caught.value) and "s3cret" not in str(caught.value)
    assert caught.value.status == 2


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    for name in ("config.yaml", ".env"):
        (tmp_path / name).write_bytes(b"# one\n# caf\xe9\n")
        with pytest.raises(UserError, match=rf"{name}:2: this is not UTF-8"):
            load_config(tmp_path)
        (tmp_path / name).write_bytes(b"")


@pytest.mark.parametrize("line", ["my key = s3cret", "KEY='s3cret", 'KEY="s3cret" and more', "=s3cret", "KEY=s3\0cret"])
def test_a_line_of_env_that_cannot_be_read_is_named_and_the_others_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    monkeypatch.delenv("OKF_FIRST", raising=False)
    monkeypatch.delenv("OKF_LAST", raising=False)
    (tmp_path / ".env").write_text(f"OKF_FIRST=1\n{line}\nexport OKF_LAST=2\nEMPTY=\n# a comment\n", encoding="utf-8")
    load_config(tmp_path)
    said = capsys.readouterr().err
    assert f"{tmp_path / '.env'}:2: this line is left out" in said and "NAME=value" in said and "cret" not in said
    assert (os.environ["OKF_FIRST"], os.environ["OKF_LAST"]) == ("1", "2")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "agent.max_stepz=20",
            "--set agent.max_stepz=20: agent.max_stepz: there is no such key; did you mean 'max_steps'?",
        ),
        ("agnet.max_steps=20", "there is no section 'agnet'; did you mean 'agent'?"),
        ("agent.max_steps=many", "--set agent.max_steps=many: agent.max_steps: Input should be a valid integer"),
        ("max_steps=20", "write a key and a value"),
        ("agent.max_steps", "write a key and a value"),
        ("agent=5", "write a key and a value"),
        ("agent.max_steps.x=5", "agent.max_steps"),
        ("agent.max_steps=0", "agent.max_steps: Input should be greater than 0"),
        ("agent.max_cost_usd=.nan", "agent.max_cost_usd"),
        ("agent.max_seconds=.nan", "agent.max_seconds"),
        ("database.max_rows=-5", "database.max_rows: Input should be greater than 0"),
        ("database.export_timeout_s=.inf", "database.export_timeout_s"),
        ("model.retries=-1", "model.retries: Input should be greater than or equal to 0"),
        ("model.prices.x.input=1", "model.prices.x.output: Field required"),
    ],
)
def test_a_broken_change(root: Path, change: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_config(root, changes=[change])
    assert said in str(caught.value)
    assert caught.value.status == 2


def test_changes_count_together(root: Path) -> None:
    config = load_config(root, changes=["model.prices.x.input=1", "model.prices.x.output=2", "agent.max_seconds=.inf"])
    assert (config.model.prices["x"].output, config.agent.max_seconds) == (2, float("inf"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no configuration .*none\.yaml"):
        load_config(file=tmp_path / "none.yaml")
