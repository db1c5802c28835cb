"""Aggregates of a bounded input with DISTINCT calls: each value of a group is folded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.functions.aggregate import accumulator_columns
from flowsql_core.batch import ChangelogBatch
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.bounded_specs import DistinctAggregateSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BOOLEAN, Column, Schema
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import OUTPUT_ROWS, BoundedOperator
from flowsql_runtime.operators.bounded.distinct_sets import SeenValues, rows_of_set, value_types
from flowsql_runtime.operators.bounded.held_rows import DEEPEST, FAN_OUT, DealtRows
from flowsql_runtime.state.measured import MeasuredStores

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


class DistinctGroups:
    """Groups in memory: what calls fold of all rows, what they fold of first values, and the values that were seen.

    First values are columns of their own beside a flag for each set: ``[values of set 0 .., flag of set 0 ..]``.
    """

    def __init__(self, spec: DistinctAggregateSpec) -> None:
        self._spec = spec
        self._stores = MeasuredStores()
        self._index = self._stores.key_index([to_arrow(spec.input[column].type) for column in spec.grouping])
        every = [call for call, place in zip(spec.calls, spec.set_of, strict=True) if place < 0]
        self._every = AggregateProgram(every, spec.input, retracts=False)
        self._every.open(self._stores, self._index, "every")
        self._types = value_types(spec)
        once, schema = _calls_over_values(spec)
        self._once = AggregateProgram(once, schema, retracts=False)
        self._once.open(self._stores, self._index, "once")
        self.seen = SeenValues(self._types)
        self._nulls = [type_ for own in self._types for type_ in own]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """Bytes that they take with the values that were seen."""
        return self._stores.nbytes + self.seen.nbytes

    def make_global(self) -> None:
        """The group of all rows, also where there is none."""
        self._index.find_or_insert(self._index.encode([], num_rows=1))

    def slots_of(self, keys: Sequence[Any], num_rows: int, only_known: bool) -> Int32s:
        """Slot of each row; ``only_known``: -1 for groups that are not there."""
        encoded = self._index.encode(keys, num_rows=num_rows)
        return self._index.lookup(encoded) if only_known else self._index.find_or_insert(encoded)[0]

    def fold_rows(self, slots: Int32s, columns: Sequence[Any]) -> None:
        """Rows for the calls that see each."""
        if self._every.calls:
            self._every.take_in(slots, columns, np.ones(len(slots), np.int8))

    def merge_rows(self, slots: Int32s, accumulators: Sequence[Any]) -> None:
        """Accumulators of the calls that see each row."""
        if self._every.calls:
            self._every.merge_rows(slots, self._every.rows_of_accumulators(accumulators, len(slots)))

    def fold_values(self, number: int, slots: Int32s, values: Sequence[Any], first: Int32s) -> None:
        """Rows with values of a set of which ``first`` came for the first time."""
        if not len(first):
            return
        if len(first) < len(slots):
            slots = slots[first]
            values = [column.take(pa.array(first)) for column in values]
        n = len(slots)
        columns: list[Any] = []
        for place, own in enumerate(self._types):
            columns += values if place == number else [pa.nulls(n, type_) for type_ in own]
        flags = [pa.array(np.full(n, place == number)) for place in range(len(self._types))]
        self._once.take_in(slots, [*columns, *flags], np.ones(n, np.int8))

    def batches(self, partial: bool) -> Iterator[ChangelogBatch]:
        """Keys and results of all groups; or, ``partial``, accumulators."""
        for first in range(0, self.count, OUTPUT_ROWS):
            slots = np.arange(first, min(first + OUTPUT_ROWS, self.count), dtype=np.int32)
            keys = self._index.columns_at(slots) if self._spec.grouping else []
            yield ChangelogBatch((*keys, *self._values(slots, partial)), len(slots))

    def _values(self, slots: Int32s, partial: bool) -> Iterator[Any]:
        programs = (self._every, self._once)
        for one in programs:
            # One of them may not have seen the newest groups.
            one.store.prepare()
        made = [iter(one.accumulators_at(slots) if partial else one.results_at(slots)) for one in programs]
        for call, place in zip(self._spec.calls, self._spec.set_of, strict=True):
            for _ in range(len(accumulator_columns(call)) if partial else 1):
                yield next(made[place >= 0])


def _calls_over_values(spec: DistinctAggregateSpec) -> tuple[list[AggregateCall], Schema]:
    """DISTINCT calls as plain ones over columns of values, filtered by the flags."""
    schema: list[Column] = [spec.input[column] for own in spec.sets for column in own.columns]
    schema = [Column(column.name, column.type.as_nullable()) for column in schema]
    starts = np.cumsum([0, *(len(own.columns) for own in spec.sets)]).tolist()
    width = len(schema)
    calls = []
    for call, place in zip(spec.calls, spec.set_of, strict=True):
        if place >= 0:
            args = tuple(
                InputRef(starts[place] + number, schema[starts[place] + number].type)
                for number in range(len(call.args))
            )
            calls.append(replace(call, args=args, distinct=False, filter_index=width + place))
    return calls, (*schema, *(Column(f"first{number}", BOOLEAN.as_nullable(False)) for number in range(len(spec.sets))))


class DistinctAggregateOperator(BoundedOperator[DistinctAggregateSpec]):
    """Groups in memory as long as they and their values fit; then what they do not know waits in files.

    Rows of other groups are dealt out by their key, and grouped part by part; values that a group has not seen by group
    and value, so that one group may have any number of values.

    In     insert-only; hash-partitioned by ``spec.grouping``, or, where it merges, by group and value.
    Out    one row a group; where it merges, keys and accumulators.

    Source: Flink, ``FlinkAggregateExpandDistinctAggregatesRule``, whose two aggregates this is.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No group yet."""
        self._keys = tuple(range(len(self.spec.grouping))) if self.spec.merges else self.spec.grouping
        self._values = _value_columns(self.spec)
        self._pass = _Pass(self, level=0)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Fold rows."""
        self._pass.take(batch)

    def answer(self) -> None:
        """Groups in memory, then those of each part."""
        # Groups that other tasks made, too, would be there twice: the last phase makes the group of no rows.
        if not self.spec.grouping and not self.spec.merges:
            self._pass.groups.make_global()
        self._answer(self._pass)
        del self._pass

    def _answer(self, done: _Pass) -> None:
        done.fold_waiting()
        for batch in done.groups.batches(partial=self.spec.merges):
            self.collect_within_offsets(batch)
        rest, level = done.rest, done.level
        del done.groups
        if rest is None:
            return
        for part in range(FAN_OUT):
            finer = _Pass(self, level + 1)
            for batch in rest.read(part):
                finer.take(batch)
            self._answer(finer)

    # -- what a row has

    def key_columns(self, batch: ChangelogBatch) -> list[Any]:
        """Keys of rows."""
        return [batch.columns[key] for key in self._keys]

    def values_of(self, number: int, batch: ChangelogBatch) -> list[Any]:
        """Columns of a set."""
        return [batch.columns[column] for column in self._values[number]]

    def rows_of(self, number: int, batch: ChangelogBatch) -> Bools | None:
        """The rows of a set."""
        if not self.spec.merges:
            return rows_of_set(self.spec.sets[number], batch.columns)
        taken: Bools = self.sets_of(batch) == number
        return None if taken.all() else taken

    def sets_of(self, batch: ChangelogBatch) -> Int32s:
        """The set of each row that another phase made."""
        place = len(self._keys) + sum(len(own.columns) for own in self.spec.sets)
        found: Int32s = values_and_validity(batch.columns[place])[0]
        return found

    @property
    def rest_keys(self) -> tuple[int, ...]:
        """Columns by which rows of other groups are dealt out."""
        return self._keys


def _value_columns(spec: DistinctAggregateSpec) -> list[tuple[int, ...]]:
    """Where the values of each set stand in rows that arrive."""
    if not spec.merges:
        return [own.columns for own in spec.sets]
    made, first = [], len(spec.grouping)
    for own in spec.sets:
        made.append(tuple(range(first, first + len(own.columns))))
        first += len(own.columns)
    return made


class _Pass:
    """Rows that were dealt out ``level`` times: groups in memory, and what waits."""

    def __init__(self, operator: DistinctAggregateOperator, level: int) -> None:
        self.level = level
        self.groups = DistinctGroups(operator.spec)
        self.rest: DealtRows | None = None
        self._operator = operator
        #: Values that their groups do not know, of each set; none while all fit in memory.
        self._waiting: list[DealtRows] = []

    def take(self, batch: ChangelogBatch) -> None:
        """Fold what groups in memory know, and keep what they do not."""
        n = batch.num_rows
        if not n:
            return
        operator = self._operator
        spec = operator.spec
        slots = self.groups.slots_of(operator.key_columns(batch), n, only_known=self.rest is not None)
        if self.rest is not None and (slots < 0).any():
            self.rest.add(batch.part(np.flatnonzero(slots < 0)))
            known = np.flatnonzero(slots >= 0)
            batch, slots = batch.part(known), slots[known]
            if not len(known):
                return
        if spec.merges:
            self._merge(batch, slots)
        else:
            self.groups.fold_rows(slots, batch.columns)
        for number in range(len(spec.sets)):
            self._take_values(number, slots, operator.values_of(number, batch), operator.rows_of(number, batch))
        self._measure()

    def _merge(self, batch: ChangelogBatch, slots: Int32s) -> None:
        sets = self._operator.sets_of(batch)
        whole = np.flatnonzero(sets == len(self._operator.spec.sets))
        if len(whole):
            first = len(batch.columns) - self._accumulators(batch)
            rows = batch.part(whole) if len(whole) < batch.num_rows else batch
            self.groups.merge_rows(slots[whole], rows.columns[first:])

    def _accumulators(self, batch: ChangelogBatch) -> int:
        values = sum(len(own.columns) for own in self._operator.spec.sets)
        return len(batch.columns) - len(self._operator.spec.grouping) - values - 2

    def _take_values(self, number: int, slots: Int32s, values: list[Any], taken: Bools | None) -> None:
        if taken is not None and not taken.any():
            return
        if not self._waiting:
            self.groups.fold_values(number, slots, values, self.groups.seen.first_rows(number, slots, values, taken))
            return
        missing = self.groups.seen.unknown(number, slots, values, taken)
        if len(missing):
            places = pa.array(missing)
            columns = (pa.array(slots[missing]), *(column.take(places) for column in values))
            self._waiting[number].add(ChangelogBatch(columns, len(missing)))

    def _measure(self) -> None:
        """What groups do not know waits from now on, if memory ends."""
        operator, size = self._operator, self.groups.nbytes
        operator.ctx.memory.resize(size)
        if self._waiting or size <= operator.share_bytes:
            return
        spec = operator.spec
        self._waiting = [DealtRows(operator.space, range(1 + len(own.columns))) for own in spec.sets]
        if spec.grouping and self.level < DEEPEST:
            self.rest = DealtRows(operator.space, operator.rest_keys, self.level)

    def fold_waiting(self) -> None:
        """Fold the values that waited, part by part."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.groups.seen.clear()
        for number, dealt in enumerate(waiting):
            self._fold_dealt(number, dealt)

    def _fold_dealt(self, number: int, dealt: DealtRows) -> None:
        groups, operator = self.groups, self._operator
        for part in range(FAN_OUT):
            finer: DealtRows | None = None
            for batch in dealt.read(part):
                slots, values = values_and_validity(batch.columns[0])[0], list(batch.columns[1:])
                if finer is not None:
                    missing = groups.seen.unknown(number, slots, values, None)
                    finer.add(batch.part(missing))
                    continue
                groups.fold_values(number, slots, values, groups.seen.first_rows(number, slots, values, None))
                operator.ctx.memory.resize(groups.nbytes)
                if groups.seen.nbytes > operator.share_bytes and dealt.level + 1 < DEEPEST:
                    finer = DealtRows(operator.space, range(len(batch.columns)), dealt.level + 1)
            groups.seen.clear()
            if finer is not None:
                self._fold_dealt(number, finer)
