"""What is asked of PostgreSQL's catalogue: a handful of queries over all tables, none for each table.

They run as a role that can only read (information_schema hides constraints from it and knows no materialized
views), on PostgreSQL 14 to 18. Every cell comes as text; lists come as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from okf_compiler.postgres import Row

_RELATIONS = """
    relations AS MATERIALIZED (
        SELECT c.oid, n.nspname, c.relname, c.relkind, c.relrowsecurity,
               has_schema_privilege(n.oid, 'USAGE') AS reachable,
               has_table_privilege(c.oid, 'SELECT') AS readable
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition
          AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                          AND d.objid = c.oid AND d.deptype = 'e'))
"""
"""Tables of every kind: no parts of partitioned ones, no system's and no extension's own."""

TABLES = f"""
    WITH {_RELATIONS}
    SELECT r.oid::text, r.nspname::text, r.relname::text, r.relkind::text, r.reachable::text,
           obj_description(r.oid, 'pg_class'), r.relrowsecurity::text
    FROM relations r ORDER BY r.nspname COLLATE "C", r.relname COLLATE "C"
"""
"""oid, schema, name, kind, whether the schema may be used, comment, whether row security is on."""

COLUMNS = f"""
    WITH {_RELATIONS}
    SELECT a.attrelid::text, a.attname::text, a.atttypid::text, format_type(a.atttypid, a.atttypmod),
           (NOT a.attnotnull)::text, pg_get_expr(d.adbin, d.adrelid), a.attidentity::text, a.attgenerated::text,
           (r.reachable AND (r.readable OR has_column_privilege(a.attrelid, a.attnum, 'SELECT')))::text,
           c.description
    FROM relations r
    JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    LEFT JOIN pg_description c ON c.classoid = 'pg_class'::regclass AND c.objoid = a.attrelid
                              AND c.objsubid = a.attnum
    ORDER BY a.attrelid, a.attnum
"""
"""Table's oid, name, type's oid, type, nullable, default or expression, identity, generated, readable, comment."""

NAMES = f"""
    WITH {_RELATIONS}
    SELECT r.nspname::text, r.relname::text, a.attname::text
    FROM relations r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
"""
"""Schema, table and column of all there is, readable or not."""

TYPES = """
    SELECT t.oid::text, t.typtype::text, format_type(t.oid, NULL),
           CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END::text,
           format_type(t.typbasetype, t.typtypmod), t.typnotnull::text,
           obj_description(t.oid, 'pg_type'),
           (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)::text,
           (SELECT json_agg(pg_get_constraintdef(k.oid, true) ORDER BY k.conname) FROM pg_constraint k
            WHERE k.contypid = t.oid AND k.contype = 'c')::text
    FROM pg_type t
    LEFT JOIN pg_type element ON element.oid = t.typelem AND t.typcategory = 'A'
    WHERE t.typtype IN ('e', 'd') OR element.typtype IN ('e', 'd')
"""
"""Enums, domains and arrays of them: oid, kind, name, oid of the base or element, base, not null, comment, labels,
checks."""

CONSTRAINTS = f"""
    WITH {_RELATIONS},
    keys AS (
        SELECT k.oid, json_agg(a.attname ORDER BY u.place) AS columns
        FROM pg_constraint k
        CROSS JOIN unnest(k.conkey) WITH ORDINALITY AS u(number, place)
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number
        WHERE k.conrelid IN (SELECT oid FROM relations) GROUP BY k.oid),
    targets AS (
        SELECT k.oid, json_agg(a.attname ORDER BY u.place) AS columns
        FROM pg_constraint k
        CROSS JOIN unnest(k.confkey) WITH ORDINALITY AS u(number, place)
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number
        WHERE k.contype = 'f' AND k.conrelid IN (SELECT oid FROM relations) GROUP BY k.oid)
    SELECT k.conrelid::text, k.contype::text, k.conname::text,
           CASE WHEN k.contype = 'c' OR NOT k.convalidated THEN pg_get_constraintdef(k.oid, true) ELSE '' END,
           coalesce(keys.columns, '[]')::text, n.nspname::text, f.relname::text, targets.columns::text
    FROM pg_constraint k
    LEFT JOIN keys ON keys.oid = k.oid LEFT JOIN targets ON targets.oid = k.oid
    LEFT JOIN pg_class f ON f.oid = k.confrelid LEFT JOIN pg_namespace n ON n.oid = f.relnamespace
    WHERE k.conrelid IN (SELECT oid FROM relations) AND k.contype IN ('p', 'f', 'c') AND k.conparentid = 0
    ORDER BY k.conrelid, k.conname COLLATE "C"
"""
"""Table's oid, kind (p, f, c), name, definition (of a check, or of what is not enforced for all rows), columns, and
for a foreign key the schema, table and columns it refers to. A foreign key to a partitioned table has copies for its
parts: those have a parent and are left out."""

UNIQUE = f"""
    WITH {_RELATIONS}
    SELECT i.indrelid::text,
           (SELECT json_agg(a.attname ORDER BY u.place)
            FROM unnest(i.indkey) WITH ORDINALITY AS u(number, place)
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.number
            WHERE u.place <= i.indnkeyatts)::text
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid IN (SELECT oid FROM relations) AND i.indisunique AND NOT i.indisprimary AND i.indisvalid
      AND i.indpred IS NULL AND i.indexprs IS NULL
    ORDER BY i.indrelid, c.relname COLLATE "C"
"""
"""Table's oid and columns of each unique constraint or whole-table unique index."""

VIEW_USES = f"""
    WITH {_RELATIONS}
    SELECT DISTINCT w.ev_class::text, d.refobjid::text, a.attname::text,
           (w.ev_action::text LIKE '%:varattno 0 %')::text
    FROM pg_rewrite w
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                    AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class
    LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND d.refobjsubid > 0
    WHERE w.ev_class IN (SELECT oid FROM relations)
"""
"""View's oid, the oid and column it reads (NULL: no column of it), and whether it uses whole rows of anything: a
dependency on a row as a whole is not recorded beside one on a column."""

LIMITED = """
    WITH RECURSIVE guarded AS MATERIALIZED (
        SELECT c.oid, c.relowner, c.relforcerowsecurity FROM pg_catalog.pg_class c
        WHERE c.relrowsecurity AND (
            EXISTS (SELECT FROM pg_catalog.pg_policy p
                    WHERE p.polrelid = c.oid AND p.polcmd IN ('*', 'r') AND NOT p.polpermissive)
            OR NOT EXISTS (SELECT FROM pg_catalog.pg_policy p, pg_catalog.unnest(p.polroles) AS whom(role)
                           WHERE p.polrelid = c.oid AND p.polcmd IN ('*', 'r') AND p.polpermissive
                             AND pg_catalog.pg_get_expr(p.polqual, p.polrelid) = 'true'
                             AND (whom.role = 0 OR pg_catalog.pg_has_role(whom.role, 'MEMBER'))))
    ), uses AS MATERIALIZED (
        SELECT DISTINCT v.oid, v.relowner, d.refobjid AS used,
               pg_catalog.array_to_string(v.reloptions, ',') ~* 'security_invoker=(true|on|1|yes)' AS as_asker
        FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class v ON v.oid = w.ev_class AND v.relkind = 'v'
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
             AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> w.ev_class
        WHERE EXISTS (SELECT FROM guarded)
    ), limited AS (
        SELECT oid, false AS view FROM guarded WHERE pg_catalog.row_security_active(oid)
        UNION
        SELECT u.oid, true FROM uses u JOIN guarded g ON g.oid = u.used JOIN pg_catalog.pg_roles o ON o.oid = u.relowner
        WHERE CASE WHEN u.as_asker THEN pg_catalog.row_security_active(g.oid)
              ELSE NOT (o.rolsuper OR o.rolbypassrls)
                   AND (g.relforcerowsecurity OR NOT pg_catalog.pg_has_role(u.relowner, g.relowner, 'USAGE')) END
        UNION
        SELECT u.oid, true FROM uses u JOIN limited l ON l.oid = u.used AND l.view
    )
    SELECT DISTINCT n.nspname::text, c.relname::text FROM limited JOIN pg_catalog.pg_class c USING (oid)
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY 1, 2
"""
"""Schema and name of the tables of which row security may keep rows from the connected role, and of the views over
them; not of those that a policy shows whole."""


@contextmanager
def catalogue_names(connection: psycopg.Connection[Any]) -> Iterator[psycopg.Cursor[Row]]:
    """A cursor in a transaction of its own, in which types of `public` print bare and all others with their schema.

    Nothing it does outlives it: it is rolled back, also inside a transaction that is open already.
    """
    with connection.transaction(force_rollback=True), connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = pg_catalog, public")
        yield cursor
