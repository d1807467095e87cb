"""What of a file reaches the model: all that says something, and nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from okf_agent.bundles.reading import PIECE_CHARS, brief, read

HEAD = "---\ntype: Rule\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Late Share](/knowledge/late-share.md)", "/knowledge/late-share.md"),
        ("* [order_items](/tables/order_items.md): `a`", "* /tables/order_items.md: `a`"),
        ("[Average Order Value (AOV)](/knowledge/average-order-value.md)", "/knowledge/average-order-value.md (AOV)"),
        ("[tables](/tables/index.md) - 12", "/tables/index.md - 12"),
        ("[orders.channel](/knowledge/orders-channel.md)", "[orders.channel](/knowledge/orders-channel.md)"),
        ("[Big Order](/knowledge/big-order-2.md)", "[Big Order](/knowledge/big-order-2.md)"),
        ("[Straße](/knowledge/strasse.md)", "[Straße](/knowledge/strasse.md)"),
        ("![map](/map.md) [late](late.md) [x](https://x/x.md)", "![map](/map.md) [late](late.md) [x](https://x/x.md)"),
        (HEAD + "generated: {by: me, at: x}\nsources:\n- {id: a}\n- id: b\n  at: c\ntags: [x]\n---\n\nb\n",
         HEAD + "tags: [x]\n---\n\nb\n"),
        (HEAD + "sources: [a]\nverified: {by: Ann}\n---\nsources: kept\n",
         HEAD + "verified: {by: Ann}\n---\nsources: kept\n"),
        ("# No head\n\ngenerated: by hand\n---\n", "# No head\n\ngenerated: by hand\n---\n"),
        (HEAD + "sources: never closed\n", HEAD + "sources: never closed\n"),
    ],
)  # fmt: skip
def test_provenance_and_titles_that_a_path_repeats_are_left_out(text: str, expected: str) -> None:
    assert brief(text) == expected == brief(expected)


def test_a_compiled_table_costs_less_than_its_file() -> None:
    bundle = Path(__file__).parents[3] / "bundles" / "compiled" / "shop"
    orders = read(bundle, "/tables/orders.md").text
    assert len(orders) < 0.85 * len((bundle / "tables" / "orders.md").read_text(encoding="utf-8"))
    assert "| `is_test` | boolean, not null |" in orders and "* /knowledge/valid-order.md - uses `is_test`" in orders


def test_pieces_are_of_what_is_shown(tmp_path: Path) -> None:
    body = "".join(f"{n:07}\n" for n in range(PIECE_CHARS // 8 + 10))
    (tmp_path / "long.md").write_text(f"{HEAD}sources: [{'x' * 500}]\n---\n{body}", encoding="utf-8")
    first, rest = read(tmp_path, "long").text, read(tmp_path, f"long#{PIECE_CHARS}").text
    assert first[:PIECE_CHARS] + rest == f"{HEAD}---\n{body}"


def test_a_line_of_brackets_is_read_in_no_time() -> None:
    text = "[" * 1_000_000 + "](" * 100_000
    assert brief(text) == text
