"""What the README says of benchmarks is what they make."""

from __future__ import annotations

import re
import sys
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


def test_no_benchmark_hides_a_module_of_the_standard_library() -> None:
    # A script's folder comes first on the path: a `profile.py` there breaks `import cProfile` in all its neighbours.
    names = {script.stem for script in (Path(__file__).parents[1] / "benchmarks").glob("*.py")}
    assert names and not names & sys.stdlib_module_names


def test_the_results_name_scripts_that_are_there() -> None:
    folder = Path(__file__).parents[1] / "benchmarks"
    named = set(re.findall(r"`(\w+\.py)", (folder / "RESULTS.md").read_text(encoding="utf-8")))
    assert len(named) > 10
    assert not {name for name in named if not (folder / name).is_file()}
