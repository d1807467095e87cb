"""People's corrections: applied in every compile, and reported with file and line where they no longer fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documents import RULES, compile_documents, write_documents

from okf_compiler.bundle import load
from okf_compiler.errors import UserError
from okf_compiler.report import Report
from okf_compiler.validate import validate

OVERLAY = """\
tables:
  orders:
    description: One row an order, baskets included.
    synonyms: [purchases]
    sections:
      Pitfalls: |
        A basket is an order too.
      Joins: Join customers for names.
rules:
  Order Value (OV):
    synonyms: [turnover]
    links:
      add:
        customers.name: the name is printed on it
      forbid: [orders.total]
  "1":
    description: An order above a hundred.
"""


def compiled(tmp_path: Path, overlay: str | None) -> Report:
    file = tmp_path / "overlays" / "x.yaml"
    file.parent.mkdir(exist_ok=True)
    if overlay is None:
        file.unlink()
    else:
        file.write_text(overlay, encoding="utf-8", newline="\n")
    return compile_documents(write_documents(tmp_path / "data", rules=RULES), tmp_path / "out" / "x", file)


def test_an_overlay_is_applied_and_taken_back(tmp_path: Path) -> None:
    report = compiled(tmp_path, OVERLAY)
    assert [p for p in report.problems if "overlays" in p.file] == []
    concepts = load(tmp_path / "out/x").concepts
    orders, value, big = (concepts[id] for id in ("tables/orders", "knowledge/order-value", "knowledge/big-order"))
    assert (orders.description, orders.frontmatter["synonyms"]) == (
        "One row an order, baskets included.",
        ["purchases"],
    )
    assert "# Pitfalls\n\nA basket is an order too.\n" in orders.body
    assert "`orders.customer_id = customers.id`\n\nJoin customers for names." in orders.body
    assert orders.frontmatter["sources"][-1]["resource"].endswith("/overlays/x.yaml")
    assert "[customers](/tables/customers.md): `name` (the name is printed on it)" in value.body
    assert "[orders](/tables/orders.md): `total`" not in value.body
    assert big.description == "An order above a hundred."
    index = (tmp_path / "out/x/index.md").read_text(encoding="utf-8")
    assert "One row an order, baskets included. (also: purchases)" in index
    assert validate(tmp_path / "out/x") == []
    assert not compiled(tmp_path, OVERLAY).saved
    report = compiled(tmp_path, None)
    assert report.changed and not (tmp_path / "out/x.edits.md").exists()
    assert "Pitfalls" not in load(tmp_path / "out/x").concepts["tables/orders"].body
    assert compile_documents(write_documents(tmp_path / "data"), tmp_path / "out" / "x").saved is False


MISFITS = {
    "tables:\n  order: {}\n": (2, "there is no table 'order'; did you mean 'orders'?"),
    "rules:\n  Gone: {}\n": (2, "there is no rule 'Gone'."),
    "rule:\n  Gone: {}\n": (1, "'rule' is not read; did you mean 'rules'?"),
    "tables:\n  orders:\n    sinonyms: [x]\n": (3, "orders: 'sinonyms' is not read; did you mean 'synonyms'?"),
    "rules:\n  '0':\n    links:\n      add: [orders.gone]\n": (4, "'orders.gone' is no table, column or rule"),
    "rules:\n  '0':\n    links:\n      add: [orders.total]\n": (4, "0 is linked to orders.total without this"),
    "rules:\n  '1':\n    links:\n      forbid:\n      - customers\n": (
        5,
        "1 is not linked to customers: nothing to forbid",
    ),
    "rules:\n  '0':\n    description: What an order is worth.\n": (2, "the description is the source's own by now"),
    "rules:\n  '0': text\n": (2, "'0' must be a mapping of description, synonyms, sections, links"),
}


@pytest.mark.parametrize("overlay", MISFITS)
def test_what_no_longer_fits_is_reported_with_its_line(tmp_path: Path, overlay: str) -> None:
    line, message = MISFITS[overlay]
    problems = [p for p in compiled(tmp_path, overlay).problems if p.file.endswith("x.yaml")]
    assert [(p.line, p.message) for p in problems] == [(line, message)]


@pytest.mark.parametrize("overlay", ["a: [", "- a\n"])
def test_a_broken_overlay_stops_the_compile(tmp_path: Path, overlay: str) -> None:
    with pytest.raises(UserError, match=r"x\.yaml"):
        compiled(tmp_path, overlay)
