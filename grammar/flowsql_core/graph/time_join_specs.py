"""Operators that join rows by time. Conventions as in ``specs``."""

from __future__ import annotations

from flowsql_core.expr import Expr, Literal
from flowsql_core.graph.specs import JoinKind, OperatorSpec, ScanSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


@record
class IntervalJoinSpec(OperatorSpec):
    """Join rows whose times lie so close: ``lower_ms <= left time - right time <= upper_ms``.

    ``left_time``/``right_time``: the time attribute of each side. ``row_time`` false: the processing time at which a
    row comes counts instead. ``condition`` is over the concatenated row and holds neither keys nor bounds.
    ``idle_ms``: rows that expired may stay so much longer (``table.exec.interval-join.min-cleanup-interval``).
    """

    kind: JoinKind
    left_time: int
    right_time: int
    lower_ms: int
    upper_ms: int
    row_time: bool
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    left: Schema
    right: Schema
    output: Schema
    idle_ms: int = 0


@record
class TemporalJoinSpec(OperatorSpec):
    """Join each left row with the version of the right table that was valid at its time.

    ``kind``: INNER or LEFT. ``left_time``/``right_time``: the row times. ``condition`` is over the concatenated row and
    holds no keys. ``left_changes``: -U, +U or -D may arrive on the left. ``state_ttl_ms`` 0: state never expires.
    """

    kind: JoinKind
    left_time: int
    right_time: int
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    condition: Expr | None
    left: Schema
    right: Schema
    output: Schema
    left_changes: bool = False
    state_ttl_ms: int = 0


@record
class LookupKey:
    """A column of a scan's output that rows are looked up by: equal to a left column, or to a constant."""

    column: int
    left: int | None = None
    constant: Literal | None = None


@record
class AsyncLookup:
    """At most ``capacity`` requests at once, each answered within ``timeout_ms``."""

    capacity: int
    timeout_ms: int


@record
class LookupJoinSpec(OperatorSpec):
    """Join each left row with the rows of a table that have its key at the moment.

    ``kind``: INNER or LEFT. ``scan``: the table, whose rows pass ``filter`` and become ``projections``. ``condition``:
    over the left columns, then the projections. A key without rows is asked for ``attempts`` times, ``delay_ms`` apart.
    """

    kind: JoinKind
    scan: ScanSpec
    keys: tuple[LookupKey, ...]
    projections: tuple[Expr, ...]
    filter: Expr | None
    condition: Expr | None
    left: Schema
    output: Schema
    attempts: int = 1
    delay_ms: int = 0
    asynchronous: AsyncLookup | None = None


@record
class KeyedLookupJoinSpec(LookupJoinSpec):
    """A lookup join behind updates that remembers what it told of each row, and takes that back.

    ``state_key``: left columns whose values tell whose change a row is. ``kept``: canonical texts of the projections.
    ``state_ttl_ms`` 0: state never expires.
    """

    state_key: tuple[int, ...] = ()
    kept: tuple[str, ...] = ()
    state_ttl_ms: int = 0
