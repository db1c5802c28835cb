"""Time attributes: where they end. Operators that keep rows in state see plain timestamps.

Source: Flink's ``RelTimeIndicatorConverter``: row times are cast, processing times are read from the clock.
"""

from __future__ import annotations

from flowsql_core.expr import Cast, Expr
from flowsql_core.types.logical import is_proctime, is_time_attribute, without_attribute
from flowsql_planner.logical.rewrite import ref
from flowsql_planner.physical.calc import make_calc
from flowsql_planner.physical.nodes import Physical


def read_clocks(source: Physical) -> Physical:
    """The node with its processing times as plain timestamps."""
    return materialize_time(source, frozenset(i for i, column in enumerate(source.schema) if is_proctime(column.type)))


def materialize_time(source: Physical, columns: frozenset[int] | None = None) -> Physical:
    """The node with its time attributes (among ``columns``, all by default) as plain timestamps."""
    schema = source.schema
    chosen = [
        index
        for index, column in enumerate(schema)
        if is_time_attribute(column.type) and (columns is None or index in columns)
    ]
    if not chosen:
        return source
    exprs: list[Expr] = []
    for index, column in enumerate(schema):
        own = ref(schema, index)
        exprs.append(Cast(own, without_attribute(column.type), implicit=True) if index in chosen else own)
    return make_calc(source, tuple(exprs), tuple(column.name for column in schema), source.span)
