"""Calls of Python, and built-in ones beside them, over windows: accumulators, or the rows themselves, by slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_core.expr import AggregateCall
from flowsql_core.python_call import aggregated_with
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema, without_attribute
from flowsql_core.udf import FunctionKind
from flowsql_runtime.operators.aggregate.changes import Changes
from flowsql_runtime.operators.aggregate.inputs import Step
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.python_aggregate.calls import PythonCalls
from flowsql_runtime.operators.python_aggregate.pandas_calls import PandasCalls
from flowsql_runtime.operators.python_aggregate.program import in_groups
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import KeyIndex

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]

_ROWS: Final = "pandas.rows"


class PythonWindowProgram(AggregateProgram):
    """Built-in calls fold in kernels, those of Python walk over the rows of each slot.

    Args:
        calls: all of them; arguments are column indexes of ``input``.
        merges: accumulators of Python combine.
    """

    def __init__(self, calls: Sequence[AggregateCall], input: Schema, retracts: bool, merges: bool) -> None:
        self._in_python = [aggregated_with(call) is not None for call in calls]
        pairs = list(zip(calls, self._in_python, strict=True))
        super().__init__([call for call, python in pairs if not python], input, retracts, clear_at_zero=False)
        self.python = PythonCalls([call for call, python in pairs if python], input, retracts)
        self._python_merges = merges
        self._merged: list[list[Any]] = []

    def load(self, ctx: OperatorContext, zone: str) -> None:
        """Make the functions of this subtask."""
        self.python.load(ctx, zone)

    def close(self) -> None:
        """Close the functions."""
        self.python.close()

    @property
    def mergeable(self) -> bool:
        """Where each call merges."""
        return self._python_merges and super().mergeable

    @property
    def commutes(self) -> bool:
        """Nobody knows."""
        return False

    @property
    def columns_read(self) -> tuple[int, ...]:
        """Of all calls."""
        calls = self.python.calls
        filters = {call.filter_index for call in calls if call.filter_index is not None}
        return tuple(sorted({*super().columns_read, *filters, *(arg.index for call in calls for arg in call.args)}))

    def open(self, states: StoreFactory, index: KeyIndex, name: str = "aggregate") -> None:
        """Make the stores beside the slots of ``index``."""
        super().open(states, index, name)
        self.python.open(states, index)

    def table_names(self, columns: Sequence[str], name: str = "aggregate") -> dict[str, TableNames]:
        """What the stores mean. ``columns``: canonical texts of the input's columns."""
        return super().table_names(columns, name) | self.python.table_names(columns)

    def forget(self, slots: Int32s) -> None:
        """Clear all that is kept of slots."""
        super().forget(slots)
        self.python.forget(slots)

    def fold(
        self, slots: Int32s, columns: Sequence[Any], signs: Int8s, every: bool, step: Step | None = None
    ) -> Changes:
        """Take all rows in; what changed is told of the built-in calls alone."""
        changes = super().fold(slots, columns, signs, every, step)
        touched = changes.slots
        order, starts = in_groups(touched, slots, signs)
        all_of_them = np.ones(len(touched), np.bool_)
        accumulators = self.python.accumulators(touched, all_of_them)
        self.python.take_in(slots, order, starts, columns, signs, accumulators)
        self.python.keep(touched, accumulators, all_of_them)
        return changes

    def take_in(self, slots: Int32s, columns: Sequence[Any], signs: Int8s) -> None:
        """Take all rows in."""
        self.fold(slots, columns, signs, every=False)

    def results_at(self, slots: Int32s) -> list[Any]:
        """Results of slots as they stand, Arrow arrays."""
        every = np.ones(len(slots), np.bool_)
        return self._together(super().results_at(slots), self.python.accumulators(slots, every), every)

    def _together(self, built_in: list[Any], accumulators: list[list[Any]], wanted: npt.NDArray[np.bool_]) -> list[Any]:
        of_python = (self.python.results(place, found, wanted) for place, found in enumerate(accumulators))
        folded = iter(built_in)
        return [next(of_python) if python else next(folded) for python in self._in_python]

    def merged_rows(self, positions: Int32s, count: int, members: Int32s) -> npt.NDArray[np.int64]:
        """Accumulator rows of ``members`` merged by position; those of Python wait for :meth:`results_of`."""
        self._merged = self.python.merged(members, positions, count)
        return super().merged_rows(positions, count, members)

    def results_of(self, states: npt.NDArray[np.int64]) -> list[Any]:
        """Results of what was merged last."""
        merged, self._merged = self._merged, []
        wanted: npt.NDArray[np.bool_] = states[:, 0] != 0
        return self._together(super().results_of(states), merged, wanted)

    def merge_slots(self, takers: Int32s, taken: Int32s) -> None:
        """Slots take others in, pairwise and distinct."""
        joined = self.python.join(takers, taken)
        members = np.stack((takers, taken), axis=1).ravel()
        pairs = np.repeat(np.arange(len(takers), dtype=np.int32), 2)
        merged = super().merged_rows(pairs, len(takers), members)
        self.forget(members)
        self.store.put_words(takers, merged)
        self.python.keep(takers, joined, np.ones(len(takers), np.bool_))


def python_program(
    calls: Sequence[AggregateCall], input: Schema, retracts: bool, merges: bool
) -> PythonWindowProgram | PandasWindowProgram:
    """The calls of an operator: Flink has those of pandas or general ones in one window, not both."""
    kinds = {function.kind for call in calls if (function := aggregated_with(call)) is not None}
    if FunctionKind.PANDAS.value in kinds:
        return PandasWindowProgram(calls, input, retracts)
    return PythonWindowProgram(calls, input, retracts, merges)


class PandasWindowProgram(AggregateProgram):
    """Built-in calls fold in kernels; the rows of functions of pandas are kept until their window closes."""

    def __init__(self, calls: Sequence[AggregateCall], input: Schema, retracts: bool) -> None:
        self._in_python = [aggregated_with(call) is not None for call in calls]
        pairs = list(zip(calls, self._in_python, strict=True))
        super().__init__([call for call, python in pairs if not python], input, retracts, clear_at_zero=False)
        own = [call for call, python in pairs if python]
        self._kept = tuple(sorted({arg.index for call in own for arg in call.args}))
        self._types = [to_arrow(input[column].type) for column in self._kept]
        self.python = PandasCalls(own, self.kept_columns(), self._kept)

    def kept_columns(self) -> Schema:
        """The columns that are kept of rows."""
        return tuple(Column(self.input[i].name, without_attribute(self.input[i].type)) for i in self._kept)

    def load(self, ctx: OperatorContext, zone: str) -> None:
        """Make the functions of this subtask."""
        self.python.load(ctx, zone)

    def close(self) -> None:
        """Close the functions."""
        self.python.close()

    @property
    def mergeable(self) -> bool:
        """Rows do not."""
        return False

    def open(self, states: StoreFactory, index: KeyIndex, name: str = "aggregate") -> None:
        """Make the stores beside the slots of ``index``."""
        super().open(states, index, name)
        flat = [part for type_ in self._types for part in flat_types(type_)]
        self._rows = states.row_list(_ROWS, index, flat, removable=self.retracts)

    def table_names(self, columns: Sequence[str], name: str = "aggregate") -> dict[str, TableNames]:
        """What the stores mean."""
        texts = [
            f"{columns[column]} [{part}]" if part else columns[column]
            for column, type_ in zip(self._kept, self._types, strict=True)
            for part in range(len(flat_types(type_)))
        ]
        rows = TableNames("rows of windows", {f"r{place}": text for place, text in enumerate(texts)})
        return super().table_names(columns, name) | {_ROWS: rows}

    def forget(self, slots: Int32s) -> None:
        """Clear all that is kept of slots."""
        super().forget(slots)
        self._rows.drop_slots(slots)

    def fold(
        self, slots: Int32s, columns: Sequence[Any], signs: Int8s, every: bool, step: Step | None = None
    ) -> Changes:
        """Keep rows; what changed is told of the built-in calls alone."""
        changes = super().fold(slots, columns, signs, every, step)
        flat = [part for column in self._kept for part in flat_columns(columns[column])]
        if self.retracts:
            self._rows.apply(np.ascontiguousarray(signs), slots, flat)
        else:
            self._rows.append(slots, flat)
        return changes

    def results_at(self, slots: Int32s) -> list[Any]:
        """Results of slots as they stand, Arrow arrays."""
        places, rows = self._rows.rows_of(slots)
        columns = whole_columns(self._types, self._rows.gather(rows))
        counts = np.bincount(places, minlength=len(slots))
        ends = np.cumsum(counts)
        of_python = iter(self.python.results(columns, ends - counts, ends))
        folded = iter(super().results_at(slots))
        return [next(of_python) if python else next(folded) for python in self._in_python]
