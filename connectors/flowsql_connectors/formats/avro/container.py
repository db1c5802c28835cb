"""Object container files: a header with the schema, then blocks of records between sync markers.

Source: Apache Avro specification 1.12, "Object Container Files".
"""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.avro.schema import AvroType, parse_schema
from flowsql_connectors.formats.format import FileView, Range
from flowsql_connectors.formats.rows_in_bytes import decompressed, unreadable
from flowsql_core.errors import ConnectorError, NotSupportedYetError
from flowsql_core.record import record

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
#: Bytes of a file that are looked through at once.
_WINDOW_BYTES: Final = 64 * 1024
#: Blocks are decoded together until they have so many bytes.
_TOGETHER_BYTES: Final = 4 * 1024 * 1024
#: Java's writer makes blocks of so many bytes.
BLOCK_BYTES: Final = 64_000


@record
class Header:
    """What stands before the blocks; ``size``: its bytes, the first sync marker with them."""

    schema: AvroType
    codec: str
    sync: bytes
    size: int


@record
class Records:
    """Records behind each other; ``position``: of the first block in the file."""

    data: npt.NDArray[np.uint8]
    count: int
    position: int


class DamagedError(Exception):
    """The bytes are no container file."""


def open_container(file: FileView) -> tuple[IO[bytes], int]:
    """The file's bytes, those of a compressed file in memory; and how many."""
    import io

    if file.compression is not None:
        data = b"".join(decompressed(file))
        return io.BytesIO(data), len(data)
    if file.remote is not None:
        remote = file.random_access()
        return remote, remote.size()
    try:
        # Whoever asked for it closes it.
        stream = open(file.path, "rb")  # noqa: SIM115
    except OSError as error:
        raise unreadable(file.path, error) from error
    return stream, os.fstat(stream.fileno()).st_size


def damaged(file: FileView, reason: object) -> ConnectorError:
    """The error of a file that is no container."""
    return ConnectorError("damaged-file", f"File {file.path} is no readable avro file: {reason}")


def read_header(stream: IO[bytes]) -> Header:
    """The header of a file.

    Raises:
        DamagedError: there is none.
        ConnectorError: its schema cannot be used.
    """
    stream.seek(0)
    if stream.read(len(MAGIC)) != MAGIC:
        raise DamagedError("it does not begin with 'Obj' and 1")
    metadata: dict[str, bytes] = {}
    while count := _long(stream):
        if count < 0:
            _long(stream)
        for _ in range(abs(count)):
            name = _bytes(stream).decode("utf-8", "replace")
            metadata[name] = _bytes(stream)
    sync = _exactly(stream, SYNC_BYTES)
    if "avro.schema" not in metadata:
        raise DamagedError("its header holds no schema")
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    return Header(parse_schema(metadata["avro.schema"]), codec, sync, stream.tell())


def read_records(stream: IO[bytes], size: int, header: Header, part: Range) -> Iterator[Records]:
    """The records of the blocks whose preceding sync marker begins in a range, some blocks at a time.

    Raises:
        DamagedError: a block is not whole.
        NotSupportedYetError: blocks are compressed in a way that is not known.
    """
    unpack = decompressor(header.codec)
    at = _next_sync(stream, size, header, part.start)
    pieces: list[bytes] = []
    count = together = 0
    first = at
    while at < size and at - SYNC_BYTES < part.stop:
        stream.seek(at)
        rows = _long(stream)
        payload = unpack(_bytes(stream))
        if _exactly(stream, SYNC_BYTES) != header.sync:
            raise DamagedError(f"no sync marker stands behind the block at byte {at}")
        if not pieces:
            first = at
        at = stream.tell()
        pieces.append(payload)
        count += rows
        together += len(payload)
        if together >= _TOGETHER_BYTES:
            yield _joined(pieces, count, first)
            pieces, count, together = [], 0, 0
    if pieces:
        yield _joined(pieces, count, first)


def _joined(pieces: list[bytes], count: int, position: int) -> Records:
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return Records(np.frombuffer(data, np.uint8), count, position)


def _next_sync(stream: IO[bytes], size: int, header: Header, start: int) -> int:
    """Behind the first sync marker that begins at or behind ``start``; the file's size where there is none."""
    if start <= header.size - SYNC_BYTES:
        return header.size
    at = start
    while at < size:
        stream.seek(at)
        window = stream.read(_WINDOW_BYTES + SYNC_BYTES - 1)
        found = window.find(header.sync)
        if found >= 0:
            return at + found + SYNC_BYTES
        at += _WINDOW_BYTES
    return size


def _long(stream: IO[bytes]) -> int:
    bits = shift = 0
    while shift < 70:
        (byte,) = _exactly(stream, 1)
        bits |= (byte & 127) << shift
        if byte < 128:
            return (bits >> 1) ^ -(bits & 1)
        shift += 7
    raise DamagedError("a number has more than ten bytes")


def _bytes(stream: IO[bytes]) -> bytes:
    return _exactly(stream, _long(stream))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    if size < 0:
        raise DamagedError("a size is below zero")
    data = stream.read(size)
    if len(data) < size:
        raise DamagedError("it ends early")
    return data


def number(value: int) -> bytes:
    """A whole number in Avro's encoding."""
    bits = (value << 1) ^ (value >> 63)
    out = bytearray()
    while bits >= 128:
        out.append(bits & 127 | 128)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def header_bytes(schema: bytes, codec: str, sync: bytes) -> bytes:
    """A file's header, as Java writes it."""
    entries = {b"avro.schema": schema, b"avro.codec": codec.encode()}
    pairs = b"".join(number(len(part)) + part for entry in entries.items() for part in entry)
    return MAGIC + number(len(entries)) + pairs + number(0) + sync


def block_bytes(count: int, payload: bytes, sync: bytes) -> bytes:
    """A block of records that were compressed."""
    return number(count) + number(len(payload)) + payload + sync


def compressor(codec: str) -> Callable[[bytes], bytes]:
    """What makes a block's bytes smaller.

    Raises:
        NotSupportedYetError: the codec is not known.
    """
    found = _COMPRESS.get(codec)
    if found is None:
        raise NotSupportedYetError(f"Avro's codec '{codec}'", hint="known are " + ", ".join(CODECS))
    return found


def decompressor(codec: str) -> Callable[[bytes], bytes]:
    """What brings a block's bytes back.

    Raises:
        NotSupportedYetError: the codec is not known.
    """
    found = _DECOMPRESS.get(codec)
    if found is None:
        raise NotSupportedYetError(f"Avro's codec '{codec}'", hint="known are " + ", ".join(CODECS))

    def unpack(data: bytes) -> bytes:
        try:
            return found(data)
        except (OSError, zlib.error, lzma.LZMAError, EOFError, ValueError, pa.ArrowException) as error:
            raise DamagedError(f"a block cannot be decompressed as {codec}: {error}") from error

    return unpack


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _snappy(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


def _unsnappy(data: bytes) -> bytes:
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    found: bytes = pa.decompress(data[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(found) != int.from_bytes(data[-4:], "big"):
        raise ValueError("its checksum is another one")
    return found


def _zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def _unzstd(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        found: bytes = stream.read()
    return found


def _as_it_is(data: bytes) -> bytes:
    return data


_COMPRESS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "null": _as_it_is,
    "deflate": _deflated,
    "snappy": _snappy,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": _zstd,
}
_DECOMPRESS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "null": _as_it_is,
    "deflate": lambda data: zlib.decompress(data, wbits=-15),
    "snappy": _unsnappy,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "zstandard": _unzstd,
}
CODECS: Final = tuple(_COMPRESS)
