"""Aggregates that a changed query has beside those that a snapshot kept: they are counted apart, from the restore on.

SUM, AVG, MIN, MAX and their like share the count of their rows with other aggregates. Beside a kept count a new one
would pass for set although no row has come, so its rows are counted on their own. The snapshots of such a job say so,
and a job that starts from one of them counts on in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from flowsql_core.expr import AggregateCall
from flowsql_core.graph.job import JobGraph, JobVertex, OperatorNode
from flowsql_core.graph.specs import (
    GlobalGroupAggregateSpec,
    GroupAggregateSpec,
    LocalGroupAggregateSpec,
    WindowAggregateSpec,
)
from flowsql_core.types.logical import Schema
from flowsql_runtime.checkpoint.evolution import Remembered
from flowsql_runtime.checkpoint.layout import OperatorLayout, types_of
from flowsql_runtime.operators.aggregate.inputs import LATE
from flowsql_runtime.operators.aggregate.program import AggregateProgram

_COUNTED_APART: Final = frozenset({"SUM", "AVG", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"})


def with_late_calls(old: Iterable[Remembered], graph: JobGraph) -> JobGraph:
    """The graph whose aggregates count apart what ``old`` does not have; itself where nothing has to be.

    Only operators whose rows are never taken back.
    """
    layouts = {one.uid: one.layout for one in old if one.layout is not None}
    vertices = tuple(_vertex(vertex, layouts) for vertex in graph.vertices)
    same = all(one is other for one, other in zip(vertices, graph.vertices, strict=True))
    return graph if same else replace(graph, vertices=vertices)


def _vertex(vertex: JobVertex, layouts: dict[str, OperatorLayout]) -> JobVertex:
    operators = tuple(_node(node, layouts.get(node.uid)) for node in vertex.operators)
    same = all(one is other for one, other in zip(operators, vertex.operators, strict=True))
    return vertex if same else replace(vertex, operators=operators)


def _node(node: OperatorNode, layout: OperatorLayout | None) -> OperatorNode:
    spec = node.spec
    if layout is None or not node.lineage or _grew(node, layout):
        return node
    # Their subclasses fold otherwise.
    if type(spec) in (GroupAggregateSpec, WindowAggregateSpec):
        assert isinstance(spec, GroupAggregateSpec | WindowAggregateSpec)
        calls = _calls(spec, node.lineage[0].columns, layout)
        return node if calls == spec.calls else replace(node, spec=replace(spec, calls=calls))
    if type(spec) is GlobalGroupAggregateSpec:
        # The local phase emits the same columns in either case: only what merges them counts apart.
        calls = _calls(spec.local, node.lineage[0].columns, layout)
        if calls != spec.local.calls:
            return replace(node, spec=replace(spec, local=replace(spec.local, calls=calls)))
    return node


def _calls(
    spec: GroupAggregateSpec | WindowAggregateSpec | LocalGroupAggregateSpec,
    columns: tuple[str, ...],
    layout: OperatorLayout,
) -> tuple[AggregateCall, ...]:
    """Return the calls of a spec; those that ``layout`` lacks beside a count that it has take only later rows."""
    if spec.input_retracts:
        return spec.calls
    known = {column.meaning for table in layout.tables.values() if table.grows for column in table.columns}
    # A window may end although no row came after the restore: its answer is NULL then.
    nulls = isinstance(spec, WindowAggregateSpec)
    return tuple(_call(call, spec.input, columns, known, nulls) for call in spec.calls)


def _grew(node: OperatorNode, layout: OperatorLayout) -> bool:
    """Whether columns have other types: what has another text then may be known all the same."""
    old, new = layout.types or (), types_of(node)
    return any(
        before.get(text, type_) != type_
        for before, after in zip(old, new, strict=False)
        for text, type_ in after.items()
    )


def _call(call: AggregateCall, input: Schema, columns: tuple[str, ...], known: set[str], nulls: bool) -> AggregateCall:
    if call.function not in _COUNTED_APART or call.distinct or LATE in call.options:
        return call
    if nulls and not call.type.nullable:
        return call
    values, count = _meanings(call, input, columns)
    late = replace(call, options=(*call.options, LATE))
    if not values or values <= known:
        return call
    late_values, _ = _meanings(late, input, columns)
    return late if count in known or late_values <= known else call


def _meanings(call: AggregateCall, input: Schema, columns: tuple[str, ...]) -> tuple[set[str], str]:
    """What the accumulators of one call mean, and the count that says whether they are set."""
    program = AggregateProgram((call,), input, retracts=False)
    found = {name: table for name, table in program.table_names(columns).items() if table.grows}
    (accumulators,) = found.values()
    counts = {f"v:{name}" for name, label in program.labels.items() if label.kind == "count"}
    values = {
        meaning
        for stored, meaning in accumulators.columns.items()
        if stored not in counts and stored != "v:rows" and stored in accumulators.counts
    }
    count = next((accumulators.columns[name] for name in counts), "rows")
    return values, count
