"""Records that cannot be read: ``on-error`` = skip leaves them out, dead-letter writes them elsewhere as well.

Records are decoded together. Only where that fails are they halved until the bad ones stand alone. Letters are written
before the rows around them are handed on, so a checkpoint that holds a later offset has them: at least once, as a job
that goes back to a checkpoint reads, and writes, some of them again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, cast

import pyarrow as pa

from flowsql_connectors.bad_row_options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE, action_of, letter_folder
from flowsql_connectors.dead_letter_table import with_letters
from flowsql_connectors.dead_letters import make_folder, read_letters, write_letters
from flowsql_connectors.formats.format import Columns
from flowsql_connectors.formats.messages.apart import decode_apart, reason
from flowsql_connectors.kafka.client import Cluster
from flowsql_connectors.kafka.encode import Records as Written
from flowsql_connectors.kafka.native import HEADERS, KEYS, TIMESTAMPS, Records
from flowsql_connectors.kafka.options import DEAD_LETTER_TOPIC, FORMAT, SERVERS, TOPIC, VALUE_FORMAT
from flowsql_connectors.kafka.producer import RecordProducer
from flowsql_connectors.kafka.rows import RecordRows
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.counters import ROWS_SKIPPED, Lose
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import BIGINT, BYTES, INT, STRING, Column

#: What a letter in a folder holds, as a json table declares it.
LETTER_COLUMNS: Final = (
    Column("row_bytes", BYTES),
    Column("key_bytes", BYTES),
    Column("error", STRING),
    Column("topic", STRING),
    Column("partition", INT),
    Column("offset", BIGINT),
    Column("table_name", STRING),
)
#: Names of headers of a letter in a topic begin so.
HEADER: Final = "__flowsql.errors."


@record
class BadRecord:
    """One record, and why it is no row."""

    records: Records
    error: str

    @property
    def value(self) -> bytes | None:
        """What it holds."""
        return cast("bytes | None", self.records.values[0].as_py())

    @property
    def key(self) -> bytes | None:
        """Its key."""
        return None if self.records.keys is None else cast("bytes | None", self.records.keys[0].as_py())

    @property
    def offset(self) -> int:
        """Its place in the partition."""
        return int(self.records.offsets[0])

    @property
    def timestamp_ms(self) -> int | None:
        """When it was written."""
        return None if self.records.timestamps is None else int(self.records.timestamps[0])

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Its headers."""
        return [] if self.records.headers is None else self.records.headers[0]


class Letters(Protocol):
    """Where bad records are written."""

    def write(self, topic: str, partition: int, letters: Sequence[BadRecord]) -> None:
        """Write them, all of one partition; they are safe when this returns."""
        ...

    def close(self) -> None:
        """No more of them come."""
        ...


@record
class BadRecordPolicy:
    """What a scan does with bad records; neither ``topic`` nor ``folder``: they are counted and left out.

    ``columns``: those that are read; a record is bad by them alone.
    """

    table: str
    columns: tuple[str, ...]
    topic: str | None = None
    folder: str | None = None

    def letters(self, cluster: Cluster, subtask: int) -> Letters | None:
        """Where a reader writes them."""
        if self.topic is not None:
            return TopicLetters(cluster, self.table, self.topic, subtask)
        return None if self.folder is None else FolderLetters(self)


def bad_record_policy(table: str, values: OptionValues, columns: tuple[str, ...]) -> BadRecordPolicy | None:
    """The policy of a table's options; None for ``fail``.

    Raises:
        BindError: it is not said where letters go, or said twice, or although there are none.
        NotSupportedYetError: a folder that is not of this machine.
    """
    action = action_of(values, (DEAD_LETTER_TOPIC, DEAD_LETTER_TABLE, DEAD_LETTER_PATH))
    folder = letter_folder(values)
    if action == "fail":
        return None
    return BadRecordPolicy(table, columns, values.get(DEAD_LETTER_TOPIC), folder)


def with_letter_table(table: TableSpec, letters: TableSpec) -> TableSpec:
    """The table with the topic, or the folder, of its dead-letter table as an option instead of that table's name.

    Raises:
        BindError: a table of another cluster, or one whose values are not the bytes of records.
        NotSupportedYetError: neither a topic nor JSON lines in a folder.
    """
    if letters.option("connector") != "kafka":
        return with_letters(table, letters, LETTER_COLUMNS)
    for other in (DEAD_LETTER_TOPIC, DEAD_LETTER_PATH):
        if table.option(other.key) is not None:
            raise BindError("bad-row-options", f"Give '{DEAD_LETTER_TABLE.key}' or '{other.key}', not both.")
    name = table.option(DEAD_LETTER_TABLE.key)
    topic = letters.declared(TOPIC.key) or ""
    if letters.option(FORMAT.key) != "raw" and letters.option(VALUE_FORMAT.key) != "raw":
        raise BindError(
            "bad-row-options",
            f"Table '{name}' of '{DEAD_LETTER_TABLE.key}' must have 'format' = 'raw': its values are those of bad "
            "records, as they are.",
            hint=f"headers that begin with '{HEADER}' say where a record comes from and why it is bad",
        )
    if not topic or ";" in topic or letters.declared(SERVERS.key) != table.declared(SERVERS.key):
        raise BindError(
            "bad-row-options",
            f"Table '{name}' of '{DEAD_LETTER_TABLE.key}' must be one topic of the same '{SERVERS.key}'.",
        )
    kept = tuple(item for item in table.options if item[0] != DEAD_LETTER_TABLE.key)
    return replace(table, options=(*kept, (DEAD_LETTER_TOPIC.key, topic)))


class TolerantRows:
    """Decodes records, and leaves bad ones out.

    Args:
        letters: where they go; None: nowhere.
    """

    def __init__(self, rows: RecordRows, letters: Letters | None, lose: Lose) -> None:
        self._rows = rows
        self._letters = letters
        self._lose = lose

    @property
    def wanted(self) -> Set[str]:
        """What is asked of records besides values and offsets."""
        return self._rows.wanted | (frozenset() if self._letters is None else {KEYS, TIMESTAMPS, HEADERS})

    def decode(self, records: Records) -> Columns:
        """The rows of the good ones; ``lines`` are indexes among all."""
        bad: list[BadRecord] = []
        found = decode_apart(
            len(records.offsets),
            lambda start, stop: self._rows.decode(records.part(start, stop)),
            lambda index, error: bad.append(BadRecord(records.part(index, index + 1), reason(error))),
        )
        if bad:
            place = f"topic '{records.topic}', partition {records.partition}, offset {bad[0].offset}"
            self._lose(ROWS_SKIPPED, len(bad), lambda: place)
            if self._letters is not None:
                self._letters.write(records.topic, records.partition, bad)
        return found

    def close(self) -> None:
        """No more records come."""
        if self._letters is not None:
            self._letters.close()


class TopicLetters:
    """Writes bad records to a topic as they are: key, value, timestamp and headers, and headers that tell of them."""

    def __init__(self, cluster: Cluster, table: str, topic: str, subtask: int) -> None:
        self._table = table
        self._make: Callable[[], RecordProducer] = lambda: RecordProducer(cluster, topic, "default", subtask)
        self._producer: RecordProducer | None = None

    def write(self, topic: str, partition: int, letters: Sequence[BadRecord]) -> None:
        """Send them, and wait until the brokers have them."""
        if self._producer is None:
            self._producer = self._make()
        headers = [
            [
                *letter.headers,
                (f"{HEADER}topic", topic.encode()),
                (f"{HEADER}partition", str(partition).encode()),
                (f"{HEADER}offset", str(letter.offset).encode()),
                (f"{HEADER}table", self._table.encode()),
                (f"{HEADER}message", letter.error.encode()),
            ]
            for letter in letters
        ]
        self._producer.write(
            Written(
                len(letters),
                pa.array([letter.value for letter in letters], pa.binary()),
                pa.array([letter.key for letter in letters], pa.binary()),
                None,
                pa.array([letter.timestamp_ms for letter in letters], pa.int64()),
                pa.array(headers, pa.map_(pa.string(), pa.binary())),
            )
        )
        self._producer.flush()

    def close(self) -> None:
        """End the client."""
        if self._producer is not None:
            self._producer.close()


#: The offset, and the bytes of value and key as they stand in a file: a topic of the same name may have been made anew.
_Identity = tuple[int, str | None, str | None]


def _identity(told: Mapping[str, Any]) -> _Identity:
    return told["offset"], told["row_bytes"], told["key_bytes"]


class FolderLetters:
    """Writes bad records to files of JSON lines."""

    def __init__(self, policy: BadRecordPolicy) -> None:
        assert policy.folder is not None
        self._policy = policy
        self._folder = policy.folder
        #: Files that earlier readers of a partition have left, by the beginning of their names: last offset, and path.
        self._before: dict[str, list[tuple[int, Path]]] = {}
        make_folder(policy.table, policy.folder)

    def write(self, topic: str, partition: int, letters: Sequence[BadRecord]) -> None:
        """One file, without the letters that an earlier reader of the partition wrote already."""
        policy = self._policy
        told = [
            {
                "row_bytes": _text(letter.value),
                "key_bytes": _text(letter.key),
                "error": letter.error,
                "topic": topic,
                "partition": partition,
                "offset": letter.offset,
                "table_name": policy.table,
            }
            for letter in letters
        ]
        key = "\0".join((topic, policy.table, *policy.columns))
        start = f"{hashlib.sha256(key.encode()).hexdigest()[:16]}-{partition}-"
        before = self._written_before(start, letters[0].offset)
        told = [letter for letter in told if _identity(letter) not in before]
        if told:
            name = f"{start}{told[0]['offset']}-{told[-1]['offset']}.jsonl"
            write_letters(policy.table, self._folder, Path(self._folder) / name, told)

    def _written_before(self, start: str, offset: int) -> set[_Identity]:
        """Letters in files that end behind an offset. Offsets of a reader only grow: files before are done with."""
        if start not in self._before:
            files = Path(self._folder).glob(f"{start}*.jsonl")
            self._before[start] = [(int(file.stem.rpartition("-")[2]), file) for file in files]
        self._before[start] = [(last, file) for last, file in self._before[start] if last >= offset]
        return {_identity(letter) for _, file in self._before[start] for letter in read_letters(file)}

    def close(self) -> None:
        """Nothing is open."""


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
