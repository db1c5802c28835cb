"""Servers inside of jobs: what strangers, slow senders and cut requests may do to them (``webhook``, ``sse``)."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import resource
import socket
import time
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from .test_sse import served
from .test_webhook import BEARER, CHECKPOINTS, Listening, listening, post, table

ROW = b'{"id": 1, "x": "a"}'
GZIP = {**BEARER, "Content-Encoding": "gzip"}
CHUNKED = b"POST /in HTTP/1.1\r\nAuthorization: Bearer geheim\r\nTransfer-Encoding: chunked\r\n\r\n"


def raw(one: Listening, request: bytes, cut: bool = False) -> bytes:
    """The status line of what a server answers to bytes; ``cut``: nothing more comes."""
    url = urlsplit(one.url)
    with socket.create_connection((url.hostname, url.port), timeout=20) as connection:
        connection.sendall(request)
        if cut:
            connection.shutdown(socket.SHUT_WR)
        return connection.recv(4096).partition(b"\r\n")[0]


def head(*lines: str, length: int | None = None) -> bytes:
    made = ["POST /in HTTP/1.1", "Authorization: Bearer geheim", *lines]
    if length is not None:
        made.append(f"Content-Length: {length}")
    return "\r\n".join([*made, "", ""]).encode()


def gzipped(*rows: bytes) -> bytes:
    return b"".join(gzip.compress(row) for row in rows)


def test_every_member_of_a_gzip_body_counts(caplog: Any) -> None:
    lines = {**GZIP, "Content-Type": "application/x-ndjson"}
    with listening(table(), caplog) as one:
        assert post(one.url, gzipped(b'{"id": 1}\n', b'{"id": 2}\n', b"", b'{"id": 3}'), lines)[0] == 202
        # A row whose bytes are in two members, and zeros as padding.
        assert post(one.url, gzipped(b'{"id"', b": 4}") + b"\0" * 12, GZIP)[0] == 202
        assert post(one.url, zlib.compress(b'{"id": 5}'), {**BEARER, "Content-Encoding": "deflate"})[0] == 202
        assert post(one.url, gzipped(b'{"id": 6}'), {**BEARER, "Content-Encoding": "X-GZip"})[0] == 202
        assert post(one.url, b'{"id": 7}', {**BEARER, "Content-Encoding": "identity"})[0] == 202
        assert [row[0] for row in one.read(7)] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_body_that_is_cut_anywhere_is_refused(caplog: Any, encoding: str) -> None:
    whole = gzipped(ROW) if encoding == "gzip" else zlib.compress(ROW)
    headers = {**BEARER, "Content-Encoding": encoding}
    with listening(table(), caplog) as one:
        for length in range(1, len(whole)):
            assert post(one.url, whole[:length], headers)[0] == 400, length
        # A checksum that is wrong, and something behind the end.
        assert post(one.url, whole[:-1] + bytes([whole[-1] ^ 1]), headers)[0] == 400
        assert post(one.url, whole + b"x", headers)[0] == 400
        if encoding == "gzip":
            second = gzipped(ROW, ROW)
            for length in range(len(whole) + 1, len(second)):
                assert post(one.url, second[:length], headers)[0] == 400, length
        assert post(one.url, whole, headers)[0] == 202
        assert one.read(1) == [[1, "a"]]


def test_bodies_are_bounded_when_they_are_unpacked(caplog: Any) -> None:
    with listening(table(request__max_size="1000 b"), caplog) as one:
        for body in (gzipped(b"x" * 10_000_000)[:900], gzipped(*[b"x" * 300] * 4), gzipped(b"x" * 1001)):
            assert post(one.url, body, GZIP)[0] == 413
        assert post(one.url, zlib.compress(b"x" * 5000), {**BEARER, "Content-Encoding": "deflate"})[0] == 413
        padded = ROW + b" " * (1000 - len(ROW))
        assert post(one.url, gzipped(padded[:500], padded[500:]), GZIP)[0] == 202
        chunk = b"3e8\r\n" + padded + b"\r\n"
        assert raw(one, CHUNKED + chunk + b"0\r\n\r\n") == b"HTTP/1.1 202 Accepted"
        assert b" 413 " in raw(one, CHUNKED + chunk + b"1\r\nx\r\n0\r\n\r\n")
        assert b" 413 " in raw(one, CHUNKED + b"fffffffffffffff0\r\n")


def test_chunks(caplog: Any) -> None:
    with listening(table(), caplog) as one:
        connection = http.client.HTTPConnection(str(urlsplit(one.url).hostname), urlsplit(one.url).port, timeout=20)
        for _ in range(2):
            # The second request of one connection begins where the first one's trailer ends.
            connection.request("POST", "/in", iter([ROW[:5], ROW[5:]]), BEARER, encode_chunked=True)
            assert connection.getresponse().read() == b""
        connection.close()
        trailer = CHUNKED + b"13;name=value\r\n" + ROW + b"\r\n0\r\nX-Checksum: 1\r\n\r\n"
        assert raw(one, trailer) == b"HTTP/1.1 202 Accepted"
        assert one.read(3) == [[1, "a"]] * 3
        whole = CHUNKED + b"5\r\n" + ROW[:5] + b"\r\ne\r\n" + ROW[5:] + b"\r\n0\r\n\r\n"
        for length in range(len(CHUNKED), len(whole)):
            assert b" 400 " in raw(one, whole[:length], cut=True), whole[:length]
        for wrong in (b"x\r\n", b"\r\n", b"-1\r\n", b"2\r\n{}x\r\n0\r\n\r\n", b"0\r\n" + b"X: y\r\n" * 3000):
            assert b" 400 " in raw(one, CHUNKED + wrong), wrong


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Content-Length: 19", "Content-Length: 19"], 202),
        (["Content-Length: 19", "Content-Length: 20"], 400),
        (["Content-Length: 19", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: gzip, chunked"], 501),
        (["Content-Length: -1"], 400),
        (["Content-Length: +19"], 400),
        (["Content-Length: 1_9"], 400),
        (["Content-Length: \u00b2"], 400),
        (["Content-Length: " + "9" * 5000], 413),
        (["Content-Length: "], 400),
        ([], 411),
        (["Content-Length: 19", "Content-Encoding: br"], 415),
        (["Content-Length: 19", "Content-Encoding: gzip, gzip"], 415),
    ],
)
def test_lengths_and_encodings(caplog: Any, lines: list[str], status: int) -> None:
    with listening(table(), caplog) as one:
        assert raw(one, head(*lines).decode().encode("latin-1") + ROW).split()[1] == b"%d" % status
        assert post(one.url, ROW)[0] == 202


def test_a_body_that_breaks_off(caplog: Any) -> None:
    with listening(table(), caplog) as one:
        for length in range(len(ROW)):
            assert b" 400 " in raw(one, head(length=len(ROW)) + ROW[:length], cut=True)
        for address in ("http://[", "/in%ff", "http://[::1/in"):
            assert post_to(one, address) in (404, 202)
        assert post(one.url, ROW)[0] == 202
        assert one.read(1) == [[1, "a"]]


def post_to(one: Listening, address: str) -> int:
    request = f"POST {address} HTTP/1.1\r\nAuthorization: Bearer geheim\r\nContent-Length: 19\r\n\r\n".encode() + ROW
    return int(raw(one, request).split()[1])


@contextlib.contextmanager
def strangers(one: Any, count: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that send a part of a request, and nothing more."""
    url = urlsplit(one.url) if isinstance(one.url, str) else one.url
    made = []
    try:
        for _ in range(count):
            made.append(socket.create_connection((url.hostname, url.port), timeout=20))
            if said:
                with contextlib.suppress(OSError):
                    made[-1].sendall(said)
        yield made
    finally:
        for connection in made:
            connection.close()


@contextlib.contextmanager
def descriptors(soft: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("said", [b"", b"POST /in HTTP/1.1\r\n", head(length=100) + b"x"])
def test_idle_connections_keep_nobody_out(caplog: Any, said: bytes) -> None:
    with listening(table(connections__max="8"), caplog) as one, strangers(one, 100, said):
        for number in range(20):
            assert post(one.url, f'{{"id": {number}}}')[0] == 202
        assert [row[0] for row in one.read(20)] == list(range(20))


def test_the_job_keeps_descriptors(caplog: Any) -> None:
    # Both ends are in this process, so connections are opened while there is room for them, and then there is none.
    used = len(os.listdir("/proc/self/fd"))
    with descriptors(used + 400), listening(table(connections__max="100000"), caplog) as one, strangers(one, 200):
        time.sleep(0.2)
        with contextlib.ExitStack() as stack:
            for _ in range(40):
                stack.enter_context(open(os.devnull, "rb"))
            assert post(one.url, ROW)[0] == 202


def test_who_may_send_is_not_closed_for_strangers(caplog: Any) -> None:
    with listening(table(connections__max="2"), caplog, CHECKPOINTS) as one:
        waiting = [socket.create_connection(urlsplit(one.url).netloc.split(":")) for _ in range(2)]  # type: ignore[arg-type]
        for connection in waiting:
            connection.sendall(head(length=len(ROW)) + ROW)
        one.read(2)
        # Both wait for a checkpoint: there is no room, and whoever comes is told to come again.
        assert raw(one, b"") == b"HTTP/1.1 503 Service Unavailable"
        one.reader.positions_durable(one.reader.snapshot())
        for connection in waiting:
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        assert b" 400 " in raw(one, head(length=1) + b"{")
        for connection in waiting:
            connection.close()


def test_slow_requests_end(caplog: Any) -> None:
    with listening(table(request__timeout="300 ms"), caplog) as one:
        url = urlsplit(one.url)
        for begun, answer in ((head(length=len(ROW)), b"HTTP/1.1 408 "), (b"POST /in HTTP/1.1\r\nX: ", b"")):
            with socket.create_connection((url.hostname, url.port), timeout=20) as connection:
                connection.sendall(begun)
                began = time.monotonic()
                # A byte now and then does not make it longer.
                with contextlib.suppress(OSError):
                    for byte in ROW[:-1]:
                        connection.sendall(bytes([byte]))
                        time.sleep(0.05)
                got = b""
                with contextlib.suppress(ConnectionError):
                    got = connection.recv(1000)
                assert got.startswith(answer)
                assert time.monotonic() - began < 10
        assert post(one.url, ROW)[0] == 202
        assert one.read(1) == [[1, "a"]]


def test_readers_of_events(caplog: Any) -> None:
    with served(caplog, connections__max="4", request__timeout="300 ms") as one:
        reader = one.ask()
        with strangers(one, 50, b"GET /out HTTP/1.1\r\n"):
            other = one.ask()
            # Readers stay longer than a request may take.
            time.sleep(0.8)
            one.write([(1, "a")])
            for answer in (reader, other):
                assert json.loads(_data(answer)) == {"id": 1, "x": "a"}
        assert one.ask("/out?token=%E2%82%AC", {}).status == 401
        for answer in (reader, other):
            answer.close()


def _data(answer: http.client.HTTPResponse) -> bytes:
    while not (line := answer.readline()).startswith(b"data: "):
        assert line
    return line.removeprefix(b"data: ")
