"""A partition of OVER that memory cannot hold: its sorted rows stand in a file and are answered piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_core import column_bytes
from flowsql_core.batch import ChangelogBatch, LateColumns
from flowsql_core.graph.bounded_specs import BoundedOverSpec, OverFrame
from flowsql_core.graph.key_identity import same_by_bits_and_value
from flowsql_runtime.network.spill import SpillSpace
from flowsql_runtime.operators.bounded.held_rows import settled, size_bytes, together
from flowsql_runtime.operators.bounded.order import begins_by_value, compared_words
from flowsql_runtime.operators.bounded.over.folded import FoldedFrames
from flowsql_runtime.operators.bounded.over.frame_calls import FrameCalls
from flowsql_runtime.operators.bounded.over.frames import Partitions, RankedPeers, in_units, numbers_of
from flowsql_runtime.operators.bounded.over.pieces import Pieces
from flowsql_runtime.operators.bounded.over.places import (
    OFFSETS,
    PLACES,
    distance_of,
    offset_values,
    place_values,
)

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

#: Part of the operator's share that one piece takes, and rows of a piece at most.
_PARTS: Final = 16
_MOST_ROWS: Final = 16_384


class LargePartition:
    """One partition, in two passes over its file: rows are written with what is known of each piece, then answered.

    In memory are a piece, what its frames see, and the accumulators. Frames that begin with the partition are states
    that follow its rows; frames that end with it the same from behind, whose results are written before.

    Args:
        framed: calls by frame, with their places among all.
        share_bytes: what the operator may hold.
    """

    def __init__(
        self,
        spec: BoundedOverSpec,
        framed: Mapping[OverFrame, tuple[list[int], FrameCalls]],
        space: SpillSpace,
        share_bytes: int,
    ) -> None:
        self._spec = spec
        self._framed = framed
        self._space = space
        self._share_bytes = share_bytes
        self._pieces: Pieces | None = None
        #: Peers of frames, and peers as ranks see them.
        self._peers = _Peers(spec, nan_begins=False)
        exact = all(same_by_bits_and_value(spec.input[index].type) for index, _, _ in spec.order)
        self._ranked = self._peers if exact else _Peers(spec, nan_begins=True)
        #: Of each piece the smallest and largest values of the order, None without any, and whether it has NULLs.
        self._spans: list[tuple[Any, Any] | None] = []
        self._nulls: list[bool] = []
        self._null_rows = 0
        self._measured = any(_measures(frame) for frame in framed)
        for _, calls in framed.values():
            if calls.takes_parts:
                calls.begin()

    def add(self, rows: ChangelogBatch) -> None:
        """The next rows in order."""
        fitting = self._share_bytes * rows.num_rows // max(size_bytes(rows), 1) // _PARTS
        some = max(1, min(_MOST_ROWS, fitting))
        for first in range(0, rows.num_rows, some):
            self._add(settled(rows.slice(first, min(first + some, rows.num_rows))))

    def _add(self, piece: ChangelogBatch) -> None:
        if self._pieces is None:
            self._pieces = Pieces(self._space, [column.type for column in piece.columns])
        start, n = self._pieces.num_rows, piece.num_rows
        for peers in {self._peers, self._ranked}:
            peers.add(piece, start)
        if self._measured:
            self._measure(piece)
        for _, calls in self._framed.values():
            if calls.takes_parts:
                calls.take_part(piece.columns, n)
        self._pieces.add(piece)

    def _measure(self, piece: ChangelogBatch) -> None:
        index, descending, _ = self._spec.order[0]
        numbers, valid = numbers_of(piece.columns[index])
        if valid is not None:
            numbers = numbers[valid]
        if numbers.dtype.kind == "f":
            numbers = np.where(np.isnan(numbers), np.inf, numbers)
        nulls = 0 if valid is None else int(np.count_nonzero(~valid))
        self._nulls.append(nulls > 0)
        self._null_rows += nulls
        if descending:
            numbers = -numbers
        self._spans.append((numbers[0], numbers[-1]) if len(numbers) else None)

    def answers(self) -> Iterator[ChangelogBatch]:
        """All rows with their results; afterwards the file is gone."""
        pieces = self._pieces
        assert pieces is not None
        pieces.seal()
        following = {
            frame: _Following(pieces, calls, self._space)
            for frame, (_, calls) in self._framed.items()
            if isinstance(calls, FoldedFrames) and not calls.whole and (calls.from_first or calls.from_last)
        }
        for peers in {self._peers, self._ranked}:
            peers.seal(pieces.num_rows)
        for number in range(len(pieces)):
            piece = pieces.read(number)
            partitions = self._partitions(number, piece)
            here = np.arange(piece.num_rows) + pieces.firsts[number]
            results: dict[int, Any] = {}
            for frame, (places, calls) in self._framed.items():
                found = self._framed_results(number, piece, partitions, frame, calls, following.get(frame))
                results.update(zip(places, found, strict=True))
            for place, (call, frame_) in enumerate(zip(self._spec.calls, self._spec.frames, strict=True)):
                if call.function in PLACES:
                    results[place] = place_values(call, frame_, partitions, here, self._spec)
                elif call.function in OFFSETS:
                    away = distance_of(call, self._spec)
                    # The rows themselves are read, too, where the default is a column of theirs.
                    own = len(call.args) > 2 and call.args[2].index < len(self._spec.input)
                    ahead, back = (max(away, 0), min(away, 0)) if own else (away, away)
                    first = min(max(int(here[0]) + back, 0), pieces.num_rows - 1)
                    last = min(max(int(here[-1]) + ahead + 1, first + 1), pieces.num_rows)
                    seen = pieces.rows(first, last)
                    results[place] = offset_values(call, seen.columns, partitions, here, first, self._spec)
            added = [results[place] for place in range(len(self._spec.calls))]
            yield ChangelogBatch(LateColumns.beside(piece.columns, added), piece.num_rows)
        for one in following.values():
            one.close()
        for _, calls in self._framed.values():
            calls.end()
        pieces.delete()

    def _partitions(self, number: int, piece: ChangelogBatch) -> Partitions:
        """Of the rows of a piece, as positions in the partition."""
        pieces = self._pieces
        assert pieces is not None
        n, first = piece.num_rows, pieces.firsts[number]
        peers = self._peers.of(number, piece, first)
        ranked = peers if self._ranked is self._peers else self._ranked.of(number, piece, first)
        return Partitions(np.zeros(n, np.int64), np.full(n, pieces.num_rows, np.int64), peers.first, peers.last, ranked)

    def _framed_results(
        self,
        number: int,
        piece: ChangelogBatch,
        partitions: Partitions,
        frame: OverFrame,
        calls: FrameCalls,
        following: _Following | None,
    ) -> list[Any]:
        n = piece.num_rows
        low, high = self._bounds(number, n, partitions, frame)
        if calls.takes_parts:
            return calls.results_of_parts(low, high)
        if following is not None:
            # Frames that see nothing stand at one end of the partition.
            seen = np.flatnonzero(high > low)
            steps = (high if following.from_first else low + 1)[seen] - 1
            return following.results(steps, n, int(seen[0]) if len(seen) else n)
        assert isinstance(calls, FoldedFrames)
        pieces = self._pieces
        assert pieces is not None
        some = high > low
        if not some.any():
            return calls.sliding(piece.columns, n, np.zeros(n, np.int64), np.zeros(n, np.int64))
        first, last = int(low[some].min()), int(high[some].max())
        rows = pieces.rows(first, last)
        return calls.sliding(
            rows.columns, rows.num_rows, np.where(some, low - first, 0), np.where(some, high - first, 0)
        )

    def _bounds(self, number: int, n: int, partitions: Partitions, frame: OverFrame) -> tuple[Int64s, Int64s]:
        """The frame of each row of a piece."""
        pieces = self._pieces
        assert pieces is not None
        total, start = pieces.num_rows, pieces.firsts[number]
        if frame.counts_rows:
            here = np.arange(n) + start
            low = np.zeros(n, np.int64) if frame.start is None else np.clip(here + int(frame.start), 0, total)
            high = np.full(n, total) if frame.end is None else np.clip(here + int(frame.end) + 1, 0, total)
            return low, np.maximum(low, high)
        if not _measures(frame):
            low = partitions.first if frame.start is None else partitions.peer_first
            high = partitions.last if frame.end is None else partitions.peer_last
            return low, high
        index, descending, nulls_first = self._spec.order[0]
        only_after = frame.end is None and frame.start is not None and frame.start > 0
        if self._null_rows and nulls_first and (only_after or (frame.end is not None and frame.end < 0)):
            # NULLs that lead keep all rows out of such frames: see Partitions.frame.
            return np.zeros(n, np.int64), np.zeros(n, np.int64)
        first, rows = self._near(number, frame)
        near = Partitions.of([], compared_words(rows.columns, self._spec.order), rows.num_rows)
        low, high = near.frame(frame, rows.columns[index], descending)
        own = slice(start - first, start - first + n)
        low = np.zeros(n, np.int64) if frame.start is None else low[own] + first
        high = np.full(n, total) if frame.end is None else high[own] + first
        if only_after and self._null_rows:
            low = np.where(low >= total - self._null_rows, total, low)
        return low, np.maximum(low, high)

    def _near(self, number: int, frame: OverFrame) -> tuple[int, ChangelogBatch]:
        """The pieces with all rows that bounds of a piece's frames stand at, and the position of the first."""
        pieces = self._pieces
        assert pieces is not None
        type_ = pieces.read(number).columns[self._spec.order[0][0]].type
        reach = [0, *(in_units(distance, type_) for distance in (frame.start, frame.end) if distance is not None)]
        back, ahead = min(reach), max(reach)
        own = self._spans[number]
        near = [number]
        if self._nulls[number] and frame.end is not None and frame.end < 0:
            # NULLs at the end see what the last row with a value saw.
            values = next((span for span in reversed(self._spans) if span), None)
            own = (own[0], values[1]) if own and values else values and (values[1], values[1])
            near.append(max((place for place, span in enumerate(self._spans) if span), default=number))
        for other, span in enumerate(self._spans):
            equal = self._nulls[number] and self._nulls[other]
            if equal or (own and span and span[1] >= own[0] + back and span[0] <= own[1] + ahead):
                near.append(other)
        first, last = min(near), max(near)
        end = pieces.firsts[last + 1] if last + 1 < len(pieces) else pieces.num_rows
        return pieces.firsts[first], pieces.rows(pieces.firsts[first], end)


class _Peers:
    """Where groups of peers begin in the pieces of a partition.

    Args:
        nan_begins: as of ``begins_by_value``.
    """

    def __init__(self, spec: BoundedOverSpec, nan_begins: bool) -> None:
        self._order = spec.order
        self._nan_begins = nan_begins
        self._tail: ChangelogBatch | None = None
        #: Of each piece: whether its first row has peers before it, where peers begin first in it (None: nowhere) and
        #: last (also before it), how many groups of peers began before, and where they begin behind it.
        self._continues: list[bool] = []
        self._first_begin: list[int | None] = []
        self._last_begin: list[int] = []
        self._begun: list[int] = []
        self._begun_after = 0
        self._next_begin: list[int] = []

    def _begins(self, rows: ChangelogBatch) -> Bools:
        return begins_by_value(compared_words(rows.columns, self._order), rows.num_rows, self._nan_begins)

    def add(self, piece: ChangelogBatch, start: int) -> None:
        """The next piece, whose first row is row ``start`` of the partition."""
        n = piece.num_rows
        began = self._begins(piece)
        if self._tail is not None:
            pair = together([self._tail, piece.slice(0, 1)])
            assert pair is not None
            began[0] = self._begins(pair)[1]
        self._tail = settled(piece.slice(n - 1, n))
        starts = np.flatnonzero(began) + start
        self._continues.append(not began[0])
        self._first_begin.append(int(starts[0]) if len(starts) else None)
        self._begun.append(self._begun_after)
        self._begun_after = self._begun[-1] + len(starts)
        self._last_begin.append(int(starts[-1]) if len(starts) else self._last_begin[-1])

    def seal(self, n: int) -> None:
        """No more pieces; they have ``n`` rows."""
        found: list[int] = []
        following = n
        for began in reversed(self._first_begin):
            found.append(following)
            following = following if began is None else began
        self._next_begin = found[::-1]

    def of(self, number: int, piece: ChangelogBatch, start: int) -> RankedPeers:
        """The peers of the rows of a piece, as positions in the partition."""
        began = self._begins(piece)
        began[0] = not self._continues[number]
        starts: Int64s = np.flatnonzero(began) + start
        before = self._last_begin[number - 1] if number else 0
        groups: Int64s = np.cumsum(began, dtype=np.int64)
        return RankedPeers(
            np.concatenate(([before], starts)).astype(np.int64)[groups],
            np.append(starts, self._next_begin[number]).astype(np.int64)[groups],
            groups - 1 + self._begun[number],
        )


class _Following:
    """Results after each row of a partition, from its first row on or from its last one, asked for in order."""

    def __init__(self, pieces: Pieces, calls: FoldedFrames, space: SpillSpace) -> None:
        self._pieces = pieces
        self._calls = calls
        self.from_first = calls.from_first
        self._written: Pieces | None = None
        self._next = 0
        self._base = self._end = 0
        self._found: Sequence[Any] = []
        calls.begin()
        if not calls.from_first:
            self._written = Pieces(space, calls.types)
            for number in reversed(range(len(pieces))):
                piece = pieces.read(number)
                results = calls.follow_part(piece.columns, piece.num_rows, back=True)
                self._written.add(ChangelogBatch(tuple(results), piece.num_rows))
            self._written.seal()

    def results(self, steps: Int64s, n: int, first: int) -> list[Any]:
        """Results after rows ``steps``, none before those that were asked for.

        Args:
            n, first: rows of the output, of which those from ``first`` on have a step; the others see nothing.
        """
        parts: list[list[Any]] = [[column] for column in self._calls.result_of_none(first)]
        place = 0
        while place < len(steps):
            upto = int(np.searchsorted(steps, self._end))
            if upto == place:
                self._advance()
                continue
            for part, column in zip(parts, self._found, strict=True):
                part.append(column_bytes.taken(column, steps[place:upto] - self._base))
            place = upto
        behind = n - first - len(steps)
        for part, column in zip(parts, self._calls.result_of_none(behind), strict=True):
            part.append(column)
        return [column_bytes.joined(part) for part in parts]

    def _advance(self) -> None:
        number, self._next = self._next, self._next + 1
        piece = self._pieces.read(number)
        if self._written is None:
            self._found = self._calls.follow_part(piece.columns, piece.num_rows, back=False)
        else:
            self._found = self._written.read(len(self._pieces) - 1 - number).columns
        self._base, self._end = self._end, self._end + piece.num_rows

    def close(self) -> None:
        """Remove what was written."""
        if self._written is not None:
            self._written.delete()


def _measures(frame: OverFrame) -> bool:
    """Whether a bound is a distance between values."""
    return not frame.counts_rows and any(distance not in (None, 0) for distance in (frame.start, frame.end))
