"""How large a pack is and how it is written. One code path: a large model and a small one differ in these figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    prompt: str
    """The file in prompts/ that takes the sections and the question."""
    max_tokens: int
    """Of the whole message, about."""
    table_tokens: int
    """All tables are shown where they take no more than this."""
    rule_tokens: int
    """All rules are shown where they take no more than this."""
    max_rules: int
    """Rules taken for their score alone; those that the question names, and dependencies, come besides."""
    near: float
    """A rule or table counts as a match from this share of the best score on."""
    fill: bool
    """Whether neighbours by foreign key and further matches fill the room that is left."""
    meaning_chars: int
    """Of a column's meaning, which may be cut; a rule never is."""
    brief: bool
    """Of what was measured only examples and advice, and formulas without LaTeX, which a small model copies."""
    rules_last: bool
    """Whether rules and values stand behind the question: a small model follows best what it reads last."""


def large(max_tokens: int) -> Shape:
    """For a model that reads thousands of tokens a second."""
    return Shape("pack.md", max_tokens, max_tokens, max_tokens, max_rules=12, near=0.3, fill=True,
                 meaning_chars=600, brief=False, rules_last=False)  # fmt: skip


SMALL = Shape("pack_small.md", 3_200, 2_000, 300, max_rules=3, near=0.55, fill=False,
              meaning_chars=110, brief=True, rules_last=True)  # fmt: skip
"""For the embedded model, which reads 60 tokens a second on two cores. What is the same for many questions, such as all
tables of a small database, is read once: a server keeps it."""
