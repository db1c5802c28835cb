"""Messages that cannot be read: ``on-error`` = skip leaves them out, dead-letter writes them to a folder as well.

Letters are written before the rows around them are handed on, so that a checkpoint that holds what comes behind a bad
message has its letter. Of feeds that replay a letter is there once: what an earlier reader wrote, known by position
and bytes, is not written again. Other feeds tell no message from one that is equal: a letter is there as often as its
message was received. Of a JSON array, which is a row for each of its elements, the bad elements alone are left out.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from flowsql_connectors.bad_row_options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE, action_of, letter_folder
from flowsql_connectors.dead_letter_table import with_letters
from flowsql_connectors.dead_letters import make_folder, read_letters, write_letters
from flowsql_connectors.formats.format import Columns
from flowsql_connectors.formats.messages.apart import decode_apart, reason
from flowsql_connectors.messages.feed import Arrived
from flowsql_connectors.messages.json_arrays import elements_of
from flowsql_connectors.messages.rows import Int64s, MessageDecoding
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.counters import ROWS_SKIPPED, Lose
from flowsql_connectors.spi.source import ReaderContext
from flowsql_core.clock import Clock
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import BYTES, STRING, Column, LogicalType, MapType, TimestampLtzType

#: What a letter holds, as a json table declares it.
LETTER_COLUMNS: Final = (
    Column("row_bytes", BYTES),
    Column("error", STRING),
    Column("source", STRING),
    Column("source_position", STRING),
    Column("source_metadata", MapType(key=STRING, value=STRING)),
    Column("received_at", TimestampLtzType(precision=3)),
    Column("table_name", STRING),
)
_STANDARD: Final = "json.timestamp-format.standard"


@record
class BadMessagePolicy:
    """What a scan does with bad messages; without a ``folder`` they are counted and left out.

    ``columns``: those that are read; a message is bad by them alone. ``source``: where messages come from, in words.
    ``metadata``: keys of the connector with their types. ``arrays``: a message may be a JSON array of rows.
    """

    table: str
    columns: tuple[str, ...]
    source: str
    metadata: Mapping[str, LogicalType]
    arrays: bool
    folder: str | None

    def tolerant(self, rows: MessageDecoding, split: str, context: ReaderContext) -> TolerantRows:
        """A decoder of a split's messages that leaves bad ones out.

        Args:
            rows: decodes strictly.

        Raises:
            ConnectorError: the folder cannot be made.
        """
        letters = None if self.folder is None else FolderLetters(self, self.folder, split, context.clock)
        return TolerantRows(rows, self.arrays, letters, context.lose)


def bad_message_policy(
    scan: ScanSpec, values: OptionValues, source: str, metadata: Mapping[str, LogicalType], arrays: bool
) -> BadMessagePolicy | None:
    """The policy of a table's options; None for ``fail``.

    Raises:
        BindError: it is not said where letters go, or said twice, or although there are none.
        NotSupportedYetError: a folder that is not of this machine.
    """
    action = action_of(values, (DEAD_LETTER_TABLE, DEAD_LETTER_PATH))
    folder = letter_folder(values)
    if action == "fail":
        return None
    columns = tuple(column.name for column in scan.output)
    return BadMessagePolicy(scan.table.name, columns, source, metadata, arrays, folder)


def with_letter_table(table: TableSpec, letters: TableSpec) -> TableSpec:
    """The table with the folder of its dead-letter table as an option instead of that table's name.

    Raises:
        BindError: it has other columns than a letter, or reads times in another way than letters have them.
        NotSupportedYetError: a table whose files are no JSON lines in one folder.
    """
    if (letters.option(_STANDARD) or "SQL").upper() != "SQL" and any(
        column.name == "received_at" for column in letters.columns
    ):
        raise BindError(
            "bad-row-options",
            f"Table '{letters.name}' has '{_STANDARD}' = '{letters.option(_STANDARD)}', and times of letters are "
            "written in the standard 'SQL'.",
            hint="leave the option out",
        )
    return with_letters(table, letters, LETTER_COLUMNS)


@record
class _Bad:
    """A message, by its index, or an element of one: its bytes, and why it is no row."""

    index: int
    raw: bytes | None
    error: str


class TolerantRows:
    """Decodes messages, and leaves bad ones out.

    Args:
        arrays: elements of JSON arrays are left out one by one.
        letters: where they go; None: nowhere.
    """

    def __init__(self, rows: MessageDecoding, arrays: bool, letters: FolderLetters | None, lose: Lose) -> None:
        self._rows = rows
        self._arrays = arrays
        self._letters = letters
        self._lose = lose

    def decode(self, arrived: Arrived, place: Callable[[int], str]) -> tuple[Columns, Int64s]:
        """The rows of the good ones, and of each the index of its message among all."""
        bad: list[_Bad] = []

        def alone(index: int, error: ExecutionError) -> Columns | None:
            raw = self._rows.raw(arrived, index)
            elements = elements_of(raw) if self._arrays and raw is not None else None
            if elements is None:
                bad.append(_Bad(index, raw, reason(error)))
                return None
            return self._of_elements(arrived, index, elements, place, bad)

        count = len(arrived.values)
        found = decode_apart(
            count,
            lambda start, stop: self._decoded(arrived.part(start, stop), lambda at: place(start + at)),
            alone,
        )
        if bad:
            self._lose(ROWS_SKIPPED, len(bad), lambda: place(bad[0].index))
        if self._letters is not None:
            self._letters.write(arrived, bad, count)
        assert found.lines is not None
        return replace(found, lines=None), found.lines

    def _decoded(self, arrived: Arrived, place: Callable[[int], str]) -> Columns:
        columns, lines = self._rows.decode(arrived, place)
        return replace(columns, lines=lines)

    def _of_elements(
        self, arrived: Arrived, index: int, elements: list[bytes], place: Callable[[int], str], bad: list[_Bad]
    ) -> Columns:
        # Each as an array of one: what it means in an array.
        whole = arrived.part(index, index + 1)
        metadata = {key: [told[0]] * len(elements) for key, told in whole.metadata.items()}
        single = Arrived([b"[" + element + b"]" for element in elements], metadata)
        found = decode_apart(
            len(elements),
            lambda start, stop: self._decoded(single.part(start, stop), lambda _: place(index)),
            lambda at, error: bad.append(_Bad(index, elements[at], reason(error))),
        )
        return replace(found, lines=np.zeros(found.num_rows, np.int64))

    def raw(self, arrived: Arrived, index: int) -> bytes | None:
        """As the decoder says."""
        return self._rows.raw(arrived, index)


#: A position, or what stands for one, and the bytes as they stand in a file.
_Identity = tuple[str | None, str | None]


class FolderLetters:
    """Writes the bad messages of one split to files of JSON lines. Of one thread."""

    def __init__(self, policy: BadMessagePolicy, folder: str, split: str, clock: Clock) -> None:
        self._policy = policy
        self._folder = folder
        self._clock = clock
        key = "\0".join((policy.source, split, policy.table, *policy.columns))
        self._start = hashlib.sha256(key.encode()).hexdigest()[:16]
        #: Stands for positions in names of files, with the number of a message.
        self._reader = secrets.token_hex(6)
        self._number = 0
        #: Digests of what earlier readers have written; None: not looked for yet.
        self._before: set[bytes] | None = None
        make_folder(policy.table, folder)

    def write(self, arrived: Arrived, bad: Sequence[_Bad], count: int) -> None:
        """One file, without the letters that an earlier reader wrote already; they are safe when this returns.

        Args:
            bad: those that cannot be read, in order.
            count: of all messages.

        Raises:
            ConnectorError: it cannot be written.
        """
        first, self._number = self._number, self._number + count
        if not bad:
            return
        now = datetime.datetime.fromtimestamp(self._clock.now_ms() / 1000, datetime.UTC)
        letters = [self._letter(arrived, one, _time(now)) for one in bad]
        names = [f"{self._reader}-{first + one.index}" for one in bad]
        if arrived.positions is not None:
            before = self._written_before()
            letters = [letter for letter in letters if _digest(_identity(letter)) not in before]
            # The same letters in a file of the same name, where two jobs read the same messages.
            names = [_digest(_identity(letter)).hex() for letter in letters]
        if letters:
            name = hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
            target = Path(self._folder) / f"{self._start}-{name}.jsonl"
            write_letters(self._policy.table, self._folder, target, letters)

    def _letter(self, arrived: Arrived, bad: _Bad, now: str) -> dict[str, Any]:
        positions, raw, index = arrived.positions, bad.raw, bad.index
        told = {
            key: _text(arrived.metadata[key][index], type_)
            for key, type_ in self._policy.metadata.items()
            # Headers and parameters of requests may hold secrets.
            if key in arrived.metadata and not isinstance(type_, MapType)
        }
        return {
            "row_bytes": None if raw is None else base64.b64encode(raw).decode(),
            "error": bad.error,
            "source": self._policy.source,
            "source_position": None if positions is None else orjson.dumps(positions[index]).decode(),
            "source_metadata": {key: text for key, text in told.items() if text is not None},
            "received_at": now,
            "table_name": self._policy.table,
        }

    def _written_before(self) -> set[bytes]:
        if self._before is None:
            files = Path(self._folder).glob(f"{self._start}-*.jsonl")
            self._before = {_digest(_identity(letter)) for file in files for letter in read_letters(file)}
        return self._before


def _identity(letter: Mapping[str, Any]) -> _Identity:
    return letter["source_position"], letter["row_bytes"]


def _digest(identity: _Identity) -> bytes:
    return hashlib.sha256(orjson.dumps(identity)).digest()[:16]


def _text(value: Any, type_: LogicalType) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(type_, TimestampLtzType):
        return _time(datetime.datetime.fromtimestamp(value / 1000, datetime.UTC))
    return str(value)


def _time(moment: datetime.datetime) -> str:
    """As json tables read a TIMESTAMP_LTZ."""
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
