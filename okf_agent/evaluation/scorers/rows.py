"""The project's own strict rule, for the shop and for suites of your own.

The same rows: as many columns, in gold's order; every row as often as gold has it; in gold's order where the question
asks for one. Values are exact: 1 = 1.0, but 0.33 is not 0.333, and 'DE' is not 'de'. Unlike BIRD's rule it counts
duplicate rows, and unlike LiveSQLBench's it drops neither DISTINCT nor ROUND.
"""

from __future__ import annotations

from okf_agent.evaluation.results import Result
from okf_agent.evaluation.scorers.model import Scorer, missing, out_of_order, shape


def same(gold: Result, predicted: Result, ordered: bool) -> str:
    """ "" where the rows are the same, else how they differ."""
    if different := shape(gold, predicted) or missing(gold.rows, predicted.rows):
        return different
    return out_of_order(gold.rows, predicted.rows) if ordered else ""


SCORER = Scorer(same)
