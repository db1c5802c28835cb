"""ON CONFLICT DO ERROR and DO NOTHING: rows of one key of a sink meet when a watermark passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import MAX_WATERMARK, Watermark
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import SinkConflictsSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import conflicts as kernels
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.state.names import StateNames, row_names
from flowsql_runtime.state.scratch import number_rows

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]


class SinkConflictsOperator(Operator[SinkConflictsSpec]):
    """Hold rows back until a watermark passes; tell the sink of a key's row when it is the only one.

    In     any changelog, split by the sink's key.
    Out    ``+I``, ``+U`` and ``-D`` of the row of each key, when a watermark passes. Where rows of several upsert keys
           are left for one key, the job fails, or the key keeps the row that it shows (the first one, if none).
    State  the row that each key shows, and the rows since the last watermark.
    Late   not judged.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        types = [to_arrow(column.type) for column in self.spec.input]
        self._index = ctx.state.key_index([types[key] for key in self.spec.keys])
        # One row a slot.
        self._shown = ctx.state.row_list("shown", self._index, types, removable=True, unique=())
        self._waiting = ctx.state.row_queue("waiting", self._index, types)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The row that each key shows, and those that wait."""
        spec, columns = self.spec, arriving[0].columns
        tables = {"shown": row_names("rows shown", columns), "waiting": row_names("rows that wait", columns)}
        unique = "all columns" if spec.upsert_key is None else ", ".join(sorted(columns[i] for i in spec.upsert_key))
        return StateNames(tuple(columns[key] for key in spec.keys), tables, {"rows known by": unique})

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.keys))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows wait; those before a watermark of the batch are settled with it."""
        track = self.advance_track(input_index, batch.track)
        columns = [batch.columns[index] for index in range(len(self.spec.input))]
        keys = [columns[key] for key in self.spec.keys]
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=batch.num_rows))
        waited = len(self._waiting)
        self._waiting.append(slots, signs_of(batch), columns)
        if track is not None:
            self._settle(waited + track.offsets.astype(np.int64), track.wm_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches settles all rows; the base class hands it on."""
        rows = len(self._waiting)
        if rows:
            self._settle(np.array([rows], np.int64), None)

    def finish(self) -> None:
        """No watermark comes any more."""
        self.on_watermark(MAX_WATERMARK)

    def _settle(self, segments: Int64s, levels: Int64s | None) -> None:
        """Settle the rows up to each of ``segments``, and tell of the watermarks behind them, if there are."""
        due = int(segments[-1])
        slots, signs, columns = self._waiting.first(due)
        touched, dense = np.unique(slots, return_inverse=True)
        owners, rows = self._shown.rows_of(touched)
        # Rows that keys show stand behind those that waited.
        everything = [joined(pair) for pair in zip(columns, self._shown.gather(rows), strict=True)]
        current = np.full(len(touched), -1, np.int32)
        current[owners] = due + np.arange(len(rows), dtype=np.int32)
        wholes, identities = number_rows(everything)
        names = wholes
        if self.spec.upsert_key is not None:
            names, others = number_rows([everything[key] for key in self.spec.upsert_key])
            identities = max(identities, others)
        total = due + len(rows)
        told, kinds = np.empty(due, np.int32), np.empty(due, np.int8)
        ends = np.empty(len(segments), np.int64)
        failed = kernels.settle(
            segments, dense.astype(np.int32), np.concatenate((signs, np.ones(len(rows), np.int8))), wholes, names,
            self.spec.upsert_key is not None, self.spec.fails, current, np.full((len(touched), 2), -1, np.int32),
            np.full((identities, 2), -1, np.int32), np.full((identities, 2), -1, np.int32),
            np.empty(5 * total, np.int32), told, kinds, ends,
        )  # fmt: skip
        if failed >= 0:
            raise self._conflict(columns, int(failed))
        self._show(touched, owners, current, everything, due)
        self._waiting.drop_first(due)
        self._index.remove(np.setdiff1d(touched[current < 0], self._waiting.slots()))
        self._tell(everything, told[: ends[-1]], kinds, ends, levels)

    def _show(self, touched: Int32s, owners: Int32s, current: Int32s, everything: list[Any], due: int) -> None:
        """Keep what the keys show now; places from ``due`` on are rows that they showed before."""
        fresh = np.flatnonzero((current >= 0) & (current < due))
        gone = owners[current[owners] < 0]
        # What goes is found by its key alone: the place of any row does.
        places = np.concatenate((current[fresh], np.zeros(len(gone), np.int32)))
        signs = np.concatenate((np.ones(len(fresh), np.int8), np.full(len(gone), -1, np.int8)))
        slots = touched[np.concatenate((fresh, gone))]
        if len(slots):
            self._shown.apply(signs, slots, [taken(column, places) for column in everything])

    def _tell(self, everything: list[Any], told: Int32s, kinds: Int8s, ends: Int64s, levels: Int64s | None) -> None:
        track = None if levels is None else WatermarkTrack(ends.astype(np.int32), levels)
        if not len(told):
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        columns = tuple(taken(column, told) for column in everything)
        told_kinds = kinds[: len(told)].view(np.uint8)
        self.collect_within_offsets(ChangelogBatch(columns, len(told), told_kinds, None, track))

    def _conflict(self, columns: list[Any], row: int) -> ExecutionError:
        schema = self.spec.input
        parts = (f"{schema[key].name}={_text(columns[key].slice(row, 1), schema[key].type)}" for key in self.spec.keys)
        return ExecutionError(
            "primary-key-violation",
            "Primary key constraint violation: multiple distinct records with the same primary key detected. "
            f"Conflicting key: [{', '.join(parts)}]. Use ON CONFLICT DO NOTHING to keep the first record.",
        )


def _text(value: Any, type_: Any) -> str:
    return "null" if value.null_count else str(render_column(value, type_, Notation.ROW)[0])
