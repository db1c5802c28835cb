"""Which class runs which spec. Imported on use, so that a job loads only what it runs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from flowsql_core.errors import InternalError, NotSupportedYetError
from flowsql_core.graph import (
    aggregate_specs,
    bounded_specs,
    match_specs,
    multi_join_specs,
    over_specs,
    process_specs,
    python_specs,
    rank_specs,
    specs,
    time_join_specs,
    window_specs,
)
from flowsql_runtime.operators.base import Operator
from flowsql_runtime.operators.operator_class import OperatorClass

#: Kinds of an ``ExtensionSpec``: an operator without state, one with keyed state, a source.
EXTENSION_PLAIN: Final = "plain"
EXTENSION_KEYED: Final = "keyed"
EXTENSION_SOURCE: Final = "source"

_CLASSES: Final[dict[type[specs.OperatorSpec], OperatorClass]] = {
    specs.ScanSpec: OperatorClass("source:ScanOperator", source=True),
    specs.ValuesSpec: OperatorClass("values:ValuesOperator", source=True),
    specs.CalcSpec: OperatorClass("calc:CalcOperator"),
    python_specs.PythonCalcSpec: OperatorClass("python_calc:PythonCalcOperator"),
    python_specs.PythonGroupAggregateSpec: OperatorClass(
        "python_aggregate.group:PythonGroupAggregateOperator", stateful=True
    ),
    python_specs.PythonGroupTableAggregateSpec: OperatorClass(
        "python_aggregate.table:PythonGroupTableAggregateOperator", stateful=True
    ),
    python_specs.PythonWindowAggregateSpec: OperatorClass("python_aggregate.window:window_operator", stateful=True),
    python_specs.PythonSessionAggregateSpec: OperatorClass("python_aggregate.window:session_operator", stateful=True),
    python_specs.PythonOverAggregateSpec: OperatorClass("over.by_order:over_operator", stateful=True),
    specs.WatermarkAssignerSpec: OperatorClass("watermark:WatermarkAssignerOperator"),
    specs.MiniBatchAssignerSpec: OperatorClass("mini_batch:mini_batch_assigner"),
    specs.UnionSpec: OperatorClass("union:UnionOperator"),
    specs.ExpandSpec: OperatorClass("expand:ExpandOperator"),
    specs.CorrelateSpec: OperatorClass("correlate:CorrelateOperator"),
    specs.LimitSpec: OperatorClass("limit:LimitOperator"),
    specs.DropUpdateBeforeSpec: OperatorClass("sink.drop_update_before:DropUpdateBeforeOperator"),
    specs.ChangelogNormalizeSpec: OperatorClass("changelog_normalize:ChangelogNormalizeOperator", stateful=True),
    specs.ToChangelogSpec: OperatorClass("changelog_function:ToChangelogOperator"),
    specs.FromChangelogSpec: OperatorClass("changelog_function:FromChangelogOperator"),
    specs.ConstraintEnforcerSpec: OperatorClass("sink.constraint_enforcer:ConstraintEnforcerOperator"),
    specs.SinkMaterializerSpec: OperatorClass("sink.materializer:SinkMaterializerOperator", stateful=True),
    specs.SinkConflictsSpec: OperatorClass("sink.conflicts:SinkConflictsOperator", stateful=True),
    specs.SinkSpec: OperatorClass("sink.table_sink:SinkOperator"),
    specs.CollectSinkSpec: OperatorClass("sink.collect:CollectSinkOperator"),
    specs.GroupAggregateSpec: OperatorClass("aggregate.group:GroupAggregateOperator", stateful=True),
    specs.LocalGroupAggregateSpec: OperatorClass("aggregate.local_phase:LocalGroupAggregateOperator"),
    specs.GlobalGroupAggregateSpec: OperatorClass("aggregate.global_phase:GlobalGroupAggregateOperator", stateful=True),
    aggregate_specs.LocalSetAggregateSpec: OperatorClass("aggregate.local_phase:LocalSetAggregateOperator"),
    aggregate_specs.IncrementalGroupAggregateSpec: OperatorClass(
        "aggregate.incremental:IncrementalGroupAggregateOperator", stateful=True
    ),
    specs.WindowAggregateSpec: OperatorClass("aggregate.window:WindowAggregateOperator", stateful=True),
    window_specs.SessionAggregateSpec: OperatorClass("window.session:SessionAggregateOperator", stateful=True),
    window_specs.ChainedWindowSpec: OperatorClass("window.chained:ChainedWindowOperator", stateful=True),
    window_specs.EmittingWindowSpec: OperatorClass("window.delayed:emitting_operator", stateful=True),
    window_specs.CountWindowSpec: OperatorClass("window.counting:CountWindowOperator", stateful=True),
    window_specs.SessionTableFunctionSpec: OperatorClass("window.session:SessionTableFunctionOperator", stateful=True),
    specs.WindowTableFunctionSpec: OperatorClass("window_table_function:WindowTableFunctionOperator"),
    over_specs.OverAggregateSpec: OperatorClass("over.by_order:over_operator", stateful=True),
    match_specs.MatchSpec: OperatorClass("match.operator:MatchOperator", stateful=True),
    process_specs.ProcessTableFunctionSpec: OperatorClass(
        "process.operator:ProcessTableFunctionOperator", stateful=True
    ),
    specs.JoinSpec: OperatorClass("join.kinds:regular_join", stateful=True),
    multi_join_specs.MultiJoinSpec: OperatorClass("join.multi:MultiJoinOperator", stateful=True),
    specs.WindowJoinSpec: OperatorClass("join.window:WindowJoinOperator", stateful=True),
    time_join_specs.IntervalJoinSpec: OperatorClass("join.interval:IntervalJoinOperator", stateful=True),
    time_join_specs.TemporalJoinSpec: OperatorClass("join.temporal:TemporalJoinOperator", stateful=True),
    time_join_specs.LookupJoinSpec: OperatorClass("join.lookup:LookupJoinOperator"),
    time_join_specs.KeyedLookupJoinSpec: OperatorClass("join.keyed_lookup:KeyedLookupJoinOperator", stateful=True),
    rank_specs.RankSpec: OperatorClass("rank.top_n:RankOperator", stateful=True),
    rank_specs.DeduplicateSpec: OperatorClass("rank.deduplicate:DeduplicateOperator", stateful=True),
    rank_specs.WindowRankSpec: OperatorClass("rank.window:WindowRankOperator", stateful=True),
    rank_specs.WindowDeduplicateSpec: OperatorClass("rank.window:WindowDeduplicateOperator", stateful=True),
    rank_specs.TemporalSortSpec: OperatorClass("rank.sort:TemporalSortOperator", stateful=True),
    rank_specs.SortSpec: OperatorClass("rank.sort:SortOperator", stateful=True),
    bounded_specs.BoundedAggregateSpec: OperatorClass("bounded.aggregate:BoundedAggregateOperator"),
    bounded_specs.BoundedJoinSpec: OperatorClass("bounded.join:BoundedJoinOperator"),
    bounded_specs.BoundedLocalAggregateSpec: OperatorClass("bounded.local_aggregate:BoundedLocalAggregateOperator"),
    bounded_specs.BoundedOverSpec: OperatorClass("bounded.over.operator:BoundedOverOperator"),
    bounded_specs.DistinctAggregateSpec: OperatorClass("bounded.distinct:DistinctAggregateOperator"),
    bounded_specs.DistinctRowsSpec: OperatorClass("bounded.distinct_rows:DistinctRowsOperator"),
    bounded_specs.PandasAggregateSpec: OperatorClass("bounded.pandas_aggregate:PandasAggregateOperator"),
    bounded_specs.PandasOverSpec: OperatorClass("bounded.over.pandas_calls:PandasOverOperator"),
    bounded_specs.SortAggregateSpec: OperatorClass("bounded.sort_aggregate:SortAggregateOperator"),
    bounded_specs.SortMergeJoinSpec: OperatorClass("bounded.sort_merge_join:SortMergeJoinOperator"),
    bounded_specs.BoundedSortSpec: OperatorClass("bounded.sort:BoundedSortOperator"),
}


def operator_class(spec: specs.OperatorSpec) -> OperatorClass:
    """The entry for a spec; NotSupportedYetError for one that nothing runs."""
    if isinstance(spec, specs.ExtensionSpec):
        return OperatorClass("", stateful=spec.kind == EXTENSION_KEYED, source=spec.kind == EXTENSION_SOURCE)
    found = _CLASSES.get(type(spec)) or _stream_class(spec)
    if found is None:
        raise NotSupportedYetError(f"the operator {type(spec).__name__.removesuffix('Spec')}")
    return found


def _stream_class(spec: specs.OperatorSpec) -> OperatorClass | None:
    # Loaded by jobs of DataStreams only.
    from flowsql_runtime.stream.registry import CLASSES

    return CLASSES.get(type(spec))


def is_source(spec: specs.OperatorSpec) -> bool:
    """Whether the operator heads a vertex without inputs."""
    return operator_class(spec).source


def make_operator(spec: specs.OperatorSpec, resources: Mapping[str, Any]) -> Operator[Any]:
    """A new operator for one subtask. The resource of an extension is its factory: ``(spec) -> Operator``."""
    if isinstance(spec, specs.ExtensionSpec):
        path = spec.resource
        made = resources[spec.resource](spec)
    else:
        found = operator_class(spec)
        path = found.path
        module, _, name = path.partition(":")
        made = getattr(import_module(found.package + module), name)(spec)
    if not isinstance(made, Operator):
        raise InternalError(f"{path} is not an operator")
    return made
