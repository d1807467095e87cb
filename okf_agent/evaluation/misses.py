"""Why an answer is wrong: every miss in one class, the first whose rule finds evidence. RULES is the order.

Ends without a usable query come first, since there is nothing to compare. Then what the scorer itself forgave: such an
answer is right but for its form. Then knowledge that was never read, the cause of whatever differs after it. Then the
parsed queries are compared from the ground up: tables and columns, constants, grain and joins, calculations and
conditions, output, order. A class says how the answer differs from the nearest gold query, which is where to
look first; it does not prove a cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from okf_agent.cell import opens_files
from okf_agent.evaluation.case import Case
from okf_agent.evaluation.scorers.model import Difference
from okf_agent.evaluation.sql_shape import Shape

LIMITS = ("step_limit", "time_limit", "token_limit", "cost_limit", "no_tool_calls")
FORGIVEN: Mapping[Difference, str] = {
    "column order": "wrong output columns",
    "extra columns": "wrong output columns",
    "ties": "order",
    "letter case": "wrong value",
    "spaces": "wrong value",
    "number as text": "wrong value",
    "date as text": "wrong value",
    "date with time": "wrong value",
    "last digit": "formula differs",
    "declined by a constant": "wrongly answered",
}
"""What the lenient verdict forgave -> the class of the miss; the first one found counts."""
SHOWN = 4


@dataclass(frozen=True)
class Miss:
    """The class of a wrong answer, and what it was put there for, in words."""

    kind: str
    evidence: str


Rule: TypeAlias = Callable[[Case], "str | Miss"]
"""Gives the evidence that a case is of the rule's class (or of another, as a Miss); "" if it is not."""


def classify(case: Case) -> Miss:
    """The class of a wrong answer.

    >>> record = {"stop_reason": "submitted", "answer": {"sql": "SELECT count(*) FROM b", "checked": "ran"}}
    >>> classify(Case(record, ("SELECT count(*) FROM a",)))
    Miss(kind='wrong table or column', evidence='gold reads a, the answer reads b instead')
    """
    for kind, rule in RULES:
        if found := rule(case):
            return found if isinstance(found, Miss) else Miss(kind, found)
    why = "the parsed queries show no difference, their results do" if case.shapes else "a query cannot be parsed"
    return Miss("formula differs", f"{why}{': ' + case.reason if case.reason else ''}")


def _error(case: Case) -> str:
    record, answer = case.record, case.record.get("answer")
    if isinstance(answer, Mapping) and answer.get("checked") == "error":
        return _joined("the answer's SQL fails", case.reason or _text(answer, "answer"))
    if case.reason.startswith("the query fails"):
        return case.reason
    if record.get("stop_reason") in ("error", "interrupted") and not case.sql:
        return _joined("the run ended without an answer", _text(record, "error") or str(record["stop_reason"]))
    return ""


def _gave_up(case: Case) -> str:
    reason = case.record.get("stop_reason")
    return f"no query by the end of the run ({reason})" if not case.sql and reason in LIMITS else ""


def _declined(case: Case) -> str:
    if case.sql or not case.answerable:
        return ""
    return _joined("there is an answer, and the model declined", _text(case.record.get("answer") or {}, "answer"))


def _answered(case: Case) -> str:
    return "the question cannot be answered from this database, and got a query" if not case.answerable else ""


def _form(case: Case) -> str | Miss:
    if not case.lenient:
        return ""
    for difference, kind in FORGIVEN.items():
        if difference in case.differences:
            return Miss(kind, f"right but for {'; '.join(case.differences)}")
    return f"right but for {'; '.join(case.differences) or 'its form'}"


def _not_opened(case: Case) -> str:
    if not opens_files(case.record.get("mode")):
        return ""
    closed = [path for path in case.rules if path not in (case.record.get("files_opened") or ())]
    return f"never opened {_list(closed)}" if closed else ""


def _table_or_column(case: Case) -> str:
    if not (pair := case.shapes):
        return ""
    tables, others = pair.gold.tables - pair.given.tables, pair.given.tables - pair.gold.tables
    if tables and (others or not pair.given.tables):
        return f"gold reads {_list(tables)}, the answer reads {_list(others) or 'no table'} instead"
    missing = _without(pair.gold.substance | pair.gold.groups, pair.given.columns)
    added = _without(pair.given.substance | pair.given.groups, pair.gold.columns)
    missing, added = (_columns(found, shape) for found, shape in ((missing, pair.gold), (added, pair.given)))
    return f"gold uses {_list(missing)}, the answer uses {_list(added)} instead" if missing and added else ""


def _value(case: Case) -> str:
    if not (pair := case.shapes):
        return ""
    for wanted in pair.missing:
        for found in pair.added:
            computed = any("(" in value and not value.startswith("'") for value in wanted.values | found.values)
            if wanted.column != found.column or wanted.values == found.values or computed:
                continue
            texts = any(value.startswith("'") for value in wanted.values | found.values)
            alike = {wanted.operator, found.operator} <= {"=", "like", "ilike"}
            if wanted.operator == found.operator or (texts and alike):
                return f"gold has {wanted}, the answer has {found}"
    return ""


def _grain_or_join(case: Case) -> str:
    if not (pair := case.shapes):
        return ""
    gold, given = pair.gold, pair.given
    found = [
        _difference("groups by", gold.groups, given.groups),
        _difference("joins on", map(_edge, gold.joins - given.joins), map(_edge, given.joins - gold.joins)),
        _difference("reads", gold.tables, given.tables),
        f"gold has {gold.outer} outer joins, the answer {given.outer}" if gold.outer != given.outer else "",
        f"only {'gold' if gold.distinct else 'the answer'} lists distinct rows"
        if gold.distinct != given.distinct
        else "",
        _distinct(gold.calculations - given.calculations, given.calculations - gold.calculations),
    ]
    return "; ".join(part for part in found if part)


def _formula(case: Case) -> str:
    if not (pair := case.shapes):
        return ""
    conditions = _difference("has the condition", map(str, pair.missing), map(str, pair.added))
    left_out = pair.left_out
    calculations = _difference("calculates", pair.gold.calculations - left_out, pair.given.calculations - left_out)
    return "; ".join(part for part in (conditions, calculations) if part)


def _output(case: Case) -> str:
    if not (pair := case.shapes) or pair.gold.outputs == pair.given.outputs:
        return ""
    return f"gold gives {_list(pair.gold.outputs)}, the answer gives {_list(pair.given.outputs)}"


def _order(case: Case) -> str:
    if not (pair := case.shapes):
        return ""
    if pair.gold.limit != pair.given.limit:
        return f"gold takes {pair.gold.limit or 'all'} rows, the answer {pair.given.limit or 'all'}"
    if pair.gold.order == pair.given.order:
        return ""
    gold, given = (_list(shape.order) or "nothing" for shape in (pair.gold, pair.given))
    return f"gold sorts by {gold}, the answer by {given}"


RULES: tuple[tuple[str, Rule], ...] = (
    ("error", _error),
    ("gave up", _gave_up),
    ("wrongly declined", _declined),
    ("wrongly answered", _answered),
    ("wrong output columns", _form),
    ("knowledge not opened", _not_opened),
    ("wrong table or column", _table_or_column),
    ("wrong value", _value),
    ("wrong grain or join", _grain_or_join),
    ("formula differs", _formula),
    ("wrong output columns", _output),
    ("order", _order),
)
KINDS: tuple[str, ...] = tuple(dict.fromkeys(kind for kind, _ in RULES))


def _distinct(missing: Iterable[str], added: Iterable[str]) -> str:
    """A calculation that is the same but for DISTINCT."""
    plain = {each.replace("DISTINCT ", ""): each for each in added}
    same = [(each, other) for each in sorted(missing) if (other := plain.get(each.replace("DISTINCT ", "")))]
    return f"gold calculates {same[0][0]}, the answer {same[0][1]}" if same else ""


def _difference(verb: str, gold: Iterable[str], given: Iterable[str]) -> str:
    wanted, found = set(gold), set(given)
    missing, added = wanted - found, found - wanted
    if missing and added:
        return f"gold {verb} {_list(missing)}, the answer {_list(added)}"
    if missing:
        return f"only gold {verb} {_list(missing)}"
    return f"only the answer {verb} {_list(added)}" if added else ""


def _without(wanted: Iterable[str], there: Iterable[str]) -> set[str]:
    """Those that are not there, where a column whose table is not sure is the same as one whose table is."""
    known = set(there)
    bare = {column.rpartition(".")[2] for column in known}
    unsure = {column for column in known if "." not in column}
    return {c for c in wanted if c not in known and c.rpartition(".")[2] not in (unsure if "." in c else bare)}


def _columns(names: Iterable[str], shape: Shape) -> set[str]:
    """Only what is a column of the shape: groups also hold calculations."""
    return {name for name in names if name in shape.columns}


def _edge(pair: frozenset[str]) -> str:
    return " = ".join(sorted(pair))


def _joined(what: str, why: str) -> str:
    return f"{what}: {why}" if why else what


def _text(data: Mapping[str, Any], name: str) -> str:
    return " ".join(str(data.get(name) or "").split())[:200]


def _list(names: Set[str] | Sequence[str]) -> str:
    """Names in words: a sequence in its order, a set by the alphabet."""
    found = sorted(names) if isinstance(names, Set) else names
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
