"""The words by which concepts are told apart and taken apart: the types and headings that the compiler writes."""

from __future__ import annotations

TABLE_TYPE = "PostgreSQL Table"
CALCULATION = "Calculation"
BUSINESS_RULE = "Business Rule"

SCHEMA = "Schema"
JSON_FIELDS = "JSON fields"
JOINS = "Joins"
RELATED_KNOWLEDGE = "Related knowledge"
KNOWLEDGE_INFERRED = "Knowledge inferred"

DEFINITION = "Definition"
COLUMNS_USED = "Columns used"
COLUMNS_INFERRED = "Columns inferred"
DEPENDS_ON = "Depends on"
TABLES_REACHED = "Tables reached"
USED_BY = "Used by"

STORED_RESULTS = "Stored results"
"""Of rules: columns that claim to hold the result. Of tables: the rules whose results they claim to hold."""

TABLES_NEEDED = (COLUMNS_USED, COLUMNS_INFERRED, STORED_RESULTS, TABLES_REACHED)
"""Where a rule lists tables."""
NEIGHBOURS = (DEPENDS_ON, USED_BY, TABLES_REACHED, COLUMNS_INFERRED, RELATED_KNOWLEDGE, KNOWLEDGE_INFERRED, JOINS)
"""Lists of other concepts, whose words are about those. Not STORED_RESULTS: what it names is the same thing."""
SECTIONS = frozenset((SCHEMA, JSON_FIELDS, DEFINITION, STORED_RESULTS, COLUMNS_USED, *NEIGHBOURS))
"""Headings that belong to the compiler; any other one in a concept was written by a person."""
