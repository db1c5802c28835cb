"""Streaming physical nodes under Flink's names. Immutable; traits (changelog mode) are fields that inference fills.

A two-phase aggregate is one node here (``two_phase``): EXPLAIN shows Flink's Local and Global halves, translation
decides how many operators they are.
"""

from __future__ import annotations

import enum
from dataclasses import field

from flowsql_core.expr import AggregateCall, Expr, Literal
from flowsql_core.graph.specs import JoinKind, TableSpec, WindowProperty, WindowSpec
from flowsql_core.record import record
from flowsql_core.row import ChangelogMode
from flowsql_core.span import Span
from flowsql_core.types.logical import Schema


@record(kw_only=True)
class Physical:
    """Base. ``mode``: the changelog that leaves the node, None before inference and for sinks.

    ``every_change``: somebody downstream sees each change, not only the resulting table.
    """

    inputs: tuple[Physical, ...]
    schema: Schema
    mode: ChangelogMode | None = None
    every_change: bool = True
    span: Span | None = field(default=None, compare=False, repr=False)


@record(kw_only=True)
class TableSourceScan(Physical):
    """Read a table: physical columns at ``projection``, then ``metadata``.

    ``filters`` are shown and handed to the source; whatever it does not fully handle stays in a Calc above.
    """

    table: TableSpec
    projection: tuple[int, ...]
    metadata: tuple[str, ...] = ()
    filters: tuple[Expr, ...] = ()
    limit: int | None = None


@record(kw_only=True)
class ValuesNode(Physical):
    """Rows written in the query."""

    rows: tuple[tuple[Literal, ...], ...]


@record(kw_only=True)
class Calc(Physical):
    """Filter, then project."""

    projections: tuple[Expr, ...]
    condition: Expr | None = None


@record(kw_only=True)
class PythonCalc(Calc):
    """Hands columns on, then calls Python functions of one kind over columns, constants, each other; no condition."""


@record(kw_only=True)
class WatermarkAssignerNode(Physical):
    """Makes watermarks from ``expression``."""

    rowtime_index: int
    expression: Expr
    options: tuple[tuple[str, str], ...] = ()


class MiniBatchMode(enum.Enum):
    """What marks the end of a mini-batch."""

    PROC_TIME = "ProcTime"
    ROW_TIME = "RowTime"


@record(kw_only=True)
class MiniBatchAssigner(Physical):
    """Marks mini-batches for the operators above."""

    interval_ms: int
    kind: MiniBatchMode


@record(kw_only=True)
class Exchange(Physical):
    """Rows of equal ``keys`` meet in one subtask; without keys all rows meet (``single``)."""

    keys: tuple[int, ...]


@record(kw_only=True)
class ExpandNode(Physical):
    """Each row once per projection list."""

    projections: tuple[tuple[Expr, ...], ...]


@record(kw_only=True)
class GroupAggregate(Physical):
    """Unbounded aggregate; its input is an Exchange.

    ``two_phase``: Local and Global in the plan. ``split_distinct``: further split by buckets of the distinct keys in
    the plan. ``state_ttl_ms``: of a STATE_TTL hint, None for the option's value.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    two_phase: bool = False
    split_distinct: bool = False
    mini_batch: bool = False
    state_ttl_ms: int | None = None


@record(kw_only=True)
class WindowTableFunctionNode(Physical):
    """Appends window_start, window_end, window_time."""

    window: WindowSpec
    partition: tuple[int, ...] = ()


@record(kw_only=True)
class WindowAggregate(Physical):
    """Aggregate per key and window; its input is an Exchange.

    Output: grouping, calls, then ``properties`` (name the columns of the schema).
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: WindowSpec
    properties: tuple[WindowProperty, ...]
    partition: tuple[int, ...] = ()
    two_phase: bool = False


class UniqueKeySpec(enum.Enum):
    """What is known of a join input; the values are what EXPLAIN prints."""

    NONE = "NoUniqueKey"
    HAS = "HasUniqueKey"
    IN_JOIN_KEY = "JoinKeyContainsUniqueKey"


@record(kw_only=True)
class JoinNode(Physical):
    """Regular join of two Exchanges. ``condition`` is the whole one; ``rest`` what the keys do not say."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    rest: Expr | None
    left_upsert_keys: tuple[tuple[int, ...], ...] = ()
    right_upsert_keys: tuple[tuple[int, ...], ...] = ()
    left_spec: UniqueKeySpec = UniqueKeySpec.NONE
    right_spec: UniqueKeySpec = UniqueKeySpec.NONE
    mini_batch: bool = False
    left_ttl_ms: int | None = None
    right_ttl_ms: int | None = None


@record(kw_only=True)
class WindowJoin(Physical):
    """Join of rows of the same window. ``left_window``/``right_window`` are attached windows."""

    kind: JoinKind
    left_window: WindowSpec
    right_window: WindowSpec
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    rest: Expr | None


@record(kw_only=True)
class IntervalJoin(Physical):
    """Join whose condition bounds the distance of two row times."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    condition: Expr
    left_time: int
    right_time: int
    lower_ms: int
    upper_ms: int
    row_time: bool


@record(kw_only=True)
class CorrelateNode(Physical):
    """Each row beside every element of ``collection``; the fields are those of the logical ``Correlate``."""

    collection: Expr
    added: Schema
    ordinality: bool = False
    outer: bool = False
    condition: Expr | None = None


@record(kw_only=True)
class UnionNode(Physical):
    """UNION ALL."""


@record(kw_only=True)
class Limit(Physical):
    """First rows by arrival."""

    offset: int
    fetch: int | None


@record(kw_only=True)
class SortLimit(Physical):
    """First rows by an order; the answer updates. ``keys``: (column, descending, nulls first)."""

    keys: tuple[tuple[int, bool, bool], ...]
    offset: int
    fetch: int | None


@record(kw_only=True)
class TemporalSort(Physical):
    """Sort by a time attribute, ascending."""

    keys: tuple[tuple[int, bool, bool], ...]


@record(kw_only=True)
class SortNode(Physical):
    """Sort by other columns: only where ``table.exec.non-temporal-sort.enabled`` says so."""

    keys: tuple[tuple[int, bool, bool], ...]


@record(kw_only=True)
class DropUpdateBefore(Physical):
    """Drops -U where upserts suffice."""


@record(kw_only=True)
class ChangelogNormalize(Physical):
    """Completes an upsert changelog by its key."""

    keys: tuple[int, ...]


@record(kw_only=True)
class SinkNode(Physical):
    """Writes a table, or hands the answer to the program (``table`` None)."""

    table: TableSpec | None
    name: str
    overwrite: bool = False
    static_partition: tuple[tuple[str, str], ...] = ()
    #: What ON CONFLICT DO asks for.
    on_conflict: str | None = None
    #: Indexes of the columns that the statement lists.
    target_columns: tuple[int, ...] = ()
    #: Whether rows are materialised by the table's primary key.
    materialize: bool = False
    #: Modes that the connector takes, given what the query produces.
    upsert_key: tuple[int, ...] = ()


def walk(node: Physical) -> list[Physical]:
    """The node and all below it, inputs first; a shared node once (by identity)."""
    seen: set[int] = set()
    order: list[Physical] = []

    def visit(current: Physical) -> None:
        if id(current) in seen:
            return
        seen.add(id(current))
        for child in current.inputs:
            visit(child)
        order.append(current)

    visit(node)
    return order
