"""Small sets of documents in the LiveSQLBench format, written for one test."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from okf_compiler.compile import compile_database
from okf_compiler.documents import Documents
from okf_compiler.readers import livesqlbench
from okf_compiler.report import Report

SCHEMA = """\
CREATE TABLE "customers" (
id bigint NOT NULL,
name text NULL,
    PRIMARY KEY (id)
);

First 3 rows:
  id  name
----  ------
   1  Ada
...


CREATE TABLE "orders" (
id bigint NOT NULL DEFAULT nextval('orders_id_seq'::regclass),
customer_id bigint NULL,
total numeric(10,2) NULL,
details jsonb NULL,
    PRIMARY KEY (id),
    FOREIGN KEY (customer_id) REFERENCES customers(id)
);

First 3 rows:
No data available in this table.
"""
MEANINGS: dict[str, Any] = {
    "x|Customers|ID": "Number of the customer.",
    "x|customers|name": "Full name | as given.",
    "x|orders|total": "What was paid.",
    "x|orders|details": {
        "column_meaning": "JSONB. How it was sent.",
        "fields_meaning": {"delivery": {"carrier": "Who carried it.", "days": "How long it took."}},
    },
}
RULES: list[dict[str, Any]] = [
    {"id": 0, "knowledge": "Order Value (OV)", "description": "What an order is worth.",
     "definition": "OV = TOTAL", "type": "calculation_knowledge", "children_knowledge": -1},
    {"id": 1, "knowledge": "Big Order", "description": "An order that counts.",
     "definition": "OV above 100", "type": "domain_knowledge", "children_knowledge": [0]},
    {"id": 2, "knowledge": "Slow Delivery", "description": "Late.",
     "definition": "details.delivery.days > 7", "type": "domain_knowledge", "children_knowledge": -1},
]  # fmt: skip


def write_documents(
    root: Path,
    name: str = "x",
    *,
    schema: str | bytes | None = SCHEMA,
    meanings: Mapping[str, Any] | str | bytes | None = MEANINGS,
    rules: Sequence[Mapping[str, Any]] | str | bytes | None = RULES,
) -> Documents:
    """The documents in `<root>/<name>/`; None leaves a file out, a text or bytes are written as they are."""
    if isinstance(meanings, Mapping):
        meanings = json.dumps(meanings)
    if rules is not None and not isinstance(rules, str | bytes):
        rules = "".join(json.dumps(rule) + "\n" for rule in rules)
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    documents = Documents(
        name=name,
        root=root,
        schema=folder / f"{name}_schema.txt",
        meanings=folder / f"{name}_column_meaning_base.json",
        rules=folder / f"{name}_kb.jsonl",
        dump=None,
    )
    for file, content in ((documents.schema, schema), (documents.meanings, meanings), (documents.rules, rules)):
        if content is None:
            file.unlink(missing_ok=True)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return documents


def compile_documents(documents: Documents, out: Path, overlay: Path | None = None, *, check: bool = False) -> Report:
    """The documents alone compiled into the folder `out`, without a config.yaml."""
    return compile_database(livesqlbench.read(documents), out, overlay, check=check)


def rule(id: int, name: str, definition: str = "", **more: Any) -> dict[str, Any]:
    """One line of `<db>_kb.jsonl`."""
    entry = {"id": id, "knowledge": name, "description": f"About {id}.", "definition": definition}
    return {**entry, "type": "domain_knowledge", "children_knowledge": -1, **more}
