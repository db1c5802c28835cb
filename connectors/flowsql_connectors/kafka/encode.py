"""Rows to records: keys, values and metadata of a batch at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import EncodeContext
from flowsql_connectors.kafka.record_format import RecordFormat
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import SinkSpec
from flowsql_core.record import record
from flowsql_core.row import DELETE, UPDATE_BEFORE
from flowsql_core.types.logical import BYTES, STRING, LogicalType, MapType, TimestampLtzType

WRITABLE: Final[dict[str, LogicalType]] = {
    "topic": STRING.as_nullable(False),
    "headers": MapType(key=STRING, value=BYTES),
    "timestamp": TimestampLtzType(precision=3),
}
#: How records lie in a record batch of Arrow.
SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", pa.map_(pa.string(), pa.binary())),
    ]
)


@record
class Records:
    """Records in the order in which they are written; a column that is None holds nothing but NULL."""

    count: int
    values: Any
    keys: Any = None
    topics: Any = None
    timestamps: Any = None
    headers: Any = None

    def take(self, rows: npt.NDArray[np.int64]) -> Records:
        """Some of them."""
        places = pa.array(rows)
        columns = (self.values, self.keys, self.topics, self.timestamps, self.headers)
        return Records(len(rows), *(None if column is None else column.take(places) for column in columns))

    def as_batch(self) -> Any:
        """A record batch of :data:`SCHEMA`."""
        columns = (self.topics, self.keys, self.values, self.timestamps, self.headers)
        made = [
            pa.nulls(self.count, field.type) if column is None else column.cast(field.type)
            for column, field in zip(columns, SCHEMA, strict=True)
        ]
        return pa.record_batch(made, schema=SCHEMA)

    @staticmethod
    def of_batch(batch: Any) -> Records:
        """The inverse of :meth:`as_batch`."""
        topics, keys, values, timestamps, headers = (
            None if column.null_count == len(column) else column for column in batch.columns
        )
        if values is None:
            values = pa.nulls(batch.num_rows, pa.binary())
        return Records(batch.num_rows, values, keys, topics, timestamps, headers)


class RecordEncoder:
    """Encodes the rows of one INSERT.

    Args:
        upserts: a row that is taken away becomes a record without a value.
        topics: those that the column ``topic`` may name, or what all their names match.
        configuration: of the session.
    """

    def __init__(
        self,
        sink: SinkSpec,
        records: RecordFormat,
        upserts: bool,
        topics: tuple[str, ...] | re.Pattern[str],
        configuration: Mapping[str, str],
    ) -> None:
        self._sink = sink
        self._records = records
        self._upserts = upserts
        self._topics = topics
        subject = None if isinstance(topics, re.Pattern) else topics[0]
        self._values = records.value_format.message_encoder(
            records.value_columns, EncodeContext(configuration, None if subject is None else f"{subject}-value")
        )
        self._keys = None
        if records.key_format is not None:
            self._keys = records.key_format.message_encoder(
                records.key_columns, EncodeContext(configuration, None if subject is None else f"{subject}-key")
            )
        first = len(sink.table.columns)
        self._metadata = {key: first + place for place, key in enumerate(sink.metadata)}

    def encode(self, batch: ChangelogBatch) -> Records:
        """The records of a batch, a row each.

        Raises:
            ExecutionError: a row has no form, or goes to a topic that is not the table's.
        """
        columns, rows = batch.columns, batch.num_rows
        kinds = batch.kinds
        records = self._records
        values = self._values.encode(
            tuple(columns[place] for place in records.value), rows, None if self._upserts else kinds
        )
        keys = None
        if self._keys is not None:
            keys = self._keys.encode(tuple(columns[place] for place in records.key), rows)
        if self._upserts and kinds is not None:
            gone = (kinds == DELETE) | (kinds == UPDATE_BEFORE)
            if gone.any():
                values = pc.if_else(pa.array(gone), pa.scalar(None, values.type), values)
        made = Records(rows, values.cast(pa.binary()), None if keys is None else keys.cast(pa.binary()))
        return self._with_metadata(made, columns)

    def _with_metadata(self, records: Records, columns: Sequence[Any]) -> Records:
        for key, place in self._metadata.items():
            column = columns[place]
            match key:
                case "topic":
                    self._check_topics(column)
                    records = replace(records, topics=column)
                case "timestamp":
                    records = replace(records, timestamps=_checked_times(column))
                case "headers":
                    records = replace(records, headers=_with_values(column))
        return records

    def _check_topics(self, column: Any) -> None:
        if isinstance(self._topics, re.Pattern):
            for name in pc.unique(column).to_pylist():
                if name is None or self._topics.fullmatch(name) is None:
                    raise ExecutionError(
                        "kafka-topic",
                        "The topic of the sink record is not valid. Expected topic to match: "
                        f"{self._topics.pattern} but was: {name}",
                    )
            return
        wrong = pc.invert(pc.is_in(column, value_set=pa.array(self._topics, pa.string())))
        if len(self._topics) == 1:
            wrong = pc.and_(wrong, column.is_valid())
        if pc.any(wrong).as_py():
            name = column.filter(wrong)[0].as_py()
            raise ExecutionError(
                "kafka-topic",
                f"The topic of the sink record is not valid. Expected topic to be in: [{', '.join(self._topics)}] but "
                f"was: {name}",
            )


def _checked_times(column: Any) -> Any:
    """Milliseconds since 1970."""
    times = column.cast(pa.timestamp("ms")).cast(pa.int64())
    if pc.any(pc.less(times, 0)).as_py():
        raise ExecutionError("kafka-timestamp", "Kafka has no timestamps before 1970, and a row has one.")
    if pc.any(pc.equal(times, 0)).as_py():
        raise ExecutionError(
            "kafka-timestamp",
            "The timestamp 1970-01-01 00:00:00.000 of a row cannot be written: the client library takes it for none, "
            "and would write the current time.",
            hint="NULL writes the current time",
        )
    return times


def _with_values(headers: Any) -> Any:
    """Without the headers whose value is NULL, which Flink does not write."""
    if not headers.items.null_count:
        return headers
    kept = np.asarray(headers.items.is_valid())
    before = np.concatenate([[0], np.cumsum(kept)])
    ends = pa.array(
        before[np.asarray(headers.offsets)], pa.int32(), mask=np.append(np.asarray(headers.is_null()), False)
    )
    entries = pa.array(kept)
    return pa.MapArray.from_arrays(ends, headers.keys.filter(entries), headers.items.filter(entries))
