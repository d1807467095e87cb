"""Paths inside a bundle, frontmatter both ways, the rules of the format, links and the command line."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import SCRIPTS, run
from support.documents import write_documents

from okf_compiler import frontmatter
from okf_compiler.bundle import Concept, bundle_hash, load, parse, render, resolve, save
from okf_compiler.errors import UserError
from okf_compiler.frontmatter import FormatError
from okf_compiler.validate import validate


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    root = tmp_path / "bundle"
    save(
        root,
        {
            "index.md": "# A\n",
            "tables/index.md": "# B\n",
            "tables/orders.md": "---\ntype: T\n---\n",
            "knowledge/order-value.md": "---\ntype: R\ntitle: Value\ndescription: What.\n---\n",
            "knowledge/a b.md": "---\ntype: R\n---\n",
            "knowledge/secret.txt": "no",
        },
    )
    return root


FOUND = {
    "/tables/orders.md": "tables/orders.md",
    "tables/orders": "tables/orders.md",
    "/tables/orders.md#schema": "tables/orders.md",
    "//tables/./orders.md": "tables/orders.md",
    "/": "index.md",
    "": "index.md",
    "index": "index.md",
    "tables": "tables/index.md",
    "/tables/": "tables/index.md",
    "/knowledge": "knowledge",
    "/knowledge/a%20b.md": "knowledge/a b.md",
    "</knowledge/a b.md>": "knowledge/a b.md",
}


@pytest.mark.parametrize("path", FOUND)
def test_paths_that_resolve(bundle: Path, path: str) -> None:
    assert resolve(bundle, path) == bundle / FOUND[path]


REFUSED = {
    "/tables/order.md": "did you mean /tables/orders.md",
    "knowledge/calculation/order-value": "did you mean /knowledge/order-value.md",
    "/order_value.md": "did you mean /knowledge/order-value.md",
    "xyzzy": "/index.md lists what there is",
    "../outside.md": "is not a path of this bundle",
    "/tables/../../outside.md": "is not a path of this bundle",
    "%2e%2e/outside.md": "is not a path of this bundle",
    "tables\\orders.md": "is not a path of this bundle",
    "a\0b": "is not a path of this bundle",
    "C:/x.md": "is not a path of this bundle",
    "/.lock": "is not a path of this bundle",
    "/knowledge/secret.txt": "There is no",
    "/tables/orders.md/x": "There is no",
    "/link.md": "symbolic link",
    "/folder/outside.md": "symbolic link",
    "a" * 5000: "There is no",
}


@pytest.mark.parametrize("path", REFUSED)
def test_paths_that_are_refused(bundle: Path, path: str) -> None:
    (bundle.parent / "outside.md").write_text("secret", encoding="utf-8")
    (bundle / "link.md").symlink_to(bundle.parent / "outside.md")
    (bundle / "folder").symlink_to(bundle.parent)
    with pytest.raises(LookupError, match=REFUSED[path]):
        resolve(bundle, path)


VALUES = [
    "a: b", "@a", "&a", "*a", "!a", "%a", "|", ">", "no", "5", "1e3", "~", "null", "2024-01-01", "---", "a\n---\nb",
    "'", '"', "#a", " a ", "", "x" * 5000, "😀", "\u0007\x85\u2028", "- a", "{a: b}", "[a]", "\\", "\t", "a\r\nb",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_frontmatter_reads_back(value: str) -> None:
    values = {"type": value, value or "key": 1, "tags": [value, "b"], "sources": [{"id": value}], "n": None}
    concept = Concept("x", values, f"# A\n\n{value}\n---\n".replace("\r\n", "\n"))
    assert parse(render(concept), "x") == concept


def test_frontmatter_of_people() -> None:
    text = "\ufeff---\r\ntype: no\r\ntags: [x: y]\r\nat: 2024-01-01\r\nstatus: [a]\r\n---\r\nBody\r\n"
    concept = parse(text, "x")
    assert concept.frontmatter == {"type": False, "tags": [{"x": "y"}], "at": "2024-01-01", "status": ["a"]}
    assert concept.body == "Body\n"
    json.dumps(concept.frontmatter)
    assert frontmatter.dump({"at": datetime.date(2024, 1, 1)}) == "at: 2024-01-01\n"
    assert frontmatter.load("a: &x {k: 1}\nb:\n  <<: *x\n  l: 2") == {"a": {"k": 1}, "b": {"k": 1, "l": 2}}


@pytest.mark.parametrize(
    ("text", "line"),
    [("no", 1), ("---\na: 1\n", 1), ("---\na: 1\nb: : c\n---\n", 3), ("---\n- a\n---\n", 1), ("---\n---\n", 1),
     ("---\na: &x [*x]\n---\n", 1)],
)  # fmt: skip
def test_what_is_no_concept(text: str, line: int) -> None:
    with pytest.raises(FormatError) as error:
        parse(text, "x")
    assert error.value.line == line


FINDINGS = {
    "no-frontmatter": ("a.md", "# A\n", 1, "error"),
    "bad-frontmatter": ("a.md", "---\ntype: a: b\n---\n", 2, "error"),
    "no-type": ("a.md", "---\ntitle: A\ndescription: B\ntype: 5\n---\n", 4, "error"),
    "not-utf8": ("a.md", b"---\n\xff\n", 2, "error"),
    "index-frontmatter": ("x/index.md", "---\nokf_version: '0.2'\n---\n", 1, "error"),
    "log-heading": ("log.md", "# Log\n\n## Yesterday\n", 3, "error"),
    "log-frontmatter": ("log.md", "---\na: b\n---\n", 1, "error"),
    "log-order": ("log.md", "## 2024-01-01\n## 2024-01-02\n", 2, "warning"),
    "okf-version": ("index.md", "---\nokf_version: 0.2\n---\n", 2, "warning"),
    "no-title": ("a.md", "---\ntype: A\ndescription: B\n---\n", 1, "warning"),
    "no-description": ("a.md", "---\ntype: A\ntitle: B\n---\n", 1, "warning"),
    "bad-tags": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\ntags: [x: y]\n---\n", 5, "warning"),
    "bad-sources": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\nsources: [a]\n---\n", 5, "warning"),
    "bad-generated": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\ngenerated: {at: x}\n---\n", 5, "warning"),
    "bad-actor": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\nverified: {by: ann}\n---\n", 5, "warning"),
    "bad-instant": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\nstale_after: soon\n---\n", 5, "warning"),
    "bad-status": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\nstatus: [a]\n---\n", 5, "warning"),
    "old-form": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\ntimestamp: 2024-01-01\n---\n", 5, "warning"),
    "unknown-source": (
        "a.md",
        "---\ntype: A\ntitle: B\ndescription: C\nsources: [{id: x, resource: y}]\n---\na[^x]\nb[^z]\n",
        8,
        "warning",
    ),
    "bad-resource": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\nresource: [a]\n---\n", 5, "warning"),
    "no-runtime": ("a.md", "---\ntype: Attested Computation\ntitle: B\ndescription: C\n---\n", 1, "warning"),
    "no-computation": ("a.md", "---\ntype: Attested Computation\nruntime: sql\n---\nNone.\n", 5, "warning"),
    "bad-parameters": ("a.md", "---\ntype: Attested Computation\nparameters: [a]\n---\n", 3, "warning"),
    "index-heading": ("index.md", "* [a](/a.md) - b\n", 1, "warning"),
    "broken-link": ("a.md", "---\ntype: A\ntitle: B\ndescription: C\n---\n\n[x](/gone.md)\n", 7, "warning"),
}


@pytest.mark.parametrize("code", FINDINGS)
def test_each_rule_finds_its_fault(tmp_path: Path, code: str) -> None:
    name, content, line, severity = FINDINGS[code]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = [f for f in validate(tmp_path) if f.code == code]
    assert [(f.path, f.line, f.severity) for f in found] == [(f"/{name}", line, severity)]


MORE_FINDINGS = {
    "a day that is none": ("log.md", "## 2024-13-45\n", "log-heading", 1),
    "a key twice": ("a.md", "---\ntype: A\ntitle: B\ntitle: C\ndescription: D\n---\n", "key-twice", 3),
    "a link by its name": (
        "a.md",
        "---\ntype: A\ntitle: B\ndescription: C\n---\n[x][y]\n\n[y]: /gone.md 'z'\n",
        "broken-link",
        8,
    ),
    "a password": (
        "a.md",
        "---\ntype: A\ntitle: B\ndescription: C\nresource: postgresql://ann:s3cret@db/shop\n---\n",
        "password",
        5,
    ),
    "a password in a text": (
        "a.md",
        "---\ntype: A\ntitle: B\ndescription: C\n---\n\nOpen mysql://ann:s3cret@db.\n",
        "password",
        7,
    ),
}


@pytest.mark.parametrize("case", MORE_FINDINGS)
def test_more_faults(tmp_path: Path, case: str) -> None:
    name, content, code, line = MORE_FINDINGS[case]
    (tmp_path / name).write_text(content, encoding="utf-8", newline="\n")
    found = validate(tmp_path)
    assert [(f.code, f.line) for f in found] == [(code, line)]
    assert "s3cret" not in str(found[0])


GOOD_LINKS = [
    "[x](/b%20c.md)", "[x](</b c.md>)", "[x](b%20c)", '[x](/a.md#part "title")', "[x](#part)", "[x](https://e.org/a.md)",
    "[x](mailto:a@b.c)", "[x](/)", "[x](sub/)", "`[x](/gone.md)`", "```\n[x](/gone.md)\n```", "[x](/sub/d(1).md)",
    "[x][y]\n\n[y]: /a.md", "[y]: https://ann@e.org:80/a", "[Note]: read this first", "```\n[y]: /gone.md\n```",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD_LINKS)
def test_links_that_are_whole(tmp_path: Path, text: str) -> None:
    head = "---\ntype: A\ntitle: B\ndescription: C\n---\n"
    save(tmp_path / "b", {"a.md": head + text, "b c.md": head, "sub/d(1).md": head})
    assert validate(tmp_path / "b") == []


def test_a_section_of_citations_is_an_old_form(tmp_path: Path) -> None:
    save(tmp_path / "b", {"a.md": "---\ntype: A\ntitle: B\ndescription: C\n---\n\n# Citations\n\n[x](https://e.org)\n"})
    assert [(f.code, f.line) for f in validate(tmp_path / "b")] == [("old-form", 7)]


def test_symbolic_links_are_not_skipped_in_silence(bundle: Path) -> None:
    (bundle / "more").symlink_to(bundle.parent)
    assert [f.path for f in validate(bundle) if f.code == "symbolic-link"] == ["/more"]


def test_a_bundle_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no bundle in"):
        load(tmp_path / "none")


def test_command_line(tmp_path: Path) -> None:
    write_documents(tmp_path / "data", "shop")
    write_documents(tmp_path / "data", "bad", schema="nothing")
    done = run("okf-compiler", "compile", "shop", "--data", "data", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "shop: 2 tables, 6 columns, 3 rules -> out" in done.stdout
    assert "columns without a meaning (2): orders.id; orders.customer_id" in done.stdout
    assert "rules linked to no table" not in done.stdout
    done = run("okf-compiler", "validate", "out/shop", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, f"{Path('out/shop')}: 0 errors, 0 warnings")
    done = run("okf-compiler", "compile", "all", "--data", "data", cwd=tmp_path)
    assert done.returncode == 1
    assert "bad: data/bad/bad_schema.txt has no CREATE TABLE" in done.stderr.replace("\\", "/")
    assert (tmp_path / "bundles/compiled/shop/index.md").is_file()
    assert not (tmp_path / "bundles/compiled/bad").exists()


WRONG_CALLS = {
    "a near name": (("compile", "shpo", "--data", "data"), 2, "did you mean 'shop'?"),
    "no such root": (("compile", "all", "--data", "nowhere"), 2, "There is no folder nowhere"),
    "no database": (("compile", "all", "--data", "empty"), 2, "There is no database in empty"),
    "no such bundle": (("validate", "nowhere"), 2, "There is no bundle 'nowhere' in "),
    "no argument": (("validate",), 2, "Missing argument"),
    "no such command": (("compil",), 2, "No such command"),
    "not conformant": (("validate", "broken"), 1, ""),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls(tmp_path: Path, case: str) -> None:
    arguments, status, message = WRONG_CALLS[case]
    write_documents(tmp_path / "data", "shop")
    (tmp_path / "empty").mkdir()
    save(tmp_path / "broken", {"a.md": "# no frontmatter\n"})
    done = run("okf-compiler", *arguments, cwd=tmp_path)
    assert done.returncode == status
    assert message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_output_is_one_message(tmp_path: Path) -> None:
    write_documents(tmp_path, "shop")
    command = [
        sys.executable,
        "-c",
        "from okf_compiler.launch import compiler; compiler()",
        "compile",
        "shop",
        "--data",
        ".",
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0 and "Traceback" not in done.stderr


def test_a_terminal_sees_progress_and_a_pipe_gets_the_reports(tmp_path: Path) -> None:
    import pexpect

    for name in ("a", "b"):
        write_documents(tmp_path / "data", name)
    command = f"{SCRIPTS / 'okf-compiler'} compile all --data data --out out > reports.txt"
    child = pexpect.spawn("/bin/sh", ["-c", command], cwd=str(tmp_path), encoding="utf-8", timeout=60)
    child.expect("Compiling")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    reports = (tmp_path / "reports.txt").read_text(encoding="utf-8")
    assert [line.split(":")[0] for line in reports.splitlines() if line.startswith(("a:", "b:"))] == ["a", "b"]


@pytest.mark.parametrize(
    "line", [lambda n: f"[{', '.join([f'*a{n}'] * 9)}]", lambda n: f"{{<<: [{', '.join([f'*a{n}'] * 9)}]}}"]
)
def test_aliases_of_aliases_are_no_frontmatter(bundle: Path, line: Callable[[int], str]) -> None:
    bomb = "a0: &a0 {k: [x]}\n" + "".join(f"a{n}: &a{n} {line(n - 1)}\n" for n in range(1, 12))
    with pytest.raises(FormatError, match="multiply"):
        frontmatter.load(bomb)
    (bundle / "tables" / "bomb.md").write_text(f"---\ntype: T\n{bomb}---\nbody\n", encoding="utf-8")
    assert load(bundle).concepts["tables/bomb"].frontmatter == {}
    assert any("multiply" in str(problem) for problem in validate(bundle))


def test_an_alias_or_two_are_read() -> None:
    assert frontmatter.load("a: &x {b: [1, 2]}\nc: *x\nd: {<<: *x, e: 3}\n") == {
        "a": {"b": [1, 2]}, "c": {"b": [1, 2]}, "d": {"b": [1, 2], "e": 3},
    }  # fmt: skip


def test_a_pipe_in_a_bundle_is_not_waited_for(bundle: Path) -> None:
    before = bundle_hash(bundle)
    os.mkfifo(bundle / "tables" / "pipe.md")
    assert "tables/pipe" not in load(bundle).concepts and bundle_hash(bundle) == before
