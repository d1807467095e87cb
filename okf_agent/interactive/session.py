"""What the commands of the prompt do, and what they remember from one question to the next."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Group
from rich.text import Text

from okf_agent.ask import Asked, Outcome, Workspace, ask
from okf_agent.cell import KNOWLEDGE, Cell, choose_cell
from okf_agent.config import Config
from okf_agent.interactive.commands import COMMANDS
from okf_agent.interactive.conversation import MAX_TURNS, Turn, messages
from okf_agent.interactive.greeting import greet
from okf_agent.interactive.reader import Reader
from okf_agent.models.providers import LOCAL
from okf_agent.records import runs
from okf_agent.records import view as runs_view
from okf_agent.results import answers, compare, output
from okf_agent.results.answers import grounds_of
from okf_agent.results.asking import close, show_answer
from okf_agent.results.formats import Written
from okf_agent.results.terminal import Progress, summary
from okf_agent.sql.database import Database, QueryResult
from okf_agent.sql.query_error import QueryError
from okf_agent.sql.render import rows_view, shown_rows
from okf_agent.wording import count, dollars
from okf_compiler.documents import list_databases
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.inert import inert
from okf_compiler.loaded import loaded
from okf_compiler.terminal import Console

QUOTED_CHARS = 80
"""Of a question that a message names."""
MAX_ROWS = 10_000
"""Rows that /rows shows at most; /save writes all."""


@dataclass(frozen=True)
class Last:
    """The last question, and what became of it."""

    asked: Asked
    cell: Cell
    outcome: Outcome


class Session:
    """One sitting at the prompt: what its commands do, a method each."""

    def __init__(self, workspace: Workspace, database: str, cell: Cell, reader: Reader, chart: bool | None) -> None:
        self.workspace = workspace
        self.database = database
        self.cell = cell
        self.reader = reader
        self.chart = chart
        self.out = Console(sys.stdout)
        self.err = Console(sys.stderr)
        self.turns: list[Turn] = []
        self.last: Last | None = None
        self.unanswered = ""
        """The last question, where something ended it before it was asked."""
        self.query: output.Query | None = None
        """The last query that ran, of an answer or of one's own."""
        self.outcomes: list[Outcome] = []

    @property
    def mode(self) -> str:
        return self.cell.knowledge

    @property
    def config(self) -> Config:
        return self.workspace.config

    def do(self, line: str) -> None:
        """What a line with a command says.

        Raises:
            UserError: there is no such command, or it cannot work.
        """
        name, _, argument = line.partition(" ")
        if name not in DOES:
            raise UserError(f"There is no command {name}{did_you_mean(name, COMMANDS)} /help lists them.")
        DOES[name](self, argument.strip())

    def ask(self, text: str) -> None:
        """A question, which sees what was asked before."""
        seen = self.turns[-MAX_TURNS:]
        asked = Asked(
            text,
            self.database,
            follows=seen[-1].run_id if seen else None,
            conversation=messages(seen),
            read_before=tuple(path for turn in seen for path in turn.files),
        )
        self.last, self.unanswered = None, text
        with Progress(self.err) as progress:
            outcome = ask(asked, self.cell, self.workspace, progress, progress.say)
        if outcome.run.answer is not None:
            show_answer(asked, outcome, self.workspace, self.out, self.chart)
        close(outcome, self.cell, self.err)
        self._remember(asked, self.cell, outcome)
        answer = outcome.run.answer
        if answer is not None:
            files = tuple(outcome.run.tally.files_opened)
            self.turns.append(Turn(outcome.run_id, text, answer, outcome.run.result, files))
            if answer.sql:
                self.query = output.Query(answer.sql, outcome.run.result, self._database())

    def _remember(self, asked: Asked, cell: Cell, outcome: Outcome) -> None:
        self.last = Last(asked, cell, outcome)
        self.outcomes.append(outcome)

    # Where and how questions are asked.

    def use_database(self, name: str) -> None:
        known = list_databases(self.config.settings)
        if not name:
            self.out.print(Text("\n".join(f"{'*' if each == self.database else ' '} {each}" for each in known)))
            return
        if name not in known and not (self.config.settings.bundles / name / "index.md").is_file():
            raise UserError(f"There is no database {name!r}{did_you_mean(name, known)} /db lists them.")
        if name != self.database:
            self._forget()
            self.database = name
            greet(self.config, name, self.workspace.bundle, self.cell)

    def use_knowledge(self, name: str) -> None:
        if not name:
            for each, known in KNOWLEDGE.items():
                self.out.print(Text(f"{'*' if each == self.mode else ' '} {each:<8}{known.help}"))
            return
        cell = replace(self.cell, knowledge=name)
        cell.check()
        self.cell = cell

    def use_model(self, name: str) -> None:
        if name:
            kept = None if LOCAL in (name, self.cell.model) else self.mode
            chosen = choose_cell(self.config, name, kept, self._say)
            self.cell = replace(self.cell, model=chosen.model, knowledge=chosen.knowledge)
        self.out.print(Text(f"{inert(self.cell.model)} answers, in mode {self.mode}."))

    def start_afresh(self, _: str) -> None:
        self._forget()
        self.out.say("The conversation is forgotten: the next question stands alone.")

    def _forget(self) -> None:
        self.turns.clear()
        self.last = self.query = None
        self.unanswered = ""

    def tables(self) -> Iterator[str]:
        """The names of the database's tables, as far as its bundle knows them."""
        with contextlib.suppress(UserError):
            bundle = loaded(self.workspace.bundle or self.config.settings.bundles / self.database)
            yield from (table.title for table in bundle.tables)

    # The last answer.

    def compare(self, name: str) -> None:
        last = self._last()
        other = replace(last.cell, knowledge=name or compare.other_knowledge(last.cell.knowledge))
        other.check()
        with Progress(self.err) as progress:
            outcome = ask(last.asked, other, self.workspace, progress, progress.say)
        close(outcome, other, self.err)
        self.outcomes.append(outcome)
        self.out.print(Group(*compare.side_by_side((last.cell, last.outcome), (other, outcome))))

    def explain(self, _: str) -> None:
        last = self._last()
        self.out.print(Group(*answers.explain(grounds_of(last.asked, last.outcome, self.workspace))))

    def judge(self, verdict: str, note: str) -> None:
        last = self._last()
        question, run = quoted(last.asked.text), last.outcome.run
        if run.answer is None:
            why = answers.ENDS.get(run.stop_reason, "it failed")
            raise UserError(f"{question} has no answer that could be {verdict}: {why}. Ask it again first.")
        runs.add_feedback(self.config.runs, last.outcome.run_id, verdict, note)
        self.out.say(f"Kept: the answer to {question} is {verdict}{f' ({note})' if note else ''}.")

    def _last(self) -> Last:
        if self.last is None:
            ended = f"{quoted(self.unanswered)} was ended before it was asked." if self.unanswered else ""
            raise UserError(f"{ended or 'There is no question yet.'} Ask one first.")
        return self.last

    # The last query.

    def edit_sql(self, sql: str) -> None:
        if not sql:
            known = self._query().sql
            sql = self.reader.read("sql> ", known).strip() if sys.stdin.isatty() else ""
            if not sql:
                self.out.print(answers.shown_sql(known, self.out))
                return
        self._run(sql, self.config.settings.database.max_rows)

    def show_rows(self, count: str) -> None:
        query = self._query()
        if count:
            if not count.isdecimal() or not 0 < int(count) <= MAX_ROWS:
                raise UserError(f"/rows takes a number from 1 to {MAX_ROWS}. /save FILE writes all rows.")
            self._run(query.sql, int(count))
        elif query.result is None:
            raise UserError("The last query gave no rows: it did not run.")
        else:
            self._show(query.result.first(self.config.settings.database.max_rows))

    def save(self, argument: str) -> None:
        query = self._query()
        force = argument.startswith("-f ")
        name = argument.removeprefix("-f ").strip().strip("'\"")
        if not name:
            raise UserError("Name a file: /save rows.csv")
        path = Path(name).expanduser()
        how = Written(output.format_for(path))
        output.check_target(path)
        if path.is_file() and not output.is_device(path) and not force:
            raise UserError(f"{path} is there already. Write over it with /save -f {path}")
        rows = output.save(query, path, how, self.err)
        self.out.say(f"{count(rows, 'row')} written to {path}")

    def _run(self, sql: str, max_rows: int) -> None:
        database = self._database()
        if database is None:
            raise UserError(f"{self.database} has no content here, so nothing can be run.")
        with Progress(self.err) as progress:
            progress.wait("the query runs; Ctrl-C stops it")
            try:
                result = database.run(sql, max_rows=max_rows)
            except QueryError as error:
                raise UserError(str(error)) from None
        self.query = output.Query(sql, result, database)
        self._show(result)

    def _show(self, result: QueryResult) -> None:
        self.out.print(rows_view(result, self.out.width))
        self.out.print(Text(f"{shown_rows(result)}, {result.seconds:.2f} s", "dim"))
        for note in result.notes:
            self.out.print(Text(f"Note: {inert(note.text)}", "magenta"))

    def _query(self) -> output.Query:
        if self.query is None:
            raise UserError("There is no query yet. Ask a question first, or run your own: /sql SELECT …")
        return self.query

    def _database(self) -> Database | None:
        return self.workspace.ready(self.database, self._say).database

    # Records.

    def show_cost(self, _: str) -> None:
        for outcome in self.outcomes[-20:]:
            self.out.say(summary(outcome, outcome.line.get("model", "")))
        self.out.say(_sum(self.outcomes), "bold")

    def show_runs(self, count: str) -> None:
        if count and not count.isdecimal():
            raise UserError("/runs takes how many of the last runs to show: /runs 20")
        said = runs.read_feedback(self.config.runs)
        for record in runs.read_runs(self.config.runs, last=int(count or 10)).records:
            for line in runs_view.run_lines(record, said.get(record["run_id"], ())):
                self.out.say(line)

    def clear(self, _: str) -> None:
        self.out.clear()

    def help(self, _: str) -> None:
        self.out.say("Type a question in plain language; it sees the ones before it. SQL is run as it is. Or:")
        for name, text in COMMANDS.items():
            if text:
                self.out.print(Text(f"  {name:<12}{text}"))
        self.out.say("Enter sends; Alt-Enter, or a backslash and Enter, begins a new line. Ctrl-C stops a question.")

    def _say(self, line: str) -> None:
        self.err.say(line, "dim")


DOES: Mapping[str, Callable[[Session, str], None]] = {
    "/db": Session.use_database,
    "/knowledge": Session.use_knowledge,
    "/raw": lambda session, _: session.use_knowledge("raw"),
    "/bundle": lambda session, _: session.use_knowledge("bundle"),
    "/model": Session.use_model,
    "/compare": Session.compare,
    "/sql": Session.edit_sql,
    "/rows": Session.show_rows,
    "/save": Session.save,
    "/why": Session.explain,
    "/right": lambda session, note: session.judge("right", note),
    "/wrong": lambda session, note: session.judge("wrong", note),
    "/cost": Session.show_cost,
    "/runs": Session.show_runs,
    "/clear": Session.clear,
    "/new": Session.start_afresh,
    "/help": Session.help,
}
"""What each command does; the prompt itself knows those that leave."""


def quoted(question: str) -> str:
    """The beginning of a question on one line, in quotation marks."""
    line = " ".join(question.split())
    return f'"{line if len(line) <= QUOTED_CHARS else line[: QUOTED_CHARS - 1] + "…"}"'


def _sum(outcomes: Sequence[Outcome]) -> str:
    tallies = [outcome.run.tally for outcome in outcomes]
    known = sum(tally.cost_known_usd for tally in tallies)
    unknown = sum(tally.cost_usd is None for tally in tallies)
    cost = dollars(known) + (f" and {count(unknown, 'run')} of unknown cost" if unknown else "")
    tokens = (
        f"{sum(t.input_tokens or 0 for t in tallies):,} tokens in, {sum(t.output_tokens or 0 for t in tallies):,} out"
    )
    uncounted = sum(tally.tokens is None for tally in tallies)
    tokens += f" and {count(uncounted, 'run')} of unknown tokens" if uncounted else ""
    calls = count(sum(t.llm_calls for t in tallies), "model call")
    return f"{count(len(outcomes), 'run')}, {calls}, {tokens}, {cost}"
