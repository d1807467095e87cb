"""What the README says of benchmarks is what they make."""

from __future__ import annotations

import re
from pathlib import Path

from okf_agent.cell import KNOWLEDGE

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BENCHMARK = (Path(__file__).parents[1] / "benchmarks" / "knowledge_modes.py").read_text(encoding="utf-8")


def test_the_table_of_modes_is_of_today_s_modes_and_databases() -> None:
    begin, end = (re.search(rf"^{name} = .*$", BENCHMARK, re.M) for name in ("BEGIN, END", "DATABASES"))
    assert begin and end
    marks = re.findall(r"<!-- .*? -->", begin[0])
    table = README.split(marks[0])[1].split(marks[1])[0].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert rows[0] == ["", "questions", *KNOWLEDGE]
    databases = re.findall(r'"(\w+)"', BENCHMARK[end.end() : BENCHMARK.index("}", end.end())])
    assert [row[0].removesuffix(" *") for row in rows[2:]] == ["shop", *databases]
    for row in rows[2:]:
        assert row[1].isdecimal()
        for cell in row[2:]:
            first, whole, calls = re.fullmatch(r"([\d,]+) / ([\d,]+) / (\d+\.\d)", cell).groups()  # type: ignore[union-attr]
            assert 0 < int(first.replace(",", "")) <= int(whole.replace(",", "")) and float(calls) >= 1
