"""How knowledge arrives: what the model is told, and nothing else differs."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from support import hubs

import okf_agent.knowledge
from okf_agent import prompts
from okf_agent.cell import KNOWLEDGE, opens_files
from okf_agent.knowledge import MODES, Sources, prepare
from okf_compiler.documents import Documents
from okf_compiler.errors import UserError

SHOP = Path(__file__).parents[2] / "bundles" / "compiled" / "shop"


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    folder = tmp_path / "hubs"
    folder.mkdir()
    for name, text in {
        "hubs_schema.txt": "CREATE TABLE hubs ($money text);\n",
        "hubs_column_meaning_base.json": '\ufeff{"hubs|hubs|used": "tonnes"}',
        "hubs_kb.jsonl": '{"id": 0, "definition": "\\\\frac{a}{b} costs $5 ${x}"}\n',
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return Documents("hubs", tmp_path, *(folder / f"hubs_{n}" for n in NAMES), dump=None)


NO_MODES = {"__init__", "model"}
NAMES = ("schema.txt", "column_meaning_base.json", "kb.jsonl")


def test_a_bundle_brings_its_root_index_and_a_tool(tmp_path: Path) -> None:
    knowledge = prepare("bundle", "?", Sources("hubs", bundle=hubs.write_bundle(tmp_path)))
    assert "# Tables\n* /tables/hubs.md - Distribution hubs\n" in knowledge.sections[0]
    assert "# Calculations\n* /knowledge/utilization.md - How full a hub is, rule 63\n" in knowledge.sections[0]
    assert "0.85" not in knowledge.sections[0], "files are for read_file"
    assert [tool.name for tool in knowledge.tools] == ["read_file"] and knowledge.reply == "tools"


def test_a_question_comes_with_the_tables_that_its_rules_need() -> None:
    found = prepare("bundle", "How many active customers do we have?", Sources("shop", bundle=SHOP)).signposts
    assert "* /knowledge/active-customer.md - Who counts as an active customer\n" in found
    assert re.search(r"^\* /tables/orders\.md$", found, re.MULTILINE)


def test_a_bundle_without_an_index_gets_one_made(tmp_path: Path) -> None:
    bundle = hubs.write_bundle(tmp_path)
    (bundle / "index.md").unlink()
    assert "* tables/\n" in prepare("bundle", "?", Sources("hubs", bundle=bundle)).sections[0]


def test_raw_brings_the_documents_as_they_are_and_no_tool(documents: Documents) -> None:
    knowledge = prepare("raw", "?", Sources("hubs", documents))
    (section,) = knowledge.sections
    assert "CREATE TABLE hubs ($money text);" in section and '{"hubs|hubs|used": "tonnes"}' in section
    assert '"\\\\frac{a}{b} costs $5 ${x}"' in section and "\ufeff" not in section
    assert knowledge.tools == ()


def test_a_missing_companion_is_left_out(documents: Documents) -> None:
    documents.rules.unlink()
    assert "<business_rules>\n\n</business_rules>" in prepare("raw", "?", Sources("hubs", documents)).sections[0]


def test_what_cannot_be_read_is_told_with_its_name(documents: Documents, tmp_path: Path) -> None:
    documents.rules.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"hubs_kb\.jsonl"):
        prepare("raw", "?", Sources("hubs", documents))
    with pytest.raises(UserError, match="Ask with --knowledge bundle"):
        prepare("raw", "?", Sources("hubs"))
    with pytest.raises(UserError, match="okf-compiler compile hubs"):
        prepare("bundle", "?", Sources("hubs", bundle=tmp_path / "none"))
    with pytest.raises(UserError, match="did you mean 'bundle'"):
        prepare("bundel", "?", Sources("hubs"))


def test_a_mode_is_a_file_and_its_line_in_the_table() -> None:
    files = {path.stem for path in Path(str(okf_agent.knowledge.__file__)).parent.glob("*.py")}
    assert files - NO_MODES == set(KNOWLEDGE) == set(MODES)
    assert all(mode.help for mode in KNOWLEDGE.values())


@pytest.mark.parametrize("mode", KNOWLEDGE)
def test_the_table_says_what_a_mode_reads_and_lets_be_read(mode: str, documents: Documents) -> None:
    tools = {tool.name for tool in prepare(mode, "?", Sources("hubs", documents, SHOP)).tools}
    assert ("read_file" in tools) == KNOWLEDGE[mode].opens_files == opens_files(mode)
    alone = pytest.raises(UserError, match="okf-compiler compile hubs")
    with alone if KNOWLEDGE[mode].reads_bundle else nullcontext():
        prepare(mode, "?", Sources("hubs", documents))


def test_of_a_mode_that_is_not_in_the_table_nothing_was_opened() -> None:
    assert not opens_files("mcp") and not opens_files(None)


def test_a_prompt_takes_its_variables_and_no_other() -> None:
    assert prompts.load("bundle.md", index="$x").endswith("$x\n</index>")
    with pytest.raises(KeyError):
        prompts.load("bundle.md")
    with pytest.raises(KeyError):
        prompts.say("accepted", surplus=1)


def test_every_short_text_is_used_by_the_code() -> None:
    package = Path(prompts.__file__).parents[1]
    code = "".join(f.read_text(encoding="utf-8") for f in package.rglob("*.py"))
    reasons = {f"reason_{r}" for r in ("step_limit", "time_limit", "token_limit", "cost_limit", "no_tool_calls")}
    reasons |= {"reason_repeated_calls", "reason_cut_off", "reason_empty"}
    assert [key for key in prompts._messages() if f'"{key}"' not in code and key not in reasons] == []


def test_no_short_text_takes_the_name_of_another() -> None:
    text = Path(prompts.__file__).with_name("messages.yaml").read_text(encoding="utf-8")
    keys = re.findall(r"^([\w-]+):", text, re.M)  # YAML itself keeps the last of two, without a word
    assert sorted(keys) == sorted(prompts._messages())
