"""Sink side: writers write, prepare committables, a committer makes them visible exactly once.

Source: Flink FLIP-143 / FLIP-191; engine contract, section 6.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import Clock
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.record import record
from flowsql_core.row import ChangelogMode
from flowsql_core.types.logical import LogicalType

if TYPE_CHECKING:
    from flowsql_connectors.options import OptionSet


@record
class Committable:
    """Something written but not yet visible: opaque bytes that any process can commit, any number of times."""

    data: bytes


@record
class WriterContext:
    """What the runtime gives to a writer.

    ``write_text`` puts whole lines on the program's output in one piece; None: the process's standard output.
    ``lineage`` names the INSERT in the job together with all attempts and jobs that own the snapshots it was restored
    from: what dead ones of them left behind may be removed. A job that only borrowed a snapshot has a new one. Empty:
    not known. ``closes_with_checkpoint``: all that was written before a barrier is to be seen with its checkpoint.
    """

    job_name: str
    subtask: int
    parallelism: int
    clock: Clock
    configuration: Mapping[str, str]
    count: Callable[[str, int], None]
    submit: Callable[[Callable[[], None]], None]
    write_text: Callable[[str], None] | None = None
    lineage: str = ""
    closes_with_checkpoint: bool = False


class SinkWriter(ABC):
    """Writes one subtask's rows.

    At a barrier: ``flush(False)``, ``prepare_commit()``, ``snapshot()``; at the end of the input ``flush(True)`` and
    ``prepare_commit()``. Committables of a checkpoint that fails are committed with the next one that completes.
    """

    @abstractmethod
    def write(self, batch: ChangelogBatch) -> None:
        """All rows of a batch; the batch's watermark track may drive partition commits."""

    def on_watermark(self, watermark_ms: int) -> None:
        """Event time after the last written row."""

    def flush(self, end_of_input: bool) -> None:
        """Everything written so far reaches the outside world's buffers."""

    def prepare_commit(self) -> list[Committable]:
        """Close what shall become visible with the next commit; durable, as it travels in the checkpoint."""
        return []

    def snapshot(self) -> bytes:
        """Writer state for a checkpoint."""
        return b""

    def restore(self, states: list[bytes]) -> None:
        """Take over the states of former writers, before the first row; each state goes to one writer."""

    def close(self) -> None:
        """Release; after a failure nothing that was not prepared may stay visible.

        What a checkpoint counts on stays: the job may be restored from it.
        """


class Committer(ABC):
    """Makes committables visible; idempotent. One for all writers of an INSERT."""

    @abstractmethod
    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """Commit all; called on checkpoint completion and at the end of input.

        ``committables``: of all writers, of the checkpoint and of those before it that were not committed. A crash may
        come at any point, also inside; then the same ones come again after :meth:`restore`, maybe beside newer ones.
        """

    def snapshot(self) -> bytes:
        """What the committer remembers beside the committables; at every checkpoint, any thread, also while ``commit``
        runs. It covers all commits that have begun."""
        return b""

    def restore(self, state: bytes) -> None:
        """Take over the state of the restored checkpoint; next comes one ``commit`` of its committables, maybe none."""

    def take_back(self) -> None:
        """Some writers went back to the last committed checkpoint, and write again; the others go on.

        What they had prepared since is not committed. It may be removed with the next commit, not before: a checkpoint
        that was given up may still be there, and count on it.
        """

    def abort(self, committables: list[Committable]) -> None:
        """The job failed and no checkpoint holds these: remove what was prepared."""

    def discard(self, lineage: str) -> None:
        """No writer of this lineage writes any more: remove what they left behind that was not committed.

        For engines whose tasks may die, or run twice, without a word of what they had prepared.
        """


class TableSink(ABC):
    """A sink for one INSERT."""

    @abstractmethod
    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """The changelog that the sink takes when the query produces ``wanted``.

        INSERT_ONLY for append sinks; UPSERT for keyed ones; ALL_CHANGES for print and blackhole. The planner compares.
        """

    def shows_each_change(self) -> bool:
        """Whether somebody sees each change that is written, although the sink takes upserts: then none is left out."""
        return False

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer for one subtask."""

    def create_committer(self) -> Committer | None:
        """The job-wide committer, if committables are made."""
        return None

    def parallelism(self) -> int | None:
        """``sink.parallelism``, if set."""
        return None

    def writes_anywhere(self) -> bool:
        """Whether a writer may run in any process, on any machine that sees what the table's options name, and hand its
        committables to the process of the job."""
        return False

    def shuffles_by_partition(self) -> bool:
        """Whether all rows of a partition go to one writer."""
        return False

    def beyond_batches(self) -> str | None:
        """What of the table's INSERT hangs on more than one batch of a stream, in a few words; None: nothing does."""
        return None


class SinkFactory(ABC):
    """Makes sinks of one connector."""

    identifier: ClassVar[str]

    def supports_overwrite(self) -> bool:
        """Whether INSERT OVERWRITE may replace what a table holds; Flink's ``SupportsOverwrite``."""
        return False

    def writable_metadata(self, table: TableSpec) -> Mapping[str, LogicalType]:
        """Metadata keys that an INSERT may write, with their types; Flink's ``SupportsWritingMetadata``.

        Their columns stand behind the physical ones: ``SinkSpec.metadata``.
        """
        return {}

    @abstractmethod
    def options(self, table: TableSpec) -> OptionSet:
        """Required and optional WITH options for this table (format options included)."""

    @abstractmethod
    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink; raises BindError / ConnectorError for what does not fit."""
