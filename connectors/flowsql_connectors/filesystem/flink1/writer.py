"""Writes csv as Flink 1 did: no quotes, one file that grows, Java's texts of values."""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO

import pyarrow as pa

from flowsql_connectors.filesystem.durable import cannot_write
from flowsql_connectors.formats.csv import CsvFormat
from flowsql_connectors.formats.csv_encode import CsvEncoder
from flowsql_connectors.formats.csv_tokens import CsvDialect
from flowsql_connectors.formats.format import TextPart
from flowsql_connectors.formats.text_output import timestamp_texts
from flowsql_connectors.spi.sink import SinkWriter
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError
from flowsql_core.types.logical import (
    STRING,
    Column,
    DecimalType,
    LogicalType,
    Schema,
    TimestampLtzType,
    TimestampType,
)


class OldFileWriter(SinkWriter):
    """Appends lines to a file.

    Lines are seen as they are written. A checkpoint keeps the size of the file: what was written after it is cut off
    when the job goes on from there, and when the job fails; without a checkpoint the file of a failed job is removed.

    Args:
        path: of the file.
        columns: of the table.
        delimiter: between fields.
        replaces: whether a file that is there is replaced.
    """

    def __init__(self, path: str, columns: Schema, delimiter: str, replaces: bool) -> None:
        self._path = path
        self._replaces = replaces
        self._types = tuple(column.type for column in columns)
        texts = tuple(Column(column.name, _written_type(column.type)) for column in columns)
        dialect = CsvDialect(delimiter, quote=None)
        self._encoder = CsvEncoder(CsvFormat(dialect, (), ";", False, False, False), texts)
        self._file: BinaryIO | None = None
        #: Bytes that the last checkpoint counts on; None: there was none.
        self._kept: int | None = None
        self._ended = False

    def write(self, batch: ChangelogBatch) -> None:
        """Append the rows of a batch."""
        if not batch.num_rows:
            return
        arrays = tuple(batch.columns[index] for index in range(len(self._types)))
        columns = tuple(_written(array, type_) for array, type_ in zip(arrays, self._types, strict=True))
        lines = self._encoder.prepare(columns, batch.num_rows)
        try:
            TextPart(self._opened(), 0).append(lines, 0, batch.num_rows)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def flush(self, end_of_input: bool) -> None:
        """Hand the lines to the operating system; an input without rows leaves an empty file."""
        self._opened().flush()
        self._ended = end_of_input

    def snapshot(self) -> bytes:
        """The file and its size."""
        file = self._opened()
        file.flush()
        os.fsync(file.fileno())
        self._kept = file.tell()
        return json.dumps({"path": self._path, "bytes": self._kept}).encode()

    def restore(self, states: list[bytes]) -> None:
        """Cut off what was written after the checkpoint, and go on behind it."""
        for position, state in enumerate(states):
            made = json.loads(state)
            path, size = str(made["path"]), int(made["bytes"])
            try:
                with open(path, "r+b") as file:
                    file.truncate(size)
            except OSError as error:
                raise cannot_write(path, error) from error
            if position == 0:
                self._path, self._kept = path, size
                self._file = open(path, "ab")  # noqa: SIM115 - closed by close()

    def close(self) -> None:
        """Close the file; after a failure nothing stays that no checkpoint counts on."""
        file, self._file = self._file, None
        if file is None:
            return
        file.close()
        if self._ended:
            return
        if self._kept is None:
            os.remove(self._path)
        else:
            os.truncate(self._path, self._kept)

    def _opened(self) -> BinaryIO:
        if self._file is None:
            try:
                os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
                self._file = open(self._path, "wb" if self._replaces else "xb")  # noqa: SIM115 - closed by close()
            except FileExistsError as error:
                raise ConnectorError(
                    "file-exists",
                    f"File or directory {self._path} already exists. Existing files and directories are not "
                    "overwritten in NO_OVERWRITE mode. Use OVERWRITE mode to overwrite existing files and directories.",
                    hint="'format.write-mode' = 'OVERWRITE' replaces it",
                ) from error
            except OSError as error:
                raise cannot_write(self._path, error) from error
        return self._file


def _written_type(type_: LogicalType) -> LogicalType:
    """The type of the column that the encoder gets."""
    return STRING if isinstance(type_, DecimalType | TimestampType | TimestampLtzType) else type_


def _written(array: Any, type_: LogicalType) -> Any:
    """The column that the encoder gets: decimals and timestamps as Java's texts."""
    match type_:
        case DecimalType():
            return pc.cast(array, pa.string())
        case TimestampType():
            texts = timestamp_texts(array, " ")
            # ``java.sql.Timestamp`` has one digit of the second's fraction at least.
            whole = pc.less_equal(pc.utf8_length(texts), len("0000-00-00 00:00:00"))
            return pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
        case TimestampLtzType():
            return timestamp_texts(array, "T")
    return array
