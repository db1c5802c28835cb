"""Which operator runs an OVER window: by what its rows are ordered."""

from __future__ import annotations

from typing import Any, assert_never

from flowsql_core.graph.over_specs import OverAggregateSpec, OverOrder
from flowsql_runtime.operators.base import Operator


def over_operator(spec: OverAggregateSpec) -> Operator[Any]:
    """The operator of a spec."""
    match spec.order:
        case OverOrder.ROW_TIME:
            from flowsql_runtime.operators.over.row_time import RowTimeOverOperator

            return RowTimeOverOperator(spec)
        case OverOrder.PROCESSING_TIME:
            from flowsql_runtime.operators.over import processing_time

            if spec.preceding is None or spec.counts_rows:
                return processing_time.ProcessingTimeOverOperator(spec)
            return processing_time.ProcessingTimeRangeOverOperator(spec)
        case OverOrder.VALUES:
            from flowsql_runtime.operators.over.values import ValuesOverOperator

            return ValuesOverOperator(spec)
        case _:
            assert_never(spec.order)
