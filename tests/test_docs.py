"""The documents say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from okf_agent.providers import PROVIDERS

ROOT = Path(__file__).parents[1]


def test_the_table_of_providers_is_the_code_s() -> None:
    rows = re.findall(
        r"^\| ([^|]+?) +\| `?([A-Z_]+|none)`? +\| `([^`]+)` \|$", (ROOT / "PROVIDERS.md").read_text("utf-8"), re.M
    )
    assert rows == [(p.title, p.key or "none", p.example) for p in PROVIDERS]
