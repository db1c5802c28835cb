"""Which SQL types documents hold."""

from __future__ import annotations

from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types import logical as t


def check_types(table: TableSpec) -> None:
    """Refuse columns that have no BSON type.

    Raises:
        BindError: in Flink's words.
    """
    for column in table.columns:
        wrong = _unsupported(column.type)
        if wrong is not None:
            raise BindError(
                "unsupported-type",
                f"Unsupported type: {wrong}\nof column '{column.name}' of {table.name}",
                hint="MongoDB has points in time alone: TIMESTAMP or TIMESTAMP_LTZ"
                if isinstance(wrong, t.DateType | t.TimeType)
                else "keys of documents are texts"
                if isinstance(wrong, t.MapType | t.MultisetType)
                else None,
            )


def _unsupported(type_: t.LogicalType) -> t.LogicalType | None:
    match type_:
        case t.RowType(fields=fields):
            return next((wrong for field in fields if (wrong := _unsupported(field.type)) is not None), None)
        case t.ArrayType(element=element):
            return _unsupported(element)
        case t.MapType(key=t.CharacterType(), value=value):
            return _unsupported(value)
    known = (
        t.BooleanType, t.IntegerType, t.FloatType, t.DoubleType, t.DecimalType, t.CharacterType, t.BinaryStringType,
        t.TimestampType, t.TimestampLtzType, t.YearMonthIntervalType, t.DayTimeIntervalType,
    )  # fmt: skip
    return None if isinstance(type_, known) else type_
