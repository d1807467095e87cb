"""What config.yaml says of the workspace: its data roots, its bundles, the database. Shared with the agent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from okf_compiler.errors import UserError, did_you_mean

CONFIG_FILE = "config.yaml"
SECTION_KEYS = {
    "model": "name",
    "agent": "max_steps",
    "database": "engine",
    "databases": "NAME",
    "trace": "rows",
    "mcp": "databases",
    "cells": "NAME",
}
"""A key of each section, for messages."""


class Section(BaseModel):
    """A section of config.yaml: every key is documented where its field is; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, le=1_000_000)]
"""PostgreSQL's own limits end at 24 days."""


def _host(value: str) -> str:
    """Refuse a URL or a login where a host belongs; the message has none of it."""
    if re.search(r"@|://|\s|=", value):
        raise ValueError(
            "a name, an address or the folder of a socket, and nothing else: the login and its password belong in .env"
        )
    return value


class DatabaseSection(Section):
    """`database:` where questions are run, and the limits of one query."""

    engine: Literal["embedded", "docker", "server"] = "embedded"
    """Which PostgreSQL: one from a wheel in this workspace, the LiveSQLBench container, or yours."""
    host: Annotated[str, AfterValidator(_host)] = "localhost"
    """Host of the docker and server engines."""
    port: Annotated[int, Field(gt=0, lt=65_536)] = 5432
    """Port of the docker and server engines."""
    agent_user: str = "agent_ro"
    """The role that runs the model's SQL; it can only read."""
    pooler_project: str = ""
    """What a pooler in front of many servers takes behind the name of a role: `abc` where `agent_ro` logs in as
    `agent_ro.abc`."""
    connection_limit: Positive = 50
    """Connections that role may have at once."""
    temp_file_limit_mb: Annotated[int, Field(ge=0)] = 1_000
    """Disk one session of that role may use for sorting and hashing; only a superuser can set it."""
    hide: tuple[str, ...] = ()
    """Columns (`customers.ssn`, `sales.customers.ssn`, `*.ssn`) or whole tables that nobody is to see, in any database:
    the role gets no right to them, and a catalogue is read and checked without them."""
    allow_functions: tuple[str, ...] = ()
    """Functions people wrote or extensions brought that the role may run: `name` or `schema.name`."""
    harden_public: bool | None = None
    """Take rights from PUBLIC that the role would share: TEMPORARY, functions, catalogue functions that act.
    None: where the server is ours (embedded, docker). On a server with other users it may break their work."""
    statement_timeout_s: Seconds = 30
    """Seconds one query may take, by our own clock and by the server's."""
    export_timeout_s: Seconds = 600
    """Seconds that writing a whole result may take, to a file or to standard output; the role's own limit, as the
    product sets it from `statement_timeout_s`, does not count there, a shorter one that a DBA gave the role does."""
    max_rows: Positive = 20
    """Rows of one query that the model and the terminal see."""
    max_cell_chars: Positive = 2_000
    """Characters of one cell that the model and the terminal see."""
    max_bytes: Positive = 10_000_000
    """Bytes of one query's rows that are held in memory."""
    max_cost: float | None = None
    """The planner's cost above which a query is refused before it runs; None for no bound."""


Files: TypeAlias = Annotated[
    tuple[Path, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
"""One path or a list of them, from the workspace's folder."""


class DatabaseOverride(Section):
    """`databases.<name>:` what the file layout does not say about one database."""

    dump: Path | None = None
    """The SQL file with its content."""
    schema_name: str | None = Field(default=None, alias="schema")
    """The PostgreSQL schema its tables live in; `schema:` in the file."""
    hide: tuple[str, ...] = ()
    """The same as `database.hide`, in this database only."""
    live: Literal["configured"] | None = Field(default=None, alias="from")
    """`from: configured`: its tables come from the catalogue of the server of `database:`, in the database of this
    name; None: from the documents in a data root."""
    columns: Files = ()
    """Data dictionaries that say more of its columns: CSV files, folders of them, or Defog metadata files."""
    rules: Files = ()
    """Glossaries with its business rules: YAML, JSON or CSV files, or folders of them."""
    dbt: Files = ()
    """Folders of dbt projects."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file or folder that says more of it."""
        return (*self.columns, *self.rules, *self.dbt)


@dataclass(frozen=True)
class Settings:
    """A workspace: the folder with config.yaml (or the current one), and what its keys point to."""

    root: Path
    bundles: Path
    data_roots: tuple[Path, ...]
    """In order: `agent.raw_docs`, then `<root>/data`. The first root that has a database wins."""
    database: DatabaseSection
    databases: Mapping[str, DatabaseOverride]
    origin: Path | str = CONFIG_FILE
    """Where its values are from, the file or the option, for messages."""

    @property
    def profiles(self) -> Path:
        """What was measured in the data, a folder a database, beside the compiled bundles."""
        return self.bundles.parent / "profiles"

    def hidden(self, name: str) -> tuple[str, ...]:
        """What `database.hide` and `databases.<name>.hide` keep back in one database; `hide.is_hidden` reads it."""
        override = self.databases.get(name)
        return tuple(dict.fromkeys((*self.database.hide, *(override.hide if override else ()))))

    def hide_place(self, name: str, entry: str) -> str:
        """Return where config.yaml has an entry of `hide`, as `config.yaml:7`."""
        here = entry in self.databases.get(name, DatabaseOverride()).hide
        return place_of(self.origin, (*(("databases", name) if here else ("database",)), "hide", entry))


def find_root(start: Path | None = None) -> Path:
    """The nearest folder at or above `start` (default: the current one) with a config.yaml, else `start`.

    Raises:
        UserError: there is no current folder.
    """
    try:
        here = (start or Path.cwd()).resolve()
    except FileNotFoundError:
        raise UserError("The current folder is not there any more: go to one that is.") from None
    return next((d for d in (here, *here.parents) if (d / CONFIG_FILE).is_file()), here)


def utf8_text(path: Path, absent: tuple[type[OSError], ...] = (FileNotFoundError,)) -> str | None:
    """Return the text of a file, without a byte order mark; None where an error of `absent` says that there is none.

    Raises:
        UserError: it cannot be read, or is not UTF-8; names the line.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except absent:
        return None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}:{line}: this is not UTF-8. Save the file as UTF-8.", status=2) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", status=2) from None


def read_config(path: Path) -> dict[str, Any]:
    """The sections in a config.yaml; {} if the file is absent or empty.

    Raises:
        UserError: unreadable, not UTF-8, not YAML, or not a mapping of sections.
    """
    text = utf8_text(path)
    if text is None:
        return {}
    try:
        loader = yaml.CSafeLoader(text)
        node = loader.get_single_node()
        content = loader.construct_document(node) if node else None
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{path}{_not_yaml(text, error)}", status=2) from None
    if content is None:
        return {}
    _refuse_duplicates(node, path, set())
    if not isinstance(content, dict):
        raise UserError(f"{path}: this is no mapping. Write sections with keys: {_indented('model', 'name')}", status=2)
    for name, section in content.items():
        if not isinstance(section, dict | None):
            place, key = place_of(path, [str(name)]), SECTION_KEYS.get(str(name), "KEY")
            raise UserError(f"{place}: {name} is a section with keys, not a value: {_indented(name, key)}", status=2)
    return {str(name): section or {} for name, section in content.items()}


def _indented(section: str, key: str) -> str:
    return f"`{section}:`, and below it, indented with spaces, `{key}: …`"


def _not_yaml(text: str, error: Exception) -> str:
    """The line at which a text stops being YAML, and what to do there."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    position = getattr(error, "position", None)  # of a character that YAML does not take
    if mark is None and position is None:
        return ": it is nested too deeply. Take out what no key of it needs."
    number = mark.line if mark else text.count("\n", 0, position)
    lines = text.splitlines()
    line = lines[number] if number < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return f":{number + 1}: the line is indented with a tab. Indent it with spaces."
    if mark is None:
        return f":{number + 1}: there is a control character. Take it out."
    said = getattr(error, "problem", None) or getattr(error, "context", None)
    began = getattr(error, "context_mark", None)
    if began is not None and began.line != number:
        said = f"{said} {error.context} that begins in line {began.line + 1}"  # type: ignore[attr-defined]
    return f":{number + 1}: this is not YAML: {said}. Look at the colons, quotes and indentation up to there."


def _refuse_duplicates(node: yaml.Node | None, path: Path, seen: set[int]) -> None:
    """Raise if a mapping has a key twice: YAML drops the first one in silence, and what it hid would be shown.

    Raises:
        UserError: names both lines.
    """
    if node is None or id(node) in seen or isinstance(node, yaml.ScalarNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_duplicates(item, path, seen)
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = str(key.value)
        if name != "<<" and lines.setdefault(name, line) != line:
            raise UserError(
                f"{path}:{line}: {name}: stands in line {lines[name]} already. Put both into one.", status=2
            )
        _refuse_duplicates(value, path, seen)


SectionT = TypeVar("SectionT", bound=Section)


def read_section(model: type[SectionT], values: Mapping[str, Any], name: str, origin: Path | str) -> SectionT:
    """One validated section; `origin` is where its values are from, the file or the option.

    Raises:
        UserError: names the key, its line in the file, and the nearest real key.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        # A mistyped key explains why another is missing.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        keys = [*name.split(".", 1), *map(str, first["loc"])]
        advice = first["msg"].replace("valid tuple", "list").replace("valid dictionary", "mapping")
        if first["type"] == "extra_forbidden":
            advice = f"there is no such key{did_you_mean(keys[-1], _known_keys(model, len(first['loc'])))}"
        raise UserError(f"{place_of(origin, keys)}: {'.'.join(keys)}: {advice}", status=2) from None


def _known_keys(model: type[Section], depth: int) -> list[str]:
    """The keys of a section, or of what its mappings hold at a depth below it."""
    fields = model.model_fields.values()
    inner = [kind for field in fields for kind in get_args(field.annotation)]
    below = [kind for kind in inner if isinstance(kind, type) and issubclass(kind, Section)]
    if depth > 1 and below:
        return [key for kind in below for key in _known_keys(kind, 1)]
    return [field.alias or name for name, field in model.model_fields.items()]


def place_of(origin: Path | str, keys: Sequence[str]) -> str:
    """`config.yaml:7`: the line of the nearest key, or item of a list, of a path of keys; an option as it is."""
    if isinstance(origin, str):
        return origin
    try:
        node = yaml.compose(origin.read_text(encoding="utf-8-sig"), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return str(origin)
    line = None
    for key in keys:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        if isinstance(node, yaml.SequenceNode):
            pairs = [(item, item) for item in node.value]
        found = next(((k, v) for k, v in pairs if str(k.value) == key), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return str(origin) if line is None else f"{origin}:{line}"


def load_settings(
    root: Path | None = None, config: Mapping[str, Any] | None = None, origin: Path | str | None = None
) -> Settings:
    """The workspace at `root` (default: found from the current folder); `config` replaces its file's content.

    `origin` is where that content is from, for messages.

    Raises:
        UserError: config.yaml is broken.
    """
    root = root or find_root()
    file = origin or root / CONFIG_FILE
    sections = read_config(root / CONFIG_FILE) if config is None else config
    agent = sections.get("agent", {})
    roots = _folders(agent.get("raw_docs", "data/livesqlbench-base-lite"), file)
    bundles = agent.get("bundles", "bundles/compiled")
    if not isinstance(bundles, str):
        raise UserError(f"{place_of(file, ('agent', 'bundles'))}: agent.bundles: one folder", status=2)
    return Settings(
        root=root,
        bundles=root / bundles,
        data_roots=tuple(dict.fromkeys([*(root / r for r in roots), root / "data"])),
        database=read_section(DatabaseSection, sections.get("database", {}), "database", file),
        databases={
            str(name): read_section(DatabaseOverride, value or {}, f"databases.{name}", file)
            for name, value in sections.get("databases", {}).items()
        },
        origin=file,
    )


def _folders(value: Any, origin: Path | str) -> list[str]:
    """`agent.raw_docs`: one folder, or a list of them."""
    folders = [value] if isinstance(value, str) else value
    if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
        place = place_of(origin, ("agent", "raw_docs"))
        raise UserError(f"{place}: agent.raw_docs: one folder, or a list of folders", status=2)
    return folders
