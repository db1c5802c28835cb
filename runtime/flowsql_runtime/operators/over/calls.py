"""The calls of an OVER window over the columns that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from flowsql_compute.eval.literal import literal_array
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, LogicalType, without_attribute
from flowsql_runtime.operators.aggregate.program import AggregateProgram

#: Functions that number the rows of a window that starts at the first row: they count them.
_NUMBERS: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})


@record
class Lag:
    """LAG: its place among the calls, the column or constant, how many rows back, and what is there without such a row.

    ``type``: of the result. Where that is NOT NULL, NULLs of the column become what Flink makes of them.
    ``offset``: a constant, or ``by``, the column of the row itself that has it. ``otherwise``: a constant, or the
    column of the row itself that has it; None for NULL.
    """

    place: int
    column: int | Literal
    type: LogicalType
    offset: int
    by: int | None
    otherwise: Literal | int | None


class OverCalls:
    """``columns``: of the input, that calls read; constants stand behind them."""

    def __init__(self, spec: OverAggregateSpec) -> None:
        width = len(spec.input)
        calls = [replace(call, function="COUNT") if call.function in _NUMBERS else call for call in spec.calls]
        used = sorted({arg.index for call in calls for arg in call.args})
        self.columns = tuple(index for index in used if index < width)
        self.constants = tuple(spec.constants[index - width] for index in used if index >= width)
        own = [Column(spec.input[index].name, without_attribute(spec.input[index].type)) for index in self.columns]
        self.types = [to_arrow(column.type) for column in own]
        self.schema = (*own, *(Column(f"c{i}", constant.type) for i, constant in enumerate(self.constants)))
        moved = [_moved(call, used) for call in calls]
        self.lags = [self._lag(place, call) for place, call in enumerate(moved) if call.function == "LAG"]
        #: Places of the other calls, which accumulators answer.
        self.folded = [place for place, call in enumerate(moved) if call.function != "LAG"]
        #: The other calls, over :meth:`with_constants`.
        self.calls = [moved[place] for place in self.folded]

    def __len__(self) -> int:
        return len(self.folded) + len(self.lags)

    def program(self, retracts: bool) -> AggregateProgram:
        """The accumulators of all calls but LAG. As in Flink, sums of doubles keep what rounding left behind."""
        return AggregateProgram(self.calls, self.schema, retracts, clear_at_zero=False)

    def with_constants(self, columns: Sequence[Any], n: int) -> list[Any]:
        """The input of the program: Arrow columns at :attr:`columns`, and the constants, of ``n`` rows."""
        return [*columns, *(literal_array(constant, n) for constant in self.constants)]

    def separator(self, call: AggregateCall) -> bytes:
        """What stands between two texts of a LISTAGG of :attr:`calls`."""
        return b"," if len(call.args) < 2 else str(self._constant(call.args[1]).value).encode()

    def texts(self, columns: Sequence[str]) -> list[str]:
        """Canonical texts of the program's input. ``columns``: those at :attr:`columns`."""
        return [*columns, *(str(constant.value) for constant in self.constants)]

    def _lag(self, place: int, call: AggregateCall) -> Lag:
        offset, by = 1, None
        if len(call.args) > 1:
            by = call.args[1].index if call.args[1].index < len(self.columns) else None
            offset = int(self._constant(call.args[1]).value) if by is None else 0
        otherwise: Literal | int | None = None
        if len(call.args) > 2:
            index = call.args[2].index
            otherwise = index if index < len(self.columns) else self._constant(call.args[2])
        first = call.args[0].index
        column = first if first < len(self.columns) else self._constant(call.args[0])
        return Lag(place, column, call.type, offset, by, otherwise)

    def _constant(self, arg: InputRef) -> Literal:
        return self.constants[arg.index - len(self.columns)]


def _moved(call: AggregateCall, used: Sequence[int]) -> AggregateCall:
    args = tuple(InputRef(used.index(arg.index), without_attribute(arg.type), arg.span) for arg in call.args)
    return replace(call, args=args)
