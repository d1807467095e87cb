"""Measure each way of giving a model knowledge with a reader who makes no mistake, and write the README's table.

    OKF_TEST_DATA=DIR python benchmarks/knowledge_modes.py [--profiles bundles/profiles] [--write]

The shop, three databases of LiveSQLBench-Base-Lite and three of Base-Full; the reader, the questions and how tokens are
counted are those of `navigation.py`. The first prompt is the first request: instructions, question, tools. With
`--profiles`, what `okf-compiler profile` measured is shown too; a database without a folder there has no
content to measure. `--write` puts the table into the README.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from navigation import Cost, ask, mode
from navigation_sets import SHOP, Place, Task, documents_in, place, shop_tasks, suite_tasks
from needs import test_data

from okf_agent.cell import KNOWLEDGE

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- knowledge modes: made by benchmarks/knowledge_modes.py -->", "<!-- end of knowledge modes -->"
DATABASES = {
    "livesqlbench-base-lite": ("alien", "disaster", "museum"),
    "livesqlbench-base-full-v1": ("disaster_relief", "households", "solar_panel"),
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--profiles", type=Path, help="a folder of profiles, one folder a database")
    arguments.add_argument("--write", action="store_true", help="put the table into the README")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="okf-benchmark-") as folder:
        costs = {
            here.documents.name: (here, {name: _measure(name, tasks, here) for name in KNOWLEDGE})
            for here, tasks in _places(test_data(), given.profiles, Path(folder))
        }
    text = table(costs)
    print(text)
    if given.write:
        readme = README.read_text(encoding="utf-8")
        before, _, rest = readme.partition(BEGIN)
        _, _, after = rest.partition(END)
        README.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8", newline="\n")


def _places(data: Path, profiles: Path | None, out: Path) -> list[tuple[Place, list[Task]]]:
    """Every database with its questions."""

    def made(root: Path, name: str) -> Place:
        return place(documents_in(root)[name], out / name, profiles / name if profiles else None)

    found = [(made(SHOP.parent, "shop"), shop_tasks())]
    for suite, names in DATABASES.items():
        tasks = suite_tasks(data / suite)
        found += [(made(data / suite, name), tasks[name]) for name in names]
    return found


def _measure(name: str, tasks: Sequence[Task], here: Place) -> list[Cost]:
    return [ask(task, here, mode(name), set()) for task in tasks]


def table(costs: Mapping[str, tuple[Place, Mapping[str, Sequence[Cost]]]]) -> str:
    """A row a database, a column a mode: tokens of the first prompt, all tokens of a question, calls; means."""
    lines = [f"| | questions | {' | '.join(KNOWLEDGE)} |", f"|---|---|{'---|' * len(KNOWLEDGE)}"]
    for name, (here, by_mode) in costs.items():
        cells = [_cell(by_mode[each]) for each in KNOWLEDGE]
        label = f"{name} *" if here.profiles else name
        lines.append(f"| {label} | {len(next(iter(by_mode.values())))} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(costs: Sequence[Cost]) -> str:
    first, whole = (round(statistics.fmean(getattr(cost, what) for cost in costs)) for what in ("first", "input"))
    return f"{first:,} / {whole:,} / {statistics.fmean(cost.calls for cost in costs):.1f}"


if __name__ == "__main__":
    main()
