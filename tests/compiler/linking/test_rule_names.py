"""Rules that rules name."""

from __future__ import annotations

from support.linking import a_rule, linked, rule_links


def test_rules_name_rules() -> None:
    ratio = a_rule("hubutilpct / 2", "1", "Resource Utilization Ratio (RUR)")
    short = a_rule("SNR = total / 3", "2", "Signal Noise")
    user = a_rule("RUR > 3, SNR < 2 or a high resource utilization ratio; RURAL", "3", "User")
    listed = a_rule("anything", "4", "Listed", "domain_knowledge", "1", "99")
    links = linked(ratio, short, user, listed)
    assert rule_links(links) == [
        ("4", "1", "the source lists it"),
        ("3", "1", "`RUR` in the definition"),
        ("3", "2", "`SNR` in the definition"),
    ]
    assert links.reached == {"1": ("sensors",), "2": ("orders",), "3": ("sensors", "orders"), "4": ("sensors",)}


def test_an_abbreviation_of_two_rules_is_of_neither() -> None:
    rules = (a_rule("x", "1", "One (ABC)"), a_rule("y", "2", "Other (ABC)"), a_rule("ABC > 2", "3", "User"))
    assert rule_links(linked(*rules)) == []
