"""Estimated rows and cost of physical nodes, for EXPLAIN ESTIMATED_COST. Nothing is planned by them.

The model is Flink's default one: a table of unknown size has 1E8 rows, a condition keeps half, a group key makes half
as many groups as rows; cpu is one per row (and per byte that is hashed), io the bytes read, network the bytes shuffled.
"""

from __future__ import annotations

from flowsql_core.expr import Call, conjuncts
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_planner.physical.nodes import (
    Calc,
    Exchange,
    ExpandNode,
    GroupAggregate,
    JoinNode,
    Limit,
    Physical,
    SortLimit,
    TableSourceScan,
    UnionNode,
    ValuesNode,
    WindowAggregate,
    WindowJoin,
    WindowTableFunctionNode,
)

_UNKNOWN_ROWS = 1e8
_HASH_CPU = 8.0


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


def estimate_rows(node: Physical) -> float:
    """Rows that leave a node."""
    below = [estimate_rows(child) for child in node.inputs]
    match node:
        case TableSourceScan(limit=limit):
            return _UNKNOWN_ROWS if limit is None else min(_UNKNOWN_ROWS, float(limit))
        case ValuesNode(rows=rows):
            return float(len(rows))
        case Calc(condition=condition):
            return below[0] if condition is None else max(below[0] * _selectivity(node), 1.0)
        case ExpandNode(projections=rows):
            return below[0] * len(rows)
        case GroupAggregate(grouping=grouping):
            return max(below[0] * 0.5, 1.0) if grouping else 1.0
        case WindowAggregate():
            return max(below[0] * 0.5, 1.0)
        case WindowTableFunctionNode(window=window):
            return below[0] * max(window.size_ms // max(window.step_ms, 1), 1)
        case JoinNode() | WindowJoin():
            equal = bool(node.left_keys)
            return max(below) if equal else below[0] * below[1]
        case Limit(offset=offset, fetch=fetch) | SortLimit(offset=offset, fetch=fetch):
            rest = max(below[0] - offset, 0.0)
            return rest if fetch is None else min(rest, float(fetch))
        case UnionNode():
            return sum(below)
        case _:
            return below[0]


def _selectivity(calc: Calc) -> float:
    share = 1.0
    for part in conjuncts(calc.condition):
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


def own_cost(node: Physical) -> Cost:
    """Cost of a node without what stands below it."""
    rows = estimate_rows(node)
    arriving = sum(estimate_rows(child) for child in node.inputs)
    match node:
        case TableSourceScan():
            return Cost(rows, rows, rows * row_bytes(node.schema))
        case Calc(projections=projections):
            computed = sum(1 for expr in projections if isinstance(expr, Call))
            return Cost(rows, arriving * computed)
        case Exchange(keys=keys):
            size = rows * row_bytes(node.schema)
            return Cost(rows, rows * len(keys) * _HASH_CPU + size, 0.0, size)
        case GroupAggregate(calls=calls) | WindowAggregate(calls=calls):
            return Cost(rows, arriving * max(len(calls), 1))
        case JoinNode() | WindowJoin():
            memory = sum(estimate_rows(child) * row_bytes(child.schema) for child in node.inputs)
            return Cost(rows, arriving * _HASH_CPU, 0.0, 0.0, memory)
        case _:
            return Cost(rows, rows)


def cumulative_cost(node: Physical) -> Cost:
    """Cost of a node and all below it; what is shared is counted at each use."""
    total = own_cost(node)
    for child in node.inputs:
        total = total.plus(cumulative_cost(child))
    return total


def scientific(value: float) -> str:
    """A number as Java prints a double: ``5.0E7``, ``0.0``, ``12.0``."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    mantissa, exponent = f"{value:.15e}".split("e")
    digits = mantissa.rstrip("0")
    return f"{digits}0E{int(exponent)}" if digits.endswith(".") else f"{digits}E{int(exponent)}"
