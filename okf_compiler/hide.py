"""Which columns `hide` names: one reading of it for the catalogue's reader, the role's grants and the doctor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def is_hidden(hide: Sequence[str], schema: str, table: str, column: str) -> bool:
    """Whether an entry of `hide` covers the column, in any letter case, `*` standing for anything.

    An entry is `table.column` or a whole `table`, in every schema, or either with its schema before it.

    >>> is_hidden(["customers.ssn"], "sales", "Customers", "SSN"), is_hidden(["*.ssn"], "public", "people", "ssn")
    (True, True)
    >>> is_hidden(["hr.salaries"], "hr", "salaries", "amount"), is_hidden(["hr.salaries"], "public", "x", "salaries")
    (True, False)
    """
    names = (f"{schema}.{table}.{column}", f"{table}.{column}", f"{schema}.{table}", table)
    return any(_pattern(entry).fullmatch(name) for entry in hide for name in names)


def widened(hide: Sequence[str], columns: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return the entries with each path inside a column as the whole column, which is all that a grant can keep back.

    `columns` are those of the database: schema, table, name. An entry that names a column or a table stays, and so does
    one that names nothing.

    >>> widened(["people.doc.tier", "people.mail"], [("public", "people", "doc"), ("public", "people", "mail")])
    ('public.people.doc', 'people.mail')
    """
    known = list(columns)
    found: list[str] = []
    for entry in hide:
        if any(is_hidden([entry], *column) for column in known):
            found.append(entry)
            continue
        inside = [entry[:at] for at, sign in enumerate(entry) if sign == "."]
        found += [".".join(column) for column in known if any(_is_column(path, column) for path in inside)] or [entry]
    return tuple(dict.fromkeys(found))


def _is_column(path: str, column: tuple[str, str, str]) -> bool:
    names = (".".join(column), ".".join(column[1:]))
    return any(path.count(".") >= name.count(".") and _pattern(path).fullmatch(name) for name in names)


@lru_cache(maxsize=10_000)
def _pattern(entry: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, entry.split("*"))), re.IGNORECASE | re.DOTALL)
