"""Logical relational nodes: frozen, typed, valid once built. The binder makes them, optimizer rules rewrite them.

Every node knows its output ``schema``; expressions refer to input columns by index (``InputRef``). For joins the index
runs over the left columns, then the right ones.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterator
from dataclasses import field
from typing import Any, Final, assert_never

from flowsql_core.expr import AggregateCall, Expr, InputRef, Literal
from flowsql_core.graph.constraints import Expectation
from flowsql_core.graph.match_specs import MatchSkip, PatternExpression, PatternVariable
from flowsql_core.graph.process_specs import ProcessCall
from flowsql_core.graph.specs import JoinKind, TableSpec, WindowKind
from flowsql_core.record import record
from flowsql_core.row import RowKind
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, LogicalType, Schema
from flowsql_planner.logical.group_window import GroupWindow


@record
class Scan:
    """Read physical columns (``projection``, indexes into ``table.columns``) and then metadata columns of a table.

    ``filters``: predicates that were pushed, over the table's physical columns (the plan shows them).
    """

    table: TableSpec
    projection: tuple[int, ...]
    schema: Schema
    metadata: tuple[str, ...] = ()
    filters: tuple[Expr, ...] = ()
    limit: int | None = None
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Values:
    """Literal rows."""

    rows: tuple[tuple[Literal, ...], ...]
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Project:
    """One expression per output column."""

    input: Rel
    exprs: tuple[Expr, ...]
    names: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """Names with the types of the expressions."""
        return tuple(Column(name, expr.type) for name, expr in zip(self.names, self.exprs, strict=True))


@record
class Filter:
    """Rows for which ``condition`` is TRUE."""

    input: Rel
    condition: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


@record
class WatermarkAssigner:
    """Column ``rowtime_index`` becomes an event-time attribute with the watermark ``expression`` over the row.

    ``options``: ``scan.watermark.*`` of the table.
    """

    input: Rel
    rowtime_index: int
    expression: Expr
    schema: Schema
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Aggregate:
    """Grouping columns, then aggregate calls.

    ``grouping``: input columns. ``grouping_sets``: None for a plain GROUP BY, else subsets of ``grouping``; columns
    outside a set are NULL in its rows. GROUPING / GROUPING_ID are calls of that name without accumulators: their args
    are grouping columns. ``window``: a group window, whose properties stand behind the calls.
    """

    input: Rel
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    schema: Schema
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    window: GroupWindow | None = None


@record
class TableAggregate:
    """Grouping columns, then the fields of the rows that a table aggregate function makes of each group.

    ``grouping``: input columns. ``call``: of Python; its type is that of a row, a ROW unless rows have one field.
    """

    input: Rel
    grouping: tuple[int, ...]
    call: AggregateCall
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Expand:
    """Each row once per projection list: grouping sets as the optimizer writes them (the binder never makes it)."""

    input: Rel
    projections: tuple[tuple[Expr, ...], ...]
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class WindowTableFunction:
    """TUMBLE/HOP/CUMULATE/SESSION over a time attribute; appends window_start, window_end, window_time.

    Milliseconds. ``step_ms`` equals the size for TUMBLE; ``size_ms`` is SESSION's gap. ``partition``: SESSION's keys.
    """

    input: Rel
    kind: WindowKind
    time_index: int
    size_ms: int
    step_ms: int
    offset_ms: int
    schema: Schema
    partition: tuple[int, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


#: The function that makes rows of changes; the other one makes changes of rows.
TO_CHANGELOG: Final = "TO_CHANGELOG"


@record
class ChangelogFunction:
    """TO_CHANGELOG or FROM_CHANGELOG, which takes kinds of change from the column ``op_index``.

    ``codes``: texts and the kinds that they stand for. ``invocation``: the call, as plans show it; ``uid``: the one
    that it gives. ``time_index``: the input's column that is told once more as the last one, the time of ``on_time``.
    """

    input: Rel
    function: str
    codes: tuple[tuple[str, RowKind], ...]
    schema: Schema
    invocation: str
    op_index: int | None = None
    time_index: int | None = None
    uid: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class ProcessTableFunction:
    """A user's function over tables. ``invocation``: the call, as plans show it."""

    inputs: tuple[Rel, ...]
    call: ProcessCall
    schema: Schema
    invocation: str
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Join:
    """Regular join; window and interval joins are recognised later from the condition.

    ``inferred``: predicates that an input (0, 1) was given because they hold for the other one, so that none is given
    twice, whatever became of it below.
    """

    left: Rel
    right: Rel
    kind: JoinKind
    condition: Expr | None
    schema: Schema
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    inferred: frozenset[tuple[int, Hashable]] = field(default=frozenset(), compare=False, repr=False)


@record
class MultiJoin:
    """Regular joins of several inputs at once, from left to right: each by a key that all inputs share.

    ``kinds``, ``conditions``: of each input behind the first, INNER or LEFT, over the columns of all inputs up to it.
    ``ttls``: the time-to-live that a STATE_TTL hint gives to each input. The optimizer alone makes it.
    """

    inputs: tuple[Rel, ...]
    kinds: tuple[JoinKind, ...]
    conditions: tuple[Expr | None, ...]
    schema: Schema
    ttls: tuple[str | None, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class TemporalJoin:
    """Each left row beside the version of the right table that is valid at its time (FOR SYSTEM_TIME AS OF).

    ``kind``: INNER or LEFT. ``period``: the left column with that time. ``version_time``: the right column from which
    on a version is valid; None where the time is the processing time: then rows are looked up.
    """

    left: Rel
    right: Rel
    kind: JoinKind
    condition: Expr | None
    period: int
    version_time: int | None
    schema: Schema
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Correlate:
    """Each row beside every element of a collection in it (UNNEST).

    ``collection``: an ARRAY, MAP or MULTISET over the input's columns. ``added``: the columns of an element, as it is
    in the collection, and with ``ordinality`` its place. ``condition``: over ``added`` alone. ``outer``: a row without
    elements stays, beside NULLs.
    """

    input: Rel
    collection: Expr
    added: Schema
    schema: Schema
    ordinality: bool = False
    outer: bool = False
    condition: Expr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Apply:
    """Each row of ``left`` joined with what the query ``right`` answers for it: a join before it is decorrelated.

    ``parameters``: over the left columns, what ``right`` reads of the row; in ``right`` they are ``$OUTER`` calls that
    count them. ``condition``: over both sides, as in :class:`Join`. ``kind``: INNER, LEFT, SEMI or ANTI.
    """

    left: Rel
    right: Rel
    kind: JoinKind
    parameters: tuple[Expr, ...]
    condition: Expr | None
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Union:
    """UNION ALL; types are already equal column by column. (UNION is an Aggregate above it.)"""

    inputs: tuple[Rel, ...]
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class SortKey:
    """A column with its direction; NULLs stand lowest unless said."""

    index: int
    descending: bool = False
    nulls_first: bool = True


@record
class Sort:
    """ORDER BY and/or OFFSET/FETCH."""

    input: Rel
    keys: tuple[SortKey, ...]
    offset: int = 0
    fetch: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


class SetOperator(enum.Enum):
    """Set operations beyond UNION."""

    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@record
class SetOperation:
    """INTERSECT or EXCEPT of two inputs whose types are equal column by column; NULL equals NULL."""

    left: Rel
    right: Rel
    operator: SetOperator
    all: bool
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def construct(self) -> str:
        """The operation as it is written."""
        return f"{self.operator.value}{' ALL' if self.all else ''}"


class FrameUnit(enum.Enum):
    """ROWS counts rows, RANGE measures the sort key."""

    ROWS = "ROWS"
    RANGE = "RANGE"


class BoundKind(enum.Enum):
    """Where a frame starts or ends, in the order in which they lie."""

    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


@record
class FrameBound:
    """A bound; ``offset`` only for PRECEDING and FOLLOWING: a number of rows, a number, or an interval."""

    kind: BoundKind
    offset: Literal | None = None


@record
class Frame:
    """``ROWS BETWEEN start AND end``."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound


@record
class OverCall:
    """A window function over columns of the input.

    ``partition``: columns. ``order``: sort keys. ``frame`` None: Flink's default, which is up to the current row with
    an order and the whole partition without one. Arguments are columns or constants.
    ``options``: as of an AggregateCall.
    """

    function: str
    args: tuple[InputRef | Literal, ...]
    type: LogicalType
    name: str
    partition: tuple[int, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: Frame | None = None
    distinct: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def reads(self) -> frozenset[int]:
        """Columns of the input that the call looks at."""
        used = {arg.index for arg in self.args if isinstance(arg, InputRef)}
        return frozenset(used | set(self.partition) | {key.index for key in self.order})


@record
class Over:
    """Window functions: the input's columns, then one column per call."""

    input: Rel
    calls: tuple[OverCall, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The input's, then the calls'."""
        return (*self.input.schema, *(Column(call.name, call.type) for call in self.calls))


@record
class Rank:
    """Rows of each partition whose ROW_NUMBER lies from ``first`` to ``last``: what the optimizer makes of a filter.

    ``last`` None: column ``last_index`` of the partition's first row tells it. ``number``: the column of the
    ROW_NUMBER, behind those of the input; None where nobody reads it.
    """

    input: Rel
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    first: int
    last: int | None
    last_index: int | None = None
    number: Column | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The input's, then the number."""
        return self.input.schema if self.number is None else (*self.input.schema, self.number)

    def reads(self) -> frozenset[int]:
        """Columns of the input that decide about places."""
        last = frozenset() if self.last_index is None else frozenset({self.last_index})
        return frozenset(self.partition) | {key.index for key in self.order} | last


@record
class Match:
    """MATCH_RECOGNIZE: the partition's columns, then the measures of each match. Fields as of ``MatchSpec``.

    ``empty``: names of variables without rows, behind those of the pattern.
    """

    input: Rel
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    variables: tuple[PatternVariable, ...]
    computed: tuple[Expr, ...]
    measures: tuple[PatternExpression, ...]
    skip: MatchSkip
    skip_variable: int | None
    within_ms: int | None
    schema: Schema
    empty: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class WrittenMetadata:
    """A column of a table that goes into the metadata ``key`` of its connector, in the connector's type."""

    key: str
    column: str
    type: LogicalType


@record
class Sink:
    """INSERT INTO a table; the input's columns are cast to the table's physical columns already.

    ``table`` None: the collected result of a SELECT (``name`` is then ``*anonymous_collect$n*``). ``on_conflict``: the
    action of ON CONFLICT DO, if written. ``target_columns``: indexes of the columns that the statement lists.
    ``expectations``: of the table. ``metadata``: the columns behind the physical ones.
    """

    input: Rel
    table: TableSpec | None
    name: str
    overwrite: bool = False
    static_partition: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    on_conflict: str | None = None
    target_columns: tuple[int, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    metadata: tuple[WrittenMetadata, ...] = ()

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


Rel = (
    Scan
    | Values
    | Project
    | Filter
    | WatermarkAssigner
    | Aggregate
    | TableAggregate
    | Expand
    | WindowTableFunction
    | ChangelogFunction
    | ProcessTableFunction
    | Join
    | MultiJoin
    | TemporalJoin
    | Apply
    | Correlate
    | Union
    | Sort
    | SetOperation
    | Over
    | Rank
    | Match
    | Sink
)


def inputs(rel: Rel) -> tuple[Rel, ...]:
    """Direct inputs in order."""
    match rel:
        case Scan() | Values():
            return ()
        case (
            Join(left=left, right=right)
            | TemporalJoin(left=left, right=right)
            | Apply(left=left, right=right)
            | SetOperation(left=left, right=right)
        ):
            return (left, right)
        case Union(inputs=all_inputs) | MultiJoin(inputs=all_inputs) | ProcessTableFunction(inputs=all_inputs):
            return all_inputs
        case (
            Project()
            | Filter()
            | WatermarkAssigner()
            | Aggregate()
            | TableAggregate()
            | Expand()
            | WindowTableFunction()
            | ChangelogFunction()
            | Correlate()
            | Sort()
            | Over()
            | Rank()
            | Match()
            | Sink()
        ):
            return (rel.input,)
        case _:
            assert_never(rel)


def expressions(rel: Rel) -> Iterator[Expr]:
    """What the node computes from rows of its inputs; columns that it only names are none."""
    match rel:
        case Project(exprs=exprs):
            yield from exprs
        case Filter(condition=condition):
            yield condition
        case Join(condition=condition) | TemporalJoin(condition=condition) if condition is not None:
            yield condition
        case MultiJoin(conditions=conditions):
            yield from (condition for condition in conditions if condition is not None)
        case Apply(parameters=parameters, condition=condition):
            yield from parameters
            if condition is not None:
                yield condition
        case Correlate(collection=collection):
            yield collection
        case WatermarkAssigner(expression=expression):
            yield expression
        case Expand(projections=projections):
            for row in projections:
                yield from row
