"""The pack: what of a bundle goes into the prompt of one question."""

from __future__ import annotations

from pathlib import Path

import pytest

from okf_agent import cards
from okf_agent.knowledge import MODES, Sources, pack, prepare
from okf_compiler import bundle
from okf_compiler.concepts import concepts
from okf_compiler.link import link
from okf_compiler.model import Column, Database, ForeignKey, JsonField, Rule, Table
from okf_compiler.names import assign
from okf_compiler.settings import UserError


def _table(name: str, *columns: Column, refers: dict[str, str] | None = None) -> Table:
    keys = [ForeignKey((column,), other, (column,)) for column, other in (refers or {}).items()]
    return Table(name, columns, primary_key=(columns[0].name,), foreign_keys=tuple(keys))


ZOO = Database(
    name="zoo",
    tables=(
        _table(
            "animals",
            Column("animal_id", "integer", nullable=False, meaning="An INTEGER primary key identifying each animal."),
            Column("species_code", "text", meaning="TEXT. The species (e.g., 'LEO' | 'PAN')."),
            Column("body_mass_kg", "numeric", meaning="A NUMERIC(8,2). Weight in kilograms."),
            Column(
                "chip",
                "jsonb",
                meaning="JSONB column. What the chip reports.",
                fields=(JsonField(("health", "last_temp"), "A REAL. Degrees."),),
            ),
            Column("keeper_id", "integer", meaning="An INTEGER referencing keepers(keeper_id): who looks after it."),
            refers={"keeper_id": "keepers"},
        ),
        _table(
            "keepers",
            Column("keeper_id", "integer", nullable=False),
            Column("full_name", "text", meaning="TEXT. Name."),
            Column("house_id", "integer"),
            refers={"house_id": "houses"},
        ),
        _table("houses", Column("house_id", "integer"), Column("roof_area", "numeric"), Column("state", "text")),
        _table("tickets", Column("ticket_id", "integer"), Column("price_cents", "integer"), Column("state", "text")),
        _table("gift_cards", Column("card_id", "integer"), Column("face_value", "numeric")),
    ),
    rules=(
        Rule("0", "Heavy Animal", "domain_knowledge", "Big ones", "An animal with body_mass_kg over 500."),
        Rule(
            "1",
            "Keeper Load (KL)",
            "calculation_knowledge",
            "Work of a keeper",
            r"KL = \frac{\text{heavy animals}}{2} \times 3",
            depends_on=("0",),
        ),
        Rule("2", "Overloaded", "domain_knowledge", "", "A keeper whose KL is over 9.", depends_on=("1", "3")),
        Rule("3", "Circle", "domain_knowledge", "", "It leans on overloaded ones.", depends_on=("2",)),
        Rule("4", "Paid Ticket", "domain_knowledge", "", "price_cents > 0 and state = 'paid'"),
        Rule("5", "Roof Class", "domain_knowledge", "", "# 'wide' when roof_area is over 100\n| or | more"),
    ),
)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of ZOO, as the compiler writes its concepts."""
    folder = tmp_path_factory.mktemp("zoo")
    written = concepts(ZOO, link(ZOO), assign(ZOO))
    bundle.save(folder, {f"{concept.id}.md": bundle.render(concept) for concept in written})
    return folder


def _choose(zoo: Path, question: str, max_tokens: int = 1500) -> pack.Chosen:
    known = cards.read(zoo)
    return pack.choose(known, question, pack.rank(question, known), max_tokens)


@pytest.mark.parametrize(
    ("question", "tables", "rules"),
    [
        ("How many heavy animals are there?", ["animals"], ["Heavy Animal"]),
        ("How many paid tickets did we sell?", ["tickets"], ["Paid Ticket"]),
        # An abbreviation names a rule; what it builds on comes before it; so does the table that only that rule uses.
        ("What is the KL of each keeper?", ["animals", "keepers"], ["Heavy Animal", "Keeper Load (KL)"]),
        # Beside a rule that is named, a table's name brings in no other rule of that table.
        ("Paid tickets by animals", ["animals", "tickets"], ["Paid Ticket"]),
        # Tables in between are joined in; the bundle's order is that of names.
        ("Heavy animals by houses", ["animals", "houses", "keepers"], ["Heavy Animal"]),
        # Rules that lean on each other in a circle end.
        (
            "Who is overloaded?",
            ["animals"],
            ["Heavy Animal", "Keeper Load (KL)", "Circle", "Overloaded"],
        ),
        # Names are taken apart, and plural forms are one word with the singular.
        ("The face values of the gift card", ["gift_cards"], []),
        ("zzz", [], []),
    ],
)
def test_chosen(zoo: Path, question: str, tables: list[str], rules: list[str]) -> None:
    chosen = _choose(zoo, question)
    assert [t.name for t in chosen.tables] == tables
    assert [r.title for r in chosen.rules] == rules


def test_the_prompt_as_the_model_reads_it(zoo: Path) -> None:
    schema, rules = pack.render(_choose(zoo, "What is the keeper load, by the full name of the keepers?"))
    assert (
        schema
        == """\
CREATE TABLE animals (
  animal_id integer, primary key, -- An INTEGER primary key identifying each animal.
  species_code text, -- The species (e.g., 'LEO' | 'PAN').
  body_mass_kg numeric, -- Weight in kilograms.
  chip jsonb, -- What the chip reports.
    -- chip->'health'->>'last_temp': Degrees.
  keeper_id integer, -- who looks after it.
);

CREATE TABLE keepers (
  keeper_id integer, primary key,
  full_name text, -- Name.
  house_id integer,
);

Joins:
animals.keeper_id = keepers.keeper_id"""
    )
    assert (
        rules
        == """\
Rules to follow, word for word:
- Heavy Animal: An animal with body_mass_kg over 500.
- Keeper Load (KL): KL = (heavy animals) / 2.0 * 3"""
    )


def test_without_joins_and_rules(zoo: Path) -> None:
    schema, rules = pack.render(_choose(zoo, "The face values of the gift card"))
    assert schema.endswith("Joins:\nnone")
    assert rules == ""


def test_names_are_quoted_where_a_query_needs_it(tmp_path: Path) -> None:
    columns = (Column("Plate No", "text"), Column("data", "jsonb", fields=(JsonField(("A b",), "Age."),)))
    database = Database("cars", (Table("Cars", columns, schema="Fleet"),))
    written = concepts(database, link(database), assign(database))
    bundle.save(tmp_path, {f"{concept.id}.md": bundle.render(concept) for concept in written})
    schema, _ = pack.render(_choose(tmp_path, "plates of cars"))
    assert schema.startswith(
        """\
CREATE TABLE "Fleet"."Cars" (
  "Plate No" text,
  data jsonb,
    -- data->>'A b': Age.
);"""
    )


def test_a_definition_is_read_as_it_was_written(zoo: Path) -> None:
    (rule,) = _choose(zoo, "roof class").rules
    assert rule.definition == "# 'wide' when roof_area is over 100\n| or | more"
    assert rule.tables == {"/tables/houses.md": ("roof_area",)}


def test_the_limit_cuts_meanings_first_and_then_tables(zoo: Path) -> None:
    question = "Heavy animals by houses"
    whole = _choose(zoo, question)
    size = pack.size(whole)
    trimmed = _choose(zoo, question, size - 1)
    assert [t.name for t in trimmed.tables] == [t.name for t in whole.tables]
    shown, _ = pack.render(trimmed)
    assert "The species" not in shown
    assert "Weight in kilograms" in shown, "a rule speaks of it"
    assert pack.size(trimmed) < size
    small = _choose(zoo, question, 60)
    assert [t.name for t in small.tables] == ["animals"]
    assert [r.title for r in small.rules] == ["Heavy Animal"]


def test_the_same_question_gives_the_same_prompt(zoo: Path) -> None:
    question = "State of heavy animals, tickets, keepers and roof class"
    assert pack.render(_choose(zoo, question)) == pack.render(_choose(zoo, question))


def test_a_persons_correction_and_a_persons_concept_count(zoo: Path, tmp_path: Path) -> None:
    for path in zoo.rglob("*.md"):
        target = tmp_path / path.relative_to(zoo)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8").replace("over 500", "over 900"), encoding="utf-8")
    (tmp_path / "notes.md").write_text("---\ntype: Note\ntitle: Night Shift\n---\n\nFrom 22 to 6.\n", encoding="utf-8")
    chosen = _choose(tmp_path, "Heavy animals in the night shift")
    assert [(r.title, r.definition) for r in chosen.rules] == [
        ("Heavy Animal", "An animal with body_mass_kg over 900."),
        ("Night Shift", "From 22 to 6."),
    ]


def test_prepare_gives_one_reply_with_sql(zoo: Path) -> None:
    knowledge = prepare("pack", "How many heavy animals are there?", Sources("zoo", bundle=zoo))
    assert MODES["pack"] is pack.prepare
    assert (knowledge.mode, knowledge.reply, knowledge.tools) == ("pack", "sql", ())
    assert "body_mass_kg numeric" in knowledge.sections[0]
    assert "body_mass_kg over 500" in knowledge.hints


def test_without_a_bundle_the_message_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="okf-compiler compile zoo"):
        prepare("pack", "x", Sources("zoo", bundle=tmp_path / "none"))
