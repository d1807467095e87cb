"""An answer that people can check: what was said, the rules it rests on, the SQL, the rows, what to know of them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from okf_agent.ask import Asked, Outcome, Workspace
from okf_agent.prepare import quiet
from okf_agent.results import chart, grounds
from okf_agent.results.grounds import Grounds, Rule
from okf_agent.run import Run
from okf_agent.sql.render import rows_view, shown_rows
from okf_agent.wording import count
from okf_compiler.errors import UserError
from okf_compiler.inert import inert
from okf_compiler.terminal import Console

MAX_RULES = 6
"""Rules whose definitions are shown beside an answer; /why shows all."""
MAX_DEFINITION = 300
"""Characters of a definition that are shown beside an answer."""
ENDS = {
    "step_limit": "it used all its steps (agent.max_steps)",
    "time_limit": "its time was over (agent.max_seconds)",
    "token_limit": "it used all its tokens (agent.max_tokens)",
    "cost_limit": "it reached its cost limit (agent.max_cost_usd)",
    "no_tool_calls": "the model went on talking instead of handing in an answer",
    "repeated_calls": "the model repeated its calls instead of handing in an answer",
    "cut_off": "the model's replies were cut off at model.max_tokens; raise it in config.yaml",
    "empty": "the model's replies were empty",
    "interrupted": "it was interrupted",
}
"""Why a run ended without a submitted answer, by its stop reason, or by what led to it."""
CHECKS = {
    "error": "The query does not run.",
    "no_rows": "The query gives no rows.",
    "lone_null": "The query gives nothing but one NULL.",
    "not_run": "This database has no content here, so the query was not run.",
}


def grounds_of(asked: Asked, outcome: Outcome, workspace: Workspace) -> Grounds:
    """What the answer of a run rests on, with what its conversation read; nothing where its bundle cannot be read."""
    answer = outcome.run.answer
    if answer is None:
        return Grounds()
    try:
        bundle = workspace.ready(asked.database, quiet).bundle
        files = [*asked.read_before, *outcome.run.tally.files_opened]
        return grounds.find(files, bundle, asked.text, answer.answer, answer.sql)
    except UserError:
        return Grounds()


def ended(run: Run) -> str:
    """Why a run ended without a submitted answer."""
    return next((ENDS[why] for why in (*run.tally.limits_hit[-1:], run.stop_reason) if why in ENDS), run.stop_reason)


def show(run: Run, found: Grounds, chart_wanted: bool | None, out: Console, max_rows: int) -> Iterator[RenderableType]:
    """The parts of an answer in the order they are read. `chart_wanted`: None where it helps, else always or never."""
    answer = run.answer
    assert answer is not None
    yield Text()
    if run.stop_reason in ENDS:
        yield Text(f"The best answer so far; the run was stopped: {ended(run)}.", "magenta")
    yield inert_text(answer.answer, "bold")
    if found.rules:
        yield Text("\nRests on" if found.read else "\nRules that the question names", "dim")
        for rule in found.rules[:MAX_RULES]:
            yield from _rule(rule, out)
        if len(found.rules) > MAX_RULES:
            yield Text(f"  and {count(len(found.rules) - MAX_RULES, 'more rule')}")
    if answer.sql:
        yield Text()
        yield shown_sql(answer.sql, out)
        if answer.checked in CHECKS:
            yield inert_text("\n" + " ".join(filter(None, (CHECKS[answer.checked], run.sql_error))), "magenta")
    if run.result is not None and answer.checked == "ran":
        yield Text()
        yield rows_view(run.result.first(max_rows), out.width)
        bars = None if chart_wanted is False else chart.bars(run.result, force=bool(chart_wanted))
        if bars:
            yield Text()
            yield from chart.draw(bars, out.width, ascii_only=out.options.ascii_only)
    notes = [*_notes(run, found, bool(chart_wanted), max_rows)]
    yield from (Text(note, "magenta") for note in notes)
    yield Text()


def explain(found: Grounds) -> Iterator[RenderableType]:
    """All rules an answer rests on with their whole definitions, and what else was read."""
    for rule in found.rules:
        yield Text(f"{inert(rule.title)}  ", "bold").append(inert(rule.path), "dim")
        yield Padding(inert_text(rule.definition), (0, 0, 0, 2), expand=False)
        yield from (Text(f"  assumed, not stated: {inert(line)}", "magenta") for line in rule.assumed)
    if not found.rules:
        yield Text("No rule that was read matters to this answer, as far as can be told from its query.")
    for what, paths in (("Rules read besides", found.also_read), ("Tables read", found.tables)):
        if paths:
            yield Text(f"{what}: {inert(', '.join(paths))}", "dim")


def shown_sql(sql: str, out: Console) -> RenderableType:
    """SQL in colours that can be read on light and on dark ground; plain where no terminal is."""
    text = "\n".join(map(inert, sql.splitlines()))
    if not out.is_terminal:
        return Text(text)
    from pygments.token import Comment, Keyword, Number, String
    from rich.style import Style
    from rich.syntax import ANSISyntaxTheme, Syntax

    theme = ANSISyntaxTheme(
        {Keyword: Style(bold=True), String: Style(color="green"), Number: Style(color="cyan"), Comment: Style(dim=True)}
    )
    return Syntax(text, "postgresql", theme=theme, background_color="default", word_wrap=True)


def _rule(rule: Rule, out: Console) -> Iterator[Text]:
    definition = " ".join(inert(rule.definition.replace("\n", " ")).split())
    if len(definition) > MAX_DEFINITION:
        definition = definition[: MAX_DEFINITION - 1].rstrip() + "…"
    title = Text(inert(rule.title), "cyan").append(f"  {inert(rule.path)}", "dim")
    for margin, text in (("  ", title), ("    ", Text(definition))):
        for line in text.wrap(out, max(20, out.width - len(margin))):  # not rich's Padding: it ends lines in blanks
            line.rstrip()
            yield Text(margin).append_text(line)


def _notes(run: Run, found: Grounds, chart_wanted: bool, max_rows: int) -> Iterator[str]:
    """What was cut, what was assumed, and what was not found."""
    result = run.result and run.result.first(max_rows)
    if result is not None and result.cut.rows:
        yield f"Shown are the first {shown_rows(result)}; --output FILE or /save FILE writes all."
    if result is not None and result.cut.cells:
        yield f"Cut: {count(len(result.cut.cells), 'long cell')}; --output FILE or /save FILE writes cells whole."
    yield from (f"Note: {inert(note.text)}" for note in (result.notes if result is not None else ()))
    for rule in found.rules:
        yield from (f"Assumed, not stated, in {inert(rule.title)}: {inert(line)}" for line in rule.assumed)
    if run.tally.shortened:
        yield f"Shortened before the answer was written: {count(run.tally.shortened, 'older result')}."
    if run.tally.ungrounded_numbers:
        yield f"Not found in any result, in a rule or in the question: {inert(', '.join(run.tally.ungrounded_numbers))}"
    if run.tally.document_numbers:
        yield f"Taken from a document, not from a query: {inert(', '.join(run.tally.document_numbers))}"
    if chart_wanted and run.result is not None and chart.bars(run.result, force=True) is None:
        yield "No chart: it needs two rows or more, with a label and a number that is not 0."


def inert_text(text: str, style: str = "") -> Text:
    """Text of a model or a bundle: its lines as they are, whatever else a terminal would obey written out."""
    return Text("\n".join(map(inert, text.splitlines())), style)
