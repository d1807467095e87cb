"""The lenient verdict: right for a reader, whatever the benchmark's rule says, and what was forgiven.

Forgiven, each under its name in `differences`:

- `column order`; `extra columns` beside gold's, where there are equally many rows and gold's columns are the same;
- `letter case` and `spaces` around a text; `number as text` ('12' for 12); `date as text`; `date with time` (midnight
  for the day);
- `last digit`: numbers that differ by no more than one unit of the last decimal place that both show, and by no more
  than one part in a hundred. Whole numbers must be equal;
- `ties`: where gold sorts, rows with equal sort keys in another order, and other rows of the last tie under a LIMIT.

Never forgiven: another number of rows, NULL for a value, a percentage for a fraction, the order that was asked for,
and anything in a result of more than MOST_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import groupby, islice

from okf_agent.evaluation.results import Result, Row, Value, sort_key
from okf_agent.evaluation.scorers.model import Difference

MOST_ROWS = 20_000
"""Rows past which nothing is forgiven: near values in long results take minutes to find."""
MOST_MATCHINGS = 200
"""Ways to match columns that are tried."""
MOST_PAIRS = 200_000
"""Pairs of rows up to which near rows are searched for one by one, where sorting did not bring them together."""
NEAR = Decimal("0.01")
MIDNIGHT = " 00:00:00"


@dataclass(frozen=True)
class Keyed:
    """Gold without its LIMIT, each row with the values it was sorted by."""

    rows: tuple[Row, ...]
    keys: tuple[Row, ...]
    offset: int = 0


def forgive(
    gold: Result, predicted: Result, ordered: bool, keyed: Keyed | None = None
) -> tuple[Difference, ...] | None:
    """The names of what was forgiven, () where nothing had to be; None where the prediction is wrong, or too long.

    `keyed` is needed to forgive ties; without it rows must be gold's own.
    """
    if len(gold.rows) != len(predicted.rows) or len(gold.columns) > len(predicted.columns):
        return None
    if len(gold.rows) > MOST_ROWS:
        return None
    for places in islice(_matchings(gold, predicted), MOST_MATCHINGS):
        rows = tuple(tuple(row[place] for place in places) for row in predicted.rows)
        found = _rows(gold.rows, rows, ordered, keyed)
        if found is not None:
            return tuple(sorted(found | _of_columns(places, len(predicted.columns))))
    return None


def _of_columns(places: Sequence[int], width: int) -> set[Difference]:
    found: set[Difference] = set()
    if list(places) != sorted(places):
        found.add("column order")
    if width > len(places):
        found.add("extra columns")
    return found


def _matchings(gold: Result, predicted: Result) -> Iterator[tuple[int, ...]]:
    """Ways to give each of gold's columns one of the prediction's: as they stand first, then by name, then any."""
    width = len(gold.columns)
    first = tuple(range(width))
    yield first
    names = [name.lower() for name in predicted.columns]
    wanted = [name.lower() for name in gold.columns]
    if len(set(names)) == len(names) and len(set(wanted)) == width and set(wanted) <= set(names):
        yield tuple(names.index(name) for name in wanted)
    # Ties under a LIMIT may leave the columns with other values: then only the two ways above are tried.
    columns = [_column(predicted.rows, place) for place in range(len(predicted.columns))]
    sought = [_column(gold.rows, place) for place in range(width)]
    fitting = [
        [place for place, column in enumerate(columns) if _all_near(wanted, column) is not None] for wanted in sought
    ]
    yield from _choices(fitting, ())


def _choices(fitting: Sequence[Sequence[int]], taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(taken) == len(fitting):
        yield taken
        return
    for place in fitting[len(taken)]:
        if place not in taken:
            yield from _choices(fitting, (*taken, place))


def _column(rows: Sequence[Row], place: int) -> list[Value]:
    return sorted((row[place] for row in rows), key=_loose_key)


def _rows(gold: Sequence[Row], predicted: Sequence[Row], ordered: bool, keyed: Keyed | None) -> set[Difference] | None:
    """What had to be forgiven for the rows to be the same; None if they are not."""
    found = _in_order(gold, predicted) if ordered else _same_bag(gold, predicted)
    if found is not None or keyed is None:
        return found
    tied = _tied(keyed, predicted, ordered)
    return None if tied is None else tied | {"ties"}


def _tied(keyed: Keyed, predicted: Sequence[Row], ordered: bool) -> set[Difference] | None:
    """The same up to ties: in each run of equal keys any order, in the runs a LIMIT cuts any choice of rows."""
    found: set[Difference] = set()
    left = list(predicted)
    end = keyed.offset + len(predicted)
    place = 0
    for _, members in groupby(range(len(keyed.rows)), key=lambda number: keyed.keys[number]):
        tie = [keyed.rows[number] for number in members]
        start, place = place, place + len(tie)
        wanted = min(place, end) - max(start, keyed.offset)
        if wanted <= 0:
            continue
        part = left[:wanted] if ordered else left
        used = _inside(part, tie, wanted)
        if used is None:
            return None
        names, taken = used
        found |= names
        left = left[wanted:] if ordered else [row for number, row in enumerate(left) if number not in taken]
    return found if not left else None


def _inside(rows: Sequence[Row], tie: Sequence[Row], wanted: int) -> tuple[set[Difference], set[int]] | None:
    """`wanted` of the rows that are rows of a tie, each of its own: what was forgiven, and their places; None where
    there are not so many, or too many to search."""
    if len(rows) * len(tie) > MOST_PAIRS:
        return None
    free = list(tie)
    names: set[Difference] = set()
    taken: set[int] = set()
    for number, row in enumerate(rows):
        if len(taken) == wanted:
            break
        for other in free:
            near = _row_near(other, row)
            if near is not None:
                free.remove(other)
                names |= near
                taken.add(number)
                break
    return (names, taken) if len(taken) == wanted else None


def _in_order(gold: Iterable[Row], predicted: Iterable[Row]) -> set[Difference] | None:
    found: set[Difference] = set()
    for one, other in zip(gold, predicted, strict=True):
        near = _row_near(one, other)
        if near is None:
            return None
        found |= near
    return found


def _same_bag(gold: Sequence[Row], predicted: Sequence[Row]) -> set[Difference] | None:
    """Both sorted, texts before numbers, since numbers may be off; else row by row where there are not too many."""

    def key(row: Row) -> tuple[object, ...]:
        loose = [_loose_key(value) for value in row]
        return ([each for each in loose if each[0] != 0], [each for each in loose if each[0] == 0])

    found = _in_order(sorted(gold, key=key), sorted(predicted, key=key))
    if found is not None:
        return found
    paired = _inside(predicted, gold, len(gold))
    return paired[0] if paired else None


def _all_near(one: Sequence[Value], other: Sequence[Value]) -> set[Difference] | None:
    return _in_order(zip(one), zip(other))


def _row_near(gold: Row, predicted: Row) -> set[Difference] | None:
    found: set[Difference] = set()
    for one, other in zip(gold, predicted, strict=True):
        if one == other:
            continue
        name = _near(one, other)
        if name is None:
            return None
        found.add(name)
    return found


def _near(gold: Value, predicted: Value) -> Difference | None:
    """The name of a difference that does not matter; None if it does."""
    if isinstance(gold, str) and isinstance(predicted, str):
        if gold.strip() == predicted.strip():
            return "spaces"
        if gold.strip().casefold() == predicted.strip().casefold():
            return "letter case"
    elif (one := _number(gold)) is not None and (other := _number(predicted)) is not None:
        if one == other:
            return "number as text"
        return "last digit" if _last_digit(one, other) else None
    day = _day(gold)
    if day is None or day != _day(predicted):
        return None
    return "date as text" if isinstance(gold, str) or isinstance(predicted, str) else "date with time"


def _last_digit(one: Decimal, other: Decimal) -> bool:
    places = min(_places(one), _places(other))
    apart = abs(one - other)
    return places > 0 and apart <= Decimal(1).scaleb(-places) and apart <= NEAR * max(abs(one), abs(other))


def _places(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _number(value: Value) -> Decimal | None:
    """A number, also one that stands in a text."""
    if isinstance(value, str):
        text = value.strip()
        if not text[:1].isdigit() and text[:1] not in ("-", "+", "."):
            return None
        try:
            number = Decimal(text)
        except InvalidOperation:
            return None
        return number if number.is_finite() else None
    return value if isinstance(value, Decimal) else None


def _day(value: Value) -> str | None:
    """The day of a date, a text that reads as one, or a timestamp at midnight."""
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, tuple) and value[0] in ("date", "timestamp", "timestamptz"):
        text = str(value[1])
    else:
        return None
    day, time = text[:10], text[10:]
    is_day = len(day) == 10 and day[4] == day[7] == "-" and day.replace("-", "").isdigit()
    return day if is_day and (not time or time.startswith(MIDNIGHT)) else None


def _loose_key(value: Value) -> tuple[int, object, str]:
    """As `sort_key`, but texts that mean a number or a day, and letter case, sort with what they mean."""
    number = _number(value)
    if number is not None:
        return (0, number, "")
    day = _day(value)
    if day is not None:
        return (1, 0, day)
    if isinstance(value, str):
        return (1, 0, value.strip().casefold())
    return sort_key(value)
