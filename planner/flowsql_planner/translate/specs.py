"""Physical node -> OperatorSpec, or the refusal of what has no operator yet."""

from __future__ import annotations

from typing import Final

from flowsql_compute.functions.aggregate import is_mergeable, local_columns
from flowsql_core.config import (
    AUTO_WATERMARK_INTERVAL_MS,
    RUNTIME_MODE,
    STATE_TTL_MS,
    RuntimeMode,
    parse_duration_ms,
)
from flowsql_core.errors import BindError, InternalError, NotSupportedYetError, PlanError
from flowsql_core.graph.constraints import constraints_of
from flowsql_core.graph.specs import (
    CalcSpec,
    CollectSinkSpec,
    ConstraintEnforcerSpec,
    CorrelateSpec,
    DropUpdateBeforeSpec,
    ExpandSpec,
    GlobalGroupAggregateSpec,
    GroupAggregateSpec,
    JoinKind,
    JoinSpec,
    LimitSpec,
    LocalGroupAggregateSpec,
    MiniBatch,
    MiniBatchAssignerSpec,
    OperatorSpec,
    ScanSpec,
    SinkConflictsSpec,
    SinkMaterializerSpec,
    SinkSpec,
    UnionSpec,
    ValuesSpec,
    WatermarkAssignerSpec,
    WatermarkEmit,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowKind,
    WindowTableFunctionSpec,
)
from flowsql_core.record import record
from flowsql_core.row import ChangelogMode, RowKind
from flowsql_core.types.logical import Column, Schema
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import (
    Calc,
    ChangelogNormalize,
    CorrelateNode,
    DropUpdateBefore,
    ExpandNode,
    GroupAggregate,
    IntervalJoin,
    JoinNode,
    Limit,
    MiniBatchAssigner,
    Physical,
    PythonCalc,
    SinkNode,
    SortLimit,
    SortNode,
    TableSourceScan,
    TemporalSort,
    UnionNode,
    ValuesNode,
    WatermarkAssignerNode,
    WindowAggregate,
    WindowJoin,
    WindowTableFunctionNode,
)
from flowsql_planner.physical.options import NON_TEMPORAL_SORT
from flowsql_planner.traits.keys import derive_upsert_keys, smallest
from flowsql_planner.traits.sink_keys import BY_WATERMARK
from flowsql_planner.translate.options import SOURCE_IDLE_TIMEOUT_MS
from flowsql_planner.translate.python import python_calc_spec

_JOIN_WORDS: Final = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "semi join (IN or EXISTS)",
    JoinKind.ANTI: "anti join (NOT IN or NOT EXISTS)",
}
#: What leaves a materialiser.
MATERIALIZED: Final = ChangelogMode(frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE}))


@record
class SpecMaker:
    """Makes the specs of one job. ``collect_resources``: resource id of each collected answer, by sink name."""

    context: PlanContext
    collect_resources: dict[str, str]

    def make(self, node: Physical) -> OperatorSpec:
        """The spec of a node that is an operator (an Exchange is an edge).

        Raises:
            NotSupportedYetError: a plan node of Flink's that has no operator here yet.
        """
        match node:
            case TableSourceScan():
                return self._scan(node)
            case ValuesNode():
                return ValuesSpec(node.rows, node.schema)
            case PythonCalc():
                return python_calc_spec(node, self.context.resources)
            case Calc():
                return CalcSpec(node.projections, node.condition)
            case WatermarkAssignerNode():
                return self._watermark(node)
            case MiniBatchAssigner():
                return MiniBatchAssignerSpec(node.interval_ms)
            case ExpandNode():
                return ExpandSpec(node.projections)
            case CorrelateNode():
                return CorrelateSpec(node.collection, node.added, node.ordinality, node.outer, node.condition)
            case GroupAggregate():
                return self._group(node)
            case WindowTableFunctionNode():
                self._no_session(node.window.kind, node)
                return WindowTableFunctionSpec(node.window, node.inputs[0].schema, node.schema)
            case WindowAggregate():
                return self._window_aggregate(node)
            case JoinNode():
                return self._join(node)
            case WindowJoin():
                return self._window_join(node)
            case UnionNode():
                return UnionSpec(len(node.inputs), in_order=all(map(_is_written, node.inputs)))
            case Limit():
                return self._limit(node)
            case DropUpdateBefore():
                return DropUpdateBeforeSpec()
            case SinkNode():
                return self._sink(node)
            case IntervalJoin():
                raise NotSupportedYetError("interval join (a join whose condition bounds two row times)", node.span)
            case SortLimit():
                self._require_fetch(node)
                raise NotSupportedYetError("ORDER BY with LIMIT in streaming (Top-N)", node.span)
            case TemporalSort():
                raise NotSupportedYetError("ORDER BY a time attribute in streaming", node.span)
            case SortNode():
                raise self._sort_refusal(node)
            case ChangelogNormalize():
                raise NotSupportedYetError("an upsert source (ChangelogNormalize)", node.span)
            case _:
                raise InternalError(f"no operator for {type(node).__name__}")

    def _sort_refusal(self, node: SortNode) -> PlanError:
        if self.context.configuration.get(NON_TEMPORAL_SORT):
            return NotSupportedYetError("a streaming sort of the whole input", node.span)
        return PlanError(
            "non-time-sort",
            "Sort on a non-time-attribute field is not supported.",
            node.span,
            "a stream has no end to sort at: add LIMIT, order by a time attribute, or drop ORDER BY",
        )

    @property
    def _mini_batch(self) -> MiniBatch | None:
        return self.context.mini_batch

    def _ttl(self, hinted: int | None) -> int:
        return self.context.configuration.get(STATE_TTL_MS) if hinted is None else hinted

    def _scan(self, node: TableSourceScan) -> ScanSpec:
        mode = node.mode
        if mode is not None and mode.upsert:
            raise NotSupportedYetError("an upsert source (ChangelogNormalize)", node.span)
        return ScanSpec(node.table, node.projection, node.schema, node.metadata, node.filters, node.limit, mode)

    def _watermark(self, node: WatermarkAssignerNode) -> WatermarkAssignerSpec:
        options = dict(node.options)
        idle = options.get("scan.watermark.idle-timeout")
        emit = options.get("scan.watermark.emit.strategy")
        interval = self.context.configuration.get(AUTO_WATERMARK_INTERVAL_MS)
        return WatermarkAssignerSpec(
            node.rowtime_index,
            node.schema[node.rowtime_index].name,
            node.expression,
            interval,
            self.context.configuration.get(SOURCE_IDLE_TIMEOUT_MS) if idle is None else parse_duration_ms(idle),
            WatermarkEmit(emit.strip().lower()) if emit is not None else WatermarkEmit.ON_PERIODIC,
        )

    def local_half(self, node: GroupAggregate) -> LocalGroupAggregateSpec | None:
        """The pre-aggregation of a two-phase aggregate; None where a call's partial results do not combine."""
        source = node.inputs[0]
        if not node.two_phase or not all(is_mergeable(call, retracts(source)) for call in node.calls):
            return None
        keys = tuple(source.schema[index] for index in node.grouping)
        return LocalGroupAggregateSpec(
            node.grouping,
            node.calls,
            source.schema,
            local_columns(keys, node.calls, retracts(source)),
            retracts(source),
        )

    def global_half(self, node: GroupAggregate, local: LocalGroupAggregateSpec) -> GlobalGroupAggregateSpec:
        """What merges :meth:`local_half`."""
        return GlobalGroupAggregateSpec(
            local,
            node.schema,
            emit_update_before=emits_before(node),
            mini_batch=self._mini_batch,
            consolidate=not node.every_change,
            state_ttl_ms=self._ttl(node.state_ttl_ms),
        )

    def _group(self, node: GroupAggregate) -> GroupAggregateSpec:
        source = node.inputs[0]
        for call in node.calls:
            if call.distinct and call.function == "COUNT" and len(call.args) > 1:
                raise BindError(
                    "distinct-count",
                    "COUNT(DISTINCT ...) of several columns is not possible in streaming.",
                    call.span,
                    "COUNT(DISTINCT ROW(a, b)) counts pairs",
                )
        return GroupAggregateSpec(
            node.grouping,
            node.calls,
            source.schema,
            node.schema,
            input_retracts=retracts(source),
            emit_update_before=emits_before(node),
            mini_batch=self._mini_batch,
            consolidate=not node.every_change,
            state_ttl_ms=self._ttl(node.state_ttl_ms),
        )

    @staticmethod
    def _no_session(kind: WindowKind, node: Physical) -> None:
        if kind is WindowKind.SESSION:
            raise NotSupportedYetError("SESSION windows", node.span)

    def _window_aggregate(self, node: WindowAggregate) -> WindowAggregateSpec:
        self._no_session(node.window.kind, node)
        source = node.inputs[0]
        return WindowAggregateSpec(
            node.grouping,
            node.calls,
            node.window,
            node.properties,
            source.schema,
            node.schema,
            input_retracts=retracts(source),
        )

    def _join(self, node: JoinNode) -> JoinSpec:
        if node.kind is not JoinKind.INNER:
            raise NotSupportedYetError(_JOIN_WORDS[node.kind], node.span)
        left, right = node.inputs
        return JoinSpec(
            node.kind,
            node.left_keys,
            node.right_keys,
            node.null_safe,
            node.rest,
            left.schema,
            right.schema,
            left_retracts=retracts(left),
            right_retracts=retracts(right),
            output=node.schema,
            emit_update_before=emits_before(node),
            left_unique=_best_key(node.left_upsert_keys, node.left_keys),
            right_unique=_best_key(node.right_upsert_keys, node.right_keys),
            consolidate=not node.every_change,
            left_ttl_ms=self._ttl(node.left_ttl_ms),
            right_ttl_ms=self._ttl(node.right_ttl_ms),
        )

    @staticmethod
    def _window_join(node: WindowJoin) -> WindowJoinSpec:
        if node.kind is not JoinKind.INNER:
            raise NotSupportedYetError(f"{_JOIN_WORDS[node.kind]} of windows", node.span)
        if node.left_window.kind is WindowKind.SESSION:
            raise NotSupportedYetError("SESSION windows", node.span)
        if node.left_window.processing_time:
            raise NotSupportedYetError("a window join in processing time", node.span)
        left_end, right_end = node.left_window.end_index, node.right_window.end_index
        if left_end is None or right_end is None:
            raise InternalError("a window join without window ends")
        left, right = node.inputs
        return WindowJoinSpec(
            node.kind,
            left_end,
            right_end,
            node.left_keys,
            node.right_keys,
            node.null_safe,
            node.rest,
            left.schema,
            right.schema,
            node.schema,
            node.left_window.zone,
        )

    def _limit(self, node: Limit) -> LimitSpec:
        if retracts(node.inputs[0]):
            raise NotSupportedYetError("LIMIT over an updating query in streaming", node.span)
        self._require_fetch(node)
        return LimitSpec(node.offset, node.fetch)

    def _require_fetch(self, node: Limit | SortLimit) -> None:
        if node.fetch is not None or not node.offset:
            return
        if self.context.configuration.get(RUNTIME_MODE) is not RuntimeMode.BATCH:
            message = "FETCH is missed, which on streaming table is not supported currently."
            raise PlanError("fetch-missing", message, node.span, "OFFSET needs a LIMIT before it")

    def _sink(self, node: SinkNode) -> SinkSpec | CollectSinkSpec:
        source = node.inputs[0]
        mode = source.mode
        if mode is None:
            raise InternalError("a sink without a changelog mode")
        if node.table is None:
            demanded = constraints_of(node.schema, self.context.configuration)
            return CollectSinkSpec(self.collect_resources[node.name], node.schema, mode, demanded)
        if node.materialize:
            mode = MATERIALIZED
        return SinkSpec(
            node.table, _written(node), mode, node.overwrite, node.static_partition, upsert_key=_sink_key(node)
        )

    def enforcer(self, node: SinkNode) -> ConstraintEnforcerSpec | None:
        """What stands in front of a sink whose table demands something of its rows."""
        if node.table is None:
            return None
        demanded = constraints_of(node.table.columns, self.context.configuration)
        return ConstraintEnforcerSpec(_written(node), demanded) if demanded else None

    def materializer(self, node: SinkNode) -> SinkMaterializerSpec | SinkConflictsSpec | None:
        """What makes one row of the query's rows with one key of the sink."""
        if not node.materialize:
            return None
        # A table of one row is identified by no column: as in Flink, by all of them.
        key = smallest(derive_upsert_keys(node.inputs[0])) or None
        if node.on_conflict in BY_WATERMARK:
            return SinkConflictsSpec(_written(node), _sink_key(node), key, node.on_conflict == "ERROR")
        return SinkMaterializerSpec(_written(node), _sink_key(node), key, self._ttl(None))


def _written(node: SinkNode) -> Schema:
    """The rows that a table gets under its names, of which messages speak."""
    assert node.table is not None
    return tuple(
        Column(wanted.name, column.type)
        for wanted, column in zip(node.table.columns, node.inputs[0].schema, strict=True)
    )


def _sink_key(node: SinkNode) -> tuple[int, ...]:
    assert node.table is not None
    names = [column.name for column in node.table.columns]
    if node.table.primary_key:
        return tuple(names.index(name) for name in node.table.primary_key)
    return smallest(derive_upsert_keys(node.inputs[0])) or ()


def _best_key(keys: tuple[tuple[int, ...], ...], join_keys: tuple[int, ...]) -> tuple[int, ...] | None:
    """A key inside the join key if there is one (one row a join key), else the smallest."""
    if not keys:
        return None
    return min(keys, key=lambda key: (not set(key) <= set(join_keys), len(key), key))


def retracts(node: Physical) -> bool:
    """Whether anything but ``+I`` may arrive from a node."""
    return node.mode is not None and not node.mode.insert_only


def emits_before(node: Physical) -> bool:
    """Whether a node's updates carry ``-U``."""
    return node.mode is not None and node.mode.contains(RowKind.UPDATE_BEFORE)


def _is_written(node: Physical) -> bool:
    """Whether all rows are written in the query, as those of VALUES with expressions are."""
    if isinstance(node, ValuesNode):
        return True
    return isinstance(node, Calc | UnionNode) and all(map(_is_written, node.inputs))
