"""Scans of topics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from flowsql_connectors.kafka.bad_records import TolerantRows, bad_record_policy
from flowsql_connectors.kafka.client import Cluster
from flowsql_connectors.kafka.enumerator import Boundary, TopicEnumerator
from flowsql_connectors.kafka.options import (
    BOUNDED_MODE,
    BOUNDED_OFFSETS,
    BOUNDED_TIMESTAMP,
    DISCOVERY_MS,
    STARTUP_MODE,
    STARTUP_OFFSETS,
    STARTUP_TIMESTAMP,
)
from flowsql_connectors.kafka.properties import (
    COMMIT_ON_CHECKPOINT,
    MAX_POLL_RECORDS,
    given_properties,
    number_of,
)
from flowsql_connectors.kafka.reader import TopicReader
from flowsql_connectors.kafka.record_format import RecordFormat
from flowsql_connectors.kafka.rows import METADATA, OF_VALUE, RecordRows
from flowsql_connectors.options import SCAN_PARALLELISM, OptionValues
from flowsql_connectors.spi.source import ReaderContext, SourceReader, SplitEnumerator, TableSource
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import ChangelogMode, RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType

#: A record replaces the row of its key, or, without a value, removes it.
UPSERTS = ChangelogMode(frozenset({RowKind.UPDATE_AFTER, RowKind.DELETE}), key_only_deletes=True)


#: Records that are consumed at once where ``max.poll.records`` is not set (ADR 038).
_AT_ONCE: Final = 32_768


class TopicSource(TableSource):
    """A scan of a ``kafka`` or ``upsert-kafka`` table.

    Args:
        topics: names, or a pattern.
        upserts: the table is the newest rows of its keys.
    """

    def __init__(
        self,
        scan: ScanSpec,
        values: OptionValues,
        records: RecordFormat,
        topics: tuple[str, ...] | re.Pattern[str],
        upserts: bool,
    ) -> None:
        self._scan = scan
        self._values = values
        self._records = records
        self._topics = topics
        self._upserts = upserts
        self._given = given_properties(scan.table)
        self._cluster = Cluster(self._given)
        names = tuple(column.name for column in scan.output)
        self._bad_records = bad_record_policy(scan.table.name, values, names)
        known = self.metadata_columns()
        for key in scan.metadata:
            if key not in known:
                raise BindError(
                    "no-such-metadata",
                    f"Invalid metadata key '{key}' of table '{scan.table.name}'.",
                    hint="the kafka connector has " + ", ".join(known),
                )

    @property
    def bounded(self) -> bool:
        """With ``scan.bounded.mode`` the input ends."""
        return self._values.get(BOUNDED_MODE) != "unbounded"

    @property
    def tells_backlog(self) -> bool:
        """Brokers know where partitions end."""
        return True

    @property
    def changelog_mode(self) -> ChangelogMode:
        """Upserts, or what the values carry."""
        return UPSERTS if self._upserts else self._records.value_format.changelog_mode

    def supports_projection(self) -> bool:
        """Only wanted columns are converted."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """What records are beside key and value; what the format of the values tells."""
        told = self._records.value_format.metadata_columns()
        return {**{OF_VALUE + key: type_ for key, type_ in told.items()}, **METADATA}

    def parallelism(self) -> int | None:
        """``scan.parallelism``."""
        return self._values.get(SCAN_PARALLELISM)

    def create_enumerator(self) -> SplitEnumerator:
        """Partitions of the topics."""
        values = self._values
        startup = "earliest-offset" if self._upserts else values.get(STARTUP_MODE)
        interval_ms = values.get(DISCOVERY_MS)
        return TopicEnumerator(
            self._cluster,
            self._topics,
            self._given,
            Boundary(startup, values.get(STARTUP_OFFSETS), values.get(STARTUP_TIMESTAMP)),
            Boundary(values.get(BOUNDED_MODE), values.get(BOUNDED_OFFSETS), values.get(BOUNDED_TIMESTAMP)),
            None if self.bounded or interval_ms <= 0 else interval_ms,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with a consumer of its own."""
        empty = ChangelogBatch.of(
            tuple(pa.array([], to_arrow(column.type)) for column in self._scan.output), num_rows=0
        )
        commits = self._given.get(COMMIT_ON_CHECKPOINT, "true").strip().lower() == "true"
        most = min(number_of(self._given, MAX_POLL_RECORDS, _AT_ONCE), context.batch_rows)
        strict = RecordRows(self._records, self._scan, self._upserts, context)
        rows: RecordRows | TolerantRows = strict
        if self._bad_records is not None:
            rows = TolerantRows(strict, self._bad_records.letters(self._cluster, context.subtask), context.lose)
        return TopicReader(
            self._cluster,
            rows,
            empty,
            commits and self._cluster.group is not None,
            max(2, most),
            context,
        )
