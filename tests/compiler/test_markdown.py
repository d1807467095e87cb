"""The grammar of a bundle's markdown: sections, fences, code and links."""

from __future__ import annotations

import pytest

from okf_compiler import markdown
from okf_compiler.markdown import Part


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("", []),
        ("no heading\n", [Part("", "no heading")]),
        ("lead\n\n# A\n\na\n# B\n", [Part("", "lead"), Part("A", "a"), Part("B", "")]),
        ("# A\n```\n# no\n```\n# B\nb", [Part("A", "```\n# no\n```"), Part("B", "b")]),
        ("# A\n~~~~\n```\n~~~\n# no", [Part("A", "~~~~\n```\n~~~\n# no")]),
        ("# A\n``` a`b\n# B", [Part("A", "``` a`b"), Part("B", "")]),
    ],
)
def test_a_body_is_taken_apart_at_the_headings_outside_fences(body: str, parts: list[Part]) -> None:
    assert markdown.sections(body) == parts


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("[a](/a.md) and [b](</b (2).md#x>)", ["/a.md", "/b (2).md"]),
        ("`[a](/a.md)` ``[b](/b.md) ` `` [c](/c.md)", ["/c.md"]),
        ("\\[a](/a.md) \\\\[b](/b.md) ![c](/c.md)", ["/b.md"]),
        ("` [a](/a.md)\n` [b](/b.md)", ["/a.md", "/b.md"]),
        ("[[a](/a.md)](/b.md)", ["/a.md"]),
    ],
)
def test_links_are_found_outside_code(text: str, paths: list[str]) -> None:
    assert markdown.links(text) == paths


def test_code_is_between_runs_of_as_many_backticks() -> None:
    assert markdown.codes("``a`` `b`` c` ``` d") == ["a", "b`` c"]
    assert markdown.uncode("`` a`b ``") == "a`b" and markdown.uncode("`a` `b`") == "`a` `b`"


def test_what_stands_in_fences_and_code_is_blank_on_its_own_lines() -> None:
    text = "a `b`\n```sql\n[x](/y.md)\n```\nc"
    assert markdown.without_code(text).split("\n") == ["a    ", " " * 6, " " * 10, "   ", "c"]


@pytest.mark.parametrize("text", ["plain", "# a", "```\n# x\n```", "---", "`" * 7 + "\n# a", "~~~\na\n~~~"])
def test_a_text_is_shown_word_for_word_and_read_back(text: str) -> None:
    assert markdown.unverbatim(markdown.verbatim(text)) == text
