"""The argument ``on_time`` of process table functions: which column of each table is the time of its rows.

Source: Flink's ``SystemTypeInference``, whose messages these are.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.process_function import NO_TIME_ATTRIBUTE
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_grammar import ast


@record
class TimedTable:
    """A table argument: its parameter's name and its columns."""

    name: str
    schema: t.Schema


def time_columns(given: ast.Argument, tables: Sequence[TimedTable], call: ast.Node) -> tuple[list[int | None], str]:
    """The time column of each table, and the argument as plans show it.

    Raises:
        BindError: the argument is no descriptor, or names what is no time of a row.
    """
    if not isinstance(given, ast.Descriptor):
        message = "The argument 'on_time' is a descriptor"
        raise BindError("bad-descriptor", message, given.span or call.span, "DESCRIPTOR(ts)")
    at = given.span or call.span
    names = list(dict.fromkeys(column.name.last.text for column in given.columns))
    places = [_time_column(table, names, given, call) for table in tables]
    unknown = [name for name in names if all(name not in _names(table) for table in tables)]
    if unknown:
        raise BindError(
            "column-not-found",
            "Invalid time attribute declaration. Each column in the `on_time` argument must reference at least one "
            f"column in one of the table arguments. Unknown references: [{', '.join(unknown)}]",
            at,
            did_you_mean(unknown[0], [name for table in tables for name in _names(table)]),
        )
    missing = [table.name for table, place in zip(tables, places, strict=True) if place is None]
    if names and missing:
        raise BindError(
            "on-time",
            "Invalid time attribute declaration. If multiple tables are declared, the `on_time` argument must "
            f"reference a time column for each table argument or none. Missing time attributes for: "
            f"[{', '.join(missing)}]",
            at,
        )
    shown = ", ".join(f"_UTF-16LE'{column.name.last.text}'" for column in given.columns)
    return places, f"DESCRIPTOR({shown})"


def _time_column(table: TimedTable, names: Sequence[str], given: ast.Argument, call: ast.Node) -> int | None:
    own = _names(table)
    mine = [name for name in names if name in own]
    at = given.span or call.span
    for name in mine:
        type_ = table.schema[own.index(name)].type
        if not is_time(type_):
            raise BindError(
                "not-a-time-attribute",
                "Unsupported data type for time attribute. The `on_time` argument must reference a TIMESTAMP "
                f"or TIMESTAMP_LTZ column (up to precision 3). However, column '{name}' in table argument "
                f"'{table.name}' has data type '{type_}'.",
                at,
            )
    if len(mine) > 1:
        raise BindError(
            "on-time",
            "Ambiguous time attribute found. The `on_time` argument must reference at most one column of the "
            f"table argument '{table.name}': {', '.join(mine)}",
            at,
        )
    return own.index(mine[0]) if mine else None


def require_attribute(column: t.Column, at: ast.Node) -> None:
    """Streams know how far the time of an attribute is; of other columns they know nothing."""
    if not t.is_time_attribute(column.type):
        raise BindError(
            "not-a-time-attribute",
            NO_TIME_ATTRIBUTE.format(name=column.name),
            at.span,
            f"declare WATERMARK FOR {column.name} in the table's DDL",
        )


def _names(table: TimedTable) -> list[str]:
    return [column.name for column in table.schema]


def is_time(type_: t.LogicalType) -> bool:
    """Whether rows may have their time in a column of this type."""
    return isinstance(type_, t.TimestampType | t.TimestampLtzType) and type_.precision <= 3 and not t.is_proctime(type_)
