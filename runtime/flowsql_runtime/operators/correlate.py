"""UNNEST: each row once per element of a collection in it; and rows that come as often as a column says."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, validity, values_and_validity
from flowsql_compute.eval.compile import compile_condition, compile_projections
from flowsql_compute.eval.nested.lists import Ranges, ranges_of
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack
from flowsql_core.column_bytes import taken
from flowsql_core.element import Watermark
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Call
from flowsql_core.graph.specs import REPLICATE_ROWS, CorrelateSpec
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context, projected, read_watermarks
from flowsql_runtime.operators.failure import trace_row
from flowsql_runtime.operators.join.side import row_ranges

Int64s = npt.NDArray[np.int64]


class CorrelateOperator(Operator[CorrelateSpec]):
    """Each row beside every element of a collection, in the order of the elements.

    In     any changelog.
    Out    the row's columns and the element's; kinds and row times are those of the row, a watermark comes before the
           first element of the row that it came before.
    State  none.
    Late   not judged.

    Source: Flink, ``UnnestRowsFunction`` below ``StreamExecCorrelate``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Compile the collection and the condition."""
        context = eval_context(ctx)
        condition = self.spec.condition
        collection = self.spec.collection
        self._copies = isinstance(collection, Call) and collection.function == REPLICATE_ROWS
        parts = collection.args if isinstance(collection, Call) and self._copies else (collection,)
        (parts,), self._watermarks = read_watermarks((parts,))
        self._collection = compile_projections(parts, context)
        self._condition = None if condition is None else compile_condition(condition, context)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """One batch in; as many out as bound the rows of each."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        if not batch.num_rows:
            self._pass_time(track)
            return
        if track is not batch.track:
            batch = batch.with_track(track)
        try:
            for start, read, columns in projected(self._watermarks.beside(batch, before), self._collection):
                part = batch.slice(start, start + read.num_rows)
                made = _copied(columns) if self._copies else _elements(columns[0], self.spec.collection.type)
                self._spread(batch, start, part, made)
        except ExecutionError as error:
            self._watermarks.restore(error)
            trace_row(error, batch)
            raise

    def _spread(self, batch: ChangelogBatch, start: int, part: ChangelogBatch, elements: _Elements) -> None:
        """The elements of the rows of a batch from ``start`` on."""
        sizes = elements.rows.sizes
        try:
            for first, last in row_ranges(np.maximum(sizes, 1) if self.spec.outer else sizes):
                self._emit(part, elements, first, last)
        except ExecutionError as error:
            row = error.row
            if row is not None and row.batch is part:
                row.batch, row.row, row.position = batch, start + row.row, start + row.position
            raise

    def _emit(self, batch: ChangelogBatch, elements: _Elements, first: int, last: int) -> None:
        """The elements of rows [first, last)."""
        owners, places = elements.spread(first, last)
        starts = elements.rows.starts[first:last]
        if self._condition is not None and len(owners):
            try:
                kept = self._condition(self._added(elements, places, places - starts[owners], None), len(owners))
            except ExecutionError as error:
                self._trace_element(error, batch, first + owners)
                raise
            owners, places = owners[kept], places[kept]
        present = None
        if self.spec.outer:
            owners, places, present = _with_missing(owners, places, last - first)
        made = batch.slice(first, last).part(owners)
        if not made.num_rows:
            self._pass_time(made.track)
            return
        added = self._added(elements, places, places - starts[owners], present)
        made = made.with_columns(LateColumns.beside(made.columns, added))
        done = 0
        for part in made.within_offsets():
            try:
                self.output.collect(part)
            except ExecutionError as error:
                row = error.row
                if row is not None and row.batch is part:
                    row.batch, row.position = batch, first + int(owners[done + row.position])
                raise
            done += part.num_rows

    def _added(self, elements: _Elements, places: Int64s, within: Int64s, present: Bools | None) -> list[Any]:
        """The columns of elements, with their places from 1 where they are wanted."""
        columns = elements.columns_at(places, present)
        if self.spec.ordinality:
            columns.append(make_array((within + 1).astype(np.int32), present, pa.int32()))
        return columns

    def _trace_element(self, error: ExecutionError, batch: ChangelogBatch, owners: Int64s) -> None:
        """The element that broke the condition is of no column of the input: its values stay under its own names."""
        if error.row is not None:
            error.row.names = tuple(column.name for column in self.spec.added)
            error.row.arrived_in(batch, int(owners[error.row.row]))

    def _pass_time(self, track: WatermarkTrack | None) -> None:
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))


@record
class _Elements:
    """All elements of a batch: flat ``columns``, of which row i has those at ``rows.starts[i]`` and behind.

    ``there``: which of the flat elements count, None for all: Flink leaves out a ROW that is NULL.
    """

    columns: tuple[Any, ...]
    rows: Ranges
    there: Bools | None = None

    def spread(self, first: int, last: int) -> tuple[Int64s, Int64s]:
        """Of each element of rows [first, last): its row (from 0 at ``first``), its place among the flat ones."""
        rows = Ranges(self.rows.starts[first:last], self.rows.sizes[first:last], None)
        owners, places = rows.owners(), rows.positions()
        if self.there is not None:
            kept = self.there[places]
            owners, places = owners[kept], places[kept]
        return owners, places

    def columns_at(self, places: Int64s, present: Bools | None) -> list[Any]:
        """The columns of the elements at rising places; NULL where none is present."""
        n = len(places)
        if present is None and n and int(places[-1]) - int(places[0]) == n - 1:
            return [column.slice(int(places[0]), n) for column in self.columns]
        missing = None if present is None else ~present
        return [taken(column, places, missing) for column in self.columns]


def _elements(collection: Any, type_: t.LogicalType) -> _Elements:
    rows = ranges_of(collection)
    match type_:
        case t.ArrayType(element=t.RowType(fields=fields)):
            return _fields(collection.values, len(fields), rows)
        case t.MapType():
            return _Elements((collection.keys, collection.items), rows)
        case t.MultisetType(element=element):
            keys, rows = _repeated(collection, rows)
            if isinstance(element, t.RowType):
                return _fields(keys, len(element.fields), rows)
            return _Elements((keys,), rows)
    return _Elements((collection.values,), rows)


def _fields(values: Any, count: int, rows: Ranges) -> _Elements:
    """The fields of elements that are ROWs."""
    columns = tuple(pc.struct_field(values, [index]) for index in range(count))
    return _Elements(columns, rows, validity(values))


def _copied(columns: list[Any]) -> _Elements:
    """Rows as elements of themselves: as many of each as the first column says; none for NULL and below 1."""
    times, there = values_and_validity(columns[0])
    sizes = np.maximum(times if there is None else np.where(there, times, 0), 0).astype(np.int64)
    rows = Ranges(np.cumsum(sizes) - sizes, sizes, None)
    owners = rows.owners()
    return _Elements(tuple(taken(column, owners) for column in columns[1:]), rows)


def _with_missing(owners: Int64s, places: Int64s, rows: int) -> tuple[Int64s, Int64s, Bools | None]:
    """Elements of ``rows`` rows with one that is not present for each row without any; None where all are present."""
    missing = np.flatnonzero(np.bincount(owners, minlength=rows) == 0)
    if not len(missing):
        return owners, places, None
    all_owners = np.concatenate((owners, missing))
    order = np.argsort(all_owners, kind="stable")
    all_places = np.concatenate((places, np.zeros(len(missing), np.int64)))
    return all_owners[order], all_places[order], np.asarray(order < len(owners))


def _repeated(multiset: Any, rows: Ranges) -> tuple[Any, Ranges]:
    """The elements of multisets, each as often as it is in its row."""
    places = rows.positions()
    counts, _ = values_and_validity(taken(multiset.items, places))
    sizes = np.zeros(len(rows.sizes), np.int64)
    np.add.at(sizes, rows.owners(), counts)
    keys = taken(multiset.keys, np.repeat(places, counts))
    return keys, Ranges(np.cumsum(sizes) - sizes, sizes, None)
