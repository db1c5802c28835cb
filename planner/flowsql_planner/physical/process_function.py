"""Process table functions: their inputs where rows of a partition meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.errors import PlanError
from flowsql_core.process_function import NO_TIME_ATTRIBUTE
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, is_proctime, is_time_attribute
from flowsql_planner.logical.nodes import ProcessTableFunction
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import Physical, ProcessTableFunctionNode, ValuesNode


def plan_process(rel: ProcessTableFunction, sources: Sequence[Physical]) -> Physical:
    """The function over its tables; one without any is called for a row of no columns."""
    inputs: list[Physical] = []
    for table, source in zip(rel.call.tables, sources, strict=True):
        if table.time_index is not None:
            require_time_attribute(source.schema[table.time_index], rel.span)
        clocks = frozenset(index for index, column in enumerate(source.schema) if is_proctime(column.type))
        plain = materialize_time(source, clocks)
        if isinstance(plain, ValuesNode):
            # As in Flink's plans rows in the query keep the names that the query gives them.
            columns = zip(table.columns, plain.schema, strict=True)
            plain = replace(plain, schema=tuple(Column(name, column.type) for name, column in columns))
        inputs.append(plain if table.partition is None else exchange(plain, table.partition))
    if not inputs:
        inputs.append(ValuesNode(inputs=(), schema=(), rows=((),), span=rel.span))
    return ProcessTableFunctionNode(
        inputs=tuple(inputs), schema=rel.schema, call=rel.call, invocation=rel.invocation, span=rel.span
    )


def require_time_attribute(column: Column, span: Span | None) -> None:
    """Refuse an ``on_time`` that was a time attribute where it was bound, and is a plain timestamp in the plan."""
    if not is_time_attribute(column.type):
        raise PlanError("not-a-time-attribute", NO_TIME_ATTRIBUTE.format(name=column.name), span)
