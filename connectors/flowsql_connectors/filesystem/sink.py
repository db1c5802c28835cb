"""INSERT INTO files: writers of hidden part files, one committer that shows them and marks complete partitions."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.commit import FileCommitter
from flowsql_connectors.filesystem.compact import Compactor
from flowsql_connectors.filesystem.files import escape_path_name
from flowsql_connectors.filesystem.names import PartNames
from flowsql_connectors.filesystem.options import (
    AUTO_COMPACTION,
    CHECK_MS,
    COMMIT_POLICY,
    COMPACTION_SIZE,
    INACTIVITY_MS,
    PATH,
    ROLLING_SIZE,
    ROLLOVER_MS,
    SHUFFLE,
)
from flowsql_connectors.filesystem.packing import FirstFit
from flowsql_connectors.filesystem.partitions.folders import CommitPolicy, Partitioner, default_partition_name
from flowsql_connectors.filesystem.stores.store import part_store, sink_folder
from flowsql_connectors.filesystem.writer import FileWriter, Rolling
from flowsql_connectors.formats.format import FileEncoder, FileFormat
from flowsql_connectors.options import SINK_PARALLELISM, OptionValues
from flowsql_connectors.spi.sink import Committer, SinkWriter, TableSink, WriterContext
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import SinkSpec
from flowsql_core.row import ChangelogMode


class FileSink(TableSink):
    """Appends to (or overwrites) a folder of files."""

    def __init__(
        self, sink: SinkSpec, values: OptionValues, format_: FileFormat, configuration: Mapping[str, str]
    ) -> None:
        self._sink = sink
        self._values = values
        self._format = format_
        self._settings = configuration
        self._store = part_store(sink_folder(values.get(PATH), f"table {sink.table.name}"), configuration)
        batch = configuration.get("execution.runtime-mode", "streaming").lower() == "batch"
        self._policy = CommitPolicy.of(values, sink.table, self._store.touch)
        self._batch = batch
        self._compacts = values.get(AUTO_COMPACTION) and not batch
        if is_remote(self._store.root):
            _check_options(self._store.root, values, self._compacts)

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """What the format writes; most hold no updates."""
        return self._format.changelog_mode

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        return self._values.get(SINK_PARALLELISM)

    def writes_anywhere(self) -> bool:
        """Parts are files with names of their own."""
        return True

    def shuffles_by_partition(self) -> bool:
        """``sink.shuffle-by-partition.enable``."""
        return self._values.get(SHUFFLE)

    def beyond_batches(self) -> str | None:
        """What is decided over several commits."""
        if self._policy is not None:
            return f"'{COMMIT_POLICY.key}'"
        return f"'{AUTO_COMPACTION.key}'" if self._compacts else None

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with part files of its own."""
        rolling = Rolling(
            self._values.get(ROLLING_SIZE),
            self._values.get(ROLLOVER_MS),
            self._values.get(INACTIVITY_MS),
            self._values.get(CHECK_MS),
        )
        return FileWriter(
            store=self._store,
            folders=Partitioner(self._sink.table, default_partition_name(self._values)),
            names=PartNames(),
            encoder=self._encoder(),
            rolling=rolling,
            closes_with_checkpoint=self._compacts or context.closes_with_checkpoint,
            policy=self._policy,
            durable=not self._batch,
            context=context,
        )

    def _encoder(self) -> FileEncoder:
        keys = self._sink.table.partition_keys
        return self._format.encoder(tuple(column for column in self._sink.table.columns if column.name not in keys))

    def create_committer(self) -> Committer | None:
        """The committer of the whole INSERT."""
        self._store.check()
        overwrite = None
        if self._sink.overwrite:
            overwrite = self._overwritten_folder()
        compactor = None
        if self._compacts:
            size_bytes = self._values.get(COMPACTION_SIZE)
            target_bytes = self._values.get(ROLLING_SIZE) if size_bytes is None else size_bytes
            compactor = Compactor(FirstFit(target_bytes), self._encoder().merge)
        return FileCommitter(
            self._store,
            self._settings,
            PartNames(),
            self._policy,
            overwrite,
            bool(self._sink.overwrite),
            self._batch,
            compactor,
        )

    def _overwritten_folder(self) -> str | None:
        """The folder that is emptied whatever was written; None: only folders that got rows."""
        table = self._sink.table
        if not table.partition_keys:
            return ""
        static = dict(self._sink.static_partition)
        levels = []
        for key in table.partition_keys:
            if key not in static:
                break
            levels.append(f"{escape_path_name(key)}={escape_path_name(static[key])}")
        # Further keys that are not static make it dynamic again below the static ones.
        return "/".join(levels) if len(levels) == len(table.partition_keys) else None


def _check_options(root: str, values: OptionValues, compacts: bool) -> None:
    """Refuse what object stores cannot do."""
    if compacts:
        raise NotSupportedYetError(f"'{AUTO_COMPACTION.key}' with files in an object store ('{root}')")
    check_size(root, values)


def check_size(root: str, values: OptionValues) -> None:
    """Refuse files larger than an object may be.

    Raises:
        BindError: they may grow that large.
    """
    from flowsql_connectors.filesystem.stores.objects import MOST_BYTES

    if values.get(ROLLING_SIZE) >= MOST_BYTES:
        raise BindError(
            "invalid-option-value",
            f"'{ROLLING_SIZE.key}' of files in an object store ('{root}') must be below {MOST_BYTES >> 30} GB.",
        )
