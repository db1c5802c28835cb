"""Bodies of HTTP requests, read whole or not at all: lengths, chunks and encodings, with a bound on what they come to.

Source: RFC 9112, sections 6 and 7 (lengths, chunks); RFC 9110, section 8.4 (encodings).
"""

from __future__ import annotations

import re
import zlib
from email.message import Message
from typing import Final, Protocol

#: Characters of a line that begins a chunk, and bytes of the trailer behind the last one.
_LONGEST_LINE: Final = 256
_LONGEST_TRAILER: Final = 8_192
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[^\r\n]*)?\r?\n")
#: What ``zlib`` calls the header of an encoding.
_WRAPPED: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
#: What a request may say, as an answer lists it.
ENCODINGS: Final = "gzip, deflate"


class BodyError(Exception):
    """A body that is not taken: the status of the answer, and what it says."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


class _Stream(Protocol):
    def read(self, count: int, /) -> bytes: ...

    def readline(self, most: int, /) -> bytes: ...


def read_body(stream: _Stream, headers: Message, most: int) -> bytes:
    """Return the bytes of a body as they were sent, at most ``most``.

    Raises:
        BodyError: its length is not given, contradicts itself or is too large, or the body breaks off.
    """
    lengths = {part.strip() for text in headers.get_all("Content-Length", []) for part in text.split(",")}
    codings = [part.strip().lower() for text in headers.get_all("Transfer-Encoding", []) for part in text.split(",")]
    if codings:
        if lengths:
            raise BodyError(400, "a request has a Content-Length or a Transfer-Encoding, not both")
        if codings != ["chunked"]:
            raise BodyError(501, "the only Transfer-Encoding is chunked")
        return _chunks(stream, most)
    if not lengths:
        raise BodyError(411, "the request needs a Content-Length")
    if len(lengths) > 1:
        raise BodyError(400, "the request has several lengths")
    (text,) = lengths
    if _LENGTH.fullmatch(text) is None:
        if text.isascii() and text.isdigit():
            raise _too_large(most)
        raise BodyError(400, "the Content-Length is no number")
    return _exactly(stream, int(text), most)


def decoded(body: bytes, headers: Message, most: int) -> bytes:
    """Return a body without its ``Content-Encoding``, at most ``most`` bytes.

    Raises:
        BodyError: the encoding is unknown, the body is damaged, cut or followed by something else, or is too large.
    """
    named = [part.strip().lower() for text in headers.get_all("Content-Encoding", []) for part in text.split(",")]
    encodings = [name for name in named if name and name != "identity"]
    if not encodings:
        return body
    if len(encodings) > 1 or encodings[0] not in _WRAPPED:
        raise BodyError(415, f"the encoding '{', '.join(encodings)}' is not known: {ENCODINGS} are")
    return _unpacked(body, encodings[0], most)


def _unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """All members of a gzip body, or the one stream of a deflate body."""
    made: list[bytes] = []
    room = most
    rest = body
    while True:
        stream = zlib.decompressobj(wbits=_WRAPPED[encoding])
        try:
            part = stream.decompress(rest, room + 1)
        except zlib.error as error:
            raise BodyError(400, f"the body is not {encoding}") from error
        if len(part) > room:
            raise _too_large(most)
        # Its checksum is read with its last byte.
        if not stream.eof:
            raise BodyError(400, f"the {encoding} body breaks off")
        made.append(part)
        room -= len(part)
        rest = stream.unused_data
        if encoding != "deflate":
            # Padding, as gzip itself passes over it.
            rest = rest.lstrip(b"\0")
        if not rest:
            return b"".join(made)
        if encoding == "deflate":
            raise BodyError(400, "something follows the deflate body")


def _chunks(stream: _Stream, most: int) -> bytes:
    made: list[bytes] = []
    room = most
    while True:
        line = stream.readline(_LONGEST_LINE)
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise BodyError(400, "a chunk of the request has no length" if line else "the request broke off")
        size = int(found[1], 16)
        if not size:
            break
        if size > room:
            raise _too_large(most)
        made.append(_exactly(stream, size, most))
        room -= size
        end = stream.readline(2)
        if end not in (b"\r\n", b"\n"):
            raise BodyError(400, "a chunk of the request is longer than it says" if end else "the request broke off")
    left = _LONGEST_TRAILER
    while (line := stream.readline(left)) not in (b"\r\n", b"\n"):
        left -= len(line)
        if not line.endswith(b"\n") or left <= 0:
            raise BodyError(400, "the request broke off" if left > 0 else "the trailer of the request is too long")
    return b"".join(made)


def _exactly(stream: _Stream, count: int, most: int) -> bytes:
    if count > most:
        raise _too_large(most)
    body = stream.read(count)
    if len(body) < count:
        raise BodyError(400, "the request broke off")
    return body


def _too_large(most: int) -> BodyError:
    return BodyError(413, f"a request has at most {most} bytes")
