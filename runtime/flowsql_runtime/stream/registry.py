"""Which class runs which DataStream spec; loaded by jobs that need it, unlike ``operators/registry.py``."""

from __future__ import annotations

from typing import Final

from flowsql_core.graph import stream_specs as specs
from flowsql_core.graph.specs import OperatorSpec
from flowsql_runtime.operators.operator_class import OperatorClass

_PACKAGE: Final = "flowsql_runtime.stream."

CLASSES: Final[dict[type[OperatorSpec], OperatorClass]] = {
    specs.CollectionSourceSpec: OperatorClass("source.collection:CollectionSourceOperator", _PACKAGE, source=True),
    specs.LineSourceSpec: OperatorClass("source.lines:LineSourceOperator", _PACKAGE, source=True),
    specs.HybridSourceSpec: OperatorClass("source.hybrid:HybridSourceOperator", _PACKAGE, source=True),
    specs.RowFunctionSpec: OperatorClass("row_function:RowFunctionOperator", _PACKAGE),
    specs.KeyedFunctionSpec: OperatorClass("keyed_function:KeyedFunctionOperator", _PACKAGE, stateful=True),
    specs.CoFunctionSpec: OperatorClass("co_function:CoFunctionOperator", _PACKAGE),
    specs.KeyedCoFunctionSpec: OperatorClass("co_function:KeyedCoFunctionOperator", _PACKAGE, stateful=True),
    specs.BroadcastFunctionSpec: OperatorClass("broadcast_function:BroadcastFunctionOperator", _PACKAGE, stateful=True),
    specs.KeyedBroadcastFunctionSpec: OperatorClass(
        "broadcast_function:KeyedBroadcastFunctionOperator", _PACKAGE, stateful=True
    ),
    specs.AsyncFunctionSpec: OperatorClass("async_io.wait:AsyncWaitOperator", _PACKAGE),
    specs.KeySelectSpec: OperatorClass("key_select:KeySelectOperator", _PACKAGE),
    specs.AssignTimestampsSpec: OperatorClass("timestamps:AssignTimestampsOperator", _PACKAGE),
    specs.StreamWindowSpec: OperatorClass("window_operator:WindowOperator", _PACKAGE, stateful=True),
    specs.SortedInputsSpec: OperatorClass("bounded.sorted_inputs:SortedInputsOperator", _PACKAGE, stateful=True),
    specs.BatchMapSpec: OperatorClass("batch_map:BatchMapOperator", _PACKAGE),
    specs.PrintObjectsSpec: OperatorClass("print_objects:PrintObjectsOperator", _PACKAGE),
}
