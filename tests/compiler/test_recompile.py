"""Compiling again: what people edited is never lost, marks that are too old are said, kill -9 leaves a whole bundle."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.documents import RULES, compile_documents, write_documents

from okf_compiler import compiled, edits, last_compile
from okf_compiler.bundle import bundle_hash, load
from okf_compiler.validate import validate
from okf_compiler.verify import verify

CHANGED = [{**RULES[0], "definition": "OV = total * 2"}, *RULES[1:]]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    compile_documents(write_documents(tmp_path / "data"), tmp_path / "out" / "x")
    return tmp_path / "out" / "x"


def again(out: Path, rules: list[dict[str, object]] = RULES, **more: bool) -> object:
    return compile_documents(write_documents(out.parents[1] / "data", rules=rules), out, **more)


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


EDITS = {
    "a section": ("tables/orders.md", "| What was paid. |", "| With tax! |", "With tax!"),
    "text at a section's end": ("knowledge/order-value.md", "OV = TOTAL", "OV = TOTAL\n\nNot for B2B.", "Not for B2B."),
    "the description": ("knowledge/order-value.md", "What an order is worth.", "Its value.", "description: Its value."),
}


@pytest.mark.parametrize("changes", [RULES, CHANGED], ids=["sources unchanged", "sources changed"])
@pytest.mark.parametrize("case", EDITS)
def test_an_edit_is_kept_aside_and_reported(out: Path, case: str, changes: list[dict[str, object]]) -> None:
    name, old, new, kept = EDITS[case]
    before, log = load(out).concepts[name[:-3]], (out / "log.md").read_bytes()
    replace(out / name, old, new)
    report = again(out, changes)
    assert kept in edits.file_for(out).read_text(encoding="utf-8")
    assert kept not in (out / name).read_text(encoding="utf-8")
    assert any(name in note.replace("\\", "/") and "kept aside" in note for note in report.notes)
    if changes is RULES:  # the content is what it was, so neither its date nor the log moves
        assert load(out).concepts[name[:-3]] == before and (out / "log.md").read_bytes() == log
    assert edits.file_for(out).read_text(encoding="utf-8").count(kept) == 1
    assert not again(out, changes).saved


def test_what_the_sources_change_is_no_edit(out: Path) -> None:
    assert again(out, CHANGED).changed == 1
    assert not edits.file_for(out).exists()


def test_an_edited_concept_whose_source_is_gone_is_kept_aside(out: Path) -> None:
    replace(out / "knowledge/slow-delivery.md", "> 7", "> 8")
    assert again(out, RULES[:2]).removed == 1
    assert "details.delivery.days > 8" in edits.file_for(out).read_text(encoding="utf-8")


def test_without_a_record_whatever_differs_is_kept(out: Path) -> None:
    (out / compiled.FILE).unlink()
    again(out, CHANGED)
    assert "OV = TOTAL" in edits.file_for(out).read_text(encoding="utf-8")


def test_a_mark_older_than_the_content_is_reported_every_time(out: Path) -> None:
    file = out / "knowledge/order-value.md"
    verify(file, "human:ann")
    assert again(out).notes == ()
    time.sleep(1.1)
    for _ in range(2):
        assert [n for n in again(out, CHANGED).notes if "changed after it was verified" in n]
    verify(file, "human:ann")
    assert again(out, CHANGED).notes == ()
    assert len(load(out).concepts["knowledge/order-value"].frontmatter["verified"]) == 1


def test_a_check_writes_nothing(out: Path) -> None:
    before = bundle_hash(out)
    assert not again(out, check=True).saved
    report = again(out, CHANGED, check=True)
    assert (report.saved, report.changed, bundle_hash(out)) == (True, 1, before)


def test_a_check_of_what_is_not_there_makes_no_folder(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "data")
    assert compile_documents(documents, tmp_path / "out" / "x", check=True).saved
    assert not (tmp_path / "out").exists()


def test_a_bundle_behind_a_symbolic_link(out: Path, tmp_path: Path) -> None:
    link = tmp_path / "linked"
    link.symlink_to(out)
    again(out)
    compile_documents(write_documents(tmp_path / "data", rules=CHANGED), link)
    assert link.is_symlink() and "total * 2" in load(out).concepts["knowledge/order-value"].body
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "linked", "out"]


def test_a_large_bundle_is_not_compiled_again(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_compile, "WORTH", 1)
    first = again(out, CHANGED)
    assert out.with_name(".x.last.json").is_file()
    monkeypatch.setattr("okf_compiler.compile.link", None)  # nothing is linked again
    report = again(out, CHANGED)
    assert (report.saved, report.unlinked, report.notes) == (False, first.unlinked, first.notes)
    monkeypatch.undo()
    monkeypatch.setattr(last_compile, "WORTH", 1)
    (out / "tables/orders.md").unlink()
    assert again(out, CHANGED).added == 1


COMPILE = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[3]); from support.documents import *\nfrom okf_compiler.documents import Documents\nroot = Path(sys.argv[1])\nfolder = root / 'x'\nfiles = [folder / f'x_{n}' for n in ('schema.txt', 'column_meaning_base.json', 'kb.jsonl')]\nwhile True: compile_documents(Documents('x', root, *files, None), Path(sys.argv[2]))\n"  # noqa: E501


@pytest.mark.slow
def test_killed_at_any_moment_with_two_at_once(tmp_path: Path) -> None:
    """Two compilers with different sources write one bundle over and over; each is killed at a random moment."""
    write_documents(tmp_path / "a")
    write_documents(tmp_path / "b", rules=[{**RULES[0], "definition": "OV = total + 7"}])
    out = tmp_path / "out" / "x"
    whole = set()
    for name in "ab":
        files = [tmp_path / name / "x" / f"x_{n}" for n in ("schema.txt", "column_meaning_base.json", "kb.jsonl")]
        assert all(f.is_file() for f in files)
        compile_documents(write_documents(tmp_path / name, **({} if name == "a" else {"rules": [{**RULES[0], "definition": "OV = total + 7"}]})), tmp_path / "one" / name)  # fmt: skip  # noqa: E501
        whole.add(frozenset(load(tmp_path / "one" / name).concepts))
    chance = random.Random(3)
    support = str(Path(__file__).parents[1])
    for _ in range(12):
        running = [
            subprocess.Popen([sys.executable, "-c", COMPILE, str(tmp_path / name), str(out), support], env=os.environ)
            for name in "ab"
        ]
        time.sleep(1.0 + chance.random() * 1.5)
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if out.exists() or out.with_name(".x.old").exists():
            assert frozenset(load(out).concepts) in whole
            assert [str(f) for f in validate(out)] == []
    compile_documents(write_documents(tmp_path / "a"), out)
    assert sorted(p.name for p in out.parent.iterdir()) == [".lock", "x"]


def test_text_above_every_heading_stays_where_the_content_changes(out: Path) -> None:
    file = out / "knowledge/order-value.md"
    replace(file, "# Definition", "Ask Ann.\n\n# Definition")
    report = again(out, CHANGED)
    assert report.notes == () and not edits.file_for(out).exists()
    assert "---\n\nAsk Ann.\n\n# Definition\n\nOV = total * 2" in file.read_text(encoding="utf-8")


def test_a_mark_that_is_newer_than_the_content_counts_whatever_older_ones_say(out: Path) -> None:
    file = out / "knowledge/order-value.md"
    verify(file, "human:ann")
    time.sleep(1.1)
    again(out, CHANGED)
    verify(file, "human:bob")
    assert len(load(out).concepts["knowledge/order-value"].frontmatter["verified"]) == 2
    assert again(out, CHANGED).notes == ()
