"""Scorers: one benchmark's rule a file, and `score`, which holds a run against its gold.

A new one is one file and one line in `score.SCORERS`.
"""

from okf_agent.evaluation.scorers.score import SCORERS, Options, score

__all__ = ["SCORERS", "Options", "score"]
