"""Join of rows with what a table holds under their key at the moment."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity
from flowsql_compute.eval.compile import compile_condition, compile_projections
from flowsql_connectors import registry
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, LookupTableSource, TableLookup
from flowsql_core.batch import ChangelogBatch, LateColumns
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.errors import ExecutionError, InternalError
from flowsql_core.graph.specs import JoinKind
from flowsql_core.graph.time_join_specs import LookupJoinSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.join.lookup_cache import LookupCache
from flowsql_runtime.operators.join.side import row_ranges
from flowsql_runtime.state.scratch import number_rows

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class LookupJoinOperator(Operator[LookupJoinSpec]):
    """Inner or left join with a table that is asked for the keys of each batch.

    In     any changelog.
    Out    left columns, then those of the table, in the order of the input, with the kind of change of the left row.
    State  none; what is cached is not saved.
    Late   not judged. A key with a NULL finds nothing.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the lookup and compile what is computed from its rows."""
        spec = self.spec
        source = registry.create_source(spec.scan, ctx.parameters)
        if not isinstance(source, LookupTableSource):
            raise InternalError(f"{spec.scan.table.name} cannot be looked up")
        keys = tuple(key.column for key in spec.keys)
        context = LookupContext(keys, ctx.clock, ctx.parameters, ctx.metrics.count)
        self._lookup: TableLookup = source.create_lookup(context)
        self._types = [to_arrow(column.type) for column in spec.scan.output]
        evaluation = eval_context(ctx)
        self._constants = {
            place: compile_projections((key.constant,), evaluation)
            for place, key in enumerate(spec.keys)
            if key.constant is not None
        }
        cache = source.partial_cache()
        key_types = [self._types[key] for key in keys]
        self._cache = None if cache is None else LookupCache(cache, key_types, self._types, ctx.clock)
        self._filter = None if spec.filter is None else compile_condition(spec.filter, evaluation)
        self._project = compile_projections(spec.projections, evaluation)
        self._condition = None if spec.condition is None else compile_condition(spec.condition, evaluation)
        self._requests: ThreadPoolExecutor | None = None
        if spec.asynchronous is not None:
            self._requests = ThreadPoolExecutor(spec.asynchronous.capacity, f"lookup-{ctx.name}")

    def close(self) -> None:
        """The table is asked no more."""
        if getattr(self, "_requests", None) is not None:
            assert self._requests is not None
            self._requests.shutdown(wait=False, cancel_futures=True)
        if hasattr(self, "_lookup"):
            self._lookup.close()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Look all keys of the batch up, each once."""
        batch = batch.with_track(self.advance_track(input_index, batch.track))
        if not batch.num_rows:
            if batch.track is not None:
                self.output.emit_watermark(Watermark(batch.track.last_ms))
            return
        counts, firsts, columns = self._looked_up(batch)
        for first, last in row_ranges(counts):
            self._emit(batch.slice(first, last), counts[first:last], firsts[first:last], columns)

    def _looked_up(self, batch: ChangelogBatch) -> tuple[Int64s, Int64s, list[Any]]:
        """How many rows each row's key finds, (n,), and from which place on in the columns (the projections)."""
        numbers, found = self._rows_of(self._keys(batch), batch.num_rows)
        starts = np.searchsorted(found.positions, np.arange(int(numbers.max(initial=-1)) + 2))
        counts = np.where(numbers < 0, 0, np.diff(starts)[numbers] if len(starts) > 1 else 0)
        return counts, np.where(numbers < 0, 0, starts[numbers]), list(found.columns)

    def _keys(self, batch: ChangelogBatch) -> list[Any]:
        arrays = []
        for place, key in enumerate(self.spec.keys):
            if key.left is not None:
                arrays.append(batch.columns[key.left])
                continue
            constant = self._constants[place]([], batch.num_rows)[0]
            arrays.append(constant.cast(self._types[key.column]))
        return arrays

    def _rows_of(self, keys: list[Any], n: int) -> tuple[Int32s, FoundRows]:
        """The number of each row's key, -1 where it has a NULL, and the projected rows of the keys by number."""
        valid = np.ones(n, np.bool_)
        for array in keys:
            there = validity(array)
            if there is not None:
                valid &= there
        rows = np.flatnonzero(valid)
        numbers = np.full(n, -1, np.int32)
        known = [taken(array, rows) for array in keys]
        numbers[rows], count = number_rows(known) if len(rows) else (np.zeros(0, np.int32), 0)
        if not count:
            return numbers, FoundRows(np.zeros(0, np.int32), self._project(self._nothing(), 0))
        # Keys are numbered in the order of their first rows.
        distinct = np.flatnonzero(np.diff(np.maximum.accumulate(numbers[rows]), prepend=-1))
        found = self._found([taken(array, distinct) for array in known])
        positions, columns = found.positions, list(found.columns)
        if self._filter is not None and len(positions):
            kept = np.flatnonzero(self._filter(columns, len(positions)))
            positions, columns = positions[kept], [taken(column, kept) for column in columns]
        return numbers, FoundRows(positions, self._project(columns, len(positions)))

    def _nothing(self) -> list[Any]:
        return [pa.nulls(0, type_) for type_ in self._types]

    def _found(self, keys: list[Any]) -> FoundRows:
        """Rows of distinct keys: those that the cache knows, and those that the table is asked for."""
        if self._cache is None:
            return self._asked(keys)
        known, cached = self._cache.find(keys)
        unknown = np.flatnonzero(~known)
        if not len(unknown):
            return cached
        asked_keys = [taken(array, unknown) for array in keys]
        asked = self._asked(asked_keys)
        self._cache.put(asked_keys, asked)
        return _merged([cached, FoundRows(unknown[asked.positions].astype(np.int32), asked.columns)])

    def _asked(self, keys: list[Any]) -> FoundRows:
        """Rows of distinct keys in the table; keys that it does not have are asked for again."""
        found = self._request(keys)
        for _ in range(1, self.spec.attempts):
            missing = np.flatnonzero(np.bincount(found.positions, minlength=len(keys[0])) == 0)
            if not len(missing):
                break
            self.ctx.pause(self.spec.delay_ms / 1000)
            more = self._request([taken(array, missing) for array in keys])
            found = _merged([found, FoundRows(missing[more.positions].astype(np.int32), more.columns)])
        return found

    def _request(self, keys: list[Any]) -> FoundRows:
        """Ask the table, side by side where it may be."""
        plan, pool, n = self.spec.asynchronous, self._requests, len(keys[0])
        fewest = self._lookup.fewest_keys
        if pool is None or plan is None or n <= fewest:
            return self._lookup.find(keys)
        size = max(fewest, -(-n // plan.capacity))
        starts = range(0, n, size)
        futures: list[Future[FoundRows]] = [
            pool.submit(partial(self._lookup.find, [array.slice(start, size) for array in keys])) for start in starts
        ]
        parts = []
        for start, future in zip(starts, futures, strict=True):
            try:
                part = future.result(plan.timeout_ms / 1000)
            except FutureTimeoutError:
                raise ExecutionError(
                    "lookup-timeout",
                    f"Async function call has timed out: '{self.spec.scan.table.name}' did not answer within "
                    f"{plan.timeout_ms} ms (table.exec.async-lookup.timeout).",
                ) from None
            parts.append(FoundRows((part.positions + start).astype(np.int32), part.columns))
        return _merged(parts)

    def _emit(self, batch: ChangelogBatch, counts: Int64s, firsts: Int64s, columns: Sequence[Any]) -> None:
        """The rows of a part of a batch beside what was found for each and meets the condition."""
        probes, rows = expanded(counts, firsts)
        probes, rows = self._met(batch.columns, probes, rows, columns)
        self._tell(batch, probes, rows, columns)

    def _met(self, left: Sequence[Any], probes: Int64s, rows: Int64s, columns: Sequence[Any]) -> tuple[Int64s, Int64s]:
        """The pairs of left rows and found ones that meet the condition."""
        if self._condition is None or not len(probes):
            return probes, rows
        pairs = LateColumns.beside(LateColumns.of(left, probes), [taken(column, rows) for column in columns])
        met = self._condition(pairs, len(probes))
        return probes[met], rows[met]

    def _tell(self, batch: ChangelogBatch, probes: Int64s, rows: Int64s, columns: Sequence[Any]) -> None:
        """Pairs of rows of a part of a batch, rising, and found ones; of a left join, the rows without any too."""
        missing = None
        if self.spec.kind is JoinKind.LEFT:
            alone = np.flatnonzero(np.bincount(probes, minlength=batch.num_rows) == 0)
            if len(alone):
                everything = np.concatenate((probes, alone))
                order = np.argsort(everything, kind="stable")
                missing = order >= len(probes)
                rows = np.concatenate((rows, np.zeros(len(alone), np.int64)))[order]
                probes = everything[order]
                columns = [column if len(column) else pa.nulls(1, column.type) for column in columns]
        if not len(probes):
            if batch.track is not None:
                self.output.emit_watermark(Watermark(batch.track.last_ms))
            return
        made = batch.part(probes)
        own = made.columns
        made = made.with_columns(LateColumns.beside(own, [taken(column, rows, missing) for column in columns]))
        self.collect_within_offsets(made)


def expanded(counts: Int64s, firsts: Int64s) -> tuple[Int64s, Int64s]:
    """Pairs (i, row) of ``counts[i]`` rows from ``firsts[i]`` on, by i."""
    probes = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return probes, np.arange(len(probes)) - np.repeat(starts - firsts, counts)


def _merged(parts: Sequence[FoundRows]) -> FoundRows:
    """Rows of several answers, by position."""
    positions = np.concatenate([part.positions for part in parts])
    columns = [joined([part.columns[index] for part in parts]) for index in range(len(parts[0].columns))]
    order = np.argsort(positions, kind="stable")
    if bool((np.diff(order) == 1).all()):
        return FoundRows(positions, columns)
    return FoundRows(positions[order], [taken(column, order) for column in columns])
