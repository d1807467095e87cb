"""What SQL is refused by its kind or by a function it calls, and the words in which that is said."""

from __future__ import annotations

import re

NEVER = "This will never be allowed: the database can only be read."

_WRITES = {
    "INSERT": "adds rows",
    "UPDATE": "changes rows",
    "DELETE": "deletes rows",
    "MERGE": "changes rows",
    "TRUNCATE": "deletes rows",
    "CREATE": "creates things",
    "ALTER": "changes definitions, settings or passwords",
    "DROP": "removes things",
    "COMMENT": "changes descriptions",
    "GRANT": "changes rights",
    "REVOKE": "changes rights",
    "REASSIGN": "changes rights",
    "SECURITY": "changes labels",
    "REFRESH": "rewrites a materialized view",
    "REINDEX": "rewrites indexes",
    "CLUSTER": "rewrites a table",
    "VACUUM": "rewrites a table",
    "ANALYZE": "rewrites statistics",
    "ANALYSE": "rewrites statistics",
    "IMPORT": "creates tables",
    "CALL": "runs a procedure, which can do anything",
    "DO": "runs a program, which can do anything",
    "EXECUTE": "runs a prepared statement",
    "PREPARE": "prepares a statement for later",
    "DEALLOCATE": "changes the session",
    "SET": "changes settings",
    "RESET": "changes settings",
    "DISCARD": "changes the session",
    "LOAD": "loads code into the server",
    "LOCK": "locks tables",
    "LISTEN": "subscribes the session",
    "UNLISTEN": "changes the session",
    "NOTIFY": "sends a message to other sessions",
    "CHECKPOINT": "makes the server write",
    "DECLARE": "opens a cursor",
    "FETCH": "reads a cursor",
    "MOVE": "moves a cursor",
    "CLOSE": "closes a cursor",
    "BEGIN": "controls transactions",
    "START": "controls transactions",
    "COMMIT": "controls transactions",
    "END": "controls transactions",
    "ROLLBACK": "controls transactions",
    "ABORT": "controls transactions",
    "SAVEPOINT": "controls transactions",
    "RELEASE": "controls transactions",
}
_INSTEAD = {
    "COPY": "COPY moves data between the database and files. Write the query itself as a SELECT; "
    "the rows of any SELECT can be written to a file by the person who asks.",
    "DESCRIBE": "DESCRIBE is not PostgreSQL. Read information_schema.columns, or the table's file in the bundle.",
    "DESC": "DESC is not PostgreSQL. Read information_schema.columns, or the table's file in the bundle.",
    "USE": "USE is not PostgreSQL. Name the schema before the table: schema.table.",
}

DENIED_FUNCTION = re.compile(
    r"""
    lo_(creat|create|open|close|unlink|import|export|put|get|from_bytea|truncate|truncate64|lseek|lseek64|tell|tell64
        |manage|oid) | loread | lowrite                             # large objects: outside any table
    | pg_(try_)?advisory_\w+                                        # locks that outlive a transaction
    | pg_notify | pg_(terminate|cancel)_backend | set_config | setseed | nextval | setval
    | pg_export_snapshot | txid_current | pg_current_xact_id        # take a transaction number
    | pg_logical_\w+ | pg_replication_\w+ | pg_(create|drop|copy)_\w+ | pg_sync_replication_slots
    | (query|cursor|table|schema|database)_to_xml\w* | ts_stat | ts_rewrite   # run SQL that is given as text
    | pg_read_(binary_)?file\w* | pg_ls_\w+ | pg_stat_file | pg_current_logfile | pg_hba_file_rules
    | pg_stat_(statements_)?reset\w* | pg_stat_force_next_flush | pg_stat_clear_snapshot
    | pg_switch_(wal|xlog) | pg_reload_conf | pg_rotate_logfile\w* | pg_promote | pg_wal_replay_\w+
    | pg_(start|stop)_backup | pg_backup_(start|stop) | pg_log_\w+ | pg_import_system_collations
    | gin_clean_pending_list | brin_(de)?summarize_\w+ | pg_file_\w+ | pg_logdir_ls | pg_nextoid
    | pg_(clear|restore)_\w+_stats | pg_extension_config_dump | binary_upgrade_\w+ | pg_stop_making_\w+
    | dblink\w* | crosstab\w* | connectby | xpath_table | postgres_fdw_\w+
    | get_raw_page | pgrowlocks | heap_page_\w+ | page_(header|checksum) | tuple_data_split | fsm_page_contents
    | (bt|brin|gin|gist|hash)_(page|metap|multi_page|revmap|leafpage|bitmap|metapage)\w* | bt_index_\w+
    | pgstat(tuple|index|ginindex|hashindex)\w* | pg_prewarm | autoprewarm\w*
    | pg_buffercache_\w+ | pg_truncate_\w+ | pg_surgery\w* | heap_force_\w+ | verify_heapam | injection_points_\w+
    | adminpack\w* | amcheck\w* | pg_walinspect\w* | pg_get_wal_\w+
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Names of functions that change something, reach outside the tables, or run SQL given as text, extensions' included.
Those that everyone may call are taken from the role as well: `access.role_facts.ACTING`."""


def refusal(word: str, text: str) -> tuple[str, bool]:
    """Why a statement that begins with `word` is not run, and whether no wording of it ever will be."""
    if word in _WRITES:
        return f"{word} is refused: it {_WRITES[word]}. {NEVER}", True
    if word in _INSTEAD:
        return f"{_INSTEAD[word]}" + (f" {NEVER}" if word == "COPY" else ""), word == "COPY"
    shown = " ".join(text.split())[:40]
    return (
        f"The SQL must begin with SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW, and this begins with {shown!r}. "
        "Send the query alone, without words around it.",
        False,
    )
