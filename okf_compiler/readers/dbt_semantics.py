"""dbt's semantic models as rules and keys, in either of the two layouts they come in.

The older one keeps `semantic_models` and `metrics` beside the models; the newer one nests them in the models, where a
column says that it is an entity or a dimension and a simple metric has its own `agg` and `expr`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from okf_compiler.draft import DraftTable
from okf_compiler.model import Column, ForeignKey, Place, Rule
from okf_compiler.readers.dbt_project import Project, entries, flag
from okf_compiler.yaml_text import Entry

_NAMED = frozenset({"name", "label", "description", "agg", "expr", "alias", "config", "meta", "create_metric"})
"""Keys of a measure or an input that its name, its description and its formula already tell."""
_SCOPED = {"semantic_model": "Semantic model {}", "dimension": "{} ({})"}
"""Names of rules whose own name is one only within their kind or their semantic model."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass
class SemanticModel:
    name: str
    table: DraftTable
    entry: Entry
    place: Place
    entities: list[Entry] = field(default_factory=list)
    dimensions: list[Entry] = field(default_factory=list)

    @property
    def primary(self) -> str:
        """The entity that prefixes the dimensions' names."""
        named = self.entry.get("primary_entity")
        return named if isinstance(named, str) else next((e["name"] for e in self.entities if _is_key(e)), "")


def read_semantic_models(project: Project, documents: Sequence[tuple[Place, Entry]], source: str) -> Layer:
    """The semantic models of every properties document; keys that entities state are added to the tables."""
    layer = Layer(project, source)
    for place, document in documents:
        for entry in entries(project, document, "semantic_models", place.file):
            layer.add_semantic_model(entry, place.file)
        for entry in entries(project, document, "models", place.file):
            layer.add_nested(entry, place.file)
    layer.add_keys()
    for model in layer.models.values():
        layer.add_model_rules(model)
    return layer


class Layer:
    """The semantic models of a project, and the rules made so far."""

    def __init__(self, project: Project, source: str) -> None:
        self.project = project
        self.source = source
        self.models: dict[str, SemanticModel] = {}
        self.rules: dict[str, Rule] = {}
        self.measures: dict[str, tuple[str, str]] = {}
        """Rule id and formula by measure name."""

    # --- semantic models ---

    def add_semantic_model(self, entry: Entry, file: str) -> None:
        place = Place(file, entry.line)
        relation = self.project.relation(entry.get("model"))
        if relation is None:
            self.project.problem(f"the semantic model {entry['name']} names no model: {entry.get('model')!r}", place)
            return
        table = self.project.draft.table(relation[1], relation[0], place)
        self.keep(
            SemanticModel(
                entry["name"],
                table,
                entry,
                place,
                list(entries(self.project, entry, "entities", file)),
                list(entries(self.project, entry, "dimensions", file)),
            )
        )

    def add_nested(self, entry: Entry, file: str) -> None:
        """The newer layout: a model that says it is a semantic model, or has metrics of its own."""
        said = entry.get("semantic_model")
        enabled = flag(said.get("enabled", "true")) if isinstance(said, Entry) else flag(said)
        if (not enabled and "metrics" not in entry) or entry["name"] not in self.project.relations:
            return
        schema, name = self.project.relations[entry["name"]]
        table = self.project.draft.table(name, schema, Place(file, entry.line))
        own_name = said.get("name") if isinstance(said, Entry) else None
        model = SemanticModel(own_name or entry["name"], table, entry, Place(file, entry.line))
        derived = entry.get("derived_semantics")
        for kind, found in (("entity", model.entities), ("dimension", model.dimensions)):
            for column in entries(self.project, entry, "columns", file):
                if kind in column:
                    found.append(_on_column(column, kind))
            if isinstance(derived, Entry):
                found += entries(self.project, derived, "entities" if kind == "entity" else "dimensions", file)
        self.keep(model)

    def keep(self, model: SemanticModel) -> None:
        if model.name in self.models:
            self.project.problem(f"the semantic model {model.name} stands twice; the first counts", model.place)
        self.models.setdefault(model.name, model)

    def add_keys(self) -> None:
        """Primary entities are primary keys, and a foreign entity refers to the table whose primary one it names."""
        owners: dict[str, tuple[SemanticModel, str]] = {}
        for model in self.models.values():
            for entity in model.entities:
                column = self._column_of(model, entity)
                if column and _is_key(entity):
                    owners.setdefault(entity["name"], (model, column))
                    if not model.table.primary_key and str(entity.get("type")).lower() == "primary":
                        model.table.add_key(column)
                elif column and str(entity.get("type")).lower() == "unique":
                    model.table.add_unique((column,))
        for model in self.models.values():
            for entity in model.entities:
                column = self._column_of(model, entity)
                owner = owners.get(entity["name"])
                if column and owner and owner[0] is not model and not _is_key(entity):
                    table = owner[0].table
                    model.table.add_foreign_key(ForeignKey((column,), table.name, (owner[1],), table.schema))

    def _column_of(self, model: SemanticModel, entry: Entry) -> str | None:
        """The column that an entity, dimension or measure is, added to its table; None for an expression."""
        expr = entry.get("expr") or entry["name"]
        if not isinstance(expr, str) or not _IDENTIFIER.fullmatch(expr):
            return None
        self.project.draft.column(model.table, Column(expr, ""), Place(model.place.file, entry.line))
        return expr

    def add_model_rules(self, model: SemanticModel) -> None:
        """The semantic model, the dimensions that say more than a column's name, and the measures."""
        file, over = model.place.file, model.table.name
        if model.table.description is None and "model" in model.entry:
            description = self.project.text(model.entry.get("description"), model.place)
            self.project.draft.describe(model.table, description, model.place)
        if "semantic_models" in model.entry or "model" in model.entry:
            time = (model.entry.get("defaults") or {}).get("agg_time_dimension")
            keys = [f"{e['name']}: {e.get('type')} entity, {e.get('expr') or e['name']}" for e in model.entities]
            lines = [f"model: {over}", *([f"agg_time_dimension: {time}"] if time else []), *keys]
            self.add_rule(f"semantic_model.{model.name}", model.entry, lines, model.place)
        for dimension in model.dimensions:
            expr = dimension.get("expr") or dimension["name"]
            self._column_of(model, dimension)
            told = dimension.get("label") or (dimension.get("description") and "model" in model.entry)
            if told or expr != dimension["name"]:
                lines = [f"{expr} of {over}"]
                id = f"dimension.{model.name}.{dimension['name']}"
                self.add_rule(id, dimension, lines, Place(file, dimension.line))
        for measure in entries(self.project, model.entry, "measures", file):
            self._column_of(model, measure)
            lines = [formula(measure, over), *settings(measure)]
            id = f"measure.{model.name}.{measure['name']}"
            self.add_rule(id, measure, lines, Place(file, measure.line))
            self.measures.setdefault(measure["name"], (id, lines[0]))

    def add_rule(
        self, id: str, entry: Entry, lines: Sequence[str], place: Place, depends_on: Iterable[str] = ()
    ) -> None:
        """Keep an entry as a rule under this id, which begins with its type; a second entry of the id gets another
        one, and is reported."""
        type, _, rest = id.partition(".")
        free = id
        while free in self.rules:
            free += "-2"
        if free != id:
            self.project.problem(f"{id} stands twice; this one became {free}", place)
        label = self.project.text(entry.get("label"), place)
        self.rules[free] = Rule(
            id=free,
            name=label or _SCOPED.get(type, "{}").format(entry["name"], rest.partition(".")[0]),
            type=type,
            description=self.project.text(entry.get("description"), place),
            definition="\n".join(lines),
            depends_on=tuple(d for d in dict.fromkeys(depends_on) if d != free),
            synonyms=(entry["name"],) if label and label != entry["name"] else (),
            source=self.source,
        )
        self.project.rule_places[(free,)] = place


def formula(entry: Entry | dict[str, Any], over: str) -> str:
    """What a measure or a simple metric computes, in dbt's own words: `count_distinct(customer_id) over orders`."""
    how = entry.get("agg") or entry.get("calculation_method")
    what = entry.get("expr") or entry.get("expression") or entry.get("name")
    return f"{how}({what})" + (f" over {over}" if over else "")


def settings(entry: dict[str, Any]) -> list[str]:
    """Every other key of a measure or of a metric's input, one a line, as it stands."""
    return [f"{key}: {in_words(value)}" for key, value in entry.items() if key not in _NAMED and value is not None]


def in_words(value: Any) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_key(entity: Entry) -> bool:
    return str(entity.get("type")).lower() in ("primary", "natural")


def _on_column(column: Entry, kind: str) -> Entry:
    """The entity or dimension that a column of the newer layout says it is; its own keys win over the column's."""
    said = column[kind]
    entry = Entry({"name": column["name"], **({"type": said} if isinstance(said, str) else {})})
    entry.update(said if isinstance(said, dict) else {})
    entry["expr"] = column["name"]
    entry.line = column.line
    return entry
