"""INSERT INTO Delta tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsql_connectors.lakes.columns import matched
from flowsql_connectors.lakes.delta.commit import DeltaCommitter
from flowsql_connectors.lakes.delta.connection import address_of, arrow_schema
from flowsql_connectors.lakes.delta.merging import MergingCommitter, MergingWriter
from flowsql_connectors.lakes.delta.options import COMPRESSION, TARGET_BYTES
from flowsql_connectors.lakes.delta.types import to_columns
from flowsql_connectors.lakes.delta.writing import DeltaFiles
from flowsql_connectors.lakes.writer import LakeWriter
from flowsql_connectors.options import SINK_PARALLELISM, OptionValues
from flowsql_connectors.spi.sink import Committer, SinkWriter, TableSink, WriterContext
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import SinkSpec
from flowsql_core.row import INSERT_ONLY, UPSERT, ChangelogMode
from flowsql_core.types.logical import Schema


class DeltaSink(TableSink):
    """Appends to a table, or takes the place of what its partitions hold."""

    def __init__(self, sink: SinkSpec, values: OptionValues, configuration: Mapping[str, str]) -> None:
        self._sink = sink
        self._values = values
        self._address = address_of(sink.table, configuration)
        self._batch = configuration.get("execution.runtime-mode", "streaming").lower() == "batch"
        if sink.overwrite and not self._batch:
            raise BindError("overwrite-in-streaming", "Streaming mode not support overwrite.")

    @property
    def _merges(self) -> bool:
        """Whether rows go into the table by their key."""
        return bool(self._sink.table.primary_key) and not self._sink.overwrite

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """All changes by key; insertions alone without one."""
        return UPSERT if self._merges else INSERT_ONLY

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        return self._values.get(SINK_PARALLELISM)

    def writes_anywhere(self) -> bool:
        """Data files have names of their own."""
        return True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with data files of its own. A table that is not there is made, as Delta's connector does."""
        declared = self._sink.table
        table = self._address.load_or_create(declared)
        there = to_columns(arrow_schema(table), self._address.uri)
        found = matched(self._address.uri, declared.columns, there)
        keys = tuple(table.metadata().partition_columns)
        if declared.partition_keys and declared.partition_keys != keys:
            raise BindError(
                "lake-column",
                f"Delta table '{self._address.uri}' is partitioned by ({', '.join(keys)}), and {declared.name} is "
                f"declared PARTITIONED BY ({', '.join(declared.partition_keys)}).",
            )
        places = [found.index(at) if at in found else None for at in range(len(there))]
        for place, column in zip(places, there, strict=True):
            if place is None and not column.type.nullable:
                raise BindError(
                    "lake-column",
                    f"Column '{column.name}' of Delta table '{self._address.uri}' takes no NULL, and {declared.name} "
                    "does not declare it.",
                )
        if self._merges:
            return MergingWriter(arrow_schema(table), places, self._keys(there, found), context)
        files = DeltaFiles(
            table, self._address, places, self._values.get(TARGET_BYTES), self._values.get(COMPRESSION), context.subtask
        )
        return LakeWriter(files, context)

    def _keys(self, there: Schema, found: Sequence[int]) -> list[str]:
        """The primary key by the names of the table's own columns."""
        names = [column.name for column in self._sink.table.columns]
        return [there[found[names.index(key)]].name for key in self._sink.table.primary_key]

    def create_committer(self) -> Committer:
        """The committer of the whole INSERT."""
        if self._merges:
            there = to_columns(arrow_schema(self._address.load_or_create(self._sink.table)), self._address.uri)
            found = matched(self._address.uri, self._sink.table.columns, there)
            return MergingCommitter(self._address, self._keys(there, found), self._batch)
        return DeltaCommitter(self._address, self._sink.overwrite, self._batch)
