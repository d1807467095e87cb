"""What a database's catalogue says that the role's statements depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from okf_agent.access.hidden import USER_SCHEMA, HiddenTable, hidden_tables

FIRST_USER_OID = 16384
ACTING = (
    "lo_%", "loread", "lowrite", "pg_advisory%", "pg_try_advisory%", "pg_sleep%", "pg_notify",
    "pg_terminate_backend", "pg_cancel_backend", "pg_logical_emit_message", "pg_export_snapshot",
    "pg_current_xact_id", "pg_current_xact_id_if_assigned", "txid_current", "txid_current_if_assigned",
    "set_config", "setseed", "%_to_xml", "%_to_xmlschema", "%_to_xml_and_xmlschema", "ts_stat", "ts_rewrite",
    "gin_clean_pending_list", "brin_summarize_%", "brin_desummarize_range", "pg_import_system_collations",
    "pg_restore_%_stats", "pg_clear_%_stats", "pg_stat_reset%", "pg_stat_force_next_flush",
)  # fmt: skip
"""Catalogue functions (LIKE patterns) that change something, hold something, or run SQL given as text, and that
everyone may call where nobody took it away. `sql.refusals.DENIED_FUNCTION` has them too, and those that need another
right; tests/agent/access/test_acting.py holds the two together, and names what stands in one alone."""

ROUTINE = (
    "quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')'"
)
ROUTINES = "FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"

_NAMES = ", ".join("'" + name.replace("_", r"\_") + "'" for name in ACTING)
ACTING_ROUTINES = (
    f"SELECT {ROUTINE} {ROUTINES} WHERE n.nspname = 'pg_catalog' AND p.prorettype <> 'trigger'::regtype "
    f"AND (p.oid >= {FIRST_USER_OID} OR p.proname LIKE ANY (ARRAY[{_NAMES}])) ORDER BY 1"
)
"""Signatures of the catalogue functions that act, and of functions put into pg_catalog."""
NEEDED_ROUTINES = (
    f"SELECT {ROUTINE} {ROUTINES} WHERE p.oid >= {FIRST_USER_OID} AND NOT p.prosecdef "
    "AND EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid "
    "AND d.deptype = 'e') AND p.oid IN (SELECT oprcode FROM pg_operator UNION SELECT castfunc FROM pg_cast) "
    "AND p.provolatile <> 'v' ORDER BY 1"
)
"""Signatures behind the operators and casts of extensions' types: without them a column is of no use."""

STATE = f"""
SELECT md5(string_agg(fact, E'\\n' ORDER BY fact)) FROM (
    SELECT concat_ws(' ', 'class', oid, relname, relnamespace, relowner, relacl) FROM pg_class
        WHERE relkind IN ('r', 'v', 'm', 'f', 'p', 'S') AND oid >= {FIRST_USER_OID}
    UNION ALL SELECT concat_ws(' ', 'column', attrelid, attname, attacl) FROM pg_attribute
        WHERE attrelid >= {FIRST_USER_OID} AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT concat_ws(' ', 'schema', oid, nspname, nspacl) FROM pg_namespace
    UNION ALL SELECT concat_ws(' ', 'routine', oid, proname, prosecdef, proacl) FROM pg_proc
        WHERE oid >= {FIRST_USER_OID} OR proacl IS NOT NULL
    UNION ALL SELECT concat_ws(' ', 'default', defaclrole, defaclnamespace, defaclobjtype, defaclacl)
        FROM pg_default_acl
    UNION ALL SELECT concat_ws(' ', 'database', oid, datacl) FROM pg_database WHERE datname = current_database()
    UNION ALL SELECT concat_ws(' ', 'role', r.oid, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb,
            r.rolcanlogin, r.rolreplication, r.rolbypassrls, r.rolconnlimit, s.setdatabase, s.setconfig)
        FROM pg_roles r LEFT JOIN pg_db_role_setting s ON s.setrole = r.oid
            AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
        WHERE r.rolname = %(role)s
    UNION ALL SELECT concat_ws(' ', 'member', m.roleid) FROM pg_auth_members m
        JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = %(role)s
) AS facts(fact)"""
"""A digest of every right that matters: the same as long as nobody granted, revoked or made anything."""


@dataclass(frozen=True)
class Facts:
    """The catalogue of one database, as far as rights go. The defaults are what is sure of any database."""

    version: int = 0
    """Like 180006."""
    superuser: bool = False
    """Whether the one who will run the statements is."""
    admin: str = ""
    role: Mapping[str, Any] | None = None
    """The row of pg_roles; None if there is no such role."""
    memberships: tuple[tuple[str, str], ...] = ()
    """Roles this one is a member of, and who granted it."""
    schemas: tuple[str, ...] = ("public",)
    owners: tuple[str, ...] = ()
    """Owners of tables whose default privileges may be changed."""
    acting: tuple[str, ...] = ()
    """Of ACTING_ROUTINES."""
    needed: tuple[str, ...] = ()
    """Of NEEDED_ROUTINES."""
    allowed: tuple[str, ...] = ()
    """Signatures of the functions allowed by name."""
    hidden: tuple[HiddenTable, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Entries of `hide` that name nothing in this database."""


def read_facts(connection: psycopg.Connection[Any], role: str, hide: Iterable[str], allow: Iterable[str]) -> Facts:
    """The facts of the connection's database."""
    cursor = connection.cursor()

    def column(query: str, **values: Any) -> tuple[Any, ...]:
        return tuple(row[0] for row in cursor.execute(query.encode(), values or None))

    admin, superuser = cursor.execute(
        "SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user"
    ).fetchone() or ("", False)
    roles = cursor.execute("SELECT to_jsonb(r) FROM pg_roles r WHERE rolname = %s", [role]).fetchone()
    hidden, unmatched = hidden_tables(connection, tuple(hide))
    return Facts(
        version=connection.info.server_version,
        superuser=superuser,
        admin=admin,
        role=roles[0] if roles else None,
        memberships=tuple(
            cursor.execute(
                "SELECT g.rolname, by.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid "
                "JOIN pg_roles by ON by.oid = m.grantor JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = %s",
                [role],
            )
        ),
        schemas=column(f"SELECT n.nspname FROM pg_namespace n WHERE {USER_SCHEMA} ORDER BY 1"),
        owners=column(
            "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
            f"WHERE {USER_SCHEMA} AND pg_has_role(relowner, 'MEMBER') UNION SELECT current_user ORDER BY 1"
        ),
        acting=column(ACTING_ROUTINES),
        needed=column(NEEDED_ROUTINES),
        allowed=column(
            f"SELECT {ROUTINE} {ROUTINES} WHERE p.proname = ANY (%(names)s) "
            "OR n.nspname || '.' || p.proname = ANY (%(names)s) ORDER BY 1",
            names=list(allow),
        ),
        hidden=hidden,
        unmatched=unmatched,
    )
