"""Writing a table: a writer per subtask, results visible when the checkpoint or the whole job succeeded."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from flowsql_connectors import registry
from flowsql_connectors.spi.sink import SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import SinkSpec
from flowsql_runtime.metrics.registry import RECORDS_SENT
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.task.trigger import reads_what_is_there

#: Resource with a callable ``(text) -> None`` for what a sink prints; without it the process's standard output.
WRITE_TEXT_RESOURCE: Final = "flowsql.write-text"
_WRITER: Final = "writer"


class SinkOperator(Operator[SinkSpec]):
    """Write, and commit in two phases.

    At a barrier and at the end of input the writer prepares its committables; the job commits those of all sinks when
    the checkpoint is complete, or every task ended well, and removes them otherwise.

    In     the changelog that the planner agreed on with the sink.
    Out    nothing.
    State  the writer's.
    """

    def __init__(self, spec: SinkSpec) -> None:
        super().__init__(spec)
        self._writer: SinkWriter | None = None

    def open(self, ctx: OperatorContext) -> None:
        """Make sink and writer."""
        self._sent = ctx.metrics.counter(RECORDS_SENT)
        self._sink: TableSink = registry.create_sink(self.spec, ctx.parameters)
        self._writer = self._sink.create_writer(
            WriterContext(
                job_name=ctx.job.job_name,
                subtask=ctx.subtask,
                parallelism=ctx.parallelism,
                clock=ctx.clock,
                configuration=ctx.parameters,
                count=ctx.metrics.count,
                submit=ctx.submit,
                write_text=ctx.resources.get(WRITE_TEXT_RESOURCE),
                lineage=lineage_of(ctx.job.lineage, ctx.uid),
                closes_with_checkpoint=ctx.job.one_batch or reads_what_is_there(ctx.parameters),
            )
        )

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Hand the states of former writers to this one."""
        if snapshot is not None and snapshot.lists.get(_WRITER):
            self._opened().restore(list(snapshot.lists[_WRITER]))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Write; the writer also hears of the time."""
        track = self.advance_track(input_index, batch.track)
        if track is not batch.track:
            batch = batch.with_track(track)
        writer = self._opened()
        if batch.num_rows:
            writer.write(batch)
            self._sent.inc(batch.num_rows)
        if track is not None:
            writer.on_watermark(track.last_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        """Time between batches."""
        self._opened().on_watermark(watermark_ms)

    def finish(self) -> None:
        """First phase; the second is the job's."""
        self._prepare(None)

    def _prepare(self, checkpoint_id: int | None) -> None:
        """``checkpoint_id``: at a barrier; None: at the end of input."""
        ctx, writer = self.ctx, self._opened()
        writer.flush(checkpoint_id is None)
        new = writer.prepare_commit()
        ctx.job.add_committables(ctx.uid, self._sink.create_committer, new, checkpoint_id, (ctx.vertex_id, ctx.subtask))

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """What was written so far becomes committable with the snapshot.

        Here and not in the snapshot: a snapshot that fails is given up, and the job may go on without it; rows that a
        writer could not flush are gone, and the task must fail.
        """
        self._prepare(checkpoint_id)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """What the writer remembers beside the committables."""
        state = self._opened().snapshot()
        return OperatorSnapshot(
            lists={_WRITER: (state,)} if state else {},
            watermarks_ms=self.watermarks_ms,
        )

    def close(self) -> None:
        """Release; what was not prepared disappears."""
        if self._writer is not None:
            self._writer.close()

    def _opened(self) -> SinkWriter:
        assert self._writer is not None
        return self._writer


def lineage_of(job_lineage: str, uid: str) -> str:
    """The job's and one sink's: another INSERT of the job may write to the same table. Short, as it may stand in names
    of files. Empty if the job's is not known."""
    return f"{job_lineage}-{blake2b(uid.encode(), digest_size=4).hexdigest()}" if job_lineage else ""
