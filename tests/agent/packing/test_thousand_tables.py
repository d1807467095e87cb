"""A pack on 1,000 tables: within its limit, and with what 20 questions, written by hand in people's words, need."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import conglomerate, hubs

from okf_agent import prompts
from okf_agent.cell import Cell
from okf_agent.knowledge import Sources, prepare
from okf_agent.messages import first_messages
from okf_agent.run import Question
from okf_compiler import bundle
from okf_compiler.concepts import concepts
from okf_compiler.link import link
from okf_compiler.names import assign
from okf_compiler.tokens import tokens

QUESTIONS: tuple[tuple[str, str, str], ...] = (
    # question, tables, rules
    ("What share of the fleet's invoices was paid late?", "fleet_invoices", "Fleet Late Payment Share"),
    ("Which insurance customers have churned?", "insurance_customers insurance_contracts", "Insurance Churned Account"),
    ("How high was staff turnover in the clinic in 2024?", "clinic_employees", "Clinic Staff Turnover"),
    ("By how much did marketing overrun its budget each year?", "marketing_budgets", "Marketing Budget Overrun"),
    ("How punctual are the shipping stops, by vehicle?", "shipping_stops shipping_routes shipping_vehicles",
     "Shipping Punctuality"),
    ("Which products does the pharmacy have to replenish?", "pharmacy_stock_levels pharmacy_products",
     "Pharmacy Replenishment Need"),
    ("What is the first pass yield of production's devices?", "production_inspections production_devices",
     "Production First Pass Yield"),
    ("How fast does the energy department respond to alarms?", "energy_alerts", "Energy Alarm Response Time"),
    ("How many seats do the bookable rooms of the library have?", "library_rooms", ""),
    ("List the suppliers of the warehouse with a rating under 2.", "warehouse_suppliers", ""),
    ("What did box office refunds come to, by reason?", "box_office_refunds", ""),
    ("Which laboratory sensors had readings above their threshold?", "laboratory_sensors laboratory_readings", ""),
    ("How many kilometres did each travel vehicle drive on its routes?", "travel_vehicles travel_routes", ""),
    ("Which training tasks were finished after the deadline, and by whom?", "training_tasks training_employees", ""),
    ("How many hours are scheduled for each recruiting team in week 7?", "recruiting_schedules recruiting_teams", ""),
    ("Mean length in minutes of support visits by customer segment", "support_visits support_customers", ""),
    ("Quality audits with more than three findings", "quality_audits", ""),
    ("How many grave incidents are still open at each maintenance location?",
     "maintenance_incidents maintenance_locations", ""),
    ("Which claims documents are archived and longer than 100 pages?", "claims_documents", ""),
    ("Compare sales forecasts with what the months really brought.", "sales_forecasts", ""),
)  # fmt: skip
LIMIT = 12_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "conglomerate"
    database = conglomerate.database()
    assert len(database.tables) == 1_000
    written = concepts(database, link(database), assign(database))
    bundle.save(folder, {f"{concept.id}.md": bundle.render(concept) for concept in written})
    return folder


@pytest.mark.slow
def test_a_pack_of_a_thousand_tables_fits_and_holds_what_questions_need(large: Path) -> None:
    missing = []
    for question, tables, rules in QUESTIONS:
        knowledge = prepare("pack", question, Sources("conglomerate", bundle=large, cell=Cell("x", "pack")))
        (message,) = first_messages(Question(question, "conglomerate", hubs.DAY), knowledge, has_content=False)
        assert tokens(message["content"]) <= LIMIT, question
        missing += [f"{question}: {t}" for t in tables.split() if f"CREATE TABLE {t} (" not in message["content"]]
        missing += [f"{question}: {rules}"] * (bool(rules) and f"- {rules}: " not in message["content"])
    assert not missing


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1_000, 3_000])
def test_a_small_limit_is_kept_and_the_table_that_is_named_stays(large: Path, limit: int) -> None:
    question = QUESTIONS[0][0]
    sources = Sources("conglomerate", bundle=large, cell=Cell("x", "pack"), pack_tokens=limit)
    knowledge = prepare("pack", question, sources)
    known = "\n\n".join(knowledge.sections)
    text = prompts.load(
        knowledge.prompt, database="conglomerate", content="", knowledge=known, question="?", today=hubs.DAY.told()
    )
    assert tokens(text) <= limit and "CREATE TABLE fleet_invoices (" in text
