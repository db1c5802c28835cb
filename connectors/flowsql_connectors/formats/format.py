"""What a file format offers: options, decoding of byte ranges or row groups, encoding of batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.file_systems.remote import RemoteFile
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.counters import Lose, lose_silently
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.expr import Expr
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_core.types.logical import LogicalType, Schema, quote_identifier

#: Bytes of a file that are copied at once.
_COPIED_BYTES: Final = 1024 * 1024


@record
class Range:
    """A part of a file: bytes ``[start, stop)`` for text (rows that begin there), row groups for columnar formats."""

    start: int
    stop: int


@record
class DecodeContext:
    """What a decoder needs besides the file."""

    #: Physical columns that stand in the file (partition columns do not), in the order of the DDL.
    columns: Schema
    #: Indexes into ``columns`` of what is wanted, in the wanted order.
    projection: tuple[int, ...]
    batch_rows: int
    configuration: Mapping[str, str]
    #: Rows that cannot be read at all are told, also where ``ignore-parse-errors`` would leave them out.
    tells_bad_rows: bool = False
    #: Metadata keys of the format; their columns follow those of the projection.
    metadata: tuple[str, ...] = ()
    #: Takes the numbers of rows and fields that are left out.
    lose: Lose = lose_silently
    #: What every wanted row fulfils, over ``columns``; a decoder may leave other rows out, and need not.
    filters: tuple[Expr, ...] = ()
    #: Decoders whose lines are not a row each say which line a row comes from: ``Columns.lines``.
    tells_lines: bool = False


@record
class FileView:
    """A file as a decoder sees it; ``compression`` is None for a plain file, ``remote`` for one of this machine.

    ``contents``: bytes in memory instead of a file; ``path`` then says in words where they come from.
    """

    path: str
    size: int
    compression: str | None = None
    contents: bytes | None = None
    remote: RemoteFile | None = None

    @property
    def origin(self) -> str:
        """Where the bytes come from, for messages: ``file /a.csv``."""
        return f"file {self.path}" if self.contents is None else self.path

    def place(self, unit: str, number: int) -> str:
        """Where a row is, for messages: ``file /a.csv, line 3``. What is in memory is a single message."""
        return f"{self.origin}, {unit} {number}" if self.contents is None else self.path

    def stream(self) -> Any:
        """An Arrow file that is read from its beginning to its end.

        Raises:
            FileNotFoundError, OSError: of a file of this machine.
            ConnectorError: of a remote one.
        """
        return pa.OSFile(self.path) if self.remote is None else self.remote.stream()

    def random_access(self) -> Any:
        """An Arrow file that reads parts by their positions; raises as :meth:`stream`."""
        return pa.OSFile(self.path) if self.remote is None else self.remote.random_access()


@record
class Columns:
    """Decoded rows: one array per projected column; ``num_rows`` counts where there is no column.

    ``kinds``: what each row does, uint8 of :mod:`flowsql_core.row`; None for insert-only rows.
    ``lines``: of formats that tell, the number of the line that each row comes from, counted from 0, ascending.
    """

    arrays: tuple[Any, ...]
    num_rows: int
    kinds: npt.NDArray[np.uint8] | None = None
    lines: npt.NDArray[np.int64] | None = None

    def slice(self, start: int, stop: int) -> Columns:
        """Rows [start, stop) as views."""
        kinds = None if self.kinds is None else self.kinds[start:stop]
        lines = None if self.lines is None else self.lines[start:stop]
        return Columns(tuple(array.slice(start, stop - start) for array in self.arrays), stop - start, kinds, lines)

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """The rows of all parts, of which there is at least one."""
        if len(parts) == 1:
            return parts[0]
        arrays = tuple(pa.concat_arrays(pieces) for pieces in zip(*(part.arrays for part in parts), strict=True))
        kinds = None
        if any(part.kinds is not None for part in parts):
            kinds = np.concatenate(
                [np.zeros(part.num_rows, np.uint8) if part.kinds is None else part.kinds for part in parts]
            )
        lines = [part.lines for part in parts if part.lines is not None]
        told = np.concatenate(lines) if len(lines) == len(parts) else None
        return Columns(arrays, sum(part.num_rows for part in parts), kinds, told)


class Decoder(ABC):
    """Reads ranges of files; one per reader, used by its fetcher thread alone."""

    @abstractmethod
    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The rows of one range in file order, the same rows at every call."""

    def range_bytes(self, file: FileView, part: Range) -> int:
        """Bytes of the file that the rows of a range were read from."""
        return part.stop - part.start

    def row_start(self, window: bytes) -> int | None:
        """Text formats: offset of the first row start behind the window's first byte, if the window tells."""
        at = window.find(b"\n")
        return None if at < 0 else at + 1

    def whole_rows(self, data: bytes) -> int:
        """Text formats: length of the whole rows at the start of bytes that begin at a row's start."""
        return data.rfind(b"\n") + 1


class PartStream(Protocol):
    """Where the bytes of one part file go."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Append bytes; a view may change when this returns."""
        ...


class PartEncoder(ABC):
    """Writes the rows of one part file."""

    @abstractmethod
    def append(self, rows: Any, start: int, stop: int) -> None:
        """Rows ``[start, stop)`` of what :meth:`FileEncoder.prepare` gave."""

    def rows_until(self, rows: Any, start: int, stop: int, size_bytes: int) -> int:
        """Behind the row of ``[start, stop)`` with which the file becomes larger than ``size_bytes``; else ``stop``.

        Formats that do not know before they encode say ``stop``.
        """
        return stop

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Size of the file so far, as well as it is known."""

    @abstractmethod
    def close(self) -> None:
        """Write what is kept back; the stream stays open."""


class FileEncoder(ABC):
    """Encodes the rows of one subtask for any number of part files: a batch at once, then cut into parts.

    Formats that take changes override :meth:`prepare_changes`, the others :meth:`prepare`.
    """

    #: Flink's BulkWriter: a part is readable only once it is closed. Else rows can be appended to a part at any time.
    bulk: ClassVar[bool] = True

    @abstractmethod
    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """A batch of insertions in the form that parts append slices of."""

    def prepare_changes(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None) -> Any:
        """A batch of changes of the format's ``changelog_mode`` in that form; ``kinds`` None: insertions."""
        return self.prepare(columns, num_rows)

    @abstractmethod
    def open_part(self, stream: PartStream) -> PartEncoder:
        """A new part file over a stream."""

    @abstractmethod
    def resume_part(self, stream: PartStream, size_bytes: int) -> PartEncoder:
        """A part file that has ``size_bytes`` already; the stream appends to them. Not for bulk formats."""

    @abstractmethod
    def merge(self, paths: Sequence[str], stream: PartStream) -> None:
        """The rows of several finished part files as one file."""


class TextEncoder(FileEncoder):
    """Encodes rows as lines."""

    bulk = False

    def head(self) -> bytes:
        """What stands before the first row of each file."""
        return b""

    def open_part(self, stream: PartStream) -> PartEncoder:
        """A part file that begins with the head."""
        head = self.head()
        return TextPart(stream, stream.write(head) if head else 0)

    def resume_part(self, stream: PartStream, size_bytes: int) -> PartEncoder:
        """Lines behind those that are there."""
        return TextPart(stream, size_bytes)

    def merge(self, paths: Sequence[str], stream: PartStream) -> None:
        """The lines of all files behind one head."""
        head = self.head()
        if head:
            stream.write(head)
        for path in paths:
            with open(path, "rb") as file:
                file.seek(len(head))
                while data := file.read(_COPIED_BYTES):
                    stream.write(data)


class TextPart(PartEncoder):
    """A part file of lines. Rows are an Arrow string array, each text with its line end."""

    def __init__(self, stream: PartStream, size_bytes: int) -> None:
        self._stream = stream
        self._size = size_bytes

    def append(self, rows: Any, start: int, stop: int) -> None:
        """The lines' bytes lie one behind the other in the array's buffer."""
        _, offsets, data = rows.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)
        first, last = int(ends[rows.offset + start]), int(ends[rows.offset + stop])
        if first < last:
            self._size += self._stream.write(memoryview(data)[first:last])

    def rows_until(self, rows: Any, start: int, stop: int, size_bytes: int) -> int:
        """Lines know their lengths."""
        ends = np.frombuffer(rows.buffers()[1], dtype=np.int32)[rows.offset + start : rows.offset + stop + 1]
        last = int(ends[0]) + size_bytes - self._size
        if int(ends[-1]) <= last:
            return stop
        return start + max(1, int(np.searchsorted(ends, last, side="right")))

    @property
    def size_bytes(self) -> int:
        """Bytes written."""
        return self._size

    def close(self) -> None:
        """Lines need no end."""


@record
class Messages:
    """Messages of a queue or log, each by itself a value of a format.

    ``values``: a binary array, NULL where a message has none. ``place``: where the message at an index is, in words.
    """

    values: Any
    place: Callable[[int], str]


class MessageDecoder(ABC):
    """Reads messages, many at once."""

    @abstractmethod
    def decode(self, messages: Messages) -> Columns:
        """The rows of all messages in order; ``lines`` are the indexes of the messages that they come from.

        There are no arrays where there are no rows.
        """


@record
class EncodeContext:
    """What an encoder of messages needs besides the columns.

    ``subject``: the name that formats with a schema registry keep the schema under unless the table gives one; Kafka's
    are ``<topic>-key`` and ``<topic>-value``.
    """

    configuration: Mapping[str, str]
    subject: str | None = None


class MessageEncoder(ABC):
    """Writes rows as messages, a row each."""

    @abstractmethod
    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """A binary array, a message a row; NULL where the format has no form of the row."""


class FileFormat(ABC):
    """A format, made from the options of a table: of files, of messages, or of both."""

    identifier: ClassVar[str]

    @property
    def changelog_mode(self) -> ChangelogMode:
        """Change kinds that rows of this format carry, read or written."""
        return INSERT_ONLY

    @property
    def grows_by_lines(self) -> bool:
        """Whether rows may be added to a file, line by line."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """What the format tells of a row beside its columns."""
        return {}

    def check(self, columns: Schema, configuration: Mapping[str, str]) -> None:
        """Called when a statement is planned, with the columns that the format has.

        Raises:
            BindError: the format cannot have them.
        """

    def ranges(self, file: FileView, target_bytes: int) -> list[Range]:
        """The parts into which a file may be cut, in order. A compressed file is one part."""
        if file.compression is not None or file.size <= target_bytes:
            return [Range(0, file.size)] if file.size else []
        return [Range(start, min(start + target_bytes, file.size)) for start in range(0, file.size, target_bytes)]

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder for a scan of files; raises NotSupportedYetError for what it cannot read.

        Raises:
            BindError: it is a format of messages alone.
        """
        raise self._not_for("files", "messages (Kafka)")

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder for the columns that stand in the files.

        Raises:
            BindError: it is a format of messages alone.
        """
        raise self._not_for("files", "messages (Kafka)")

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A decoder for messages.

        Raises:
            BindError: it is a format of files alone.
        """
        raise self._not_for("messages", "files")

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """An encoder of rows with these columns as messages.

        Raises:
            BindError: it is a format of files alone.
        """
        raise self._not_for("messages", "files")

    def _not_for(self, what: str, instead: str) -> BindError:
        return BindError("unfit-format", f"Format '{self.identifier}' is for {instead}, not for {what}.")


class FormatFactory(ABC):
    """Makes a format from options whose keys start with ``<identifier>.``."""

    @abstractmethod
    def options(self) -> OptionSet:
        """Options of the format, keys with their prefix."""

    @abstractmethod
    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format of a table."""


def wider_type_hint(path: str, column: str) -> str:
    """What helps where the types of columns were inferred and a later value has another one."""
    shown = path.replace("'", "''")
    return (
        "the type was inferred from the first rows: "
        f"CREATE TABLE t ({quote_identifier(column)} STRING) LIKE FILE '{shown}' makes the column wider"
    )


def unknown_format(identifier: str, known: list[str]) -> BindError:
    """Flink's words for a format that is not there."""
    return BindError(
        "unknown-format",
        f"Could not find any format factory for identifier '{identifier}' in the classpath.\n\n"
        "Available factory identifiers are:\n\n" + "\n".join(sorted(known)),
        hint=did_you_mean(identifier, known),
    )
