"""Reading a table: a reader per subtask over the splits that the job's enumerator dealt out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from flowsql_connectors import registry
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch, TableSource
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import option
from flowsql_core.element import Watermark
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.graph.specs import ScanSpec
from flowsql_runtime.metrics.told import SourceState
from flowsql_runtime.network.channel import referenced_bytes
from flowsql_runtime.operators.base import OperatorContext, OperatorSnapshot, SourceOperator, SourceStatus
from flowsql_runtime.operators.failure import note_source
from flowsql_runtime.task.trigger import reads_what_is_there
from flowsql_runtime.time.alignment import ALLOW_UNALIGNED_SPLITS, AlignedSource

BATCH_ROWS = option("flowsql.source.batch-rows", int, 65_536, "Rows that a source aims at in one batch.")

#: Batches that a reader holds beside the one that it gave away: decoded ones that wait, and the one being decoded.
READ_AHEAD_BATCHES: Final = 4

#: Rows that the reader of a source with watermark alignment aims at; it may hold them of this many splits.
ALIGNED_BATCH_ROWS: Final = 4_096
OPEN_SPLITS: Final = 16

#: Name of the list state that holds unfinished splits.
SPLITS: Final = "splits"


class ScanOperator(SourceOperator[ScanSpec]):
    """Poll the connector's reader and emit what it has.

    Out    the scan's columns, the changelog of the format.
    State  unfinished splits with their positions (list state, dealt out again by the enumerator).
    """

    def __init__(self, spec: ScanSpec) -> None:
        super().__init__(spec)
        self._reader: SourceReader | None = None
        #: The last checkpoint whose barrier passed, or never will.
        self._passed = 0
        self._stop_at: int | None = None
        #: Unfinished splits at the barriers of checkpoints that are not complete yet.
        self._positions: dict[int, list[Split]] = {}
        #: The splits that the reader was told to pause.
        self._paused: frozenset[str] = frozenset()

    def open(self, ctx: OperatorContext) -> None:
        """Make source and reader; nothing is read yet."""
        self._source: TableSource = registry.create_source(self.spec, ctx.parameters)
        self._batch_rows = BATCH_ROWS.read(ctx.parameter(BATCH_ROWS.key, str(BATCH_ROWS.default)))
        if ctx.progress.aligned is not None:
            self._batch_rows = min(self._batch_rows, ALIGNED_BATCH_ROWS)
        self._reader = self._source.create_reader(
            ReaderContext(
                subtask=ctx.subtask,
                parallelism=ctx.parallelism,
                batch_rows=self._batch_rows,
                clock=ctx.clock,
                configuration=ctx.parameters,
                count=ctx.metrics.count,
                rng_seed=ctx.rng.getrandbits(63),
                available_now=reads_what_is_there(ctx.parameters),
                aligned=ctx.progress.aligned is not None,
                resources=ctx.resources,
                lose=ctx.metrics.lose,
            )
        )
        self._follows = False
        ctx.progress.side_by_side = self._reader.reads_side_by_side
        ctx.tell(SourceState, self._state)

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Take this subtask's splits: new ones, or those of the snapshot that the job dealt out again."""
        ctx = self.ctx
        splits = ctx.job.splits_of(ctx.uid, ctx.subtask, ctx.parallelism, self._source.create_enumerator)
        ctx.progress.bounded, ctx.progress.paced = self._source.bounded, self._source.paced
        if ctx.progress.aligned is not None:
            ctx.progress.aligned.of_splits = True
        self._add(splits)
        self._follows = ctx.job.follow_splits(ctx.uid, ctx.subtask, ctx.clock, partial(ctx.submit, self._take_new))
        if not self._follows:
            self._opened().no_more_splits()

    def _state(self) -> SourceState:
        progress = self.ctx.progress
        paused = progress.aligned is not None and (progress.aligned.waits or bool(self._paused))
        return SourceState(progress.bounded, tuple(sorted(progress.unfinished)), self._follows, paused)

    def _take_new(self) -> None:
        """Splits that were found since, as far as they may be read already."""
        ctx = self.ctx
        self._add(ctx.job.new_splits(ctx.uid, ctx.subtask, self._passed))

    def _add(self, splits: Sequence[Split]) -> None:
        if splits:
            self.ctx.progress.unfinished.update(split.id for split in splits)
            self._opened().add_splits(list(splits))
        if self.ctx.progress.aligned is not None:
            self.ctx.progress.aligned.look()

    def emit_next(self) -> SourceStatus:
        """One batch of one split."""
        rows = self._batch_rows
        aligned = self.ctx.progress.aligned
        if aligned is not None and self._stop_at is None:
            if aligned.paused != self._paused and not aligned.waits:
                self._pause(aligned)
            if aligned.waits:
                return SourceStatus.NOTHING_NOW
            rows = aligned.most_rows(rows)
        if self._stop_at is not None:
            rows = min(rows, self._stop_at)
            if not rows:
                return SourceStatus.SUSPENDED if self._opened().snapshot() else SourceStatus.DRAINED
        polled = self._opened().poll(rows)
        if isinstance(polled, SplitBatch):
            self._emit(polled)
            return SourceStatus.MORE
        match polled:
            case ReadStatus.NOTHING_NOW:
                return SourceStatus.NOTHING_NOW
            case ReadStatus.END:
                if self.ctx.job.one_batch:
                    return SourceStatus.SUSPENDED
                # A cut takes all subtasks, also those that have less than they were asked for.
                return SourceStatus.END if self._stop_at is None else SourceStatus.DRAINED

    def _pause(self, aligned: AlignedSource) -> None:
        if self._opened().pause_splits(aligned.paused):
            self._paused = aligned.paused
            return
        if not ALLOW_UNALIGNED_SPLITS.read(self.ctx.parameter(ALLOW_UNALIGNED_SPLITS.key, "false")):
            raise ConnectorError(
                "splits-not-paused",
                f"The reader of '{self.spec.table.path[-1]}' cannot pause one of its splits while it reads others, "
                "which watermark alignment needs where a reader has several splits.",
                hint=f"'{ALLOW_UNALIGNED_SPLITS.key}' = 'true' aligns the reader as a whole; or raise the "
                "parallelism, so that each reader has one split",
            )
        aligned.pauses = False
        aligned.look()

    def _emit(self, polled: SplitBatch) -> None:
        progress = self.ctx.progress
        progress.current = polled.split_id
        batch = polled.batch
        if batch.num_rows:
            self._account(batch)
            if self._stop_at is not None:
                self._stop_at -= batch.num_rows
            try:
                self.output.collect(batch)
            except FlowSqlError as error:
                note_source(error, batch, self.ctx.metrics.records_out - batch.num_rows, self.ctx.subtask)
                raise
        if polled.watermark_ms is not None:
            progress.tells_watermarks = True
            self.output.emit_watermark(Watermark(polled.watermark_ms))
        if polled.finished:
            progress.unfinished.discard(polled.split_id)
            if progress.aligned is not None:
                progress.aligned.look()
        progress.current = None

    def _account(self, batch: ChangelogBatch) -> None:
        """Hold as much of the budget as the reader may have decoded ahead; a breach names this scan."""
        held_bytes = READ_AHEAD_BATCHES * referenced_bytes(batch)
        if self.ctx.progress.aligned is not None:
            # What is decoded of splits that wait, and the piece that this batch was cut from.
            pieces = 2 * min(len(self.ctx.progress.unfinished), OPEN_SPLITS)
            held_bytes = max(held_bytes, pieces * referenced_bytes(batch) * self._batch_rows // batch.num_rows)
        if held_bytes > self.ctx.memory.held_bytes:
            self.ctx.memory.resize(held_bytes)

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """The reader calls ``wake``; a source that waits for others looks again by a timer of its watermarks."""
        aligned = self.ctx.progress.aligned
        if aligned is not None and aligned.waits:
            return
        self._opened().wake_when_available(wake)

    def caught_up(self) -> bool:
        """The reader tells it of the splits that it has; others must have been looked for."""
        return self.ctx.job.splits_known(self.ctx.uid, self.ctx.subtask) and self._opened().caught_up()

    def stop_at(self, rows: int) -> None:
        """Suspend after so many rows of this run, or at the end if there are fewer."""
        self._stop_at = rows

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """Unfinished splits, positions counted to the last emitted row.

        All that was found before the checkpoint was triggered is among them, nothing that was found since.
        """
        self._passed = max(self._passed, checkpoint_id - 1)
        self._take_new()
        splits = self._opened().snapshot()
        self._positions[checkpoint_id] = splits
        self._pass(checkpoint_id)
        return OperatorSnapshot(lists={SPLITS: tuple(encode_split(split) for split in splits)})

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The reader may tell others where it stood."""
        splits = self._positions.get(checkpoint_id)
        self._positions = {number: kept for number, kept in self._positions.items() if number > checkpoint_id}
        if splits is not None:
            self._opened().positions_durable(splits)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """What waits for its barrier need not wait any longer."""
        self._positions.pop(checkpoint_id, None)
        self._pass(checkpoint_id)

    def _pass(self, checkpoint_id: int) -> None:
        self._passed = max(self._passed, checkpoint_id)
        self._take_new()

    def close(self) -> None:
        """Release files and threads."""
        self.ctx.job.unfollow_splits(self.ctx.uid, self.ctx.subtask)
        if self._reader is not None:
            self._reader.close()

    def _opened(self) -> SourceReader:
        assert self._reader is not None
        return self._reader


def encode_split(split: Split) -> bytes:
    """Id, a zero byte, data."""
    return split.id.encode() + b"\0" + split.data


def decode_splits(encoded: Iterable[bytes]) -> list[Split]:
    """The inverse of :func:`encode_split`, for all."""
    parts = [item.partition(b"\0") for item in encoded]
    return [Split(name.decode(), data) for name, _, data in parts]
