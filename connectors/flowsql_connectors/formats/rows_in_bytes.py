"""Where rows begin in a text file: byte ranges become whole rows, so that readers neither lose nor repeat any.

The start of a row at or behind a position is a function of file and position alone; two neighbours that ask for the
same border get the same answer. Compressed files are read from their beginning and cut at row ends.
"""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from flowsql_connectors.file_systems.remote import RemoteFile, is_of_storage, storage_error
from flowsql_connectors.formats.format import FileView, Range
from flowsql_core.errors import ConnectorError

_WINDOW_BYTES: Final = 64 * 1024
_CHUNK_BYTES: Final = 8 * 1024 * 1024
_NEWLINE: Final = 10
#: Bytes behind a block that may be read.
_SPARE: Final = 80

#: Bytes from a position on -> offset in them at which a row starts, or None when they do not tell.
FindRowStart = Callable[[bytes], int | None]
#: Bytes that begin at a row's start -> length of the whole rows in them.
CutRows = Callable[[bytes], int]


class Block:
    """Whole rows in memory that one reader fills again and again: fresh memory costs more than what is read into it.

    ``bytes`` (uint8) is at least 80 bytes longer than the contents; those are zeros.
    """

    def __init__(self) -> None:
        self.size = 0
        self._allocate(0)

    def _allocate(self, size: int) -> None:
        self._raw = bytearray(_SPARE + size)
        self.bytes = np.frombuffer(self._raw, np.uint8)

    def _resize(self, size: int) -> None:
        if size + _SPARE > len(self._raw):
            self._allocate(size + size // 8)
        self.size = size
        self._raw[size : size + _SPARE] = bytes(_SPARE)

    def fill(self, data: bytes) -> None:
        """Copy bytes in."""
        self._resize(len(data))
        self._raw[: len(data)] = data

    def read(self, file: OpenFile, position: int, size: int) -> None:
        """Read a part of a file; shorter where the file ends."""
        self._resize(size)
        view = memoryview(self._raw)
        done = 0
        while done < size and (got := file.read_into(view[done:size], position + done)):
            done += got
        view.release()
        self._resize(done)

    def contents(self) -> bytes:
        """A copy."""
        return bytes(memoryview(self._raw)[: self.size])

    def begins_with(self, mark: bytes) -> bool:
        """Whether these are the first bytes."""
        return self._raw.startswith(mark)

    def find(self, mark: bytes, start: int) -> int:
        """Position of the first such bytes from ``start`` on; -1 if there are none."""
        return self._raw.find(mark, start, self.size)

    def ended_by_newline(self) -> int:
        """Put a newline behind a last row that has none; the size with it (the contents stay as they are)."""
        if not self.size or self._raw[self.size - 1] == _NEWLINE:
            return self.size
        self._raw[self.size] = _NEWLINE
        return self.size + 1


class OpenFile(Protocol):
    """A file whose parts are read by their positions."""

    def read(self, position: int, length: int) -> bytes:
        """So many bytes from a position on; fewer where the file ends."""
        ...

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill memory, or a part of it; 0 at the end of the file."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class _Descriptor:
    """A file of this machine."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, position: int, length: int) -> bytes:
        """By as many calls as it takes."""
        data = os.pread(self._descriptor, length, position)
        if len(data) == length:
            return data
        parts = [data]
        got = len(data)
        while got < length and parts[-1]:
            parts.append(os.pread(self._descriptor, length - got, position + got))
            got += len(parts[-1])
        return b"".join(parts)

    def read_into(self, view: memoryview, position: int) -> int:
        """By one call."""
        return os.preadv(self._descriptor, [view], position)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class _Remote:
    """A file behind a file system of Arrow: each read is one request."""

    def __init__(self, remote: RemoteFile) -> None:
        self._file = remote.random_access()
        self._uri = remote.uri

    def read(self, position: int, length: int) -> bytes:
        """By one request."""
        try:
            data: bytes = self._file.read_at(length, position)
        except Exception as error:  # file systems of users raise what they like
            raise storage_error(self._uri, error) from error
        return data

    def read_into(self, view: memoryview, position: int) -> int:
        """By one request and a copy."""
        data = self.read(position, len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Release the connection."""
        self._file.close()


def open_file(file: FileView) -> OpenFile:
    """Open a file for reading by positions; ConnectorError in Flink's words when that fails."""
    if file.remote is not None:
        return _Remote(file.remote)
    try:
        return _Descriptor(os.open(file.path, os.O_RDONLY | getattr(os, "O_BINARY", 0)))
    except OSError as error:
        raise unreadable(file.path, error) from error


def unreadable(path: str, error: OSError | None = None) -> ConnectorError:
    """The error for a file that is not there or may not be read."""
    return ConnectorError(
        "file-not-found",
        f"File {path} does not exist or the user running FlowSQL has insufficient permissions to access it.",
        hint=None if error is None or error.strerror is None else f"{error.strerror}",
    )


def read_rows(
    file: FileView, part: Range, find_row_start: FindRowStart, cut_rows: CutRows
) -> Iterator[tuple[int, bytes]]:
    """The whole rows that begin in a range: ``(position of the first byte, bytes)`` pieces in order.

    A plain file's range is one piece; of a compressed file (always one range) come pieces of some megabytes.
    """
    if file.contents is not None:
        yield 0, file.contents
        return
    if file.compression is not None:
        yield from _decompressed_rows(file, cut_rows)
        return
    opened = open_file(file)
    try:
        start = _row_start(opened, part.start, file.size, find_row_start)
        stop = _row_start(opened, part.stop, file.size, find_row_start)
        if start < stop:
            yield start, opened.read(start, stop - start)
    finally:
        opened.close()


def read_blocks(
    file: FileView, part: Range, find_row_start: FindRowStart, cut_rows: CutRows, block: Block
) -> Iterator[tuple[int, Block]]:
    """As :func:`read_rows`, each piece in the same ``block``."""
    if file.contents is not None:
        block.fill(file.contents)
        yield 0, block
        return
    if file.compression is not None:
        for position, data in _decompressed_rows(file, cut_rows):
            block.fill(data)
            yield position, block
        return
    opened = open_file(file)
    try:
        start = _row_start(opened, part.start, file.size, find_row_start)
        stop = _row_start(opened, part.stop, file.size, find_row_start)
        if start < stop:
            block.read(opened, start, stop - start)
            yield start, block
    finally:
        opened.close()


def line_start(window: bytes) -> int | None:
    """Behind the first newline: row starts of formats whose rows are lines."""
    at = window.find(b"\n")
    return None if at < 0 else at + 1


def whole_lines(data: bytes) -> int:
    """Bytes up to and with the last newline."""
    return data.rfind(b"\n") + 1


def _row_start(file: OpenFile, position: int, size: int, find: FindRowStart) -> int:
    """The first row start at or behind ``position``."""
    if position <= 0:
        return 0
    if position >= size:
        return size
    # One byte before: a newline there makes `position` itself a row start.
    window_bytes = _WINDOW_BYTES
    while True:
        window = file.read(position - 1, min(window_bytes, size - position + 1))
        at = find(window)
        if at is not None:
            return position - 1 + at
        if position - 1 + len(window) >= size:
            return size
        window_bytes *= 8


def _decompressed_rows(file: FileView, cut_rows: CutRows) -> Iterator[tuple[int, bytes]]:
    position = 0
    rest = b""
    for chunk in decompressed(file):
        data = rest + chunk
        whole = cut_rows(data)
        if whole:
            yield position, data[:whole]
            position += whole
        rest = data[whole:]
    if rest:
        yield position, rest


def rows_before(file: FileView, position: int, quote: bytes | None = None) -> int:
    """How many rows begin before a row's start; newlines between quotes begin none. Reads the file up to there."""
    rows, open_quotes, left = 0, 0, position
    pieces = decompressed(file) if position else iter(())
    for piece in pieces:
        data = np.frombuffer(piece[:left], np.uint8)
        newlines = data == _NEWLINE
        if quote is not None and quote in piece:
            quotes = np.cumsum(data == quote[0]) + open_quotes
            newlines &= quotes % 2 == 0
            open_quotes = int(quotes[-1])
        elif open_quotes % 2:
            newlines[:] = False
        rows += int(np.count_nonzero(newlines))
        left -= len(data)
        if left <= 0:
            break
    return rows


def decompressed(file: FileView) -> Iterator[bytes]:
    """The contents of a compressed file in chunks of some megabytes; ConnectorError when it is damaged."""
    try:
        match file.compression:
            case "gzip" | "bz2" | "zstd" as codec:
                with file.stream() as raw, pa.CompressedInputStream(raw, codec) as stream:
                    while chunk := stream.read(_CHUNK_BYTES):
                        yield chunk
            case "xz":
                with file.stream() as raw, lzma.open(raw) as stream:
                    while chunk := stream.read(_CHUNK_BYTES):
                        yield chunk
            case "deflate":
                yield from _inflated(file)
            case _:
                with file.stream() as stream:
                    while chunk := stream.read(_CHUNK_BYTES):
                        yield chunk
    except FileNotFoundError as error:
        raise unreadable(file.path, error) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowInvalid) as error:
        if is_of_storage(error):
            raise storage_error(file.path, error) from error
        raise ConnectorError(
            "damaged-file", f"File {file.path} cannot be decompressed as {file.compression}: {error}"
        ) from error


def _inflated(file: FileView) -> Iterator[bytes]:
    inflater: Any = zlib.decompressobj()
    with file.stream() as stream:
        while raw := stream.read(_CHUNK_BYTES // 4):
            if chunk := inflater.decompress(raw):
                yield chunk
    if tail := inflater.flush():
        yield tail
