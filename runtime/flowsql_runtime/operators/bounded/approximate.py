"""APPROX_COUNT_DISTINCT of groups: what its argument sets in HyperLogLog++ stands in a column of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flowsql_compute.eval.hyperloglog import register_codes
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.types.logical import INT, Column, Schema


class Registers:
    """Calls of groups over an input to which the registers of approximate ones are added.

    A group keeps each register and rank that it saw once, so that it holds a few hundred thousand numbers at most,
    however many values it counts.

    ``calls``: over ``input``, which is the operator's with these columns behind.
    """

    def __init__(self, calls: Sequence[AggregateCall], input: Schema) -> None:
        self._arguments = sorted({call.args[0].index for call in calls if _is_approximate(call)})
        places = {column: len(input) + place for place, column in enumerate(self._arguments)}
        self._types = [input[column].type for column in self._arguments]
        self.input = (*input, *(Column(f"registers${column}", INT) for column in self._arguments))
        self.calls = tuple(
            replace(
                call,
                function="$APPROX_COUNT",
                args=(InputRef(places[call.args[0].index], INT, call.args[0].span),),
                distinct=True,
            )
            if _is_approximate(call)
            else call
            for call in calls
        )

    def added(self, columns: Sequence[Any]) -> Sequence[Any]:
        """The columns of rows, registers behind them."""
        if not self._arguments:
            return columns
        pairs = zip(self._arguments, self._types, strict=True)
        return [*columns, *(register_codes(columns[column], type_) for column, type_ in pairs)]


def _is_approximate(call: AggregateCall) -> bool:
    return call.function == "APPROX_COUNT_DISTINCT"
