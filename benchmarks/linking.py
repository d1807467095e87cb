"""Score the links of `link.py` against rules that were labelled by hand, Lite and Full apart, and time them.

    OKF_TEST_DATA=DIR python benchmarks/linking.py [--held-out] [--misses]

Linking is tuned on half of the labelled databases; `--held-out` reports on the other half, which nobody tunes by.
`--misses` lists what was wrong and what was not found; it refuses to do so for the held-out half.
`--scale N` times a made database of N tables, 15 columns and two rules each, instead.

What is counted: a link to a column or to a field inside it is right if the labels give it to the rule, and ignored
if they call it unsure. A link to a whole JSON column is right if the labels give the rule a field inside. A table is
reached if the rule, or a rule it depends on through all levels, links into it, or if the only path of keys between
two such tables runs through it. All figures are over links, or over pairs of rule and table; not means of means.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from needs import test_data

from okf_compiler.documents import list_databases
from okf_compiler.link import Links, link
from okf_compiler.linking.words import listed
from okf_compiler.model import Column, Database, Rule, Table
from okf_compiler.readers.livesqlbench import read
from okf_compiler.settings import load_settings

LABELS = Path(__file__).parent / "labels"
TUNE = {"Lite": ("disaster", "museum"), "Full": ("disaster_relief", "solar_panel")}
HELD_OUT = {"Lite": ("alien", "polar"), "Full": ("households", "virtual_idol")}
FOLDERS = {"Lite": ("livesqlbench-base-lite", "base_lite"), "Full": ("livesqlbench-base-full-v1", "base_full")}
TARGETS = {"stated": 0.98, "inferred": 0.70, "tables found": 0.85, "tables right": 0.75}


@dataclass
class Count:
    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)

    def add(self, found: set[str], wanted: set[str], unsure: set[str]) -> None:
        self.right += len(found & wanted)
        self.wrong += len(found - wanted - unsure)
        self.missed += len(wanted - found)


@dataclass
class Scores:
    stated: Count = field(default_factory=Count)
    inferred: Count = field(default_factory=Count)
    columns: Count = field(default_factory=Count)
    tables: Count = field(default_factory=Count)
    notes: list[str] = field(default_factory=list)


def main() -> None:
    arguments = sys.argv[1:]
    if "--scale" in arguments:
        scale(int(arguments[arguments.index("--scale") + 1]))
        return
    held_out, misses = "--held-out" in arguments, "--misses" in arguments
    if held_out and misses:
        sys.exit("The misses of the held-out databases are not shown: nobody should tune by them.")
    print("held-out databases" if held_out else "databases that linking is tuned on")
    for edition, names in (HELD_OUT if held_out else TUNE).items():
        total = Scores()
        for name in names:
            scores = Scores()
            score(edition, name, scores, total)
            show(f"{edition} {name}", scores)
            if misses:
                print("\n".join(scores.notes))
        show(f"{edition} together", total)
    print("wanted: " + ", ".join(f"{what} {value:.2f}" for what, value in TARGETS.items()))
    time_all()


def score(edition: str, name: str, *counts: Scores) -> None:
    folder, labels_folder = FOLDERS[edition]
    database = load(folder, name)
    labels = yaml.safe_load((LABELS / labels_folder / f"{name}.yaml").read_text(encoding="utf-8"))["rules"]
    links = link(database)
    for rule in database.rules:
        if rule.id in labels:
            for scores in counts:
                score_rule(rule, labels[rule.id], links, set(links.reached[rule.id]), scores)


def score_rule(rule: Rule, label: dict[str, Any], links: Links, reached: set[str], scores: Scores) -> None:
    wanted = {c.lower() for c in label["columns"]}
    unsure = {c.lower() for c in label["unsure"]}
    found: dict[str, set[str]] = {"stated": set(), "inferred": set()}
    for each in links.columns_of.get(rule.id, ()):
        if each.target.column:
            place = str(each.target).lower()
            inside = {w for w in wanted if w.startswith(place + ".")}
            found[each.kind] |= inside or {place}
            mark = "right" if inside or place in wanted else "unsure" if place in unsure else "WRONG"
            if mark == "WRONG":
                what = f"{mark} {each.kind} {place} {each.score:.2f} {each.evidence}"
                scores.notes.append(f"  {rule.id:>3} {rule.name}: {what}")
    scores.stated.add(found["stated"], wanted, unsure)
    scores.inferred.add(found["inferred"], wanted, unsure)
    everything = found["stated"] | found["inferred"]
    scores.columns.add(everything, wanted, unsure)
    tables = {t.lower() for t in label["tables_reached"]}
    unsure_tables = {u.split(".")[0] for u in unsure} - tables
    reached = {t.lower() for t in reached}
    scores.tables.add(reached, tables, unsure_tables)
    notes = [f"missed {c}" for c in sorted(wanted - everything)]
    notes += [f"table not reached {t}" for t in sorted(tables - reached)]
    notes += [f"table too many {t}" for t in sorted(reached - tables - unsure_tables)]
    scores.notes += [f"  {rule.id:>3} {rule.name}: {note}" for note in notes]


def show(what: str, s: Scores) -> None:
    print(
        f"  {what:<22} stated right {s.stated.precision:.3f} of {s.stated.right + s.stated.wrong:>3};"
        f" inferred right {s.inferred.precision:.3f} of {s.inferred.right + s.inferred.wrong:>3};"
        f" columns found {s.columns.recall:.3f};"
        f" tables found {s.tables.recall:.3f}, right {s.tables.precision:.3f}"
    )


def load(folder: str, name: str) -> Database:
    root = test_data() / folder
    return read(list_databases(load_settings(root, {"agent": {"raw_docs": str(root.resolve())}}))[name])


def time_all() -> None:
    for folder in ("livesqlbench-base-lite", "livesqlbench-base-lite-postgres", "livesqlbench-base-full-v1"):
        root = test_data() / folder
        documents = list_databases(load_settings(root, {"agent": {"raw_docs": str(root.resolve())}}))
        databases = [read(each) for each in documents.values()]
        seconds = timed(databases)
        print(f"  linking the {len(databases)} sets of {folder}: {seconds:.2f} s of the processor")


def timed(databases: Sequence[Database]) -> float:
    start = time.process_time()
    for database in databases:
        link(database)
    return time.process_time() - start


def scale(tables: int) -> None:
    """Twice the database should take about twice as long."""
    for size in (tables // 2, tables):
        database = Database("made", tuple(made_tables(size)), tuple(made_rules(size)))
        print(f"  {size} tables, {size * 15} columns, {size * 2} rules: {timed([database]):.1f} s of the processor")


WORDS = sorted(
    listed(
        "river bridge sensor tower cargo vessel market broker ticket branch patient therapy dosage solar panel "
        "voltage current energy freight harbour voyage credit score budget grant donor shelter hazard rescue"
    )
)


def made_tables(count: int) -> Iterator[Table]:
    for t in range(count):
        columns = []
        for c in range(15):
            a, b = WORDS[(t * 7 + c) % len(WORDS)], WORDS[(t * 3 + c * 5) % len(WORDS)]
            meaning = f"The {a} of the {b} in area {t} part {c}."
            columns.append(Column(f"{a}_{b}_{t % 997}_{c}", "text", meaning=meaning))
        yield Table(f"{WORDS[t % len(WORDS)]}_{t}", tuple(columns), primary_key=(columns[0].name,))


def made_rules(count: int) -> Iterator[Rule]:
    for r in range(count * 2):
        a, b = WORDS[(r * 11) % len(WORDS)], WORDS[(r * 13 + 3) % len(WORDS)]
        definition = f"The {a} {b} of area {r // 2} is high when the {b} of the {a} exceeds {r}."
        yield Rule(str(r), f"{a} {b} rule {r}", "domain_knowledge", "", definition, (str(r - 1),) if r % 4 else ())


if __name__ == "__main__":
    main()
