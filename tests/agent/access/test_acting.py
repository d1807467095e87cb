"""Two lists of functions that act: what the text refuses, and what is taken from the role. Each has a reason to be
longer than the other in places, and in no others."""

from __future__ import annotations

import re

from okf_agent.access.role_facts import ACTING
from okf_agent.engines import Server
from okf_agent.engines.connection import connect_admin
from okf_agent.sql.refusals import DENIED_FUNCTION

TAKEN_ALONE = re.compile(r"pg_sleep\w*|\w+_if_assigned")
"""A sleep is bounded by our clock, and no number is taken by asking for one that is there: a query may try them."""
REFUSED_ALONE = re.compile(
    r"""
    nextval | setval                                            # need a right to the sequence, which the role lacks
    | pg_\w*replication_slot\w* | pg_logical_slot_\w+           # need REPLICATION
    | binary_upgrade_\w+ | pg_extension_config_dump             # work only inside pg_upgrade and CREATE EXTENSION
    | pg_nextoid | pg_stop_making_pinned_objects                # ask for a superuser themselves
    | pg_get_wal_\w+ | pg_stat_clear_snapshot                   # tell of the server, or touch the session alone
    """,
    re.VERBOSE,
)


def test_what_is_refused_is_taken_too_and_the_other_way_round(postgres: Server) -> None:
    taken = re.compile("|".join(pattern.replace("%", r"\w*") for pattern in ACTING))
    with connect_admin(postgres) as connection:  # to a database in which nothing was taken from anyone
        rows = connection.execute(
            "SELECT proname, bool_or(has_function_privilege('public', oid, 'EXECUTE')) FROM pg_proc "
            "WHERE pronamespace = 'pg_catalog'::regnamespace AND prorettype <> 'trigger'::regtype GROUP BY 1"
        ).fetchall()
    names = {str(name) for name, _ in rows}
    refused = {name for name in names if DENIED_FUNCTION.fullmatch(name)}
    acting = {name for name in names if taken.fullmatch(name)}
    assert not [name for name in acting - refused if not TAKEN_ALONE.fullmatch(name)]
    open_to_all = {str(name) for name, everyone in rows if everyone}
    assert not [name for name in (refused & open_to_all) - acting if not REFUSED_ALONE.fullmatch(name)]
    assert acting & refused & open_to_all, "the lists were compared"
