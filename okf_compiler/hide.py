"""Which columns `hide` names: one reading of it for the catalogue's reader, the role's grants and the doctor."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


@lru_cache(maxsize=10_000)
def _pattern(entry: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, entry.split("*"))), re.IGNORECASE | re.DOTALL)
