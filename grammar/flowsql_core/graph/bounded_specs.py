"""Specs of the operators of batch mode: they answer once, when their inputs have ended. All inputs are insert-only."""

from __future__ import annotations

from decimal import Decimal

from flowsql_core.expr import AggregateCall, Expr, Literal
from flowsql_core.graph.key_identity import KeyIdentity
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_core.graph.specs import JoinKind, OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


@record
class BoundedAggregateSpec(OperatorSpec):
    """One row a group: ``grouping``, then ``calls``. Without grouping columns one row, also of no rows.

    ``merges``: what arrives are rows of a :class:`BoundedLocalAggregateSpec` over ``input``.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema
    merges: bool = False


@record
class SortAggregateSpec(OperatorSpec):
    """One row a group of an input that is sorted by ``grouping``. Fields as of :class:`BoundedAggregateSpec`."""

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema
    merges: bool = False


@record
class BoundedLocalAggregateSpec(OperatorSpec):
    """Accumulators of the groups of a task's rows, before they travel: ``grouping``, then the columns of each call.

    A group may leave in several rows; without rows none leaves.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema


@record
class DistinctValues:
    """What DISTINCT calls of an aggregate see once a group: columns of its input, none of them NULL.

    ``filter_index``: a BOOLEAN column that is TRUE in the rows that take part.
    """

    columns: tuple[int, ...]
    filter_index: int | None


@record
class DistinctAggregateSpec(OperatorSpec):
    """One row a group with DISTINCT calls, all of which merge: ``grouping``, then ``calls``.

    ``sets``: what the calls see once, in the order of ``set_of``, which has a place for each call, or -1 for a call
    that sees each row. ``merges``: what arrives are rows of a :class:`DistinctRowsSpec` over ``input``, and what leaves
    are keys and accumulators.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    sets: tuple[DistinctValues, ...]
    set_of: tuple[int, ...]
    input: Schema
    output: Schema
    merges: bool = False


@record
class DistinctRowsSpec(OperatorSpec):
    """Rows of a task on their way to a :class:`DistinctAggregateSpec` that merges, dealt out by key and value.

    Output: keys, the columns of each set, the number of the row's set, a hash of the keys and the set's columns, then
    the accumulators of calls that see each row. A row of a set has no more than its own columns and the keys; those
    behind the last set have accumulators.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    sets: tuple[DistinctValues, ...]
    set_of: tuple[int, ...]
    input: Schema
    output: Schema


@record
class PandasAggregateSpec(OperatorSpec):
    """Functions of pandas over groups, one row each; no rows are no group.

    ``order``: columns by which the rows of a group are sorted.
    """

    grouping: tuple[int, ...]
    order: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema


@record
class BoundedJoinSpec(OperatorSpec):
    """Join of two inputs of which one (``build_left``: the left one) is taken whole before the other one meets it.

    ``condition`` and ``null_safe`` as of :class:`~flowsql_core.graph.specs.JoinSpec`, but for keys compared by VALUE
    ``condition`` is the whole one, keys included: pairs whose keys only look alike are dropped by it.
    """

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    left: Schema
    right: Schema
    output: Schema
    build_left: bool
    identity: KeyIdentity = KeyIdentity.BITS


@record
class SortMergeJoinSpec(OperatorSpec):
    """Join of two inputs that are both sorted by their keys. Fields as of :class:`BoundedJoinSpec`."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    left: Schema
    right: Schema
    output: Schema
    identity: KeyIdentity = KeyIdentity.BITS


@record
class BoundedSortSpec(OperatorSpec):
    """All rows in an order, or those from ``offset`` on, ``fetch`` of them at most. Rows that sort alike by arrival."""

    order: OrderKeys
    input: Schema
    offset: int = 0
    fetch: int | None = None


#: Distance of a frame's bound from the current row: rows, or in units of the order's column (milliseconds of an
#: interval); negative: before it. None: no bound.
Distance = int | float | Decimal | None


@record
class OverFrame:
    """Rows that a window function sees. ``counts_rows``: ROWS, else RANGE, where rows of equal order are one."""

    counts_rows: bool
    start: Distance
    end: Distance


@record
class BoundedOverSpec(OperatorSpec):
    """Window functions over one partitioning and order.

    Output: the input's columns, then one column per call. Arguments of calls are columns of the input, behind them
    ``constants``. ``frames``: one per call, None for those that see the whole partition in its order (ranks, LAG).
    """

    partition: tuple[int, ...]
    order: OrderKeys
    calls: tuple[AggregateCall, ...]
    frames: tuple[OverFrame | None, ...]
    constants: tuple[Literal, ...]
    input: Schema
    output: Schema


@record
class PandasOverSpec(BoundedOverSpec):
    """The same with functions of pandas alone: all calls have a frame."""
