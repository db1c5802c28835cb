"""PARTITION (...) clauses of ALTER TABLE, SHOW PARTITIONS and ANALYZE TABLE: constants as the catalog keeps them."""

from __future__ import annotations

from flowsql_core.catalog import CatalogPartition, CatalogTable, ObjectPath
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.span import Span
from flowsql_grammar import ast


def bind_partition(spec: ast.PartitionSpec, path: ObjectPath, table: CatalogTable) -> CatalogPartition:
    """A partition with a value for each of the table's keys, in the order written.

    Raises:
        BindError: the table has no partitions, or other keys.
    """
    if not table.partition_keys:
        raise not_partitioned(path, spec.span)
    values = partition_values(spec)
    if {key for key, _ in values} != set(table.partition_keys) or len(values) != len(table.partition_keys):
        shown = "{" + ", ".join(f"{key}={value}" for key, value in values) + "}"
        unknown = [key for key, _ in values if key not in table.partition_keys]
        raise BindError(
            "partition-keys",
            f"PartitionSpec CatalogPartitionSpec{{{shown}}} does not match partition keys "
            f"[{', '.join(table.partition_keys)}] of table {path.database}.{path.name} in catalog {path.catalog}.",
            spec.span,
            did_you_mean(unknown[0], table.partition_keys) if unknown else None,
        )
    properties = tuple((option.key, option.value) for option in spec.options)
    return CatalogPartition(values, properties)


def partition_values(spec: ast.PartitionSpec) -> tuple[tuple[str, str], ...]:
    """The keys that have values, with the values as text."""
    return tuple((entry.name.text, constant_text(entry.value)) for entry in spec.entries if entry.value is not None)


def constant_text(node: ast.Expression) -> str:
    """A constant of a PARTITION clause as text: quotes gone, the rest as written."""
    match node:
        case ast.StringLiteral(value):
            return value
        case ast.NumberLiteral(text):
            return text
        case ast.BooleanLiteral(value):
            return "true" if value else "false"
        case ast.DateLiteral(text) | ast.TimeLiteral(text) | ast.TimestampLiteral(text):
            return text
        case ast.UnaryOp(ast.UnaryOperator.MINUS, ast.NumberLiteral(text)):
            return f"-{text}"
    raise BindError("static-partition", "A static partition needs a constant", node.span)


def not_partitioned(path: ObjectPath, at: Span | None) -> BindError:
    """Flink's TableNotPartitionedException."""
    return BindError(
        "not-partitioned", f"Table {path.database}.{path.name} in catalog {path.catalog} is not partitioned.", at
    )
