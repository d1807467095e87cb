"""Rules linked to the columns, tables and rules they speak of. Every link carries its evidence."""

from __future__ import annotations

from okf_compiler.linking.columns import Columns
from okf_compiler.linking.infer import inferred
from okf_compiler.linking.links import Link, Links, Target
from okf_compiler.linking.reach import reach
from okf_compiler.linking.rule_names import spoken, without_names
from okf_compiler.linking.stated import Names, dependencies, named_columns, named_rules
from okf_compiler.linking.vocabulary import vocabulary
from okf_compiler.model import Database, Rule

__all__ = ["Link", "Links", "Target", "link", "unlinked"]


def link(database: Database) -> Links:
    """Every link that is stated, then those that can be inferred; a rule is linked to a target once."""
    words = vocabulary(database)
    said, names = spoken(database), Names(database, words)
    definitions = without_names(database, said)
    found: dict[tuple[str, Target], Link] = {}
    for each in (*dependencies(database), *named_rules(database, said), *named_columns(database, names, definitions)):
        found.setdefault((each.rule, each.target), each)
    stated = Links(tuple(found.values())).columns_of
    for each in inferred(database, Columns(database, words), stated, definitions, names):
        found.setdefault((each.rule, each.target), each)
    links = Links(tuple(found.values()))
    return Links(links.links, reach(database, links))


def unlinked(database: Database, links: Links) -> list[Rule]:
    """The rules that reach no table, not even through the rules they build on."""
    return [rule for rule in database.rules if not links.reached.get(rule.id)]
