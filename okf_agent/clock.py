"""Today's date and the session's time zone, as every model is told them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from okf_agent import prompts
from okf_agent.sql.query_error import QueryError
from okf_agent.tools import Queries

UNASKED = "(the database is asked with a question)"
"""The time zone where no server is asked."""
ZONE = re.compile(r"[\w/+:<>-]{1,60}", re.ASCII)


@dataclass(frozen=True)
class Day:
    """A date, and the time zone in which it is that date; "" where no session has one."""

    date: date
    time_zone: str = ""

    def told(self) -> str:
        """Return the sentence of the instructions."""
        zone = prompts.say("time_zone", zone=self.time_zone) if self.time_zone else ""
        return f"{prompts.say('today', date=self.date.isoformat(), weekday=f'{self.date:%A}')} {zone}".rstrip()


LONGEST = Day(date(2030, 12, 25), "America/Argentina/Buenos_Aires").told()
"""A sentence that takes as many tokens as any, for whoever has to leave room for it."""


def today(database: Queries | None, fixed: date | None) -> Day:
    """Return the day in the time zone of the database's session; `fixed` comes before the clock."""
    zone = _time_zone(database) if database else ""
    if fixed:
        return Day(fixed, zone)
    try:
        here = datetime.now(ZoneInfo(zone)) if zone else datetime.now()
    except (KeyError, OSError, ValueError):  # PostgreSQL has more names of zones, and this machine may have none
        here = datetime.now()
    return Day(here.date(), zone)


def _time_zone(database: Queries) -> str:
    """The session's time zone; "" where it cannot be asked: the first query of the run will say why."""
    try:
        ((zone,),) = database.run("SELECT current_setting('TimeZone')").rows
    except (QueryError, ValueError):
        return ""
    return zone if zone and ZONE.fullmatch(zone) else ""
