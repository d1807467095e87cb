"""The concepts that match the question in one prompt, for a model that cannot browse: no tools, one reply.

Read it downwards: `rank` scores every table and rule, `choose` takes what the question needs and what that needs
in turn, `render` writes it: schema first, then joins, then rules, then what to do.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from okf_agent import cards, prompts, ranking
from okf_agent.cards import Cards, ColumnCard, RuleCard, TableCard
from okf_agent.knowledge import Knowledge, Sources
from okf_compiler.settings import UserError

MAX_TOKENS = 1500
"""Tokens of schema and rules together, about: a small model reads 60 a second on two cores."""
CHARS_PER_TOKEN = 3.3
"""Measured on SQL and English with Qwen's tokenizer, on the safe side."""
MAX_RULES = 3
"""Rules taken for their score alone; those that the question names, and dependencies, come besides."""
MAX_TABLES = 2
"""Tables taken for their score where neither a rule nor the question names one."""
NEAR = 0.55
"""A rule or table counts as a match from this share of the best score on."""
PLAIN = 0.5
"""What a column counts for its table if its name is an ordinary word, which a rule may use without meaning it."""
MEANING_CHARS = 110
"""Of a column's meaning, which may be cut; a rule never is."""

_TYPE_FIRST = re.compile(
    r"\A(?:an?\s+)?(?:text|varchar|character varying|char|integer|bigint|smallint|numeric|decimal|real|float|double|"
    r"boolean|date|timestamp|time|jsonb?|uuid|serial)\b(?:\s*\([^)]*\))?(?:\s+column)?\s*[.,:]\s*",
    re.IGNORECASE,
)
_NO_HELP = re.compile(r", (?:not null|primary key \(part\)|default .*|generated: .*)")
_REFERENCE = re.compile(r"\A(?:an?\s+)?\w+ referencing \w+\([\w, ]+\)\s*[.;:]?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Scores:
    """How near each concept is to the question, by path; what shares no word with it is not there."""

    tables: Mapping[str, float]
    rules: Mapping[str, float]
    named_rules: tuple[str, ...]
    """Rules whose whole title the question uses."""
    named_tables: frozenset[str]


@dataclass(frozen=True)
class Chosen:
    """What goes into the prompt, in the order of the prompt."""

    tables: tuple[TableCard, ...]
    """With the columns that are shown."""
    rules: tuple[RuleCard, ...]


def prepare(question: str, sources: Sources, *, max_tokens: int = MAX_TOKENS) -> Knowledge:
    """The prompt for one question, and no tools.

    Raises:
        UserError: there is no bundle, or it cannot be read.
    """
    if sources.bundle is None or not sources.bundle.is_dir():
        raise UserError(
            f"There is no bundle of {sources.database}. Make one with `okf-compiler compile {sources.database}`."
        )
    known = cards.read(sources.bundle)
    scores = rank(question, known)
    chosen = choose(known, question, scores, max_tokens)
    schema, rules = render(chosen)
    return Knowledge("pack", (schema,), reply="sql", hints=rules)


# --- Rank


def rank(question: str, known: Cards) -> Scores:
    """Score tables and rules by the words they share with the question.

    Where the question names rules, others count only if a word of their title is said besides: not in the names
    of those rules, nor as the name of a table, which most rules about it have in their title.
    """
    asked = ranking.words(question)
    named = tuple(path for path, rule in known.rules.items() if _is_named(rule, question, asked))
    told = {stem for path in named for stem in ranking.words(known.rules[path].title)}
    told |= {stem for table in known.tables.values() for stem in ranking.words(table.name)}
    rest = set(asked) - told
    texts = {
        path: _rule_words(rule)
        for path, rule in known.rules.items()
        if path not in named and (not named or rest & set(ranking.words(rule.title)))
    }
    return Scores(
        tables=ranking.bm25(asked, {path: _table_words(table) for path, table in known.tables.items()}),
        rules=ranking.bm25(asked, texts),
        named_rules=named,
        named_tables=frozenset(p for p, t in known.tables.items() if _beside(ranking.words(t.name), asked)),
    )


def _rule_words(rule: RuleCard) -> list[str]:
    """A title counts three times, since it is what people say."""
    return ranking.words(rule.title) * 3 + ranking.words(f"{rule.description} {rule.definition}")


def _table_words(table: TableCard) -> list[str]:
    names = ranking.words(table.name) * 4
    for column in table.columns + table.fields:
        names += ranking.words(column.name) * 2 + ranking.words(column.meaning)
    return names


def _is_named(rule: RuleCard, question: str, asked: list[str]) -> bool:
    """Whether the words of the title stand side by side in the question, or its abbreviation does."""
    title, _, rest = rule.title.partition("(")
    short = rest.partition(")")[0]
    abbreviated = short.isupper() and re.search(rf"\b{re.escape(short)}\b", question) is not None
    return abbreviated or _beside(ranking.words(title), asked)


def _beside(stems: list[str], asked: list[str]) -> bool:
    places = range(len(asked) - len(stems) + 1)
    return bool(stems) and any(asked[i : i + len(stems)] == stems for i in places)


# --- Choose


def choose(known: Cards, question: str, scores: Scores, max_tokens: int) -> Chosen:
    """The rules that match and those they build on; the tables they use, those that match, and the joins between.

    Where all of that is too long, columns that neither a rule nor the question speaks of lose their meanings,
    then tables are left out, the least needed first.
    """
    rules = _with_dependencies(known, _matching_rules(scores))
    paths = _connected(known, _matching_tables(known, scores, rules))
    needed = [known.tables[path] for path in paths]
    told = " ".join([question, *(rule.definition for rule in rules)])
    for tables in (needed, [_trimmed(table, told) for table in needed]):
        chosen = Chosen(_in_order(known, tables), tuple(rules))
        if size(chosen) <= max_tokens:
            return chosen
    while len(tables) > 1 and size(Chosen(tuple(tables), tuple(rules))) > max_tokens:
        tables = tables[:-1]
    return Chosen(_in_order(known, tables), tuple(rules))


def _in_order(known: Cards, tables: Iterable[TableCard]) -> tuple[TableCard, ...]:
    """The bundle's order, so that prompts about the same tables begin alike and a server's cache helps."""
    order = list(known.tables)
    return tuple(sorted(tables, key=lambda table: order.index(table.path)))


def _trimmed(table: TableCard, told: str) -> TableCard:
    """The table without the meanings, and without the JSON fields, that share no word with `told`."""
    heard = set(ranking.words(told))
    speaks = [(c, bool(heard & set(ranking.words(c.name)))) for c in table.columns]
    fields = tuple(f for f in table.fields if heard & set(ranking.words(f.name)[1:]))
    return replace(table, columns=tuple(c if s else replace(c, meaning="") for c, s in speaks), fields=fields)


def _matching_rules(scores: Scores) -> list[str]:
    """Rules that the question names; then the nearest others, fewer of them the more are named."""
    return [*scores.named_rules, *_near(scores.rules)[: max(0, MAX_RULES - 2 * len(scores.named_rules))]]


def _near(scores: Mapping[str, float]) -> list[str]:
    """What comes near the best, nearest first."""
    best = max(scores.values(), default=0.0)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return [path for path, score in ordered if score >= NEAR * best]


def _with_dependencies(known: Cards, paths: Iterable[str]) -> list[RuleCard]:
    """The rules, each behind those it builds on."""
    done: dict[str, RuleCard | None] = {}

    def add(path: str) -> None:
        rule = known.rules.get(path)
        if path in done or rule is None:
            return
        done[path] = None  # on the way: a circle ends here
        for other in rule.depends_on:
            add(other)
        del done[path]
        done[path] = rule

    for path in paths:
        add(path)
    return [rule for rule in done.values() if rule]


def _matching_tables(known: Cards, scores: Scores, rules: Sequence[RuleCard]) -> list[str]:
    """Tables in order of need: those the rules use, those the question names, else those that match it."""
    weights: dict[str, float] = {}
    for rule in rules:
        for name, paths in _uses(known, rule):
            if len(paths) == 1:
                weights[paths[0]] = weights.get(paths[0], 0.0) + (PLAIN if name.isalpha() else 1.0)
    needed = {path: None for path, weight in weights.items() if weight >= 1.0}
    for rule in rules:
        paths = [path for path in rule.tables if path in known.tables]
        if paths and not any(path in needed for path in paths):
            needed[max(paths, key=lambda path: scores.tables.get(path, 0.0))] = None
    near = _near(scores.tables)
    needed |= dict.fromkeys(path for path in near if path in scores.named_tables)
    return list(needed) or near[:MAX_TABLES]


def _uses(known: Cards, rule: RuleCard) -> Iterator[tuple[str, list[str]]]:
    """Each column or table that a rule uses, with the tables it may be in: those that have such a column."""
    columns = {column.partition(".")[0] for names in rule.tables.values() for column in names}
    for name in sorted(columns):
        yield name, [path for path, names in rule.tables.items() if _has(known, path, names, name)]
    for path, names in rule.tables.items():
        if path in known.tables and not names:
            yield path, [path]


def _has(known: Cards, path: str, names: Iterable[str], column: str) -> bool:
    return path in known.tables and any(name.partition(".")[0] == column for name in names)


def _connected(known: Cards, paths: list[str]) -> list[str]:
    """The tables with those between them, so that each can be joined with one before it."""
    joined = paths[:1]
    for path in paths[1:]:
        if path not in joined:
            joined += [step for step in _way(known, joined, path) if step not in joined]
    return joined


def _way(known: Cards, start: list[str], goal: str) -> list[str]:
    """The fewest tables from any of `start` to `goal`; the goal alone where no joins lead there."""
    queue = deque([[path] for path in start])
    seen = set(start)
    while queue:
        way = queue.popleft()
        if way[-1] == goal:
            return way[1:]
        for other, _ in known.tables[way[-1]].joins:
            if other in known.tables and other not in seen:
                seen.add(other)
                queue.append([*way, other])
    return [goal]


def size(chosen: Chosen) -> int:
    """Tokens of what is chosen, about."""
    return int(sum(map(len, render(chosen))) / CHARS_PER_TOKEN) + 1


# --- Render


def render(chosen: Chosen) -> tuple[str, str]:
    """The knowledge as the model reads it: the schema for the instructions, the rules for beside the question.

    Apart, because a small model follows best what stands nearest the question, and a server that has read a
    schema once need not read it again for the next question.
    """
    schema = prompts.load(
        "pack.md",
        schema="\n\n".join(_create_table(table) for table in chosen.tables),
        joins="\n".join(_joins(chosen.tables)) or "none",
    )
    rules = "\n".join(f"- {rule.title}: {_plain(rule.definition)}" for rule in chosen.rules)
    return schema, prompts.load("pack_rules.md", rules=rules) if rules else ""


def _create_table(table: TableCard) -> str:
    lines = [f"CREATE TABLE {table.name} ("]
    for column in table.columns:
        lines.append(_line(f"{column.name} {_type(column)},", column))
        fields = (field for field in table.fields if field.name.startswith(column.name + "->"))
        lines += [_line(f"  -- {field.name}", field, mark=":") for field in fields]
    return "\n".join([*lines, ");"])


def _type(column: ColumnCard) -> str:
    """The type, an enum's labels and `primary key`; what else the schema says helps no query."""
    kept = _NO_HELP.sub("", column.type).replace("USER-DEFINED", "enum")
    return kept.replace("timestamp without time zone", "timestamp")


def _line(start: str, column: ColumnCard, mark: str = " --") -> str:
    meaning = _short(column.meaning)
    return f"  {start}{mark} {meaning}" if meaning else f"  {start}"


def _short(meaning: str) -> str:
    """A meaning without the type and the reference that the schema says already, in one line."""
    text = " ".join(meaning.split())
    text = _REFERENCE.sub("", _TYPE_FIRST.sub("", text))
    return text if len(text) <= MEANING_CHARS else text[:MEANING_CHARS].rsplit(" ", 1)[0] + " …"


def _joins(tables: Iterable[TableCard]) -> Iterator[str]:
    """The conditions between the chosen tables, each once."""
    paths = {table.path for table in tables}
    conditions = [condition for table in tables for path, condition in table.joins if path in paths]
    return iter(dict.fromkeys(conditions))


def _plain(definition: str) -> str:
    """A definition in one line; its LaTeX as formulas of PostgreSQL, which small models copy as they stand.

    >>> _plain(r"CA = \\frac{\\sum amount_cents}{100}, with \\text{cost} / 3")
    'CA = (sum of amount_cents) / 100.0, with cost / 3.0'
    """
    text = " ".join(definition.split())
    text = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    while (simpler := re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1) / (\2)", text)) != text:
        text = simpler
    for latex, plain in (("\\times", "*"), ("\\sum", "sum of"), ("\\geq", ">="), ("\\leq", "<=")):
        text = text.replace(latex, plain)
    text = re.sub(r"/ \((\d+)\)", r"/ \1", text)
    return re.sub(r"/ (\d+)\b(?!\.\d)", r"/ \1.0", text)
