"""What a bundle's rules and tables lead to: what a rule builds on, the tables it uses, the joins between tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from okf_agent.bundles.cards import Cards, RuleCard


def with_dependencies(known: Cards, paths: Iterable[str]) -> list[RuleCard]:
    """The rules, each behind those it builds on."""
    done: dict[str, RuleCard] = {}
    seen: set[str] = set()
    stack = [(path, False) for path in reversed([*paths])]
    while stack:  # a chain may be longer than Python calls may be deep
        path, is_ready = stack.pop()
        rule = known.rules.get(path)
        if rule is None:
            continue
        if is_ready:
            done[path] = rule
        elif path not in seen:
            seen.add(path)  # on the way: a circle ends here
            stack.append((path, True))
            stack += [(other, False) for other in reversed(rule.depends_on)]
    return [*done.values()]


def uses(known: Cards, rule: RuleCard) -> Iterator[tuple[str, list[str]]]:
    """Each column or table that a rule uses, with the tables it may be in: those that have such a column."""
    columns = {column.partition(".")[0] for names in rule.tables.values() for column in names}
    for name in sorted(columns):
        yield name, [path for path, names in rule.tables.items() if _has(known, path, names, name)]
    for path, names in rule.tables.items():
        if path in known.tables and not names:
            yield path, [path]


def _has(known: Cards, path: str, names: Iterable[str], column: str) -> bool:
    return path in known.tables and any(name.partition(".")[0] == column for name in names)


def connected(known: Cards, paths: list[str]) -> list[str]:
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
