"""Documents in, a bundle out: what is on disk, and what a second compile changes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from okf_schema.api import list_bundle, validate_bundle
from support.documents import MEANINGS, RULES, SCHEMA, compile_documents, rule, write_documents

from okf_compiler.bundle import bundle_hash, load, save
from okf_compiler.documents import list_databases
from okf_compiler.errors import UserError
from okf_compiler.report import Report
from okf_compiler.settings import load_settings
from okf_compiler.validate import validate


@pytest.fixture(scope="module")
def base_lite(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Report], Path]:
    """Base-Lite compiled: reports by database, and the folder of the bundles."""
    root = test_data / "livesqlbench-base-lite"
    out = tmp_path_factory.mktemp("bundles")
    documents = list_databases(load_settings(root, {"agent": {"raw_docs": str(root)}}))
    return {name: compile_documents(each, out / name) for name, each in documents.items()}, out


def test_base_lite_loses_nothing(base_lite: tuple[dict[str, Report], Path]) -> None:
    reports, out = base_lite
    assert len(reports) == 18
    assert len(list(out.glob("*/tables/*.md"))) - 18 == 175
    assert len(list(out.glob("*/knowledge/*.md"))) - 18 == 1082


def test_base_lite_known_values(base_lite: tuple[dict[str, Report], Path]) -> None:
    reports, out = base_lite
    disaster = reports["disaster"].database
    assert (len(disaster.tables), sum(len(t.columns) for t in disaster.tables), len(disaster.rules)) == (10, 123, 54)
    assert reports["mental"].without_meaning == ("patients.clinleadref",)
    assert len(reports["museum"].without_meaning) == 1
    concept = load(out / "disaster").concepts["knowledge/resource-utilization-ratio"]
    assert (concept.type, concept.title) == ("Calculation", "Resource Utilization Ratio (RUR)")
    assert "\\frac{hubutilpct}{100}" in concept.body
    assert "[distributionhubs](/tables/distributionhubs.md): `hubutilpct`" in concept.body


def test_base_lite_conforms(base_lite: tuple[dict[str, Report], Path]) -> None:
    reports, out = base_lite
    assert [f for name in reports for f in validate(out / name)] == []
    assert validate_bundle(out / "disaster").errors == []


@pytest.mark.slow
def test_another_tool_agrees_on_all_of_base_lite(base_lite: tuple[dict[str, Report], Path]) -> None:
    reports, out = base_lite
    assert [e for name in reports for e in validate_bundle(out / name).errors] == []
    assert sum(len(list_bundle(out / name)) for name in reports) == 175 + 1082


def test_the_other_document_sets_conform(test_data: Path, tmp_path: Path) -> None:
    for folder in ("livesqlbench-base-lite-postgres", "livesqlbench-base-full-v1"):
        root = test_data / folder
        for name, documents in list_databases(load_settings(root, {"agent": {"raw_docs": str(root)}})).items():
            out = tmp_path / folder / name
            report = compile_documents(documents, out)
            assert report.added == len(report.database.tables) + len(report.database.rules)
            assert [str(f) for f in validate(out)] == []


def test_what_a_table_concept_says(tmp_path: Path) -> None:
    compile_documents(write_documents(tmp_path / "data"), tmp_path / "out")
    concept = load(tmp_path / "out").concepts["tables/orders"]
    assert concept.frontmatter["tags"] == ["x"]
    assert [s["id"] for s in concept.frontmatter["sources"]] == ["schema", "column_meaning_base"]
    for line in (
        "| `id` | bigint, primary key, default nextval('orders_id_seq'::regclass) |  |",
        "| `details.delivery.days` | `details->'delivery'->>'days'` | How long it took. |",
        "* [customers](/tables/customers.md): `orders.customer_id = customers.id`",
        "* [Order Value (OV)](/knowledge/order-value.md) - uses `total`",
        "* [Slow Delivery](/knowledge/slow-delivery.md) - uses `details.delivery.days`",
    ):
        assert line in concept.body.split("\n")
    other = load(tmp_path / "out").concepts["tables/customers"].body
    assert "* referenced by [orders](/tables/orders.md): `orders.customer_id = customers.id`" in other
    assert "| `name` | text | Full name \\| as given. |" in other


def test_what_a_rule_concept_says(tmp_path: Path) -> None:
    compile_documents(write_documents(tmp_path / "data"), tmp_path / "out")
    concepts = load(tmp_path / "out").concepts
    value, big = concepts["knowledge/order-value"], concepts["knowledge/big-order"]
    assert (value.type, value.title) == ("Calculation", "Order Value (OV)")
    assert value.description == "What an order is worth."
    assert value.frontmatter["generated"]["by"] == "okf-compiler/0.2"
    assert "verified" not in value.frontmatter
    assert value.frontmatter["sources"] == [
        {"id": "kb", "resource": "data/x/x_kb.jsonl", "title": "Business rules of x, rule 0"}
    ]
    assert "# Definition\n\nOV = TOTAL\n" in value.body
    assert "# Columns used\n\n* [orders](/tables/orders.md): `total` (named in the definition)" in value.body
    assert "# Used by\n\n* [Big Order](/knowledge/big-order.md)" in value.body
    assert "# Depends on\n\n* [Order Value (OV)](/knowledge/order-value.md)" in big.body


def snapshot(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_recompiling_changes_no_byte(tmp_path: Path) -> None:
    documents, out = write_documents(tmp_path / "data"), tmp_path / "out"
    compile_documents(documents, out)
    before = snapshot(out)
    assert before
    time.sleep(1.1)
    report = compile_documents(documents, out)
    assert not report.saved
    assert snapshot(out) == before


def test_into_an_empty_folder_only_dates_differ(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "data")
    compile_documents(documents, tmp_path / "one")
    time.sleep(1.1)
    compile_documents(documents, tmp_path / "two")
    one, two = snapshot(tmp_path / "one"), snapshot(tmp_path / "two")
    assert one != two
    date = re.compile(rb"at: '[^']*'|## \d{4}-\d\d-\d\d")
    assert {k: date.sub(b"", v) for k, v in one.items()} == {k: date.sub(b"", v) for k, v in two.items()}


def test_a_change_moves_only_what_it_touches(tmp_path: Path) -> None:
    documents, out = write_documents(tmp_path / "data"), tmp_path / "out"
    compile_documents(documents, out)
    before = snapshot(out)
    changed = [{**RULES[0], "definition": "OV = total * 2"}, *RULES[1:2], rule(9, "New One", "customers.name")]
    report = compile_documents(write_documents(tmp_path / "data", rules=changed), out)
    after = snapshot(out)
    assert (report.added, report.changed, report.removed) == (1, 3, 1)
    moved = {path for path in before | after if before.get(path) != after.get(path)}
    assert moved == {
        ".compiled.json", "index.md", "knowledge/index.md", "log.md", "knowledge/order-value.md",
        "knowledge/new-one.md", "knowledge/slow-delivery.md", "tables/orders.md", "tables/customers.md",
    }  # fmt: skip
    log = after["log.md"].decode()
    assert "* **Update**: added [New One](/knowledge/new-one.md)" in log
    assert "removed `Slow Delivery`" in log
    assert log.index("**Update**") < log.index("**Creation**")


def test_what_people_added_survives(tmp_path: Path) -> None:
    documents, out = write_documents(tmp_path / "data"), tmp_path / "out"
    compile_documents(documents, out)
    file = out / "knowledge/order-value.md"
    text = file.read_text(encoding="utf-8").replace(
        "sources:", "owner: sales\nverified: [{by: 'human:ann', at: '2020-01-01T00:00:00+00:00'}]\nsources:", 1
    )
    file.write_text(text + "\n# Pitfalls\n\nTax is in it.\n", encoding="utf-8", newline="\n")
    own = out / "notes" / "mine.md"
    own.parent.mkdir()
    own.write_text("---\ntype: Note\ntitle: Mine\n---\n\nHello.\n", encoding="utf-8", newline="\n")
    (out / "picture.png").write_bytes(b"png")
    log = out / "log.md"
    log.write_text(log.read_text(encoding="utf-8") + "* **Note**: by hand\n", encoding="utf-8", newline="\n")
    kept = file.read_bytes()
    compile_documents(documents, out)
    assert file.read_bytes() == kept
    changed = [{**RULES[0], "definition": "OV = total + 1"}, *RULES[1:]]
    report = compile_documents(write_documents(tmp_path / "data", rules=changed), out)
    concept = load(out).concepts["knowledge/order-value"]
    assert "OV = total + 1" in concept.body and "# Pitfalls\n\nTax is in it." in concept.body
    assert concept.frontmatter["owner"] == "sales" and concept.frontmatter["verified"]
    assert any("verified" in note for note in report.notes)
    assert own.is_file() and (out / "picture.png").read_bytes() == b"png"
    assert "* [notes](/notes/index.md) - 1 Note" in (out / "index.md").read_text(encoding="utf-8")
    assert "by hand" in log.read_text(encoding="utf-8")
    report = compile_documents(write_documents(tmp_path / "data", rules=[]), out)
    assert file.is_file() and not (out / "knowledge/big-order.md").exists()
    assert any("its source is gone" in note for note in report.notes)


def test_a_file_written_by_a_person_in_a_concepts_place_is_left(tmp_path: Path) -> None:
    out = tmp_path / "out"
    save(out, {"tables/orders.md": "---\ntype: Note\ngenerated: {by: 'human:ann'}\n---\n\nMine.\n"})
    report = compile_documents(write_documents(tmp_path / "data"), out)
    assert load(out).concepts["tables/orders"].body == "Mine.\n"
    assert any("left as it is" in note for note in report.notes)


def test_a_concept_that_cannot_be_read_is_not_overwritten(tmp_path: Path) -> None:
    documents, out = write_documents(tmp_path / "data"), tmp_path / "out"
    compile_documents(documents, out)
    file = out / "tables/orders.md"
    file.write_text("<<<<<<< mine\n" + file.read_text(encoding="utf-8"), encoding="utf-8", newline="\n")
    before = snapshot(out)
    with pytest.raises(UserError, match=r"tables/orders\.md:1: .*delete it"):
        compile_documents(documents, out)
    assert snapshot(out) == before


TRAPS = {
    "colon in a description": rule(1, "A", description="ratio: a to b"),
    "yaml signs": rule(1, "@rate", description="*all &of %it |and >more"),
    "yes and numbers": rule(1, "no", description="5"),
    "type is a number": rule(1, "A", type="5"),
    "type is no": rule(1, "A", type="no"),
    "dashes": rule(1, "A --- B", "a\n---\nb\n", description="---"),
    "dashes in a title": rule(1, "A\n---\nB"),
    "headings in a definition": rule(1, "A", "# Used by\n\n* [x](/y.md)\n```\n# c\n"),
    "index": rule(1, "Index"),
    "log": rule(1, "LOG (l)"),
    "only brackets": rule(1, "(RUR)"),
    "no letter": rule(1, "!!!"),
    "no name": rule(1, ""),
    "no Latin letter": rule(1, "资源利用率"),
    "a device": rule(1, "con"),
    "a long name": rule(1, "ä" * 300),
    "emoji and controls": rule(1, "a\u0007 😀 \u2028 b", "\u0000\x85"),
    "half a surrogate pair": rule(1, "a \ud83d b", "\udc00"),
    "description injects": rule(1, "A", description="one\n# Two\n* [three](/three.md)"),
    "title injects": rule(1, "A](/b.md) [c", description="x](/y.md)"),
    "backslash": rule(1, "A\\", "\\frac{a}{b}"),
    "tabs and crlf": rule(1, "A\tB", "a\r\nb\tc", description="d\te"),
    "date": rule(1, "2024-01-01", description="2024-01-01"),
    "same slug": rule(1, "big order!"),
    "same slug, other case": rule(1, "BIG (B) ORDER"),
    "slug with a number": rule(1, "Big Order 2"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps_of_the_field(tmp_path: Path, trap: str) -> None:
    entry = TRAPS[trap]
    rules = [rule(0, "Big Order"), entry, rule(2, "Big Order")]
    out = tmp_path / "out"
    report = compile_documents(write_documents(tmp_path / "data", rules=rules), out)
    assert report.added == 5
    names = [p.name.lower() for p in (out / "knowledge").iterdir()]
    assert len(set(names)) == 4 and "log.md" not in names
    assert [str(f) for f in validate(out)] == []
    assert validate_bundle(out).is_conformant
    compiled = [c for c in load(out).concepts.values() if c.frontmatter["sources"][0]["title"].endswith("rule 1")]
    assert len(compiled) == 1
    definition = entry["definition"].replace("\r\n", "\n").encode("utf-8", "replace").decode()
    assert definition.strip() in compiled[0].body.replace("\r\n", "\n")
    index = (out / "knowledge/index.md").read_text(encoding="utf-8")
    assert index.count("\n* ") == 3 and len(re.findall(r"(?<!\\)(?:\\\\)*\]\(", index)) == 3
    json.dumps([dict(c.frontmatter) for c in load(out).concepts.values()])
    before = snapshot(out)
    assert not compile_documents(write_documents(tmp_path / "data", rules=rules), out).saved
    assert snapshot(out) == before


@pytest.mark.parametrize("names", [("Index", "log"), ("a", "A"), ("a b", "a-b"), ("x", "X)"), ("con", "数据")])
def test_tables_of_any_name_get_a_file_each(tmp_path: Path, names: tuple[str, str]) -> None:
    schema = "\n".join(f'CREATE TABLE "{name}" (id int);' for name in names)
    out = tmp_path / "out"
    assert compile_documents(write_documents(tmp_path / "d", schema=schema, meanings={}, rules=[]), out).added == 2
    files = {p.name.casefold() for p in (out / "tables").iterdir()} - {"index.md"}
    assert len(files) == 2 and "log.md" not in files
    assert [str(f) for f in validate(out)] == []


def test_cells_hold_pipes_and_line_breaks(tmp_path: Path) -> None:
    meanings = {"x|customers|name": "a|b\nc\r\nd \\| `e`"}
    out = tmp_path / "out"
    compile_documents(write_documents(tmp_path / "data", meanings=meanings), out)
    body = load(out).concepts["tables/customers"].body
    assert "| `name` | text | a\\|b<br>c<br>d \\\\| `e` |" in body.split("\n")


SLOW_SAVE = """
import sys, time
from pathlib import Path
from okf_compiler import swap
from okf_compiler.bundle import save
stage, folder = sys.argv[1], Path(sys.argv[2])
def stop(*_):
    print("here", flush=True)
    time.sleep(60)
original = Path.rename
if stage == "build":
    swap._swap = stop
elif stage == "between":
    swap._exchange = lambda *_: False
    count = []
    def rename(self, target):
        count.append(1)
        if len(count) == 2:
            stop()
        return original(self, target)
    Path.rename = rename
else:
    swap._clear = lambda f: stop() if swap._new(f).exists() else None
save(folder, {"a.md": "---\\ntype: New\\n---\\n", "b.md": "---\\ntype: New\\n---\\n"})
"""


@pytest.mark.parametrize(("stage", "expected"), [("build", "Old"), ("between", "New"), ("clear", "New")])
def test_kill_in_mid_save_leaves_one_whole_bundle(tmp_path: Path, stage: str, expected: str) -> None:
    folder = tmp_path / "bundle"
    save(folder, {"a.md": "---\ntype: Old\n---\n", "b.md": "---\ntype: Old\n---\n"})
    process = subprocess.Popen([sys.executable, "-c", SLOW_SAVE, stage, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"here\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert {c.type for c in load(folder).concepts.values()} == {expected}
    assert save(folder, {"a.md": "---\ntype: Next\n---\n"})
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.endswith(".lock")) == ["bundle"]
    assert {c.type for c in load(folder).concepts.values()} == {expected, "Next"}


def test_a_reader_sees_one_state(tmp_path: Path) -> None:
    """While another process saves again and again, each load is of one save."""
    folder = tmp_path / "bundle"
    writer = (
        "import sys; from pathlib import Path; from okf_compiler.bundle import save\n"
        "for n in range(60):\n"
        "    save(Path(sys.argv[1]), {f'{i}.md': f'---\\ntype: T{n}\\n---\\n' for i in range(20)})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", writer, str(folder)])
    seen = set()
    try:
        while process.poll() is None:
            if folder.is_dir():
                concepts = load(folder).concepts
                types = {c.type for c in concepts.values()}
                assert len(concepts) == 20 and len(types) == 1
                seen |= types
    finally:
        process.wait()
    assert process.returncode == 0
    assert len(seen) > 1


def test_two_compilers_at_once(tmp_path: Path) -> None:
    write_documents(tmp_path / "data")
    main = "from okf_compiler.launch import compiler; compiler()"
    command = [sys.executable, "-c", main, "compile", "x", "--data", "data", "--out", "out"]
    processes = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) for _ in range(3)]
    outputs = [p.communicate()[0].decode() for p in processes]
    assert [p.returncode for p in processes] == [0, 0, 0]
    assert sorted(o.count("unchanged") for o in outputs) == [0, 1, 1]
    assert [str(f) for f in validate(tmp_path / "out" / "x")] == []
    assert (tmp_path / "out" / "x" / "log.md").read_text(encoding="utf-8").count("**Creation**") == 1


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
from okf_compiler.launch import compiler
compiler()
"""


def test_a_full_disk_is_one_message_and_nothing_half_written(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "data")
    out = tmp_path / "out" / "x"
    compile_documents(documents, out)
    before = snapshot(out)
    write_documents(tmp_path / "data", schema=SCHEMA.replace("total", "amount"), meanings=MEANINGS)
    command = [sys.executable, "-c", LIMITED, "compile", "x", "--data", "data", "--out", "out"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "left as it was: file too large" in done.stderr
    assert snapshot(out) == before
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [".lock", "x"]


def test_a_place_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be written"):
        compile_documents(write_documents(tmp_path / "data"), tmp_path / "file" / "out")


def test_bundle_hash_is_of_content_and_paths(tmp_path: Path) -> None:
    save(tmp_path / "a", {"x.md": "1", "y/z.md": "2"})
    save(tmp_path / "b", {"y/z.md": "2", "x.md": "1"})
    save(tmp_path / "c", {"x.md": "1", "y/w.md": "2"})
    assert bundle_hash(tmp_path / "a") == bundle_hash(tmp_path / "b") != bundle_hash(tmp_path / "c")
