"""Why a query gave no rows, in words for whoever wrote it."""

from __future__ import annotations

PASSING = frozenset(("53100", "53200", "53300", "40001", "40P01", "55P03", "58030"))
"""SQLSTATEs of a full disk, too little memory, too many connections, conflicts, a lock that was waited for, input and
output."""


class QueryError(Exception):
    """A query that was refused, failed or was stopped. The text is written for the model and the user.

    `sqlstate` is PostgreSQL's code ("" where PostgreSQL was not asked); `never` says that no other wording of
    the same wish will be allowed; `lost` that the connection was lost.
    """

    def __init__(self, message: str, *, sqlstate: str = "", never: bool = False, lost: bool = False) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.never = never
        self.lost = lost

    @property
    def passing(self) -> bool:
        """Whether the same text may work now: the connection was lost, the server was out of something or locked."""
        return self.lost or self.sqlstate in PASSING
