"""What OVER operators of either time have in common: keys with their frames, and what goes when a key is idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_core.column_bytes import narrow, taken
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_core.graph.python_specs import PythonOverAggregateSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.over.frames import OverFrames
from flowsql_runtime.operators.over.held import HeldFrames
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames, kept_for, row_names
from flowsql_runtime.state.stores import RowList, WindowIndex
from flowsql_runtime.window.row_order import row_order

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_LAST: Final = 2**63 - 1


class KeyedOverOperator(Operator[OverAggregateSpec]):
    """Keys of an OVER window; subclasses say when rows are answered."""

    #: Whether rows of one time are answered together.
    _timed = True

    def __init__(self, spec: OverAggregateSpec) -> None:
        super().__init__(spec)
        self._frames = frames_of(spec, self._timed)

    def open(self, ctx: OperatorContext) -> None:
        """Make the keys."""
        types = [to_arrow(self.spec.input[column].type) for column in self.spec.partition]
        self._index = ctx.state.key_index(types)
        self._frames.open(ctx.state, self._index)
        self._frames.load(ctx)

    def finish(self) -> None:
        """Close the functions of a user, which says whether that went well."""
        self._frames.close()

    def close(self) -> None:
        """Close the functions of a job that failed."""
        self._frames.close()

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Frames by key, and what waits."""
        spec, columns = self.spec, arriving[0].columns
        order = columns[spec.order_index]
        tables = self._frames.names([columns[index] for index in self._frames.calls.columns], order)
        tables |= self._other_names(columns)
        start = "all rows" if spec.preceding is None else f"{spec.preceding} {'rows' if spec.counts_rows else 'ms'}"
        facts = {
            "order": f"{order}, {spec.order.value}",
            "frame": f"{'ROWS' if spec.counts_rows else 'RANGE'} from {start} before",
            "time-to-live": kept_for(spec.state_ttl_ms),
        }
        keys = tuple(columns[index] for index in spec.partition)
        back = max((lag.offset for lag in self._frames.calls.lags), default=0)
        by = sorted(
            {columns[self._frames.calls.columns[lag.by]] for lag in self._frames.calls.lags if lag.by is not None}
        )
        return StateNames(
            keys,
            tables,
            facts,
            retracts=spec.preceding is not None,
            made_with={"LAG looks back by": ", ".join(by)} if by else {},
            reaches={"rows that LAG looks back": back} if back else {},
        )

    def _other_names(self, columns: Sequence[str]) -> dict[str, TableNames]:
        return {}

    def _slots_of(self, columns: Sequence[Any], n: int) -> Int32s:
        """Slots of rows' keys."""
        keys = [columns[column] for column in self.spec.partition]
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=n))
        return slots

    def _answered(
        self, slots: Int32s, columns: Sequence[Any], times: Int64s | None, epochs: Int32s | None = None
    ) -> tuple[Any, ...]:
        """Columns of rows with their results, in the order in which they are answered."""
        read = [columns[column] for column in self._frames.calls.columns]
        results = self._frames.answer(slots, read, times, epochs if epochs is not None and epochs.any() else None)
        return tuple(narrow(column) for column in (*columns, *results))

    def _empty(self) -> list[Any]:
        return [pa.nulls(0, to_arrow(column.type)) for column in self.spec.output]


def frames_of(spec: OverAggregateSpec, timed: bool) -> HeldFrames:
    """The frames of an operator's calls."""
    if isinstance(spec, PythonOverAggregateSpec):
        # Loaded by jobs that have such calls only.
        from flowsql_runtime.operators.python_aggregate.over_frames import PandasFrames

        return PandasFrames(spec, timed)
    return OverFrames(spec, timed)


class WaitingRows:
    """Rows that wait until their time comes: by time, then as they came."""

    def __init__(self, ctx: OperatorContext, spec: OverAggregateSpec) -> None:
        self._partition = spec.partition
        self._types = [to_arrow(column.type) for column in spec.input]
        self._index: WindowIndex = ctx.state.window_index([self._types[column] for column in spec.partition])
        flat = [part for type_ in self._types for part in flat_types(type_)]
        self._rows: RowList = ctx.state.row_list("waiting", self._index, flat)

    @staticmethod
    def names(spec: OverAggregateSpec, columns: Sequence[str]) -> dict[str, TableNames]:
        """What the store means."""
        texts = [
            f"{text} [{part}]" if part else text
            for text, column in zip(columns, spec.input, strict=True)
            for part in range(len(flat_types(to_arrow(column.type))))
        ]
        return {"waiting": row_names("rows that wait", texts)}

    def times(self) -> Int64s:
        """All times for which rows wait, rising."""
        return self._index.namespaces()

    def keys(self) -> tuple[list[Any], None, int]:
        """The keys of all rows that wait, as ``KeyIndex.encode`` takes them."""
        slots = self._index.up_to(_LAST)[1]
        return self._index.columns_at(slots), None, len(slots)

    def add(self, columns: Sequence[Any], times: Int64s) -> None:
        """Rows that wait for their times, (n,)."""
        if len(times):
            keys = [columns[column] for column in self._partition]
            slots, _ = self._index.find_or_insert(self._index.encode(keys, times, num_rows=len(times)))
            self._rows.append(slots, [part for column in columns for part in flat_columns(column)])

    def take(self, until_ms: int) -> tuple[Int64s, list[Any]] | None:
        """Take out the rows of times up to one: times, rising, and columns; None if there are none."""
        times, slots = self._index.up_to(until_ms)
        if not len(slots):
            return None
        positions, rows = self._rows.rows_of(slots)
        columns = whole_columns(self._types, self._rows.gather(rows))
        self._rows.drop_slots(slots)
        self._index.remove(slots)
        return times[positions], columns


def in_time_order(times: Int64s, slots: Int32s, fires: Int32s | None = None) -> Int64s | None:
    """The order in which rows are answered, whatever batches they came in; None where they stand in it.

    By the watermark that fires them, if given, and time; rows of one time key by key, as they came.
    """
    rising = np.diff(times) >= 0
    if fires is not None:
        rising &= np.diff(fires) >= 0
    order = np.arange(len(times))
    if not rising.all():
        order = np.argsort(times, kind="stable") if fires is None else row_order((times, fires))
    sorted_times, keys = times[order], slots[order]
    if not ((sorted_times[1:] == sorted_times[:-1]) & (keys[1:] != keys[:-1])).any():
        return None if rising.all() else order
    grouped = row_order((keys, sorted_times)) if fires is None else row_order((keys, sorted_times, fires[order]))
    same = (np.diff(sorted_times[grouped]) == 0) & (np.diff(keys[grouped]) == 0)
    starts = np.flatnonzero(np.r_[True, ~same])
    firsts = np.empty(len(order), np.int64)
    firsts[grouped] = np.repeat(grouped[starts], np.diff(np.r_[starts, len(order)]))
    answered: Int64s = order[np.argsort(firsts, kind="stable")]
    return answered


def rows_at(batch: ChangelogBatch, rows: npt.NDArray[Any] | None) -> list[Any]:
    """Columns of a batch at rising rows; all for None."""
    columns = [batch.columns[index] for index in range(len(batch.columns))]
    return columns if rows is None else [taken(column, rows) for column in columns]
