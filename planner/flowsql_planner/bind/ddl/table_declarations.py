"""What a table declares beside its columns, checked against them: primary key, watermark, partition keys, buckets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from flowsql_core.catalog import ColumnKind, TableColumn, TableDistribution, WatermarkDefinition
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_grammar.reserved import COLUMN_WORDS
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import scope_of
from flowsql_planner.bind.query.table import is_source_watermark
from flowsql_planner.bind.sql_text.unparse import unparse_expression
from flowsql_planner.bind.sql_text.validated_form import FlinkForm, validated
from flowsql_planner.catalog.schema import as_rowtime

_ENFORCED = (
    "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint. ENFORCED/NOT ENFORCED controls if the constraint "
    "checks are performed on the incoming/outgoing data. Flink does not own the data therefore the only supported mode "
    "is the NOT ENFORCED mode"
)


def bind_part(context: BindContext, expression: ast.Expression, schema: t.Schema, clause: str) -> Expr:
    """The expression of a computed column or a watermark over the columns that it may use."""
    _check_words(expression)
    try:
        return ExpressionBinder(context, scope_of(schema), clause).bind(expression)
    except BindError as error:
        if error.code == "column-not-found":
            error.message = error.message.replace("Column '", "Unknown identifier '").replace(
                "' not found in any table", "'"
            )
        raise


def _check_words(expression: ast.Expression) -> None:
    """BindError for USER and the like without back-ticks, which Flink's DDL reads in capitals."""
    for node in expression.walk():
        if not isinstance(node, ast.ColumnRef) or node.path.parts[0].quoted:
            continue
        word = node.path.parts[0].text
        upper = word.upper()
        if upper in COLUMN_WORDS and upper != word and upper != "CURRENT_DEFAULT_TRANSFORM_GROUP":
            raise BindError(
                "column-not-found",
                f"Unknown identifier '{upper}'",
                node.span,
                f"{upper} is a reserved word: as a name it is written `{word}`",
            )


# Primary keys


@record
class WrittenKey:
    """A PRIMARY KEY clause and the columns that it names."""

    constraint: ast.Constraint
    columns: tuple[ast.Name, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(name.text for name in self.columns)

    @property
    def name(self) -> str:
        """The constraint's own name, or the one that Flink makes."""
        return "PK_" + "_".join(self.names) if self.constraint.name is None else self.constraint.name.text


def check_constraint(constraint: ast.Constraint) -> None:
    """BindError for UNIQUE, and for keys that are to be enforced."""
    if constraint.kind is ast.ConstraintKind.UNIQUE:
        raise BindError("unique-constraint", "UNIQUE constraint is not supported yet", constraint.span)
    if constraint.enforced is not False:
        raise BindError("enforced-primary-key", _ENFORCED, constraint.span, "add NOT ENFORCED")


def written_key(
    constraints: Iterable[ast.Constraint | ast.Expectation], columns: Iterable[ast.Column]
) -> WrittenKey | None:
    """The one PRIMARY KEY of a statement's elements, be it a clause or a column's own."""
    found = [
        WrittenKey(constraint, constraint.columns)
        for constraint in constraints
        if isinstance(constraint, ast.Constraint)
    ]
    for column in columns:
        if isinstance(column, ast.PhysicalColumn) and column.constraint is not None:
            found.append(WrittenKey(column.constraint, (column.name.last,)))
    for key in found:
        check_constraint(key.constraint)
    if len(found) > 1:
        raise BindError("duplicate-primary-key", "Duplicate primary key definition", found[1].constraint.span)
    return found[0] if found else None


def check_declared_key(key: WrittenKey, columns: Iterable[TableColumn], computed: Collection[str]) -> None:
    """CREATE TABLE: a key is made of columns that the table stores. ``computed``: names that come as such later on."""
    known = {column.name: column for column in columns}
    for name in key.columns:
        if name.text in computed or (name.text in known and known[name.text].kind is not ColumnKind.PHYSICAL):
            raise BindError(
                "primary-key-column",
                f"Could not create a PRIMARY KEY with column '{name.text}'\n"
                "A PRIMARY KEY constraint must be declared on physical columns.",
                name.span,
            )
        if name.text not in known:
            raise BindError(
                "column-not-found",
                f"Primary key column '{name.text}' is not defined in the schema",
                name.span,
                did_you_mean(name.text, known),
            )


def without_nulls(columns: Iterable[TableColumn], names: Collection[str]) -> list[TableColumn]:
    """The columns, those of a key NOT NULL."""
    return [
        replace(column, type=column.type.as_nullable(False)) if column.name in names else column for column in columns
    ]


def key_complaint(name: str | None, key: Sequence[str], columns: Iterable[TableColumn]) -> str | None:
    """What is wrong with a primary key over the columns that stand at the end, in Flink's words."""
    head = f"Invalid primary key '{name}'. "
    known = {column.name: column for column in columns}
    twice = dict.fromkeys(part for i, part in enumerate(key) if part in key[:i])
    if twice:
        return f"{head}A primary key must not contain duplicate columns. Found: [{', '.join(twice)}]"
    for part in key:
        column = known.get(part)
        if column is None:
            return f"{head}Column '{part}' does not exist."
        if column.kind is not ColumnKind.PHYSICAL:
            return f"{head}Column '{part}' is not a physical column."
        if column.type.nullable:
            return f"{head}Column '{part}' is nullable."
    return None


# Watermarks


def missing_rowtime(name: str, columns: Iterable[str]) -> str:
    """Flink's words for a watermark of a column that the table does not have."""
    return (
        f"Invalid column name '{name}' for rowtime attribute in watermark declaration. Available columns are: "
        f"[{', '.join(columns)}]"
    )


def is_row_time(type_: t.LogicalType) -> bool:
    """Whether watermarks can follow values of the type."""
    return isinstance(type_, t.TimestampType | t.TimestampLtzType) and type_.precision <= 3


def bind_watermark(
    context: BindContext, mark: ast.Watermark, columns: Sequence[TableColumn], form: FlinkForm = validated
) -> WatermarkDefinition:
    """A WATERMARK clause over the table's columns; ``form``: in which its expression is kept."""
    names = [column.name for column in columns]
    name = mark.column.last.text
    if len(mark.column.parts) > 1:
        raise BindError("column-not-found", missing_rowtime(str(mark.column), names), mark.column.span)
    if name not in names:
        raise BindError(
            "column-not-found",
            f"The rowtime attribute field '{mark.column}' is not defined in the table schema\n"
            f"Available fields: [{', '.join(repr(known) for known in names)}]",
            mark.column.span,
            did_you_mean(name, names),
        )
    type_ = columns[names.index(name)].type
    if t.is_proctime(type_):
        raise BindError(
            "watermark-type", "A watermark can not be defined for a processing-time attribute.", mark.column.span
        )
    if not is_row_time(type_):
        raise BindError(
            "watermark-type",
            "Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) or "
            f"TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the time field type is {type_}",
            mark.column.span,
            f"cast it: {name} AS CAST(... AS TIMESTAMP(3))",
        )
    if not is_source_watermark(mark.expression):
        _check_watermark_type(context, mark, columns, type_)
    return WatermarkDefinition(name, unparse_expression(form(mark.expression)), as_rowtime(type_))


def _check_watermark_type(
    context: BindContext, mark: ast.Watermark, columns: Sequence[TableColumn], rowtime: t.LogicalType
) -> None:
    schema = tuple(t.Column(column.name, column.type) for column in columns)
    bound = bind_part(context, mark.expression, schema, "WATERMARK")
    if not is_row_time(bound.type):
        raise BindError(
            "watermark-type",
            "Invalid data type of expression for watermark definition. The field must be of type TIMESTAMP(p) or "
            "TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the watermark expression type is "
            f"{bound.type}",
            mark.expression.span,
        )
    if bound.type.root != rowtime.root:
        raise BindError(
            "watermark-type",
            f"The watermark output type {bound.type} is different from input time filed type {rowtime}.",
            mark.expression.span,
        )


# Partitions and buckets


def check_partition_keys(written: Sequence[ast.Name], columns: Sequence[TableColumn]) -> tuple[str, ...]:
    """The names of a PARTITIONED BY clause, which must be of stored columns."""
    physical = [column.name for column in columns if column.kind is ColumnKind.PHYSICAL]
    names = [column.name for column in columns]
    for name in written:
        if name.text in names and name.text not in physical:
            raise BindError(
                "partition-key",
                f"Invalid partition key '{name.text}'. A partition key must reference a physical column in the "
                f"schema. Available columns are: [{', '.join(physical)}]",
                name.span,
            )
        if name.text not in physical:
            raise BindError(
                "column-not-found",
                f"Partition column '{name.text}' not defined in the table schema. Available columns: "
                f"[{', '.join(repr(known) for known in physical)}]",
                name.span,
                did_you_mean(name.text, physical),
            )
    return tuple(name.text for name in written)


def make_distribution(node: ast.Distribution, columns: Sequence[TableColumn]) -> TableDistribution:
    """The distribution that a DISTRIBUTED clause says; its columns must be physical, its buckets at least one."""
    physical = [column.name for column in columns if column.kind is ColumnKind.PHYSICAL]
    for name in node.columns:
        if name.text not in physical:
            raise BindError(
                "bucket-key",
                f"Invalid bucket key '{name.text}'. A bucket key for a distribution must reference a physical column "
                f"in the schema. Available columns are: [{', '.join(physical)}]",
                name.span,
                did_you_mean(name.text, physical),
            )
    if node.buckets is not None and node.buckets < 1:
        raise BindError(
            "bucket-count",
            f"Invalid bucket count '{node.buckets}'. The number of buckets for a distributed table must be at least 1.",
            node.span,
        )
    kind = None if node.kind is None else node.kind.value
    return TableDistribution(tuple(name.text for name in node.columns), kind, node.buckets)
