"""What a table does with rows that cannot be read: ``on-error`` = fail, skip or dead-letter.

Rows are decoded strictly, a range at a time. Only where that fails are the range's rows halved until the bad ones
stand alone; they are counted (``numRecordsInErrors``) and, with ``dead-letter``, written to a folder as JSON lines that
a json table reads: ``LETTER_COLUMNS``. The planner finds the folder of a table that is named instead.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from flowsql_connectors.bad_row_options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE, ON_ERROR, letter_folder
from flowsql_connectors.dead_letters import make_folder, write_letters
from flowsql_connectors.formats.format import Columns, Decoder, FileView, Range
from flowsql_connectors.formats.rows_in_bytes import read_rows
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.counters import ROWS_SKIPPED, Lose
from flowsql_core.errors import BindError, ExecutionError, NotSupportedYetError
from flowsql_core.record import record
from flowsql_core.types.logical import BIGINT, BYTES, STRING, Column

#: Formats whose rows can be told apart although one of them is bad.
_TEXT_FORMATS: Final = ("csv", "json", "raw", "debezium-json", "canal-json", "maxwell-json", "ogg-json")
#: What a letter holds, as a json table declares it.
LETTER_COLUMNS: Final = (
    Column("row_bytes", BYTES),
    Column("error", STRING),
    Column("file_path", STRING),
    Column("file_position", BIGINT),
    Column("table_name", STRING),
)
#: A name of no codec: the bytes are read as they are, from the first to the last.
_PLAIN: Final = "plain"


@record
class BadRowPolicy:
    """What is done with bad rows of one table; ``folder`` None only counts them. ``header``: files have a head line.

    ``columns``: those that a scan reads. A row is bad by them alone: scans of other columns write letters of their own.
    """

    table: str
    folder: str | None
    header: bool
    columns: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Make the folder: a table over it can be read before there is a bad row.

        Raises:
            ConnectorError: it cannot be made.
        """
        if self.folder is not None:
            make_folder(self.table, self.folder)


def bad_row_policy(
    table: str, values: OptionValues, format_name: str, header: bool, columns: tuple[str, ...]
) -> BadRowPolicy | None:
    """The policy of a table's options for a scan of ``columns``; None for ``fail``.

    Raises:
        BindError: a folder is missing, or given although nothing is written there.
        NotSupportedYetError: a format without rows that could be bad one by one.
    """
    action, folder = values.get(ON_ERROR), values.get(DEAD_LETTER_PATH)
    for given in (DEAD_LETTER_PATH, DEAD_LETTER_TABLE):
        if action != "dead-letter" and values.get(given) is not None:
            raise BindError("bad-row-options", f"'{given.key}' needs '{ON_ERROR.key}' = 'dead-letter'.")
    if action == "fail":
        return None
    if format_name not in _TEXT_FORMATS:
        raise NotSupportedYetError(f"'{ON_ERROR.key}' = '{action}' with format '{format_name}'")
    if action == "dead-letter" and not folder:
        raise BindError(
            "bad-row-options",
            f"One or more required options are missing.\nMissing required options are: {DEAD_LETTER_PATH.key}",
            hint=f"'{ON_ERROR.key}' = 'dead-letter' writes bad rows to that folder, or names '{DEAD_LETTER_TABLE.key}'",
        )
    return BadRowPolicy(table, letter_folder(values), header, columns)


class RowBorders(Protocol):
    """Where rows begin in the bytes of a text format."""

    def row_start(self, window: bytes, /) -> int | None:
        """Offset of the first row start in a piece of a file, behind its first byte."""
        ...

    def whole_rows(self, data: bytes, /) -> int:
        """Length of the whole rows at the start of bytes that begin at a row's start."""
        ...


class TolerantDecoder(Decoder):
    """A decoder that leaves bad rows out and accounts for them. The same rows come at every call."""

    def __init__(self, strict: Decoder, borders: RowBorders, policy: BadRowPolicy, lose: Lose) -> None:
        self._strict = strict
        self._borders = borders
        self._policy = policy
        self._lose = lose

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The good rows of one range."""
        try:
            # Kept until the range is through: what a failing range gave must not come twice.
            found = list(self._strict.read(file, part))
        except ExecutionError:
            found = []
        else:
            if self._policy.folder is not None:
                _forget_letters(self._policy, self._policy.folder, file.path, part)
            yield from found
            return
        letters: list[_Letter] = []
        for position, data in read_rows(file, part, self._borders.row_start, self._borders.whole_rows):
            yield from self._halved(position, data, letters)
        if letters:
            name, first = file.path.rpartition("/")[2], letters[0].position
            self._lose(ROWS_SKIPPED, len(letters), lambda: f"{name}, byte {first}")
            if self._policy.folder is not None:
                _write_letters(self._policy, self._policy.folder, file.path, part, letters)

    def _halved(self, position: int, data: bytes, letters: list[_Letter]) -> Iterator[Columns]:
        """Good rows of whole rows in memory. A stack, not recursion: order is that of the file."""
        left = [(position, data)]
        while left:
            at, piece = left.pop()
            try:
                found = self._decode(at, piece)
            except ExecutionError as error:
                middle = self._border_near_the_middle(piece)
                if middle is None:
                    # A row that swallows what follows (a quote that never ends) costs its first line alone.
                    middle = piece.find(b"\n") + 1 or len(piece)
                    letters.append(_Letter(at, piece[:middle], error.message.partition("\n")[0]))
                    if middle < len(piece):
                        left.append((at + middle, piece[middle:]))
                    continue
                left.append((at + middle, piece[middle:]))
                left.append((at, piece[:middle]))
            else:
                yield from found

    def _decode(self, position: int, piece: bytes) -> list[Columns]:
        # Decoders skip the head at the start of a file.
        head = b"-\n" if self._policy.header and position else b""
        with tempfile.NamedTemporaryFile(prefix="flowsql-rows-") as scratch:
            scratch.write(head + piece)
            scratch.flush()
            size = len(head) + len(piece)
            return list(self._strict.read(FileView(scratch.name, size, _PLAIN), Range(0, size)))

    def _border_near_the_middle(self, piece: bytes) -> int | None:
        """A row's start inside, near the middle; None when this is one row."""
        middle = self._borders.whole_rows(piece[: len(piece) // 2])
        if middle:
            return middle
        at = piece.find(b"\n", len(piece) // 2)
        while 0 <= at < len(piece) - 1:
            if middle := self._borders.whole_rows(piece[: at + 1]):
                return middle if middle < len(piece) else None
            at = piece.find(b"\n", at + 1)
        return None


@record
class _Letter:
    """A bad row: where it begins in its (decompressed) file, its bytes, and why it was not read."""

    position: int
    raw: bytes
    error: str


def _write_letters(policy: BadRowPolicy, folder: str, path: str, part: Range, letters: list[_Letter]) -> None:
    """One file a range, named after it: a range that is read again after a failure replaces its own letters."""
    told = [
        {
            "row_bytes": base64.b64encode(letter.raw).decode(),
            "error": letter.error,
            "file_path": path,
            "file_position": letter.position,
            "table_name": policy.table,
        }
        for letter in letters
    ]
    write_letters(policy.table, folder, _letter_file(policy, folder, path, part), told)


def _letter_file(policy: BadRowPolicy, folder: str, path: str, part: Range) -> Path:
    key = "\0".join((path, policy.table, *policy.columns))
    return Path(folder) / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}-{part.start}-{part.stop}.jsonl"


def _forget_letters(policy: BadRowPolicy, folder: str, path: str, part: Range) -> None:
    """A range without bad rows has no letters, whatever was found there before."""
    with contextlib.suppress(OSError):
        _letter_file(policy, folder, path, part).unlink()
