"""``OperatorSpec``: one frozen dataclass per runtime operator. Plan data only; behaviour stands in the runtime.

Column indexes count within the input batch of the operator (for joins: within the side named).
All times are milliseconds, epoch times are of the attribute's own kind (engine contract, "Time").
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Any, Final

from flowsql_core.catalog import ANONYMOUS
from flowsql_core.expr import AggregateCall, Expr, Literal
from flowsql_core.graph.constraints import Constraint, Expectation
from flowsql_core.record import record
from flowsql_core.row import ChangelogMode, RowKind
from flowsql_core.secrets.placeholders import filled
from flowsql_core.secrets.plain import hide_plain
from flowsql_core.types.logical import Schema

Options = tuple[tuple[str, str], ...]


@record
class TableSpec:
    """A catalog table as connectors see it.

    ``columns``: physical columns in the order of the DDL (computed columns are not here).
    ``partition_keys``, ``primary_key``: names of physical columns.
    """

    path: tuple[str, str, str]
    columns: Schema
    #: Secrets may be among them.
    options: Options = field(repr=False)
    partition_keys: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``catalog.database.table``, as messages print it."""
        return ".".join(self.shown_path)

    @property
    def shown_path(self) -> tuple[str, ...]:
        """The path as plans print it: of a table without a name only what stands for it."""
        return self.path[-1:] if self.path[0] == ANONYMOUS else self.path

    def option(self, key: str) -> str | None:
        """One WITH option, its placeholders filled in."""
        text = self.declared(key)
        return None if text is None else filled(text)

    def declared(self, key: str) -> str | None:
        """One WITH option as it is written, to be shown."""
        return dict(self.options).get(key)

    def filled_options(self) -> dict[str, str]:
        """All WITH options, their placeholders filled in; for connectors alone."""
        hide_plain(self.options)
        return {key: filled(text) for key, text in self.options}


@record
class OperatorSpec:
    """Base of all specs."""


@record
class ScanSpec(OperatorSpec):
    """Read a table.

    Output: the physical columns at ``projection`` in that order, then the ``metadata`` columns ``(key, name, type)``.
    ``filters`` were pushed as a hint only when the source said so: the planner keeps what it did not accept.
    ``limit``: rows that suffice, per job; None for all.
    """

    table: TableSpec
    projection: tuple[int, ...]
    output: Schema
    metadata: tuple[str, ...] = ()
    filters: tuple[Expr, ...] = ()
    limit: int | None = None
    changelog_mode: ChangelogMode | None = None


@record
class ValuesSpec(OperatorSpec):
    """Rows written in the query. One subtask emits them in order."""

    rows: tuple[tuple[Literal, ...], ...]
    output: Schema


@record
class CalcSpec(OperatorSpec):
    """Filter, then project. ``condition`` None keeps all; only TRUE passes."""

    projections: tuple[Expr, ...]
    condition: Expr | None = None


class WatermarkEmit(enum.Enum):
    """When watermarks leave the assigner (``scan.watermark.emit.strategy``)."""

    ON_PERIODIC = "on-periodic"
    ON_EVENT = "on-event"


#: ``scan.watermark.alignment.update-interval`` where nothing is said.
UPDATE_INTERVAL_MS: Final = 1_000


@record
class WatermarkAlignment:
    """Sources of a ``group`` that are further than ``max_drift_ms`` ahead of its lowest watermark wait.

    ``update_interval_ms``: how often one that waits looks again.
    """

    group: str
    max_drift_ms: int
    update_interval_ms: int = UPDATE_INTERVAL_MS


@record
class WatermarkAssignerSpec(OperatorSpec):
    """Make the watermark track from ``expression`` over the row; a NULL in ``rowtime_index`` is a run-time error.

    ``interval_ms``: ``pipeline.auto-watermark-interval``; a row that lifts the watermark by more than this emits it.
    ``idle_timeout_ms``: 0 never declares idleness.
    """

    rowtime_index: int
    rowtime_name: str
    expression: Expr
    interval_ms: int = 200
    idle_timeout_ms: int = 0
    emit: WatermarkEmit = WatermarkEmit.ON_PERIODIC
    alignment: WatermarkAlignment | None = None


@record
class MiniBatchAssignerSpec(OperatorSpec):
    """Marks of mini-batches every ``interval_ms`` (``table.exec.mini-batch.allow-latency``).

    ``row_time``: marks are the watermarks that pass a multiple of the interval; else they come by the clock.
    """

    interval_ms: int
    row_time: bool = False


@record
class UnionSpec(OperatorSpec):
    """All rows of all inputs; watermarks are merged by minimum.

    ``in_order``: the rows of an input only behind those of the inputs before it, for inputs of few rows.
    """

    inputs: int
    in_order: bool = False


@record
class ExpandSpec(OperatorSpec):
    """Each row once per projection list (grouping sets): the i-th output row of a row uses ``projections[i]``."""

    projections: tuple[tuple[Expr, ...], ...]


#: A collection of :class:`CorrelateSpec`: the columns behind the first argument, as often as that says.
REPLICATE_ROWS: Final = "$REPLICATE_ROWS"


@record
class CorrelateSpec(OperatorSpec):
    """Each row once per element of a collection (UNNEST).

    Output: the input's columns, then ``added``: the element (the fields of a ROW, key and value of a map's entry), and
    with ``ordinality`` its place in the collection from 1. An element of a MULTISET comes as often as it is in it.
    ``condition``: over ``added`` alone. ``outer``: a row without elements comes once, beside NULLs.
    """

    collection: Expr
    added: Schema
    ordinality: bool = False
    outer: bool = False
    condition: Expr | None = None


@record
class MiniBatch:
    """``table.exec.mini-batch.*`` when enabled."""

    size_rows: int
    latency_ms: int


@record
class GroupAggregateSpec(OperatorSpec):
    """Unbounded aggregation by ``grouping`` (empty: one global group).

    Output: grouping columns, then one column per call, in order.
    ``input_retracts``: -U/-D may arrive. ``emit_update_before``: downstream needs -U.
    ``mini_batch`` None: Flink's changelog change by change; else one net change per key and mini-batch.
    ``consolidate``: the planner allows net changes per batch although mini-batch is off (``needs_every_change`` false).
    ``state_ttl_ms`` 0: state never expires.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema
    input_retracts: bool
    emit_update_before: bool
    mini_batch: MiniBatch | None = None
    consolidate: bool = False
    state_ttl_ms: int = 0


@record
class LocalGroupAggregateSpec(OperatorSpec):
    """Stateless pre-aggregation per batch before an exchange; only where every call is mergeable.

    Output: grouping columns, then the accumulator columns of each call in the order of its declaration.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema
    input_retracts: bool


@record
class GlobalGroupAggregateSpec(OperatorSpec):
    """Merge accumulators of :class:`LocalGroupAggregateSpec`; else as :class:`GroupAggregateSpec`.

    ``local``: the spec whose output arrives here. Grouping columns come first in the input.
    """

    local: LocalGroupAggregateSpec
    output: Schema
    emit_update_before: bool
    mini_batch: MiniBatch | None = None
    consolidate: bool = False
    state_ttl_ms: int = 0


class WindowKind(enum.Enum):
    """Window table-valued functions."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


@record
class WindowSpec:
    """How rows fall into windows.

    ``size_ms`` the (largest) window; ``step_ms`` HOP's slide or CUMULATE's step, equal to the size for TUMBLE;
    ``offset_ms`` shifts the grid. ``time_index``: the time attribute's column, or None when the window is attached
    (``start_index``/``end_index`` of a cascaded window aggregation). ``zone`` is set for TIMESTAMP_LTZ row times.
    """

    kind: WindowKind
    size_ms: int
    step_ms: int
    offset_ms: int = 0
    time_index: int | None = None
    processing_time: bool = False
    start_index: int | None = None
    end_index: int | None = None
    zone: str | None = None


class WindowProperty(enum.Enum):
    """Columns that a window adds."""

    START = "start"
    END = "end"
    TIME = "time"
    #: Of group windows: NULL where they are of row time.
    PROCTIME = "proctime"


@record
class WindowAggregateSpec(OperatorSpec):
    """Aggregate per key and window, emitted once when the watermark passes the window's end (or the clock does).

    Output: grouping columns, one column per call, then ``properties`` in order.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: WindowSpec
    properties: tuple[WindowProperty, ...]
    input: Schema
    output: Schema
    input_retracts: bool


@record
class WindowTableFunctionSpec(OperatorSpec):
    """Append window_start, window_end, window_time to each row; HOP and CUMULATE repeat the row per window."""

    window: WindowSpec
    input: Schema
    output: Schema


class JoinKind(enum.Enum):
    """Join types; the values are what EXPLAIN prints."""

    INNER = "InnerJoin"
    LEFT = "LeftOuterJoin"
    RIGHT = "RightOuterJoin"
    FULL = "FullOuterJoin"
    SEMI = "LeftSemiJoin"
    ANTI = "LeftAntiJoin"


@record
class JoinSpec(OperatorSpec):
    """Regular join with both sides in state.

    ``condition`` is over the concatenated row (left columns, then right) and holds what the keys do not say.
    ``null_safe[i]``: key i matches NULL with NULL (IS NOT DISTINCT FROM).
    ``left_unique``/``right_unique``: columns of that side that are unique within it (an upsert key), or None.
    ``mini_batch`` None: each row is joined when it comes.
    ``left_upserts``/``right_upserts``: that side's updates come without the row that they replace.
    """

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    left: Schema
    right: Schema
    left_retracts: bool
    right_retracts: bool
    output: Schema
    emit_update_before: bool
    left_unique: tuple[int, ...] | None = None
    right_unique: tuple[int, ...] | None = None
    left_ttl_ms: int = 0
    right_ttl_ms: int = 0
    mini_batch: MiniBatch | None = None
    left_upserts: bool = False
    right_upserts: bool = False


@record
class WindowJoinSpec(OperatorSpec):
    """Join rows of the same window and key; emitted when the watermark passes the window's end.

    ``left_end``/``right_end``: index of window_end on each side. ``keys`` do not hold the window columns.
    """

    kind: JoinKind
    left_end: int
    right_end: int
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    left: Schema
    right: Schema
    output: Schema
    zone: str | None = None


@record
class LimitSpec(OperatorSpec):
    """First ``fetch`` rows after ``offset`` by arrival (LIMIT without ORDER BY on an append-only input)."""

    offset: int
    fetch: int | None


@record
class DropUpdateBeforeSpec(OperatorSpec):
    """Drop -U rows where upserts suffice."""


@record
class ChangelogNormalizeSpec(OperatorSpec):
    """Make a complete changelog of upserts, or of changes that come twice, by their key.

    ``condition``: of the rows that there shall be; ``kept``: its text. ``emit_update_before``: whether updates carry
    ``-U``.
    """

    input: Schema
    keys: tuple[int, ...]
    condition: Expr | None
    kept: str
    emit_update_before: bool
    mini_batch: MiniBatch | None = None
    state_ttl_ms: int = 0


@record
class ToChangelogSpec(OperatorSpec):
    """Changes as rows: the code of each kind in front of the columns; kinds without a code are left out.

    ``time_index``: a column that is told once more behind the others.
    """

    codes: tuple[tuple[RowKind, str], ...]
    time_index: int | None = None


@record
class FromChangelogSpec(OperatorSpec):
    """Rows as changes: what the code in a column stands for; the other columns stay."""

    op_index: int
    codes: tuple[tuple[str, RowKind], ...]


@record
class ConstraintEnforcerSpec(OperatorSpec):
    """Let pass what a sink's table allows. ``input``: the sink's columns under the table's names.

    ``retracts``: updates leave as ``-D`` and ``+I``, so that a row of which one half is dropped leaves no other behind.
    """

    input: Schema
    constraints: tuple[Constraint, ...]
    expectations: tuple[Expectation, ...] = ()
    retracts: bool = False


@record
class SinkMaterializerSpec(OperatorSpec):
    """Of the query's rows that have one key of the sink, tell it of the last.

    ``keys``: of the sink. ``upsert_key``: what identifies a row of the query; None: all columns do. ``state_ttl_ms`` 0:
    state never expires.
    """

    input: Schema
    keys: tuple[int, ...]
    upsert_key: tuple[int, ...] | None
    state_ttl_ms: int = 0


@record
class SinkConflictsSpec(OperatorSpec):
    """Tell a sink of the one row of each key when a watermark passes; several are a conflict.

    ``keys``: of the sink. ``upsert_key``: what identifies a row of the query; None: all columns do. ``fails``: on a
    conflict (ON CONFLICT DO ERROR); else the key keeps its row (DO NOTHING).
    """

    input: Schema
    keys: tuple[int, ...]
    upsert_key: tuple[int, ...] | None
    fails: bool


@record
class SinkSpec(OperatorSpec):
    """Write a table. The input's columns are the table's physical columns, then those of ``metadata`` by key.

    Types are already cast. ``changelog_mode``: what arrives. ``upsert_key``: columns that identify a row for an upsert
    sink. ``static_partition``: of INSERT ... PARTITION.
    """

    table: TableSpec
    input: Schema
    changelog_mode: ChangelogMode
    overwrite: bool = False
    static_partition: Options = ()
    upsert_key: tuple[int, ...] = ()
    metadata: tuple[str, ...] = ()


@record
class CollectSinkSpec(OperatorSpec):
    """Hand batches to the program that asked: the resource is an object with ``accept(batch)`` and ``finish()``.

    ``constraints``: what is demanded of the rows, as of those of any sink.
    """

    resource: str
    input: Schema
    changelog_mode: ChangelogMode
    constraints: tuple[Constraint, ...] = ()


@record
class ExtensionSpec(OperatorSpec):
    """An operator of a program (DataStream functions): the resource table holds the Python object."""

    kind: str
    resource: str
    parameters: tuple[tuple[str, Any], ...] = ()
