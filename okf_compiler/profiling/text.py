"""What was measured, in the words that a model or a person reads. What comes from the data is quoted, on one line."""

from __future__ import annotations

from okf_compiler.inert import inert
from okf_compiler.profiling.facts import ColumnProfile, ForeignKeyProfile, Profile, TableProfile

SHOWN_CHARS = 80
_SEPARATORS = {"\n": "a line break", "\t": "a tab"}


def note(profile: Profile) -> str:
    """What has to stand beside anything that comes from a profile."""
    return (
        f"Counts, ranges and examples were measured in the data at {profile.measured_at}; the data may have changed "
        "since. They help to write a query and are never an answer: count in the database."
    )


def facts(column: ColumnProfile) -> str:
    """One column in one line; "" for a column of an empty table.

    >>> facts(ColumnProfile("status", "text", 100, 10, 5, 3, False, False, False, ("open", "it's", "shut")))
    "10 of 100 rows NULL, 5 rows ''; both stand for a missing value: exclude both; 3 different; e.g. 'open', 'it''s', \
'shut'"
    """
    parts = [*_missing(column), *_spread(column)]
    if column.list_separator is not None:
        parts.append(_list_advice(column))
    if column.examples and not (column.only_value or _is_range_enough(column)):
        parts.append("e.g. " + ", ".join(quoted(_unpadded(column, value)) for value in column.examples))
    if _is_padded(column):
        parts.append("stored with spaces at the end: compare rtrim() of it")
    if column.sampled and parts:
        parts.insert(0, f"in a sample of {column.rows:,} rows")
    return "; ".join(parts)


def rows(table: TableProfile) -> str:
    """How many rows a table had.

    >>> rows(TableProfile("t", 10_000_000, 200_000)), rows(TableProfile("t", 1))
    ('10,000,000 rows', '1 row')
    >>> rows(TableProfile("t", 3, row_security=True))
    '3 rows, as far as row security lets the measuring role see them'
    """
    about = "about " if table.rows_estimated else ""
    seen = ", as far as row security lets the measuring role see them" * table.row_security
    return f"{about}{table.rows:,} row{'s' * (table.rows != 1)}{seen}"


def join_facts(key: ForeignKeyProfile) -> str:
    """What a join along a foreign key leaves out; "" where every row on both sides has a partner.

    >>> join_facts(ForeignKeyProfile("orders", ("c",), "customers", ("id",), 25, 100, 3, 10))
    '25.0% of orders have no row in customers; 30.0% of customers have no row in orders'
    """
    sides = (
        (key.without_partner, key.rows, key.table, key.other_table, key.sampled),
        (key.unreferenced, key.other_rows, key.other_table, key.table, False),
    )
    return "; ".join(
        f"{share(alone, rows)} of {'a sample of ' * sampled}{table} have no row in {other}"
        for alone, rows, table, other, sampled in sides
        if alone
    )


def share(part: int, whole: int) -> str:
    """A share in percent that never rounds something to nothing, nor most to all.

    >>> share(1, 100_000), share(99_999, 100_000), share(1, 3), share(3, 3)
    ('less than 0.1%', 'more than 99.9%', '33.3%', 'all')
    """
    if part == whole:
        return "all"
    percent = 100 * part / whole
    if percent < 0.1:
        return "less than 0.1%"
    return "more than 99.9%" if percent > 99.9 else f"{percent:.1f}%"


def quoted(value: str) -> str:
    r"""A value as SQL writes it, on one line; a long one is cut, and ends in … outside of its quotes.

    >>> quoted("O'Brien"), quoted("a\nb"), quoted("x" * 90)[-5:]
    ("'O''Brien'", "'a\\nb'", "xxx'…")
    """
    cut = value[:SHOWN_CHARS]
    return "'" + inert(cut).replace("'", "''") + "'" + "…" * (len(cut) < len(value))


def _missing(column: ColumnProfile) -> list[str]:
    """NULLs and empty strings, and what to do about them."""
    if not column.rows:
        return []
    if column.blank:
        kinds = ["NULL"] * bool(column.nulls) + ["''"] * bool(column.empty)
        return [f"holds nothing: every row is {' or '.join(kinds) or 'white space'}"]
    parts = [f"{column.nulls:,} of {column.rows:,} rows NULL"] if column.nulls else []
    if column.empty:
        parts.append(f"{column.empty:,} row{'s' * (column.empty != 1)} ''")
    if not parts:
        return ["no NULL"]
    if not column.empty:
        return parts
    advice = "both stand for a missing value: exclude both" if column.nulls else "'' stands for a missing value"
    return [", ".join(parts), advice]


def _spread(column: ColumnProfile) -> list[str]:
    """How different the values are, and between which bounds."""
    if column.blank or not column.rows:
        return []
    if column.only_value:
        value = column.examples[0] if column.examples else column.low
        parts = [f"one value only{'' if value is None else ': ' + quoted(_unpadded(column, value))}"]
    elif column.unique:
        parts = ["unique"]
    elif column.sampled and column.distinct == column.filled:
        parts = ["no value twice"]
    else:
        parts = [f"{column.distinct:,} different"]
    if column.low is not None and column.low != column.high:
        parts.append(f"from {inert(column.low)} to {inert(column.high or '')}")
    if column.specials:
        parts.append(f"also holds {', '.join(map(quoted, column.specials))}")
    return parts


def _is_range_enough(column: ColumnProfile) -> bool:
    """Three of many numbers between known bounds say nothing."""
    return column.low is not None and (column.unique or column.distinct > len(column.examples))


def _is_padded(column: ColumnProfile) -> bool:
    """Whether values were filled up with spaces, as a char(n) that became a text; PostgreSQL's own char(n) ignores
    them."""
    return any(value.endswith(" ") for value in column.examples) and not column.type.startswith("character(")


def _unpadded(column: ColumnProfile, value: str) -> str:
    return value.rstrip(" ") if _is_padded(column) else value


def _list_advice(column: ColumnProfile) -> str:
    separator = column.list_separator or ""
    shown = _SEPARATORS.get(separator, quoted(separator))
    return f"one cell may hold a list, separated by {shown}: match one with LIKE '%…%', not ="
