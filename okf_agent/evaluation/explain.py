"""What gold tells about a run that is over: the class of a miss and the detours. For reports; no model reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from okf_agent.cell import opens_files
from okf_agent.config import Config
from okf_agent.evaluation import gold, suites
from okf_agent.evaluation.case import case_of
from okf_agent.evaluation.misses import Miss, classify
from okf_agent.evaluation.navigation import Navigation, Needed, navigate, needed_concepts
from okf_agent.evaluation.store import Evaluation
from okf_agent.prepare import Say, quiet
from okf_compiler.bundle import bundle_hash
from okf_compiler.errors import UserError
from okf_compiler.loaded import loaded


class Explainer:
    """Gold of one suite beside the bundles that its runs read."""

    def __init__(self, answers: Mapping[str, gold.Gold], bundles: Path, say: Say = quiet) -> None:
        """`bundles` is the folder of the compiled ones, one a database; those that people wrote lie beside it."""
        self.answers = answers
        self.bundles = bundles
        self.say = say
        self._read: dict[tuple[str, str], Path | None] = {}

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
        folder = self._bundle(str(run["database"]), str(run.get("bundle_hash") or ""))
        return needed_concepts(loaded(folder), answer.rules, answer.sql) if folder else Needed()

    def _bundle(self, database: str, read: str) -> Path | None:
        """The bundle with the hash that a run's record has ("": none was read, any will do); None where it is gone."""
        if (database, read) not in self._read:
            places = (self.bundles / database, self.bundles.parent / database)
            here = [place for place in places if (place / "index.md").is_file()]
            found = next((place for place in here if not read or bundle_hash(place) == read), None)
            if here and not found:
                self.say(f"The bundle of {database} is not the one that was asked with: detours are not counted.")
            self._read[database, read] = found
        return self._read[database, read]


def explainer(config: Config, folder: Path, say: Say) -> Explainer | None:
    """For the evaluation in a folder; None, and why, where its suite is gone or is not the one that was asked.

    Raises:
        UserError: there is no evaluation.
    """
    evaluation = Evaluation.load(folder)
    try:
        suite = suites.load(evaluation.suite, config)
        if evaluation.facts.get("suite_hash") == suite.hash:
            return Explainer(gold.load(suite), config.settings.bundles, say)
        why = "its files have another content now"
    except (UserError, OSError) as error:
        why = str(error)
    say(f"Without the suite, no detours are counted, and no miss gets a class that has none yet: {why}")
    return None
