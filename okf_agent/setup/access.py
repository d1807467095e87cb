"""The role that questions are asked as: found, made with consent, or shown to whoever may make it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from okf_agent.access import role
from okf_agent.access.rights import examine_agent, unsafe_role
from okf_agent.config import Config
from okf_agent.engines import Server
from okf_agent.engines.connection import AGENT_PASSWORD, connect_admin, connect_agent
from okf_agent.engines.server import login_name
from okf_agent.setup.target import Reached
from okf_compiler.errors import UserError

PASSWORD_BYTES = 24


@dataclass(frozen=True)
class Access:
    """Who reads the database from now on."""

    user: str
    params: Mapping[str, Any] = field(repr=False)
    todo: str = ""
    """What is to be done before questions can be asked; then this is whoever connected, for the catalogue alone."""


@dataclass(frozen=True)
class Person:
    """Whoever runs `init`."""

    say: Callable[[str], None]
    ask: Callable[[str], bool]
    """A question, answered with yes or no."""
    keep: Callable[[str], None]
    """Takes the role's password into `.env`; done before the server learns it."""


def settle(config: Config, reached: Reached, person: Person) -> Access:
    """The role of config.yaml if it can read and nothing more; else made here, or its statements shown.

    Raises:
        UserError: the role exists and its password is not known, or its statements fail.
    """
    agent, name = config.settings.database.agent_user, reached.target.name
    if reached.user == agent:
        server = _server(reached, agent, _password(reached))
        if trouble := _trouble(server, config, name):
            todo = (
                f"of {agent}, {trouble}. `okf-agent doctor {name}` shows it all. Whoever may make roles "
                f"takes that back: okf-agent init --from URL --yes, or what `okf-agent prepare {name} --print-sql` "
                f"prints; or name another role: okf-agent init {name} --set database.agent_user=NAME"
            )
            return _as_connected(reached, trouble, person, todo)
        return _as_connected(reached, _what_it_can(server, config, name), person)
    server = _server(reached, agent, os.environ.get(AGENT_PASSWORD))
    exists = _exists(server, name, agent)
    trouble = _trouble(server, config, name) if exists else "there is no such role yet"
    if not trouble:
        person.say(f"   {_what_it_can(server, config, name)}")
        return Access(agent, server.agent)
    as_connected = _server(reached, reached.user, _password(reached))
    if not reached.may_make_roles and not _trouble(as_connected, config, name):
        says = f"questions are asked as {reached.user}: {_what_it_can(as_connected, config, name)}"
        return _as_connected(reached, says, person)
    if exists and "password" in trouble:
        raise UserError(
            f"There is a role {agent} on this server already, and {trouble}.\nPut its password into .env as "
            f"{AGENT_PASSWORD}, or name another role: okf-agent init {name} --set database.agent_user=NAME"
        )
    person.say(f"   {trouble}. What makes it, in {name}:")
    for statement in role.statements(server, name, config).of_role:
        person.say(f"     {statement}")
    if reached.may_make_roles and person.ask(f"Run this as {reached.user} now?"):
        return _make(config, server, reached, exists, person)
    person.say("   not done; what comes next needs no role")
    todo = (
        f"the role {agent} is still to be made. Run the same again with --yes, as someone who may make roles; or let a "
        f"DBA run what `okf-agent prepare {name} --print-sql` prints, put the role's password into .env as "
        f"{AGENT_PASSWORD}, then: okf-agent init {name}"
    )
    return Access(agent, reached.params, todo)


def _as_connected(reached: Reached, says: str, person: Person, todo: str = "") -> Access:
    """The login of the connection is the one for questions."""
    password = _password(reached)
    other = os.environ.get(AGENT_PASSWORD)
    if password and other and other != password:
        raise UserError(f"{AGENT_PASSWORD} in .env is not the password of {reached.user}: correct it there.")
    person.say(f"   {says}")
    if password:
        person.keep(password)
    return Access(reached.user, reached.params, todo)


def _make(config: Config, server: Server, reached: Reached, exists: bool, person: Person) -> Access:
    """Run the statements, with a password nobody has to invent if the role is new."""
    agent, name = config.settings.database.agent_user, reached.target.name
    password = server.agent.get("password")
    if password is None and not exists:
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        person.keep(password)
    server = _server(reached, agent, password)
    for missed in role.ensure_role(server, name, config):
        person.say(f"   not done: {missed}")
    if trouble := _trouble(server, config, name):
        raise UserError(
            f"Still, {trouble}. What was refused to {reached.user} needs a superuser or the owner of the tables: let "
            f"one run the above, then `okf-agent init {name}`. `okf-agent doctor {name}` shows what the role can do."
        )
    person.say(f"   made; {_what_it_can(server, config, name)}")
    return Access(agent, server.agent)


def _what_it_can(server: Server, config: Config, name: str) -> str:
    """What is to be known of a role that questions can be asked as; `okf-agent doctor` says the same at length."""
    more = [finding.check for finding in examine_agent(server, name, config) if finding.level == "yellow"]
    if not more:
        return "it can read, and nothing more"
    return f"it can read, and write nothing; `okf-agent doctor {name}` has a note on: {', '.join(more)}"


def _trouble(server: Server, config: Config, name: str) -> str:
    """Why questions cannot be asked as the server's agent; "" if they can."""
    try:
        if reds := unsafe_role(server, name, config):
            return "it can do more than read: " + " ".join(reds).removesuffix(".")
        with connect_agent(server, name) as connection:
            tables = connection.execute(
                "SELECT count(*) FILTER (WHERE has_any_column_privilege(c.oid, 'SELECT')), count(*) FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p') AND nspname !~ '^pg_' "
                "AND nspname <> 'information_schema'"
            ).fetchone() or (0, 0)
        return "it may read no table yet" if tables[1] and not tables[0] else ""
    except UserError as error:
        return f"it cannot connect yet ({str(error).splitlines()[0].partition(': add ')[0].removesuffix('.')})"


def _server(reached: Reached, agent: str, password: str | None) -> Server:
    """The server as the connection's login for an administrator, and as `agent` for questions."""
    kept = {k: v for k, v in reached.params.items() if k not in ("user", "password")}
    return Server(
        "server",
        dict(reached.params),
        {**kept, "user": login_name(agent, reached.project), **({"password": password} if password else {})},
    )


def _password(reached: Reached) -> str | None:
    password = reached.params.get("password")
    return str(password) if password else None


def _exists(server: Server, name: str, agent: str) -> bool:
    with connect_admin(server, name) as connection:
        return bool(connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [agent]).fetchall())
