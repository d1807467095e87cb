"""Which results are drawn as bars, and how the bars look."""

from __future__ import annotations

import pytest

from okf_agent.results.chart import bars, draw
from okf_agent.sql.database import Cut, QueryResult

MONTHS = [("2025-01", "10"), ("2025-02", "20"), ("2025-03", "5")]


def result(columns: dict[str, str], rows: list[tuple[str | None, ...]], cut: Cut = Cut()) -> QueryResult:  # noqa: B008
    return QueryResult(tuple(columns), tuple(columns.values()), tuple(rows), len(rows), cut, 0.0)


@pytest.mark.parametrize(
    ("columns", "rows", "drawn", "forced"),
    [
        ({"month": "text", "n": "bigint"}, MONTHS, True, True),
        ({"day": "date", "n": "numeric(10,2)"}, [("2025-01-01", "1.5"), ("2025-01-02", "2.50")], True, True),
        ({"year": "integer", "n": "bigint"}, [("2024", "1"), ("2025", "2")], True, True),
        ({"id": "integer", "n": "bigint"}, [("1", "1"), ("2", "2")], False, True),
        ({"n": "bigint"}, [("52",)], False, False),
        ({"city": "text"}, [("a",), ("b",)], False, False),
        ({"city": "text", "n": "bigint"}, [("a", "1")], False, False),
        ({"city": "text", "n": "bigint"}, [("a", "0"), ("b", "0")], False, False),
        ({"city": "text", "n": "bigint"}, [("a", "1"), ("a", "2")], False, True),
        ({"city": "text", "n": "bigint"}, [("a", None), ("b", "2"), ("c", "3")], False, True),
        ({"city": "text", "n": "float8", "x": "text"}, [("a", "1", "x"), ("b", "2", "y")], False, False),
        ({"city": "text", "n": "double precision"}, [("a", "NaN"), ("b", "Infinity")], False, False),
        ({"city": "text", "n": "double precision"}, [("a", "1e308"), ("b", "1e309")], False, False),
        ({"city": "text", "n": "bigint"}, [(f"c{i}", "3") for i in range(41)], False, True),
        ({"a": "text", "b": "text", "n": "bigint"}, [("a", "b", "1"), ("c", "d", "2")], False, True),
        ({"city": "text", "n": "bigint"}, [], False, False),
    ],
)
def test_a_chart_helps(columns: dict[str, str], rows: list[tuple[str | None, ...]], drawn: bool, forced: bool) -> None:
    found = result(columns, rows)
    assert (bars(found) is not None, bars(found, force=True) is not None) == (drawn, forced)


def test_a_cut_result_is_not_drawn_unasked() -> None:
    cut = result({"month": "text", "n": "bigint"}, MONTHS, Cut(rows=True, seen=9))
    assert bars(cut) is None
    assert bars(cut, force=True) is not None


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_bars_are_proportional_and_fit(width: int, ascii_only: bool) -> None:
    rows: list[tuple[str | None, ...]] = [*MONTHS, ("a very long label that goes on and on, 日本語", "1")]
    drawn = bars(result({"month": "text", "n": "bigint"}, rows))
    assert drawn
    lines = [*draw(drawn, width, ascii_only=ascii_only)]
    assert all(line.cell_len <= width for line in lines)
    lengths = [sum(char in "█#" for char in line.plain) for line in lines[1:]]
    assert lengths[1] == max(lengths) and abs(lengths[0] - lengths[1] / 2) <= 1
    assert not ascii_only or all(line.plain.split("日")[0].isascii() for line in lines)
    assert [line.plain.split()[-1] for line in lines[1:]] == ["10", "20", "5", "1"]


def test_bars_below_zero_end_at_the_axis() -> None:
    drawn = bars(result({"month": "text", "n": "integer"}, [("a", "-10"), ("b", "10"), ("c", "0")]))
    assert drawn
    below, above, nothing = (line.plain for line in [*draw(drawn, 60)][1:])
    assert below.rindex("█") < above.index("█")
    assert "█" not in nothing


@pytest.mark.parametrize("large", ["1.7e308", "5e-324", "1e-310", "1e300"])
def test_numbers_at_the_ends_of_what_a_float_holds_have_their_bars(large: str) -> None:
    found = bars(result({"city": "text", "n": "double precision"}, [("a", large), ("b", f"-{large}")]))
    assert found is not None
    up, down = (line.plain for line in [*draw(found, 80)][1:])
    assert up.count("█") == down.count("█") > 10


def test_labels_are_inert() -> None:
    drawn = bars(result({"city": "text", "n": "integer"}, [("\x1b[31mred", "1"), (None, "2")]))
    assert drawn
    text = "\n".join(line.plain for line in draw(drawn, 60))
    assert "\x1b" not in text and "NULL" in text
