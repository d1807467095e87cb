"""A dbt project: models, sources and seeds become tables, tests keys and values, the semantic layer rules.

Read are the properties files (any `.yml`) and doc blocks (any `.md`): no SQL, and no Jinja but doc, ref and source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from okf_compiler.draft import Draft, DraftTable
from okf_compiler.errors import UserError
from okf_compiler.model import Column, Database, Place, Problem, Source
from okf_compiler.readers.dbt_metrics import add_metrics
from okf_compiler.readers.dbt_project import JINJA, Project, entries, flag
from okf_compiler.readers.dbt_semantics import read_semantic_models
from okf_compiler.readers.dbt_tests import add_constraints, add_tests
from okf_compiler.text_files import read_text
from okf_compiler.yaml_text import Entry, YamlError, parse

SOURCE_ID = "dbt"

_SKIPPED_FOLDERS = frozenset({"target", "dbt_packages", "dbt_modules", "logs", "node_modules", "venv", "site-packages"})
_NOT_PROPERTIES = frozenset({"dbt_project", "packages", "dependencies", "profiles", "selectors", "package-lock"})
_RELATIONS = ("models", "seeds", "snapshots")
_READ_KEYS = frozenset({*_RELATIONS, "sources", "semantic_models", "metrics", "version"})
_MODEL_KEYS = frozenset(
    """name description config columns tests data_tests docs meta tags access group latest_version constraints contract
    deprecation_date time_spine semantic_model metrics agg_time_dimension derived_semantics primary_entity grain
    identifier loaded_at_field freshness quoting external data_type quote entity dimension granularity policy_tags
    """.split()  # noqa: SIM905 (a list of forty quoted words is harder to read)
)
_KINDS = {"view": "view", "materialized_view": "materialized view"}
_DOC_BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}((?:(?!\{%-?\s*docs\b).)*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)


def read(path: Path) -> Database:
    """What a project's folder says; `Table.schema` is empty for models, whose schema depends on who runs dbt.

    A table is called as it is in the database: by its alias, unless two models share one.

    Raises:
        UserError: no such folder, or none of its files describes a model, a source or a metric.
    """
    if not path.is_dir():
        raise UserError(f"{path} is not a folder. Name the folder of a dbt project.", status=2)
    problems: list[Problem] = []
    project = Project(path, Draft(problems), problems)
    documents = list(_documents(path, problems))
    project.docs.update(_doc_blocks(path, problems))
    for _, document in documents:
        for key in document.keys() - _READ_KEYS:
            project.unread[key] += len(document[key]) if isinstance(document[key], list) else 1
    _name_relations(project, documents)
    for place, document in documents:
        _read_tables(project, document, place.file)
    layer = read_semantic_models(project, documents, SOURCE_ID)
    add_metrics(layer, documents)
    tables = project.draft.finish(SOURCE_ID)
    if not tables and not layer.rules:
        raise UserError(
            f"{path} has no .yml file that describes a model, a source or a metric."
            + "".join(f"\n{p}" for p in problems[:3]),
            status=2,
        )
    project.report()
    return Database(
        name=path.name,
        tables=tables,
        rules=tuple(layer.rules.values()),
        sources=(Source(SOURCE_ID, path.name or path.resolve().name, f"dbt project {path.resolve().name}"),),
        problems=tuple(problems),
        places={**project.draft.places, **project.rule_places},
    )


def _files(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for file in sorted(path.rglob("*")):
        folders = file.relative_to(path).parts[:-1]
        skipped = any(part in _SKIPPED_FOLDERS or part.startswith(".") for part in folders)
        if file.suffix.lower() in suffixes and not skipped and file.is_file():
            yield file


def _documents(path: Path, problems: list[Problem]) -> Iterator[tuple[Place, Entry]]:
    """Every properties document with the file it stands in."""
    for file in _files(path, (".yml", ".yaml")):
        if file.stem in _NOT_PROPERTIES:
            continue
        try:
            documents = parse(read_text(file, problems), str(file), problems)
        except YamlError as error:
            problems.append(Problem(f"the file cannot be read: {error}", str(file), error.line))
            continue
        for document in documents:
            if isinstance(document, Entry):
                yield Place(str(file), document.line), document
            else:
                problems.append(Problem("is not a mapping with models, sources or metrics", str(file)))


def _doc_blocks(path: Path, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    for file in _files(path, (".md",)):
        for name, text in _DOC_BLOCK.findall(read_text(file, problems)):
            yield name, text.strip()


# --- names: what ref() and source() mean ---


def _name_relations(project: Project, documents: list[tuple[Place, Entry]]) -> None:
    """Fill in the tables that models and source tables stand for."""
    aliases: dict[str, list[str]] = {}
    for place, document in documents:
        for key in _RELATIONS:
            for entry in entries(project, document, key, place.file):
                alias = _config(entry).get("alias") or entry.get("alias")
                alias = alias if isinstance(alias, str) and not JINJA.search(alias) else entry["name"]
                aliases.setdefault(alias, []).append(entry["name"])
                project.relations[entry["name"]] = ("", alias)
        for source in entries(project, document, "sources", place.file):
            schema = source.get("schema") or source["name"]
            if not isinstance(schema, str) or JINJA.search(schema):
                project.note_jinja(str(schema), Place(place.file, source.line))
                schema = ""
            for table in entries(project, source, "tables", place.file):
                name = table.get("identifier") or table["name"]
                project.relations[f"{source['name']}.{table['name']}"] = (schema, name)
    for alias, models in aliases.items():
        if len(set(models)) > 1:
            project.problem(
                f"the alias {alias!r} belongs to the models {', '.join(sorted(models))}, in schemas that dbt decides "
                "when it runs; the tables are called by their models' names",
                Place(str(project.path)),
            )
            project.relations.update({model: ("", model) for model in models})


def _config(entry: Entry) -> dict[str, Any]:
    config = entry.get("config")
    return config if isinstance(config, dict) else {}


# --- models, seeds, snapshots and sources -> tables ---


def _read_tables(project: Project, document: Entry, file: str) -> None:
    for key in _RELATIONS:
        for entry in entries(project, document, key, file):
            _read_table(project, entry, project.relations[entry["name"]], file)
    for source in entries(project, document, "sources", file):
        for entry in entries(project, source, "tables", file):
            _read_table(project, entry, project.relations[f"{source['name']}.{entry['name']}"], file)


def _read_table(project: Project, entry: Entry, relation: tuple[str, str], file: str) -> None:
    config = _config(entry)
    place = Place(file, entry.line)
    materialized = str(config.get("materialized", ""))
    if flag(config.get("enabled")) is False:
        return
    if materialized == "ephemeral":
        project.problem(f"the model {entry['name']} is ephemeral, so the database has no such table", place)
        return
    if "versions" in entry:
        project.problem(f"the model {entry['name']} has versions, which are not read", place)
    project.unread.update(entry.keys() - _MODEL_KEYS - {"versions"})
    if isinstance(config.get("schema"), str) and JINJA.search(config["schema"]):
        project.note_jinja(config["schema"], place)
    schema, name = relation
    table = project.draft.table(name, schema, place)
    table.kind = _KINDS.get(materialized, "table")
    grain = project.text(entry.get("grain"), place)
    description = project.text(entry.get("description"), place)
    project.draft.describe(table, "\n".join(t for t in (description, grain and f"Grain: {grain}") if t), place)
    for column in entries(project, entry, "columns", file):
        _read_column(project, table, column, file)
    add_tests(project, table, None, entry, place)
    add_constraints(project, table, None, entry, place)


def _read_column(project: Project, table: DraftTable, entry: Entry, file: str) -> None:
    place = Place(file, entry.line)
    project.unread.update(entry.keys() - _MODEL_KEYS)
    meta = {**(entry.get("meta") or {}), **(_config(entry).get("meta") or {})}
    data_type = entry.get("data_type") or meta.get("data_type")
    column = Column(
        name=entry["name"],
        type=data_type if isinstance(data_type, str) else "",
        meaning=project.text(entry.get("description"), place) or None,
    )
    project.draft.column(table, column, place)
    if flag(meta.get("is_primary_key")) or flag(meta.get("primary_key")):
        table.add_key(entry["name"])
    add_tests(project, table, entry["name"], entry, place)
    add_constraints(project, table, entry["name"], entry, place)
