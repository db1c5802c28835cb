"""Calls of Python beside built-in ones, as one program over the slots of an index (``aggregate/program.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.expr import AggregateCall
from flowsql_core.python_call import aggregated_with
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.aggregate.changes import Changes
from flowsql_runtime.operators.aggregate.ordered_values import ValueResults
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.aggregate.result import ResultColumn
from flowsql_runtime.operators.python_aggregate.calls import PythonCalls
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import AccumulatorStore, KeyIndex

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class PythonAggregateProgram:
    """Built-in calls fold in kernels, those of Python walk; the kernels count the rows of each group for both.

    Args:
        calls: arguments are column indexes of ``input``.
        retracts: rows may be taken back.
    """

    def __init__(self, calls: Sequence[AggregateCall], input: Schema, retracts: bool) -> None:
        self.calls = tuple(calls)
        self.retracts = retracts
        self._in_python = [aggregated_with(call) is not None for call in self.calls]
        pairs = list(zip(self.calls, self._in_python, strict=True))
        self.built_in = AggregateProgram([call for call, python in pairs if not python], input, retracts)
        self.python = PythonCalls([call for call, python in pairs if python], input, retracts)

    @property
    def store(self) -> AccumulatorStore:
        """Where the rows of groups are counted."""
        return self.built_in.store

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Make the stores beside the slots of ``index``."""
        self.built_in.open(states, index)
        self.python.open(states, index)

    def table_names(self, columns: Sequence[str]) -> dict[str, TableNames]:
        """What the stores mean. ``columns``: canonical texts of the input's columns."""
        return self.built_in.table_names(columns) | self.python.table_names(columns)

    def known_signs(self, slots: Int32s, signs: Int8s) -> Int8s:
        """The signs without retractions of slots that have no rows."""
        return self.built_in.known_signs(slots, signs)

    def forget(self, slots: Int32s) -> None:
        """Clear all that is kept of slots; whoever removes keys calls it first."""
        self.built_in.forget(slots)
        self.python.forget(slots)

    def count(self, slots: Int32s, columns: Sequence[Any], signs: Int8s) -> Changes:
        """Count all rows and fold the built-in calls: each slot changes once, in the order of their first rows."""
        return self.built_in.fold(slots, columns, signs, every=False)

    def fold(self, slots: Int32s, columns: Sequence[Any], signs: Int8s) -> Changes:
        """Take all rows in and say what changed: each slot once, in the order of their first rows."""
        changes = self.count(slots, columns, signs)
        touched, existed, exists = changes.slots, changes.existed(), changes.exists()
        order, starts = in_groups(touched, slots, signs)
        accumulators = self.python.accumulators(touched, existed)
        # What a result holds may be part of the accumulator: it is written down before that changes.
        count = range(len(self.python.calls))
        before = [self.python.results(place, accumulators[place], existed) for place in count]
        self.python.take_in(slots, order, starts, columns, signs, accumulators)
        after = [self.python.results(place, accumulators[place], exists) for place in count]
        self.python.keep(touched, accumulators, exists)
        all_touched = np.ones(len(touched), np.bool_)
        walked = (ValueResults(old, new, all_touched) for old, new in zip(before, after, strict=True))
        folded = iter(changes.results)
        results: list[ResultColumn] = [next(walked) if python else next(folded) for python in self._in_python]
        return Changes(touched, changes.first_rows, changes.states, results)


def in_groups(groups: Int32s, slots: Int32s, signs: Int8s) -> tuple[Int64s, Int64s]:
    """Rows in the order of their groups, and where each group begins in it, (m + 1,); rows of sign 0 take no part."""
    rows = np.flatnonzero(signs != 0)
    by_slot = np.argsort(groups, kind="stable")
    places = by_slot[np.searchsorted(groups[by_slot], slots[rows])]
    order = rows[np.argsort(places, kind="stable")]
    starts = np.zeros(len(groups) + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=len(groups)), out=starts[1:])
    return order, starts
