"""The words that the shop's rows are made of."""

from __future__ import annotations

COUNTRIES = (
    ("DE", 17), ("Germany", 21), ("germany ", 8), ("AT", 9), ("Austria", 7), ("austria ", 3), ("CH", 6),
    ("Switzerland", 5), ("FR", 5), ("France", 6), ("NL", 4), ("Netherlands", 4), (None, 3), ("", 2),
)  # fmt: skip
"""Trap: spellings, with their weights."""
CATEGORIES: tuple[tuple[str, str | None, str], ...] = (
    ("Kitchen", None, "Apron|Trivet|Bread Box"),
    ("Garden", None, "Kneeling Mat|Rain Gauge"),
    ("Home Office", None, "Footrest|Cable Tray"),
    ("Outdoor", None, "Picnic Rug|Whistle"),
    ("Lighting", None, "Dimmer"),
    ("Cookware", "Kitchen", "Saucepan|Wok|Roasting Tin|Stock Pot|Griddle"),
    ("Knives", "Kitchen", "Paring Knife|Cleaver|Bread Knife"),
    ("Hand Tools", "Garden", "Trowel|Secateurs|Hoe|Dibber"),
    ("Planters", "Garden", "Terracotta Pot|Window Box|Hanging Basket"),
    ("Desks", "Home Office", "Standing Desk|Desk Shelf|Monitor Arm"),
    ("Stationery", "Home Office", "Notebook|Fountain Pen|Letter Tray|Desk Pad"),
    ("Camping", "Outdoor", "Camp Stove|Sleeping Mat|Tarp|Enamel Mug"),
    ("Bags", "Outdoor", "Daypack|Dry Bag|Roll Pouch"),
    ("Lamps", "Lighting", "Desk Lamp|Floor Lamp|Clip Lamp|Night Light"),
)
"""Name, the category above, what is sold in it."""
MAKES = ("Alder", "Birch", "Fjord", "Heron", "Linden", "Marlow", "Quarry", "Tansy")
GIVEN = (
    "Ada", "Benno", "Clara", "David", "Elif", "Frieda", "Goran", "Hanna", "Ilse", "Jonas", "Kaya", "Lukas",
    "Mira", "Noah", "Olga", "Paul", "Rosa", "Sami",
)  # fmt: skip
FAMILY = (
    "Albers", "Brandt", "Castel", "Dorn", "Egger", "Fontaine", "Graf", "Hauser", "Imhof", "Jansen", "Keller",
    "Lindner", "Moreau", "Novak", "Oster", "Petit", "Roth", "Sommer", "Tanner", "Ulrich", "Visser", "Winkler",
    "Zimmer",
)  # fmt: skip
CAMPAIGNS = (
    ("Winter Warmers", "email", "2024-01-08", 40, 600), ("Spring Tidy", "search", "2024-03-11", 45, 2100),
    ("First Green", "social", "2024-04-29", 40, 1450), ("Long Evenings", "display", "2024-06-17", 50, 7900),
    ("Back to the Desk", "search", "2024-08-26", 35, 980), ("Harvest Table", "social", "2024-10-07", 30, 5400),
    ("Lights On", "email", "2024-11-11", 45, 3300), ("Clear the Shelves", "display", "2025-01-13", 40, 0),
    ("Sow and Grow", "email", "2025-03-10", 45, 1650), ("Out of Doors", "social", "2025-05-12", 45, 2600),
)  # fmt: skip
"""Name, medium, first day, days, euros spent (0: not recorded)."""
NOTES = (
    "Does what it says.", "Smaller than it looks in the picture.", "Bought a second one for my sister.",
    "Arrived with a scratch, still works.", "Would buy again.", "Not for daily use.", "A pleasure to hold.",
)  # fmt: skip
