"""Rows that a Python table aggregate function makes of each group: all of them anew with each bundle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowsql_core import column_bytes
from flowsql_core.batch import ChangelogBatch, columns_of
from flowsql_core.column_bytes import taken
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.python_specs import PythonGroupTableAggregateSpec
from flowsql_core.row import DELETE, INSERT
from flowsql_core.types.logical import Field, RowType
from flowsql_runtime.operators.aggregate.group import KeyedAggregation, signs_of
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.python_aggregate.bundle import BundleOperator
from flowsql_runtime.operators.python_aggregate.program import PythonAggregateProgram, in_groups
from flowsql_runtime.python.values_out import writer
from flowsql_runtime.state.names import StateNames


class PythonGroupTableAggregateOperator(BundleOperator[PythonGroupTableAggregateSpec]):
    """Make rows of each group, for ever.

    In     any changelog, hash-partitioned by ``spec.grouping`` (no grouping: one subtask).
    Out    of each bundle, group by group: -D for the rows that the group had, +I for those that it has.
    State  per key how many rows it has, and the pickled accumulator.
    Late   not judged. Retractions of unknown groups are ignored. A group idle for ``state_ttl_ms`` starts over.

    Source: PyFlink, ``GroupTableAggFunction`` of ``aggregate_slow.py``.
    """

    def __init__(self, spec: PythonGroupTableAggregateSpec) -> None:
        super().__init__(spec)
        self._program = PythonAggregateProgram((spec.call,), spec.input, spec.input_retracts)

    def open(self, ctx: OperatorContext) -> None:
        """Make the groups, open the function."""
        super().open(ctx)
        self._groups = KeyedAggregation(ctx, self._program, self.spec.grouping, self.spec.input, self.spec.state_ttl_ms)
        zone = eval_context(ctx).zone
        self._program.python.load(ctx, zone)
        fields = self.spec.output[len(self.spec.grouping) :]
        row = RowType(fields=tuple(Field(column.name, column.type) for column in fields), nullable=False)
        self._write = writer(row, zone)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Accumulators by group."""
        return self._groups.names(arriving[0].columns, self.spec.grouping)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Groups of rows that come."""
        self._groups.index.expect(*columns_of(batches, self.spec.grouping))

    def process_bundle(self, batch: ChangelogBatch) -> None:
        """Take rows in; what groups were goes, what they are comes."""
        keys = [batch.columns[column] for column in self.spec.grouping]
        slots = self._groups.slots_of(keys, batch.num_rows)
        signs = signs_of(batch)
        if self.spec.input_retracts and batch.kinds is not None:
            signs = self._program.known_signs(slots, signs)
        python = self._program.python
        changes = self._program.count(slots, batch.columns, signs)
        touched, existed, exists = changes.slots, changes.existed(), changes.exists()
        order, starts = in_groups(touched, slots, signs)
        accumulators = python.accumulators(touched, existed)
        old, old_groups = python.rows(accumulators[0], existed)
        # What a row holds may be part of the accumulator: it is written down before that changes.
        went = python.written(0, self._write, old)
        python.take_in(slots, order, starts, batch.columns, signs, accumulators)
        new, new_groups = python.rows(accumulators[0], exists)
        came = python.written(0, self._write, new)
        python.keep(touched, accumulators, exists)
        first_rows = changes.first_rows
        if self.spec.input_retracts:
            self._groups.release(changes)
        groups = np.concatenate([old_groups, new_groups])
        by_group = np.argsort(groups, kind="stable")
        sources = first_rows[groups[by_group]]
        rows = taken(column_bytes.joined([went, came]), by_group)
        columns: list[Any] = [taken(key, sources) for key in keys]
        columns.extend(rows.field(place) for place in range(rows.type.num_fields))
        kinds = np.where(by_group < len(old_groups), np.uint8(DELETE), np.uint8(INSERT))
        if len(groups):
            changed = kinds if kinds.any() else None
            self.collect_within_offsets(ChangelogBatch(tuple(columns), len(groups), changed, None, None))

    def finish(self) -> None:
        """Close the function, which says whether that went well."""
        self._program.python.close()

    def close(self) -> None:
        """Close the function of a job that failed."""
        self._program.python.close()
