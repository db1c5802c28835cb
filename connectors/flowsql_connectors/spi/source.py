"""Source side: a factory makes a ``TableSource`` from a table; the planner asks its abilities, the runtime its splits.

Readers never block: blocking I/O lives in a fetcher thread behind ``SourceReader``. Source: Flink FLIP-27; engine
contract, section 6.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from flowsql_connectors.spi.counters import Lose, lose_silently
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import Clock
from flowsql_core.errors import InternalError
from flowsql_core.expr import Expr
from flowsql_core.graph.spark import SparkReader
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_core.types.logical import LogicalType, Schema

if TYPE_CHECKING:
    from flowsql_connectors.options import OptionSet
    from flowsql_connectors.spi.tail import TableTail


@record
class Split:
    """A part of the input that one reader reads alone: opaque bytes, named for messages.

    For files: path, byte range (newline-aligned by the reader) or row groups, and the rows already read.
    """

    id: str
    data: bytes


class ReadStatus(enum.Enum):
    """What ``poll`` answers when it has no batch."""

    NOTHING_NOW = "nothing-now"
    END = "end"


@record
class SplitBatch:
    """Rows of one split, so that each split keeps its own watermark. ``finished``: the split has no more.

    ``watermark_ms``: the source itself says how far event time is behind these rows, of which there may be none; it
    counts where it is above what the table's WATERMARK makes of the rows.
    """

    split_id: str
    batch: ChangelogBatch
    finished: bool = False
    watermark_ms: int | None = None


@record
class ReaderContext:
    """What the runtime gives to a reader."""

    subtask: int
    parallelism: int
    batch_rows: int
    clock: Clock
    configuration: Mapping[str, str]
    #: Counter hook, e.g. ``count("numBytesIn", 3)``.
    count: Callable[[str, int], None]
    #: Seed of random sources; None draws one.
    rng_seed: int | None = None
    #: Whether the job stops once its readers have caught up.
    available_now: bool = False
    #: Whether splits will be paused (watermark alignment).
    aligned: bool = False
    #: Python objects of the job, by id.
    resources: Mapping[str, Any] = field(default_factory=dict)
    #: Counter hook for what was left out: ``lose("numRecordsInErrors", 3, lambda: "a.csv, row 7")``.
    lose: Lose = lose_silently


@record
class BatchedInput:
    """How an engine that runs a stream batch by batch learns of new input.

    ``path``: a file, a folder or a glob, of which new files are the input. ``rows_per_second``: rows that are due as
    time goes by. One of them is set.
    """

    path: str | None = None
    rows_per_second: int | None = None


class SourceReader(ABC):
    """Reads splits given to one subtask.

    ``reads_side_by_side``: all of its splits are read at the same time, so that one which gives no rows has none for
    now, and may be idle by itself; else the reader is idle as a whole.
    """

    reads_side_by_side: ClassVar[bool] = False

    @abstractmethod
    def add_splits(self, splits: list[Split]) -> None:
        """Take over splits, in the order in which they shall be read."""

    @abstractmethod
    def no_more_splits(self) -> None:
        """After the current ones: END."""

    @abstractmethod
    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """At most ``max_rows`` rows of one split, in the split's order. Never blocks."""

    @abstractmethod
    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once (any thread) when ``poll`` may have something."""

    def pause_splits(self, paused: Set[str]) -> bool:
        """Give no rows of these splits until this is called again, and go on with all others; watermark alignment.

        Returns:
            Whether the reader can do so: one that cannot changes nothing, and is asked no further.
        """
        return False

    @abstractmethod
    def snapshot(self) -> list[Split]:
        """Unfinished splits with their positions (counted to the last polled row): handing them to ``add_splits`` of
        a new reader goes on exactly behind the last row that was polled."""

    def caught_up(self) -> bool:
        """Whether all was polled that its splits held when it got them; asked of sources that say ``tells_backlog``,
        where ``ReaderContext.available_now``."""
        raise InternalError(f"{type(self).__name__} does not tell its backlog")

    def positions_durable(self, splits: Sequence[Split]) -> None:
        """A checkpoint that holds this snapshot of the reader is complete: whoever else keeps positions may be told.

        Not called where a job has no checkpoints. It must not fail: positions elsewhere are for others to look at.
        """

    def close(self) -> None:
        """Release files, threads, connections."""


class SplitEnumerator(ABC):
    """Finds splits and deals them out; one per job, its state in the snapshot.

    A scan that goes on looking has a ``discovery_interval_ms``; its ``discover`` runs in a thread of its own, all other
    methods run one at a time.
    """

    @abstractmethod
    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All splits that are there when the job starts, one list per subtask. Deterministic for the same input and
        parallelism."""

    def parts(self, part_bytes: int) -> list[list[Split]] | None:
        """The whole bounded input as parts of about so many bytes, for an engine that reads each in a task of its own.

        The parts one behind another are the input in its order. None: it cannot be read so.
        """
        return None

    def batch(self, files: Sequence[str], rows: range, parallelism: int) -> list[list[Split]]:
        """One batch of the input that :meth:`TableSource.batched_input` describes, one list per subtask.

        Args:
            files: paths that another engine found, for a source of files.
            rows: numbers of the rows that are due, for one of rows.
        """
        raise InternalError(f"{type(self).__name__} has no batches")

    def discovery_interval_ms(self) -> int | None:
        """How often to look for new splits while the job runs; None: never."""
        return None

    def discover(self, parallelism: int) -> list[Split]:
        """Splits that are new. May be slow; remembers nothing, as nobody got them yet."""
        return []

    def assign(self, found: list[Split], parallelism: int) -> list[list[Split]]:
        """Deal out what ``discover`` found, one list per subtask, and remember it."""
        return self.redistribute(found, parallelism)

    def snapshot(self) -> bytes:
        """What is remembered; together with the readers' splits it tells all that was dealt out."""
        return b""

    def restore(self, state: bytes) -> None:
        """Take over the state of a snapshot, before any other call."""

    def redistribute(self, splits: list[Split], parallelism: int) -> list[list[Split]]:
        """Deal restored splits out to another parallelism."""
        dealt: list[list[Split]] = [[] for _ in range(parallelism)]
        for index, split in enumerate(sorted(splits, key=lambda split: split.id)):
            dealt[index % parallelism].append(split)
        return dealt


class TableSource(ABC):
    """A scan that can still be changed by pushing work into it. Immutable: ``apply_*`` lives in the ScanSpec.

    The runtime builds it again from the final :class:`ScanSpec`; it must then honour everything in it.
    """

    @property
    def bounded(self) -> bool:
        """Whether the input ends."""
        return True

    @property
    def paced(self) -> bool:
        """Whether rows come at a rate, and not as fast as they are read."""
        return False

    @property
    def tells_backlog(self) -> bool:
        """Whether readers of an input without end tell when they have caught up with it (``flowsql.trigger``)."""
        return False

    def only_elsewhere(self) -> str | None:
        """Where only another engine reads the rows: what FlowSQL's own runtime does not support, in a few words."""
        return None

    def stays_here(self) -> str | None:
        """Why FlowSQL's own runtime reads the rows where another engine would be chosen, in a few words; None: it is
        free to choose."""
        return None

    def batched_input(self) -> BatchedInput | None:
        """How an engine that runs a stream batch by batch learns of new input; None: it cannot."""
        return None

    def input_bytes(self) -> int | None:
        """Bytes that the whole table takes where it is stored; None where nobody knows before it is read."""
        return None

    def input_rows(self) -> int | None:
        """Rows of the whole table; None where nobody knows before it is read."""
        return None

    @property
    def changelog_mode(self) -> ChangelogMode:
        """What the source emits."""
        return INSERT_ONLY

    def guarantee(self) -> str | None:
        """What becomes of rows when a job fails and is restored, in a few words; None: each counts exactly once."""
        return None

    def supports_projection(self) -> bool:
        """Whether unread columns need not be read."""
        return False

    def supports_filters(self, filters: tuple[Expr, ...]) -> tuple[bool, ...]:
        """For each filter (over the table's physical columns): fully handled by the source? The planner keeps the rest.

        Flink's filesystem source shows pushed filters in the plan and still keeps them: see ``shows_filters``.
        """
        return (False,) * len(filters)

    def shows_filters(self) -> bool:
        """Whether EXPLAIN shows ``filter=[...]`` in the scan although the planner keeps the filter above."""
        return False

    def supports_limit(self) -> bool:
        """Whether ``ScanSpec.limit`` may cut reading short (a hint; the planner keeps the Limit)."""
        return False

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """Readable metadata keys with their types."""
        return {}

    def tail(self) -> TableTail | None:
        """Looks at the newest rows; None: the connector does not know where they are."""
        return None

    @abstractmethod
    def create_enumerator(self) -> SplitEnumerator:
        """Splits of this scan."""

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader for one subtask."""


@record
class PlainFiles:
    """Files that hold the rows of a table and nothing else: whoever reads the format gets the same rows.

    ``format``: identifier of the format. ``pattern``: a regular expression that absolute paths match, if any.
    ``partition_keys``: columns that stand in the names of folders ``key=value``, where ``default_name`` means NULL.
    """

    format: str
    path: str
    pattern: str | None = None
    partition_keys: tuple[str, ...] = ()
    default_name: str = ""


@record
class InferredTable:
    """What the rows behind a table's options show of it.

    ``options``: those that were given and those that were found out. ``note``: what was found out, in a few words.
    """

    columns: Schema
    options: tuple[tuple[str, str], ...]
    partition_keys: tuple[str, ...]
    note: str


class SourceFactory(ABC):
    """Makes sources of one connector. Validates options at CREATE and at plan time."""

    identifier: ClassVar[str]

    @abstractmethod
    def options(self, table: TableSpec) -> OptionSet:
        """Required and optional WITH options for this table (format options included), for checking and hints."""

    @abstractmethod
    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A source for a scan; raises BindError / ConnectorError for what does not fit."""

    def function_parameters(self) -> tuple[str, ...]:
        """Keys of the options that a call of the connector's table function gives, in their order."""
        return ()

    def as_of(self, table: TableSpec, moment_ms: int) -> tuple[tuple[str, str], ...] | None:
        """Options that make a scan give the rows that a table had at a time.

        Args:
            moment_ms: milliseconds since the epoch.

        Returns:
            Those that win over the table's own; None where nobody keeps what tables held.
        """
        return None

    def discovered(self, table: TableSpec) -> TableSpec:
        """A table that nobody declared, with the columns that its options lead to, and options that stay true.

        Raises:
            BindError, ConnectorError: there is nothing, or it cannot be read.
        """
        raise InternalError(f"tables of '{self.identifier}' are declared")

    def inferred(self, table: TableSpec, configuration: Mapping[str, str]) -> InferredTable:
        """A table without columns with those that its rows show; for connectors that say ``infers``.

        Args:
            table: its options.
            configuration: of the session.

        Raises:
            BindError, ConnectorError: there is nothing, or it tells no columns.
        """
        raise InternalError(f"tables of '{self.identifier}' are declared")

    def plain_files(self, table: TableSpec) -> PlainFiles | None:
        """Where the rows of a table are, if other engines may read them there; None if only the source knows."""
        return None

    def spark_view(self, table: TableSpec) -> str | None:
        """The global temporary view of Spark that holds the rows of a table; None where Spark does not know it."""
        return None

    def spark_reader(self, table: TableSpec) -> SparkReader | None:
        """Spark's own reader of the rows of a table; None where it has none."""
        return None

    def with_referenced(self, table: TableSpec, referenced: TableSpec) -> TableSpec:
        """The table with what it needs of another one, which the option of :func:`registry.table_reference` names.

        Raises:
            BindError: the other table cannot be what it shall.
            NotSupportedYetError: it could, but is not yet.
        """
        raise InternalError(f"tables of '{self.identifier}' refer to no other ones")
