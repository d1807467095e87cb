"""A company of 25 departments with 40 tables each, made of the words that such tables have, and 200 rules."""

from __future__ import annotations

from okf_compiler.model import Column, Database, ForeignKey, Rule, Table

DEPARTMENTS = (
    *("sales", "purchasing", "warehouse", "shipping", "billing", "payroll", "recruiting", "training", "support"),
    *("marketing", "loyalty", "insurance", "claims", "clinic", "laboratory", "pharmacy", "fleet", "maintenance"),
    *("production", "quality", "energy", "facility", "library", "box_office", "travel"),
)

SUBJECTS: dict[str, tuple[str, ...]] = {
    "orders": ("ordered_on date When it was ordered.", "state text open, done or cancelled.", "total numeric Euros."),
    "order_lines": ("order_id integer >orders", "product_id integer >products", "quantity integer Pieces."),
    "customers": ("full_name text Name.", "segment text private or business.", "joined_on date Since when."),
    "contracts": ("customer_id integer >customers", "signed_on date Signature.", "ends_on date Last day."),
    "contacts": ("customer_id integer >customers", "email text E-mail address.", "phone text Telephone."),
    "addresses": ("street text Street.", "postal_code text Postal code.", "city text Town or city."),
    "regions": ("region_name text Name.", "manager_id integer >employees"),
    "prices": ("product_id integer >products", "valid_from date First day.", "amount numeric Euros a piece."),
    "discounts": ("product_id integer >products", "percent_off numeric Percent.", "coupon text Its code."),
    "payments": ("invoice_id integer >invoices", "received_on date When the money came.", "amount numeric Euros."),
    "refunds": ("payment_id integer >payments", "reason text Why.", "amount numeric Euros given back."),
    "invoices": ("customer_id integer >customers", "due_on date Payable until.", "paid_on date When it was paid."),
    "budgets": ("fiscal_year integer Year.", "planned numeric Euros planned.", "spent numeric Euros spent."),
    "forecasts": ("month date First of the month.", "expected numeric Expected.", "actual numeric What it was."),
    "targets": ("employee_id integer >employees", "quarter text Quarter.", "goal numeric What to reach."),
    "tasks": ("employee_id integer >employees", "due_on date Deadline.", "finished_on date When it was finished."),
    "shifts": ("employee_id integer >employees", "starts_at timestamp Begin.", "ends_at timestamp End."),
    "employees": ("full_name text Name.", "hired_on date First day of work.", "left_on date Last day of work."),
    "teams": ("team_name text Name.", "lead_id integer >employees"),
    "schedules": ("team_id integer >teams", "week integer Week of the year.", "hours numeric Hours planned."),
    "visits": ("customer_id integer >customers", "visited_at timestamp When.", "minutes integer How long."),
    "inspections": ("device_id integer >devices", "inspected_on date When.", "passed boolean Whether it passed."),
    "incidents": ("location_id integer >locations", "severity integer 1 low to 4 grave.", "closed_at timestamp End."),
    "audits": ("audited_on date When.", "findings integer How many flaws.", "auditor text Who."),
    "documents": ("title text Title.", "pages integer Pages.", "archived boolean Put away."),
    "notes": ("author_id integer >employees", "body text What was written."),
    "events": ("happened_at timestamp When.", "kind text What kind.", "payload text Details."),
    "alerts": ("device_id integer >devices", "raised_at timestamp When.", "acknowledged_at timestamp Seen when."),
    "devices": ("serial_number text Serial number.", "bought_on date Purchase.", "retired boolean Out of use."),
    "sensors": ("device_id integer >devices", "unit text Unit of measure.", "threshold numeric Alarm above."),
    "readings": ("sensor_id integer >sensors", "taken_at timestamp When.", "measured numeric What it showed."),
    "locations": ("location_name text Name.", "region_id integer >regions", "floor_area numeric Square metres."),
    "rooms": ("location_id integer >locations", "seats integer Places.", "bookable boolean May be reserved."),
    "vehicles": ("licence_plate text Plate.", "mileage integer Kilometres.", "fuel text Kind of fuel."),
    "routes": ("vehicle_id integer >vehicles", "distance_km numeric Kilometres.", "planned_on date Day."),
    "stops": ("route_id integer >routes", "arrival timestamp Arrival.", "minutes_late integer Delay."),
    "suppliers": ("supplier_name text Name.", "rating numeric 1 to 5.", "country text Where it sits."),
    "products": ("product_name text Name.", "category_id integer >categories", "supplier_id integer >suppliers"),
    "categories": ("category_name text Name.",),
    "stock_levels": ("product_id integer >products", "on_hand integer Pieces there.", "reorder_point integer Least."),
}
"""By subject its columns: name, type, then `>subject` it refers to, or its meaning."""

RULES: tuple[tuple[str, str], ...] = (
    ("Late Payment Share", "Of {d}_invoices, the share whose paid_on is after due_on, or NULL with due_on past."),
    ("Churned Account", "A row of {d}_customers whose newest {d}_contracts.ends_on is before the reporting day."),
    ("Staff Turnover", "{d}_employees with left_on in the year, divided by those employed on its first day."),
    ("Budget Overrun", "{d}_budgets.spent minus {d}_budgets.planned, where that is above 0."),
    ("Punctuality", "The share of {d}_stops with minutes_late of 5 or less."),
    ("Replenishment Need", "{d}_stock_levels.reorder_point minus {d}_stock_levels.on_hand, where that is above 0."),
    ("First Pass Yield", "The share of {d}_inspections with passed on a device's first inspected_on."),
    ("Alarm Response Time", "The mean of {d}_alerts.acknowledged_at minus {d}_alerts.raised_at, seen ones only."),
)


def database() -> Database:
    """1,000 tables and 200 rules."""
    tables = [_table(department, subject) for department in DEPARTMENTS for subject in SUBJECTS]
    rules = [
        Rule(str(number), f"{department.replace('_', ' ').title()} {title}", "calculation_knowledge", "", text.format(
            d=department))
        for number, (department, title, text) in enumerate(
            (department, *rule) for department in DEPARTMENTS for rule in RULES
        )
    ]  # fmt: skip
    return Database("conglomerate", tuple(tables), rules=tuple(rules))


def _table(department: str, subject: str) -> Table:
    key = f"{subject.removesuffix('s')}_id"
    columns = [Column(key, "integer", nullable=False, meaning=f"One of the {subject.replace('_', ' ')}.")]
    keys = []
    for line in SUBJECTS[subject]:
        name, type, meaning = line.split(" ", 2)
        if meaning.startswith(">"):
            other = meaning[1:]
            keys.append(ForeignKey((name,), f"{department}_{other}", (f"{other.removesuffix('s')}_id",)))
            meaning = f"Which of the {other.replace('_', ' ')}."
        columns.append(Column(name, type, meaning=meaning))
    return Table(f"{department}_{subject}", tuple(columns), primary_key=(key,), foreign_keys=tuple(keys))
