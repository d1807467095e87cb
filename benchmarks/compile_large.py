"""A made database of 10,000 tables, 150,000 columns and 20,000 rules: compiled, indexed, validated, compiled again.

    python benchmarks/compile_large.py [TABLES] [--double] [--profile]

Every run is a process of its own, so that its memory is its own. `--double` runs twice the size as well and says how
the time grows. The names and texts are made from a fixed seed; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import platform
import pstats
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
AREAS = (
    "order customer invoice payment shipment product stock supplier contract employee salary project ticket visit "
    "patient sensor reading flight booking claim policy account loan trade meter plant course exam parcel vehicle "
    "route campaign lead review warehouse batch recipe permit tenant lease asset license server incident release "
    "survey donor grant fleet"
)
PARTS = (
    "header line item status history event detail note audit rate limit target plan result summary snapshot link "
    "group owner member version archive export import change check error score rank"
)
QUALITIES = (
    "total open closed first last average planned actual net gross daily monthly late early active blocked "
    "expected final partial yearly weekly approved rejected pending local"
)
MEASURES = (
    "amount count price date code level ratio weight duration quantity reason label channel source region state "
    "category volume share margin cost fee index grade"
)
TYPES = ("numeric(12,2)", "integer", "text", "timestamp without time zone", "boolean", "jsonb")
COLUMNS, RULES_PER_TABLE = 15, 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="?", type=int, default=10_000)
    parser.add_argument("--double", action="store_true", help="twice the size as well")
    parser.add_argument("--profile", action="store_true", help="where the time of the first compile goes")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one or options.profile:
        measure(options.tables, options.profile)
        return
    print(f"{platform.platform()}, Python {platform.python_version()}")
    sizes = [options.tables, *([2 * options.tables] if options.double else [])]
    totals = []
    for size in sizes:
        command = [sys.executable, __file__, str(size), "--one"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        *text, total = output.splitlines()
        print("\n".join(text))
        totals.append(float(total))
    if len(totals) == 2:
        print(f"twice the size takes {totals[1] / totals[0]:.2f} times as long")


def measure(tables: int, profile: bool) -> None:
    """Compile a made database of this size and print what each step took."""
    from okf_compiler.compile import compile_database
    from okf_compiler.documents import find_documents
    from okf_compiler.indexes import INDEX_TOKENS
    from okf_compiler.readers import livesqlbench
    from okf_compiler.settings import load_settings
    from okf_compiler.tokens import tokens
    from okf_compiler.validate import validate

    with tempfile.TemporaryDirectory(prefix="okf-benchmark-") as place:
        root = Path(place)
        write(root / "large", tables)
        documents = find_documents(load_settings(root, {"agent": {"raw_docs": str(root)}}), "large")
        out = root / "bundles" / "large"
        if profile:
            with cProfile.Profile() as profiler:
                compile_database(livesqlbench.read(documents), out)
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(60)
            return
        report, first = timed(lambda: compile_database(livesqlbench.read(documents), out))
        findings, checked = timed(lambda: validate(out))
        again, second = timed(lambda: compile_database(livesqlbench.read(documents), out))
        sizes = [tokens(file.read_text(encoding="utf-8")) for file in out.rglob("index.md")]
        assert not findings, findings[:3]
        assert not again.saved
        assert report.added == tables * (1 + RULES_PER_TABLE), report.added
        print(f"{tables:,} tables, {tables * COLUMNS:,} columns, {tables * RULES_PER_TABLE:,} rules:")
        print(f"  compile {first:.1f} s + validate {checked:.1f} s = {first + checked:.1f} s of the processor")
        print(f"  held {held_mb():,.0f} MB at most")
        print(f"  compile again {second:.1f} s, {second / first:.2f} of the first")
        print(f"  {len(sizes)} indexes, the largest {max(sizes)} of {INDEX_TOKENS} tokens")
        print(first + checked)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What the work gives, and the processor's seconds; the clock shows the same where nothing else runs."""
    start = time.process_time()
    return work(), time.process_time() - start


def write(folder: Path, tables: int) -> None:
    """The three documents of a made database, in the LiveSQLBench format."""
    chance = random.Random(7)
    folder.mkdir(parents=True)
    names = [
        f"{AREAS.split()[n % len(AREAS.split())]}_{PARTS.split()[n // len(AREAS.split()) % len(PARTS.split())]}_{n}"
        for n in range(tables)
    ]
    columns = {name: list(_columns(chance, name)) for name in names}
    meanings = {f"large|{t}|{c}": meaning for t, found in columns.items() for c, _, meaning in found if meaning}
    with (folder / "large_schema.txt").open("w", encoding="utf-8", newline="\n") as file:
        for number, name in enumerate(names):
            lines = [
                f"{column} {type} {'NOT NULL' if not n else 'NULL'},"
                for n, (column, type, _) in enumerate(columns[name])
            ]
            lines.append(f"    PRIMARY KEY ({columns[name][0][0]}),")
            parent = names[chance.randrange(number + 1)]
            lines.append(f"    FOREIGN KEY ({columns[name][1][0]}) REFERENCES {parent}({columns[parent][0][0]})")
            body = "\n".join(lines)
            file.write(f'CREATE TABLE "{name}" (\n{body}\n);\n\nFirst 3 rows:\nNo data available in this table.\n\n\n')
    (folder / "large_column_meaning_base.json").write_text(json.dumps(meanings, indent=1), encoding="utf-8")
    with (folder / "large_kb.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for id in range(tables * RULES_PER_TABLE):
            file.write(json.dumps(_rule(chance, id, names[id // RULES_PER_TABLE], columns)) + "\n")


def _columns(chance: random.Random, table: str) -> Iterator[tuple[str, str, str]]:
    """(name, type, meaning) of each column; one in twelve has no meaning."""
    area, part, _ = table.split("_")
    yield f"{area}_{part}_id", "integer", f"An INTEGER primary key identifying each {part} of the {area}."
    yield f"parent_{area}_id", "integer", f"An INTEGER referencing the {area} it belongs to."
    pairs = [(quality, measure) for quality in QUALITIES.split() for measure in MEASURES.split()]
    for quality, measure in chance.sample(pairs, COLUMNS - 2):
        meaning = f"The {quality} {measure} of the {area} {part} (e.g., {chance.randrange(1000)})."
        yield (
            f"{quality}_{measure}_{table.rsplit('_')[-1]}"[:60] if chance.random() < 0.5 else f"{quality}_{measure}",
            chance.choice(TYPES),
            meaning if chance.random() > 1 / 12 else "",
        )


def _rule(
    chance: random.Random, id: int, table: str, columns: dict[str, list[tuple[str, str, str]]]
) -> dict[str, object]:
    """A rule over some columns of a table: half of them by name, half in words; one in three builds on another."""
    area, part, number = table.split("_")
    chosen = chance.sample(columns[table][2:], 2)
    spelt = [name if chance.random() < 0.5 else name.replace("_", " ") for name, _, _ in chosen]
    quality, measure = chance.choice(QUALITIES.split()), chance.choice(MEASURES.split())
    return {
        "id": id,
        "knowledge": f"{quality} {area} {part} {measure} {number}-{id % RULES_PER_TABLE}".title(),
        "description": f"How the {quality} {measure} of a {area} {part} is worked out.",
        "definition": f"\\frac{{{spelt[0]}}}{{{spelt[1]}}} over every {part} of the {area}",
        "type": chance.choice(("calculation_knowledge", "domain_knowledge", "value_illustration")),
        "children_knowledge": [chance.randrange(id)] if id and chance.random() < 1 / 3 else -1,
    }


def held_mb() -> float:
    """Return the most memory this process has held, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


if __name__ == "__main__":
    main()
