"""The SQL that counts the cells of many columns in one scan, and the SQL that lists values."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from okf_compiler.profiling.targets import Target

EXAMPLES = 3
MOST_VALUES = 5_000
"""Different values of a column that goes into the value index."""
LONGEST_VALUE = 80
"""Characters of a value that goes into the value index."""
ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)? ?(Z|[+-]\d{2}(:?\d{2})?)?)?$"


def aggregates(target: Target) -> list[sql.Composable]:
    """Seven aggregates for one target; those that do not apply are NULL."""
    none = sql.SQL("NULL")
    parts: list[sql.Composable] = [
        sql.SQL("count({})::text").format(target.value),
        sql.SQL("count(DISTINCT {})::text").format(target.value),
        sql.SQL("count(*) FILTER (WHERE {} = '')::text").format(target.text) if target.has_empty else none,
        sql.SQL(r"bool_or({} ~ '\S')::text").format(target.text) if target.has_empty else none,
    ]
    if target.kind == "text" and target.has_empty:
        return [*parts, *(_written_date(target, each) for each in ("min", "max")), none]
    if target.kind not in ("number", "date"):
        return [*parts, none, none, none]
    finite = sql.SQL(" FILTER (WHERE {})").format(target.finite) if target.finite else sql.SQL("")
    parts += [sql.SQL("{}({}){}::text").format(sql.SQL(each), target.value, finite) for each in ("min", "max")]
    specials = sql.SQL("string_agg(DISTINCT {}, ',') FILTER (WHERE NOT ({}))")
    return [*parts, specials.format(target.text, target.finite) if target.finite else none]


def _written_date(target: Target, end: str) -> sql.Composable:
    """The first or last of dates that stand in a text column as 2024-12-31, if everything in it is one."""
    return sql.SQL(
        r"CASE WHEN bool_and({text} ~ {date}) FILTER (WHERE {text} ~ '\S') "
        r"""THEN {end}({text} COLLATE "C") FILTER (WHERE {text} ~ '\S') END"""
    ).format(text=target.text, date=sql.Literal(ISO_DATE), end=sql.SQL(end))


def _clipped(target: Target) -> sql.Composable:
    """The value's text, cut one character above what is kept whole, so that a cut shows."""
    return sql.SQL("left({}, {})").format(target.text, sql.SQL(str(LONGEST_VALUE + 1)))


def values_of_all(targets: Sequence[Target], source: sql.Composable) -> sql.Composed:
    """All values of some columns in one scan: the column's place among them, the value, its rows."""
    names = [sql.Identifier(f"v{place}") for place in range(len(targets))]
    cells = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(_clipped(target), name) for target, name in zip(targets, names, strict=True)
    )
    # In the set of one column, GROUPING is 0 for it and 1 for the others.
    place = sql.SQL(" ").join(
        sql.SQL("WHEN GROUPING({}) = 0 THEN {}").format(name, sql.SQL(str(place))) for place, name in enumerate(names)
    )
    sets = sql.SQL(", ").join(sql.SQL("({})").format(name) for name in names)
    return sql.SQL(
        "SELECT place::text, value, amount::text FROM (SELECT CASE {} END AS place, coalesce({}) AS value, "
        "count(*) AS amount FROM (SELECT {} FROM {}) cells GROUP BY GROUPING SETS ({})) found WHERE value IS NOT NULL"
    ).format(place, sql.SQL(", ").join(names), cells, source, sets)


def elements(target: Target, source: sql.Composable) -> sql.Composed:
    """The different texts in the arrays of a column, and how many cells hold each; one more than are wanted."""
    return sql.SQL(
        "SELECT left(element, {cut}), count(*)::text FROM {source} CROSS JOIN LATERAL "
        "(SELECT DISTINCT element FROM {elements} AS inside(element)) e "
        "WHERE element IS NOT NULL GROUP BY 1 LIMIT {most}"
    ).format(
        cut=sql.SQL(str(LONGEST_VALUE + 1)),
        source=source,
        elements=target.elements,
        most=sql.SQL(str(MOST_VALUES + 1)),
    )


def first_values(target: Target, source: sql.Composable, every_once: bool) -> sql.Composed:
    """The most frequent values of a column that has many, equals in the order of their text."""
    limit = MOST_VALUES if target.kind == "text" and not every_once else EXAMPLES
    amount = sql.SQL("'1'" if every_once else "count(*)::text")
    group = sql.SQL("" if every_once else "GROUP BY value")
    order = sql.SQL("" if every_once else "count(*) DESC, ")
    filled = sql.SQL(r"value ~ '\S'" if target.has_empty else "value IS NOT NULL")
    return sql.SQL(
        'SELECT value, {} FROM (SELECT {} AS value FROM {}) cells WHERE {} {} ORDER BY {} value COLLATE "C" LIMIT {}'
    ).format(amount, _clipped(target), source, filled, group, order, sql.SQL(str(limit)))
