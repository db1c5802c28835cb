"""Windows of ``Table.window`` (Tumble, Slide, Session) and of ``Table.over_window`` (Over)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flowsql.table.expression.expression import Expression, Word, rows_of_interval
from flowsql.table.expressions import call_sql, col
from flowsql.table.query.modes import is_batch
from flowsql.table.syntax.build import ast, shown
from flowsql_core.errors import BindError
from flowsql_core.types.logical import (
    BigIntType,
    LogicalType,
    TimestampLtzType,
    TimestampType,
    is_time_attribute,
    quote_identifier,
)

if TYPE_CHECKING:
    from flowsql.table.query.projection import Projection
    from flowsql.table.table import Table


#: The call of a number of rows (``logical/group_window.py`` of the planner).
_ROWS: Final = "$ROWS"


class GroupWindow:
    """A window with its time attribute and its name. ``function``: TUMBLE, HOP or SESSION of SQL.

    ``amounts``: what stands behind the time column in a call of it.
    """

    def __init__(self, function: str, amounts: tuple[Expression, ...], time_field: Expression, alias: str) -> None:
        self.function = function
        self.amounts = amounts
        self.time_field = time_field
        self.alias = alias

    def __str__(self) -> str:
        args = ", ".join(shown(arg._node) for arg in (self.time_field, *self.amounts))
        return f"{self.function}({args}) AS {self.alias}"

    def over_moments(self, table: Table) -> tuple[Table, GroupWindow]:
        """The table and the window, with a TIMESTAMP in the place of a BIGINT of milliseconds; for batch mode.

        Where the window is over anything else, both are as they were.
        """
        time = self.time_field._node
        if not isinstance(time, ast.ColumnRef) or len(time.path.parts) != 1:
            return table, self
        name = time.path.texts[0]
        found = next((column for column in table._schema if column.name == name), None)
        if found is None or not isinstance(found.type, BigIntType):
            return table, self
        moment = f"TIMESTAMP '1970-01-01 00:00:00.000' + {quote_identifier(name)} * INTERVAL '0.001' SECOND"
        moments = f"{name} as TIMESTAMP"
        return (
            table.add_columns(call_sql(moment).alias(moments)),
            GroupWindow(self.function, self.amounts, col(moments), self.alias),
        )

    def arguments(self, projection: Projection) -> tuple[ast.ColumnRef, tuple[ast.Expression, ...]]:
        """The time attribute and the lengths.

        A number of rows is a call of its own, which SQL does not have.

        Raises:
            BindError: the time attribute is no plain column; a session of rows, rows beside time.
        """
        time = projection.value(self.time_field, 0)
        if not isinstance(time, ast.ColumnRef) or len(time.path.parts) != 1:
            raise BindError("bad-time-field", "A window stands on a column: .on(col('ts')).", time.span)
        counts = [rows_of_interval(projection.expression(amount)) for amount in self.amounts]
        if self.function == "SESSION" and counts != [None]:
            message = "A session window expects a gap literal of a day-time interval type."
            raise BindError("bad-window", message, time.span)
        if None in counts and counts.count(None) < len(counts):
            message = "A sliding window expects the same type of size and slide."
            raise BindError("bad-window", message, time.span)
        _check_time(time, projection.type_of(time), is_batch(projection.environment))
        amounts = zip(self.amounts, counts, strict=True)
        return time, tuple(
            projection.value(amount, 0) if count is None else _call(_ROWS, count) for amount, count in amounts
        )

    def group(self, projection: Projection, part: str = "") -> ast.FunctionCall:
        """The group window in GROUP BY, or a function of it: ``START``, ``END``, ``ROWTIME``, ``PROCTIME``."""
        time, amounts = self.arguments(projection)
        return _call(f"{self.function}_{part}" if part else self.function, time, *amounts)


def _check_time(time: ast.ColumnRef, type_: LogicalType | None, batch: bool) -> None:
    """BindError where windows cannot stand on a column of that type."""
    if type_ is None or is_time_attribute(type_) or (batch and isinstance(type_, TimestampType | TimestampLtzType)):
        return
    kind, hint = ("batch", "any TIMESTAMP is one") if batch else ("stream", "WATERMARK FOR makes a column one")
    message = f"A group window expects a time attribute for grouping in a {kind} environment."
    raise BindError("no-time-attribute", message, time.span, hint)


def _call(function: str, *arguments: ast.Argument) -> ast.FunctionCall:
    return ast.FunctionCall(ast.Identifier((ast.Name(function),)), arguments)


class _OnTime:
    def __init__(self, function: str, amounts: tuple[Expression, ...], time_field: Expression) -> None:
        self._function = function
        self._amounts = amounts
        self._time_field = time_field

    def alias(self, alias: str) -> GroupWindow:
        """The window's name for ``group_by`` and ``select``."""
        return GroupWindow(self._function, self._amounts, self._time_field, alias)


class TumbleWithSizeOnTime(_OnTime):
    """A tumbling window that lacks its name."""


class SlideWithSizeAndSlideOnTime(_OnTime):
    """A sliding window that lacks its name."""


class SessionWithGapOnTime(_OnTime):
    """A session window that lacks its name."""


class Tumble:
    """Windows of one length, one behind the other: ``Tumble.over(lit(10).minutes).on(col("ts")).alias("w")``."""

    @classmethod
    def over(cls, size: Expression) -> TumbleWithSize:
        """The length."""
        return TumbleWithSize(size)


class TumbleWithSize:
    """A tumbling window that lacks its time attribute."""

    def __init__(self, size: Expression) -> None:
        self._size = size

    def on(self, time_field: Expression) -> TumbleWithSizeOnTime:
        """The time attribute."""
        return TumbleWithSizeOnTime("TUMBLE", (self._size,), time_field)


class Slide:
    """Windows of one length that start at every step: ``Slide.over(size).every(step).on(col("ts")).alias("w")``."""

    @classmethod
    def over(cls, size: Expression) -> SlideWithSize:
        """The length."""
        return SlideWithSize(size)


class SlideWithSize:
    """A sliding window that lacks its step."""

    def __init__(self, size: Expression) -> None:
        self._size = size

    def every(self, slide: Expression) -> SlideWithSizeAndSlide:
        """The step from the start of a window to that of the next."""
        return SlideWithSizeAndSlide(self._size, slide)


class SlideWithSizeAndSlide:
    """A sliding window that lacks its time attribute."""

    def __init__(self, size: Expression, slide: Expression) -> None:
        self._size = size
        self._slide = slide

    def on(self, time_field: Expression) -> SlideWithSizeAndSlideOnTime:
        """The time attribute."""
        return SlideWithSizeAndSlideOnTime("HOP", (self._slide, self._size), time_field)


class Session:
    """Windows that end with a gap between rows: ``Session.with_gap(lit(10).minutes).on(col("ts")).alias("w")``."""

    @classmethod
    def with_gap(cls, gap: Expression) -> SessionWithGap:
        """The gap."""
        return SessionWithGap(gap)


class SessionWithGap:
    """A session window that lacks its time attribute."""

    def __init__(self, gap: Expression) -> None:
        self._gap = gap

    def on(self, time_field: Expression) -> SessionWithGapOnTime:
        """The time attribute."""
        return SessionWithGapOnTime("SESSION", (self._gap,), time_field)


# Windows around each row


class OverWindow:
    """A window around each row, with its name."""

    def __init__(
        self,
        partition_by: tuple[Expression, ...],
        order_by: Expression,
        preceding: Expression | None,
        following: Expression | None,
        alias: str,
    ) -> None:
        self._partition_by = partition_by
        self._order_by = order_by
        self._preceding = preceding
        self._following = following
        self.alias = alias

    def __str__(self) -> str:
        return self.alias

    def spec(self, projection: Projection, position: int) -> ast.WindowSpec:
        """The window behind OVER. Without bounds it reaches from the partition's first row to the current one."""
        keys = tuple(projection.value(key, position) for key in self._partition_by)
        order = projection.order_item(self._order_by, position)
        return ast.WindowSpec(None, keys, (order,), self._frame(projection, position))

    def _frame(self, projection: Projection, position: int) -> ast.Frame | None:
        preceding, following = self._preceding, self._following
        if preceding is None:
            return None
        counts_rows = _counts_rows(preceding)
        if following is None:
            following = Word("CURRENT_ROW" if counts_rows else "CURRENT_RANGE")
        if _counts_rows(following) != counts_rows:
            raise BindError("bad-frame", "Preceding and following must be of same interval type.")
        unit = ast.FrameUnit.ROWS if counts_rows else ast.FrameUnit.RANGE
        start = self._bound(preceding, projection, position, ast.BoundKind.PRECEDING)
        end = self._bound(following, projection, position, ast.BoundKind.FOLLOWING)
        return ast.Frame(unit, start, end)

    def _bound(self, given: Expression, projection: Projection, position: int, kind: ast.BoundKind) -> ast.FrameBound:
        if isinstance(given, Word) and (given.is_word("CURRENT_ROW") or given.is_word("CURRENT_RANGE")):
            return ast.FrameBound(ast.BoundKind.CURRENT_ROW)
        if isinstance(given, Word):
            before = kind is ast.BoundKind.PRECEDING
            return ast.FrameBound(ast.BoundKind.UNBOUNDED_PRECEDING if before else ast.BoundKind.UNBOUNDED_FOLLOWING)
        rows = rows_of_interval(given)
        return ast.FrameBound(kind, projection.value(given if rows is None else Expression(rows), position))


def _counts_rows(given: Expression) -> bool:
    if isinstance(given, Word):
        return given.is_word("UNBOUNDED_ROW") or given.is_word("CURRENT_ROW")
    return rows_of_interval(given) is not None


class Over:
    """``Over.partition_by(col("k")).order_by(col("ts")).preceding(lit(1).hours).alias("w")``."""

    @classmethod
    def order_by(cls, order_by: Expression) -> OverWindowPartitionedOrdered:
        """The order of the rows; a time attribute in streaming mode."""
        return OverWindowPartitionedOrdered((), order_by)

    @classmethod
    def partition_by(cls, *partition_by: Expression) -> OverWindowPartitioned:
        """The keys of the rows that belong together."""
        return OverWindowPartitioned(partition_by)


class OverWindowPartitioned:
    """A window that lacks its order."""

    def __init__(self, partition_by: tuple[Expression, ...]) -> None:
        self._partition_by = partition_by

    def order_by(self, order_by: Expression) -> OverWindowPartitionedOrdered:
        """The order of the rows; a time attribute in streaming mode."""
        return OverWindowPartitionedOrdered(self._partition_by, order_by)


class OverWindowPartitionedOrdered:
    """A window that lacks its bounds, which may stay away, and its name."""

    def __init__(self, partition_by: tuple[Expression, ...], order_by: Expression) -> None:
        self._partition_by = partition_by
        self._order_by = order_by

    def alias(self, alias: str) -> OverWindow:
        """The window's name for ``over``."""
        return OverWindow(self._partition_by, self._order_by, None, None, alias)

    def preceding(self, preceding: Expression) -> OverWindowPartitionedOrderedPreceding:
        """Where the window starts: ``UNBOUNDED_ROW``, ``row_interval(5)``, ``lit(1).hours``."""
        return OverWindowPartitionedOrderedPreceding(self._partition_by, self._order_by, preceding, None)


class OverWindowPartitionedOrderedPreceding:
    """A window that lacks its name."""

    def __init__(
        self,
        partition_by: tuple[Expression, ...],
        order_by: Expression,
        preceding: Expression,
        following: Expression | None,
    ) -> None:
        self._partition_by = partition_by
        self._order_by = order_by
        self._preceding = preceding
        self._following = following

    def following(self, following: Expression) -> OverWindowPartitionedOrderedPreceding:
        """Where the window ends: ``CURRENT_ROW``, ``row_interval(5)``, ``lit(1).hours``."""
        return OverWindowPartitionedOrderedPreceding(self._partition_by, self._order_by, self._preceding, following)

    def alias(self, alias: str) -> OverWindow:
        """The window's name for ``over``."""
        return OverWindow(self._partition_by, self._order_by, self._preceding, self._following, alias)
