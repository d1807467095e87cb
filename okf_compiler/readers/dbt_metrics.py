"""dbt's metrics as rules: simple, ratio, derived, cumulative and conversion, old and new spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from okf_compiler.model import Place
from okf_compiler.readers.dbt_project import JINJA, entries
from okf_compiler.readers.dbt_semantics import Layer, SemanticModel, formula, in_words, settings
from okf_compiler.yaml_text import Entry

_NESTED = ("type_params", "cumulative_type_params", "conversion_type_params")
_INPUTS = ("measure", "input_metric", "numerator", "denominator", "metrics", "input_metrics", "input_measures",
           "base_measure", "conversion_measure", "base_metric", "conversion_metric")  # fmt: skip
_FORMULA = frozenset(
    {"name", "label", "description", "type", "agg", "expr", "calculation_method", "expression", "model"}
)
_NO_COMPUTATION = frozenset({"config", "meta", "tags", "group", "docs", "refs"})
_CALL = re.compile(r"""\{\{-?\s*(?:Dimension|TimeDimension|Entity)\(\s*['"](\w+)['"][^}]*\}\}""")


def add_metrics(layer: Layer, documents: Sequence[tuple[Place, Entry]]) -> None:
    """Every metric of the properties documents, and of the models that nest their own, as a rule of the layer."""
    found: list[tuple[Entry, str, str]] = []
    for model in layer.models.values():
        if "model" not in model.entry:
            for metric in entries(layer.project, model.entry, "metrics", model.place.file):
                found.append((metric, model.table.name, model.place.file))
    for place, document in documents:
        for metric in entries(layer.project, document, "metrics", place.file):
            relation = layer.project.relation(metric.get("model"))
            found.append((metric, relation[1] if relation else "", place.file))
    ids = {metric["name"]: f"metric.{metric['name']}" for metric, _, _ in found}
    for metric, over, file in found:
        place = Place(file, metric.line)
        computation = _Computation(layer, ids, over, place)
        computation.read(metric)
        layer.add_rule(ids[metric["name"]], metric, computation.lines, place, computation.depends_on)


class _Computation:
    """How one metric is computed, line by line, and the ids of the rules that takes.

    An input that the project does not define is kept by its name, for another source to know.
    """

    def __init__(self, layer: Layer, ids: dict[str, str], over: str, place: Place) -> None:
        self.layer = layer
        self.ids = ids
        self.over = over
        self.place = place
        self.lines: list[str] = []
        self.depends_on: list[str] = []

    def read(self, metric: Entry) -> None:
        params = _flat(metric)
        kind = str(params.get("type") or "")
        if params.get("agg") or params.get("calculation_method"):
            self.lines.append(formula(params, self.over))
        elif kind == "ratio":
            self.lines.append(f"{_name(params.get('numerator'))} / {_name(params.get('denominator'))}")
        elif isinstance(params.get("expr"), str):
            self.lines.append(params["expr"].strip())
        if kind in ("cumulative", "conversion"):
            self.lines.append(f"type: {kind}")
        for key in _INPUTS:
            value = params.get(key)
            for item in value if isinstance(value, list) else [] if value is None else [value]:
                self._input(key, item)
        for key, value in params.items():
            if key not in _FORMULA and key not in _NO_COMPUTATION and key not in _INPUTS and value is not None:
                self.lines.append(f"{key}: {in_words(value)}")
                self._explain(value)

    def _input(self, key: str, value: Any) -> None:
        """The line of an input: what the metric calls it, what it is, and the settings it is taken with."""
        name = _name(value)
        is_measure = "measure" in key
        id, computed = self.layer.measures.get(name, ("", "")) if is_measure else (self.ids.get(name, ""), "")
        self.depends_on.append(id or self.ids.get(name) or name)
        details = settings(value) if isinstance(value, Entry) else []
        alias = value.get("alias") if isinstance(value, Entry) else None
        if computed or details or alias or key not in ("numerator", "denominator", "metrics", "input_metrics"):
            label = alias or key.removeprefix("input_").removesuffix("s")
            self.lines.append(", ".join([f"{label}: {name}" + (f" = {computed}" if computed else ""), *details]))
        self._explain(value)

    def _explain(self, value: Any) -> None:
        """Name the column behind each dimension in a filter; other Jinja is reported."""
        for text in _texts(value):
            for call in _CALL.finditer(text):
                found = self._dimension(call[1])
                if found is None:
                    self.layer.project.note_jinja(text, self.place)
                    continue
                model, column, rule = found
                line = f"{call[1]}: {column} of {model.table.name}"
                self.lines += [line] if line not in self.lines else []
                self.depends_on += [rule] if rule in self.layer.rules else []
            if JINJA.search(_CALL.sub("", text)):
                self.layer.project.note_jinja(text, self.place)

    def _dimension(self, name: str) -> tuple[SemanticModel, str, str] | None:
        """Semantic model, expression and possible rule id of `entity__dimension`."""
        path, _, last = name.rpartition("__")
        entity = path.rpartition("__")[2]
        for model in self.layer.models.values():
            if model.primary == entity:
                for dimension in model.dimensions:
                    if dimension["name"] == last:
                        return model, dimension.get("expr") or last, f"dimension.{model.name}.{last}"
        return None


def _flat(metric: Entry) -> dict[str, Any]:
    """The metric with the keys of its nested parameter blocks beside its own."""
    flat: dict[str, Any] = {}
    for key, value in metric.items():
        if key in _NESTED and isinstance(value, Entry):
            flat.update(_flat(value))
        else:
            flat[key] = value
    return flat


def _name(value: Any) -> str:
    return str(value.get("name") or "") if isinstance(value, Entry) else str(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
