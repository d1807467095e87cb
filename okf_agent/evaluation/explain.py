"""What gold tells about a run that is over: the class of a miss and the detours. For reports; no model reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from okf_agent.cell import opens_files
from okf_agent.config import Config
from okf_agent.evaluation import gold, suites
from okf_agent.evaluation.misses import Miss, case_of, classify
from okf_agent.evaluation.navigation import Navigation, Needed, navigate, needed_concepts
from okf_agent.evaluation.store import Evaluation
from okf_agent.prepare import Say
from okf_compiler.errors import UserError
from okf_compiler.loaded import loaded


class Explainer:
    """Gold of one suite beside the bundles that its runs read."""

    def __init__(self, answers: Mapping[str, gold.Gold], bundles: Path) -> None:
        """`bundles` is the folder of the compiled ones, one a database."""
        self.answers = answers
        self.bundles = bundles

    def miss(self, run: Mapping[str, Any], score: Mapping[str, Any]) -> Miss | None:
        """The class of a run that is wrong; None without gold."""
        answer = self.answers.get(str(run["task_id"]))
        return classify(case_of(run, score, answer, self._needed(run, answer))) if answer else None

    def navigation(self, run: Mapping[str, Any]) -> Navigation | None:
        """How a run moved through its bundle; None where the model opens nothing, or what it needs is not known."""
        answer = self.answers.get(str(run["task_id"]))
        if answer is None or not opens_files(run.get("mode")):
            return None
        needed = self._needed(run, answer)
        return navigate(run, needed) if needed != Needed() else None

    def _needed(self, run: Mapping[str, Any], answer: gold.Gold) -> Needed:
        folder = self.bundles / str(run["database"])
        return needed_concepts(loaded(folder), answer.rules, answer.sql) if folder.is_dir() else Needed()


def explainer(config: Config, folder: Path, say: Say) -> Explainer | None:
    """For the evaluation in a folder; None, and why, where its suite is gone or is not the one that was asked.

    Raises:
        UserError: there is no evaluation.
    """
    facts = Evaluation.load(folder).facts
    try:
        suite = suites.load(str(facts.get("suite_argument") or facts.get("suite")), config)
        if facts.get("suite_hash") == suite.hash:
            return Explainer(gold.load(suite), config.settings.bundles)
        why = "its files have another content now"
    except (UserError, OSError) as error:
        why = str(error)
    say(f"Without the suite, no detours are counted, and no miss gets a class that has none yet: {why}")
    return None
