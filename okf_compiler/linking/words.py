"""Words as they are compared: identifiers taken apart, endings and abbreviations levelled."""

from __future__ import annotations

import re
from functools import lru_cache


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PIECES = re.compile(r"[A-Z]+(?=[A-Z][a-z]{2})|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_SUFFIXES = listed(
    "ational ations ation ators ator ating ated ates ate ional ions ion ities ity ments ment ness ingly ings ing edly"
    " ed ers er ally al ies ive ic ance ence ency es s e y"
)
_BY_LAST = {
    last: sorted((s for s in _SUFFIXES if s[-1] == last), key=lambda s: (-len(s), s))
    for last in {s[-1] for s in _SUFFIXES}
}
"""Endings by their last letter, the longest first."""
_SHORTEST_STEM = 4
_LONGEST_WORD = 50
"""Letters from which a word keeps its endings: each that is taken off copies the rest."""

STOP = listed(
    "a an the and or nor of in on at to for from by with without within into onto over under between among against as"
    " is are was were be been being am it its this that these those which who whom whose what where when while if then"
    " than else not no only also both either each any all some such other more most less least very can could may"
    " might must shall should will would do does did has have had having there their they them his her our your we you"
    " i he she so but because due per via using used use uses based calculated defined represents representing"
    " indicates indicating denotes measures measuring describes describing shows showing means meaning e g eg ie etc"
    " greater equal exceeds exceed above below least up out about through during after before across s t"
)
"""Words that never are evidence."""

GENERIC = listed(
    "number count total average amount value score level state rate index type date time current overall percent"
    " ratio measure high low data record specific information numeric factor category group name code day year"
    " now initial final last first next new estim daily usd eur mw kw kwh mwh wh hz khz mhz ghz kg mg km cm mm ms tons"
    " ton liter meter watt volt hour minute second month ppm ppb db hpa kpa celsius days"
)
"""Words and units (after `level`) that occur in columns of every kind, so that alone they say little."""

SHORT_FOR = {
    "pct": "percent", "perc": "percent", "num": "number",
    "cnt": "count", "qty": "quantity", "amt": "amount", "avg": "average",
    "lvl": "level", "idx": "index", "temp": "temperature", "cap": "capacity", "util": "utilization",
    "freq": "frequency", "hrs": "hour", "hr": "hour", "yrs": "year", "yr": "year",
    "dt": "date", "ts": "timestamp", "desc": "description", "addr": "address", "loc": "location", "lat": "latitude",
    "lon": "longitude", "lng": "longitude", "maint": "maintenance", "ops": "operation", "op": "operation",
    "env": "environment", "org": "organization", "orgs": "organization", "mgmt": "management", "prio": "priority",
    "med": "medical", "eff": "efficiency", "err": "error", "max": "maximum",
    "min": "minimum", "prob": "probability", "vol": "volume", "wt": "weight", "ht": "height",
    "len": "length", "dur": "duration", "std": "standard", "dev": "deviation", "var": "variance", "conf": "confidence",
    "cust": "customer", "prod": "product", "acct": "account", "txn": "transaction", "trans": "transaction",
    "inv": "inventory", "req": "request", "res": "result", "resp": "response", "ref": "reference", "usr": "user",
    "msg": "message", "pwr": "power", "volt": "voltage", "curr": "current", "tot": "total", "pop": "population",
    "mins": "minute", "sec": "second", "secs": "second",
}  # fmt: skip

"""What people shorten names to; longer words of the database's own documents are tried before these."""

SAME = {
    **SHORT_FOR,
    "percentage": "percent", "percentages": "percent", "mean": "average", "indices": "index", "yearly": "annual",
    "status": "state", "statuses": "state", "expenditure": "cost", "expense": "cost", "expenses": "cost",
    "spending": "cost", "staff": "personnel", "fatality": "death", "fatalities": "death", "dollars": "usd",
    "dollar": "usd", "hours": "hour", "days": "day", "allotted": "allocated",
}  # fmt: skip
"""Words that are compared as others."""


@lru_cache(maxsize=200_000)
def level(word: str) -> str:
    """The word without endings, or what an abbreviation stands for; given in lower case.

    >>> level("operational"), level("operations"), level("pct"), level("injuries"), level("injured")
    ('oper', 'oper', 'percent', 'injur', 'injur')
    """
    known = SAME.get(word)
    if known:
        word = known
    if word in GENERIC or not word.isascii() or len(word) > _LONGEST_WORD:
        return word
    if word.endswith("s") and len(word) == 4 and word[-2] not in "sui":
        word = word[:-1]
    shortened = True
    while shortened:
        shortened = False
        if word.endswith("ss") and not word.endswith("ness"):
            break
        for suffix in _BY_LAST.get(word[-1:], ()):
            if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
                word = word[: -len(suffix)]
                shortened = True
                break
        if word in GENERIC:
            break
    return SAME.get(word, word)


def pieces(name: str) -> list[str]:
    """An identifier's words in lower case, by underscores, capitals and digits.

    >>> pieces("ScanResolMm"), pieces("PM25Conc"), pieces("BUDGETALLOTUSD")
    (['scan', 'resol', 'mm'], ['pm', '25', 'conc'], ['budgetallotusd'])
    """
    return [piece.lower() for piece in _PIECES.findall(name)]
