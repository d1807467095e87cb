"""Which databases there are, and the files of each: looked for in the data roots, or named in config.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings

SCHEMA_SUFFIX = "_schema.txt"
MEANINGS_SUFFIX = "_column_meaning_base.json"
RULES_SUFFIX = "_kb.jsonl"


@dataclass(frozen=True)
class Documents:
    """The files of one database in one data root. Only `schema` is sure to exist, and not where it is `live`."""

    name: str
    root: Path
    schema: Path
    meanings: Path
    rules: Path
    dump: Path | None
    live: bool = False
    """Its tables come from the configured server's catalogue."""

    @property
    def folder(self) -> Path:
        return self.schema.parent


def list_databases(settings: Settings) -> dict[str, Documents]:
    """Every database by name: of the data roots, in order of roots and then of names, then of config.yaml alone."""
    found: dict[str, Documents] = {}
    for root in settings.data_roots:
        for schema in sorted(root.glob(f"*/*{SCHEMA_SUFFIX}")):
            name = schema.parent.name
            if schema.name == name + SCHEMA_SUFFIX and name not in found:
                found[name] = _documents(settings, root, name)
    for name, override in settings.databases.items():
        if override.live and name not in found:
            found[name] = _documents(settings, settings.root / "data", name)
    return found


def find_documents(settings: Settings, name: str) -> Documents:
    """The documents of the database `name`, from the first data root that has it, or as config.yaml records it.

    Raises:
        UserError: no root has it; near names are suggested.
    """
    for root in settings.data_roots:
        if Path(name).name == name and (root / name / (name + SCHEMA_SUFFIX)).is_file():
            return _documents(settings, root, name)
    known = list_databases(settings)
    if name in known:
        return known[name]
    if not known:
        raise no_database(settings)
    roots = ", ".join(str(r) for r in settings.data_roots)
    raise UserError(
        f"There is no database {name!r}{did_you_mean(name, known)}\n"
        f"Looked for {name}/{name}{SCHEMA_SUFFIX} in {roots}. Known: {', '.join(known)}.\n"
        f"`okf-agent init {name}` sets up a database of your own server.",
        status=2,
    )


def only_database(settings: Settings) -> str:
    """The only database there is.

    Raises:
        UserError: there is none, or more than one to choose from.
    """
    known = list_databases(settings)
    if len(known) > 1:
        raise UserError(f"Which database? Choose one with --db: {', '.join(known)}.", status=2)
    if not known:
        raise no_database(settings)
    return next(iter(known))


def no_database(settings: Settings) -> UserError:
    """That the workspace has no database at all, and how it gets one."""
    roots = ", ".join(str(root) for root in settings.data_roots)
    return UserError(
        f"There is no database in {roots}: looked for <db>/<db>{SCHEMA_SUFFIX}.\n"
        f"`okf-agent init --demo` puts the demo shop into {settings.root}; `okf-agent init` sets up a database of "
        "your own server.",
        status=2,
    )


def _documents(settings: Settings, root: Path, name: str) -> Documents:
    folder = root / name
    override = settings.databases.get(name)
    live = bool(override and override.live)
    candidates = [] if live else [folder / f"{name}.sql", root / "dumps" / f"{name}_full.sql"]
    if override and override.dump:
        candidates.append(settings.root / override.dump)
    return Documents(
        name=name,
        root=root,
        schema=folder / (name + SCHEMA_SUFFIX),
        meanings=folder / (name + MEANINGS_SUFFIX),
        rules=folder / (name + RULES_SUFFIX),
        dump=next((c for c in candidates if c.is_file()), None),
        live=live,
    )
