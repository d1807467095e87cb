"""What sqlglot's parts of a CREATE TABLE say of its columns and constraints."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from okf_compiler.model import Column, ForeignKey


class Parts:
    """Columns and constraints, collected while the segments of a table are read."""

    def __init__(self) -> None:
        self.columns: dict[int, Column] = {}
        """By where they stand in the text."""
        self.primary: tuple[str, ...] = ()
        self.foreign: list[ForeignKey] = []
        self.unique: list[tuple[str, ...]] = []
        self.checks: list[str] = []


def read_column(part: exp.ColumnDef, clauses: dict[str, str], parts: Parts) -> Column:
    """A column; constraints that stand with it join the parts. `clauses` are its own text by their first words."""
    name = stored_name(part.this)
    column = Column(name=name, type=clauses.get("", ""))
    for constraint in part.constraints:
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint):
            column = replace(column, nullable=bool(kind.args.get("allow_null")))
        elif isinstance(kind, exp.DefaultColumnConstraint):
            text = clauses.get("DEFAULT", "")[len("DEFAULT") :].strip()
            column = replace(column, default=text or kind.this.sql(dialect="postgres"))
        elif isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
            column = replace(column, generated="identity")
        elif isinstance(kind, exp.ComputedColumnConstraint):
            column = replace(column, generated=kind.this.sql(dialect="postgres"))
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            parts.primary = (*parts.primary, name)
        elif isinstance(kind, exp.UniqueColumnConstraint):
            parts.unique.append((name,))
        elif isinstance(kind, exp.CheckColumnConstraint):
            parts.checks.append(kind.this.sql(dialect="postgres"))
        elif isinstance(kind, exp.Reference):
            parts.foreign.append(_foreign_key((name,), kind))
    return column


def read_constraint(part: exp.Expression, parts: Parts) -> bool:
    """Read a table constraint; False if it is none."""
    if isinstance(part, exp.Constraint):
        return all(read_constraint(inner, parts) for inner in part.expressions)
    if isinstance(part, exp.PrimaryKey):
        parts.primary = tuple(stored_name(e) for e in part.expressions)
    elif isinstance(part, exp.ForeignKey):
        parts.foreign.append(_foreign_key(tuple(stored_name(e) for e in part.expressions), part.args["reference"]))
    elif isinstance(part, exp.UniqueColumnConstraint) and isinstance(part.this, exp.Schema):
        parts.unique.append(tuple(stored_name(e) for e in part.this.expressions))
    elif isinstance(part, exp.CheckColumnConstraint):
        parts.checks.append(part.this.sql(dialect="postgres"))
    else:
        # EXCLUDE and LIKE say nothing that a concept shows; anything else is not SQL we know.
        return isinstance(part, exp.ExcludeColumnConstraint | exp.LikeProperty)
    return True


def _foreign_key(columns: tuple[str, ...], reference: exp.Expression) -> ForeignKey:
    target = reference.this
    table = target.this if isinstance(target, exp.Schema) else target
    return ForeignKey(
        columns=columns,
        ref_table=stored_name(table.this),
        ref_columns=tuple(stored_name(e) for e in target.expressions) if isinstance(target, exp.Schema) else (),
        ref_schema=stored_name(table.args["db"]) if table.args.get("db") else "public",
    )


def stored_name(node: exp.Expression) -> str:
    """A name as PostgreSQL stores it: quoted as it stands, unquoted in lower case."""
    while isinstance(node, exp.Ordered | exp.Column):
        node = node.this
    return str(node.name) if node.args.get("quoted") else str(node.name).lower()
