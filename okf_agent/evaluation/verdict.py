"""What a scorer says of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Difference: TypeAlias = Literal[
    "column order",
    "extra columns",
    "ties",
    "letter case",
    "spaces",
    "number as text",
    "date as text",
    "date with time",
    "last digit",
    "declined by a constant",
]
"""What the lenient verdict forgives: scorers/lenient.py and scorers/refusal.py say when."""


@dataclass(frozen=True)
class Verdict:
    """One scored run. `strict` is the benchmark's own rule; None where it could not be scored."""

    strict: bool | None
    lenient: bool | None
    """Right but for differences that do not matter to a reader, which `differences` names."""
    soft_f1: float | None = None
    """BIRD's soft F1, 0 to 1."""
    r_ves: float | None = None
    """BIRD's reward for speed, the square root of 0 to 1.25; its mean times 100 is R-VES. None: not measured."""
    reason: str = ""
    """Why it is not right, in words; "" where it is."""
    gold_error: str = ""
    """Why the gold query gave nothing to compare with: then the run is not counted."""
    differences: tuple[Difference, ...] = ()
    """What the lenient verdict forgave."""
    knowledge_recall: float | None = None
    """Of the rules the task needs, the part that the run opened; None where that is not known."""
    knowledge_precision: float | None = None
    """Of the rules the run opened, the part that the task needs; None where that is not known or it opened none."""
    judge: str | None = None
    """MATCH or MISMATCH, where a model was asked."""
    judge_cost_usd: float | None = None
    """What asking it cost; None where its price is unknown or nobody was asked."""

    def to_json(self) -> Mapping[str, Any]:
        """The fields by name, for scores.jsonl."""
        return {**asdict(self), "differences": list(self.differences)}
