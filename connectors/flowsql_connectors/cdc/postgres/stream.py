"""Streaming replication: the log as libpq gives it, message by message, and what the server is told of our place in it.

Source: PostgreSQL documentation, "Streaming Replication Protocol".
"""

from __future__ import annotations

import selectors
import struct
import time
from typing import Any, Final

from psycopg import pq
from psycopg.pq.abc import PGconn

from flowsql_connectors.cdc.log import ChangeStream, Json, LogBatch, Place
from flowsql_connectors.cdc.postgres.connection import refused, said
from flowsql_connectors.cdc.postgres.decode import ChangeDecoder
from flowsql_connectors.cdc.postgres.positions import lsn_text

_DATA: Final = ord("w")
_KEEPALIVE: Final = ord("k")
_RELATION: Final = ord("R")
_TRUNCATE: Final = ord("T")
#: Messages that say nothing of rows: types, origins, messages of programs.
_IGNORED: Final = frozenset(b"YOM")
_COMMIT: Final = ord("C")
#: Before a message: LSN where it begins, end of the log there, time.
_HEAD: Final = 25
_MOST_BYTES: Final = 32 * 1024 * 1024
_EPOCH_S: Final = 946_684_800
#: How often the server hears of us at least, before ``wal_sender_timeout`` (60 s where nothing is said), seconds.
_ALIVE_S: Final = 10.0


class PostgresStream(ChangeStream):
    """Reads a slot.

    Args:
        connection: of replication, on which nothing was asked yet.
        slot, publication: names.
        position: an LSN.
    """

    def __init__(
        self,
        connection: PGconn,
        shown: str,
        slot: str,
        publication: str,
        position: int,
        decoder: ChangeDecoder,
        heartbeat_ms: int,
    ) -> None:
        self._connection = connection
        self._what = f"Replication slot '{slot}' at {shown}"
        self._decoder = decoder
        self._told_every_s = min(_ALIVE_S, max(heartbeat_ms, 1) / 1000)
        self._told_at = time.monotonic()
        #: Up to here the server has sent everything, and nobody asks for what is before the second one.
        self._received = position
        self._confirmed = 0
        #: A relation, or a truncation, that belongs behind the messages that are decoded first.
        self._held: bytes | None = None
        named = publication.replace('"', '""').replace("'", "''")
        command = (
            f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(position)} '
            f"(proto_version '1', publication_names '\"{named}\"')"
        )
        result = connection.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise self._refused(result)
        connection.nonblocking = 1

    def read(self, max_rows: int, timeout_s: float) -> LogBatch | None:
        """Messages that are there, about as many as rows are wanted."""
        with said(self._what):
            self._tell(due=time.monotonic() - self._told_at >= self._told_every_s, ask=True)
            messages = self._messages(max(max_rows // 2, 1), timeout_s)
        if messages:
            batch = self._decoder.decode(messages)
            self._received = max(self._received, self._decoder.position)
            return batch
        if not self._decoder.within_transaction and self._received > self._decoder.position:
            # What was sent up to here holds nothing for us.
            self._decoder.position = self._received
            return LogBatch(Place(self._received))
        return None

    def _messages(self, most: int, timeout_s: float) -> list[memoryview]:
        """Messages of rows and transactions, without what stands before each."""
        found: list[memoryview] = []
        size = 0
        if self._held is not None:
            held, self._held = self._held, None
            self._apart(held)
        while len(found) < most and size < _MOST_BYTES:
            length, data = self._connection.get_copy_data(1)
            if length > 0:
                kind = data[0]
                if kind == _KEEPALIVE:
                    self._keepalive(bytes(data), found)
                elif kind == _DATA:
                    what = data[_HEAD]
                    if what in (_RELATION, _TRUNCATE):
                        message = bytes(data[_HEAD:])
                        if found:
                            self._held = message
                            break
                        self._apart(message)
                    elif what not in _IGNORED:
                        found.append(data[_HEAD:])
                        size += length
            elif length < 0:
                raise self._refused(self._connection.get_result())
            elif not self._wait(0 if found else timeout_s):
                break
        return found

    def _apart(self, message: bytes) -> None:
        if message[0] == _RELATION:
            self._decoder.describe(message)
        else:
            self._decoder.truncate(message)

    def _wait(self, timeout_s: float) -> bool:
        """Whether there is more to be had."""
        ready = self._ready(selectors.EVENT_READ, timeout_s)
        if ready:
            self._connection.consume_input()
        return ready

    def _ready(self, event: int, timeout_s: float) -> bool:
        """Whether there is something to be read, or room for something to be written, within a time."""
        socket = self._connection.socket
        if socket < 0:
            raise refused(self._what, "the connection was lost", None)
        with selectors.DefaultSelector() as selector:
            selector.register(socket, event)
            return bool(selector.select(timeout_s))

    def _keepalive(self, data: bytes, found: list[memoryview]) -> None:
        sent, _, wants_reply = struct.unpack_from("!QQB", data, 1)
        ended = found[-1][0] == _COMMIT if found else not self._decoder.within_transaction
        if ended:
            self._received = max(self._received, sent)
        self._tell(due=bool(wants_reply), ask=False)

    def confirm(self, position: Json) -> None:
        """The server may drop the log before."""
        self._confirmed = max(self._confirmed, int(position))
        with said(self._what):
            self._tell(due=True, ask=False)

    def stay(self) -> None:
        """Tell the server that we are still there."""
        with said(self._what):
            self._tell(due=time.monotonic() - self._told_at >= self._told_every_s, ask=False)

    def _tell(self, *, due: bool, ask: bool) -> None:
        """Where we are; ``ask``: the server shall tell where it is."""
        if not due:
            return
        self._told_at = time.monotonic()
        now_us = int((time.time() - _EPOCH_S) * 1_000_000)
        # Nothing is confirmed by 0.
        status = struct.pack(
            "!cQQQqB", b"r", max(self._received, self._confirmed), self._confirmed, self._confirmed, now_us, ask
        )
        self._connection.put_copy_data(status)
        while self._connection.flush():
            self._ready(selectors.EVENT_WRITE, 1.0)

    def _refused(self, result: Any) -> Exception:
        if result is None or result.status == pq.ExecStatus.COMMAND_OK:
            return refused(self._what, "the server ended the connection", None)
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        reason = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
        return refused(self._what, reason.decode("utf-8", "replace"), None if state is None else state.decode())

    def close(self) -> None:
        """The server sees the connection end."""
        self._connection.finish()
