"""Estimated rows and cost, for EXPLAIN ESTIMATED_COST. Nothing is planned by them; each physical node says its own.

The model is Flink's default one: a table of unknown size has 1E8 rows, a condition keeps half, a group key makes half
as many groups as rows; cpu is one per row (and per byte that is hashed), io the bytes read, network the bytes shuffled.
"""

from __future__ import annotations

from flowsql_core.expr import Call, Expr, conjuncts
from flowsql_core.record import record
from flowsql_core.types import logical as t

UNKNOWN_ROWS = 1e8
HASH_CPU = 8.0


@record
class Cost:
    """Cumulative cost of a node and all below it."""

    rows: float = 0.0
    cpu: float = 0.0
    io: float = 0.0
    network: float = 0.0
    memory: float = 0.0

    def plus(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(
            self.rows + other.rows,
            self.cpu + other.cpu,
            self.io + other.io,
            self.network + other.network,
            self.memory + other.memory,
        )


def selectivity(condition: Expr | None) -> float:
    """Share of the rows that a condition keeps."""
    share = 1.0
    for part in conjuncts(condition):
        name = part.function if isinstance(part, Call) else ""
        share *= {"=": 0.15, "IS NOT NULL": 0.9, "IS NULL": 0.1, "<>": 0.85}.get(name, 0.5)
    return share


def row_bytes(schema: t.Schema) -> float:
    """Average bytes of a row, by Flink's sizes of types."""
    return sum(_type_bytes(column.type) for column in schema)


def _type_bytes(type_: t.LogicalType) -> float:
    match type_:
        case t.BooleanType() | t.TinyIntType():
            return 1.0
        case t.SmallIntType():
            return 2.0
        case t.IntType() | t.FloatType() | t.DateType() | t.TimeType():
            return 4.0
        case t.DecimalType() | t.TimestampType() | t.TimestampLtzType():
            return 12.0
        case t.CharacterType() | t.BinaryStringType():
            return 12.0
        case t.ArrayType() | t.MapType() | t.MultisetType() | t.RowType():
            return 16.0
        case _:
            return 8.0


def scientific(value: float) -> str:
    """A number as Java prints a double: ``5.0E7``, ``0.0``, ``12.0``."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    mantissa, exponent = f"{value:.15e}".split("e")
    digits = mantissa.rstrip("0")
    return f"{digits}0E{int(exponent)}" if digits.endswith(".") else f"{digits}E{int(exponent)}"
