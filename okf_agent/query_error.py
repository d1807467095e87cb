"""Why a query gave no rows, in words for whoever wrote it."""

from __future__ import annotations


class QueryError(Exception):
    """A query that was refused, failed or was stopped. The text is written for the model and the user.

    `sqlstate` is PostgreSQL's code ("" where PostgreSQL was not asked); `never` says that no other wording of
    the same wish will be allowed; `lost` that the connection was lost, so that the same text may work now.
    """

    def __init__(self, message: str, *, sqlstate: str = "", never: bool = False, lost: bool = False) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.never = never
        self.lost = lost
