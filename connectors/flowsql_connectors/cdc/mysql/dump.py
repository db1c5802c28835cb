"""The connection over which a server sends its log, as it does to a replica.

Source: MySQL internals, ``COM_BINLOG_DUMP``, ``COM_BINLOG_DUMP_GTID``; MariaDB Knowledge Base, "Replica Registration".
"""

from __future__ import annotations

import random
import struct
import threading
import time
from typing import Any, Final

import numpy as np

from flowsql_compute.kernels.wire.mysql_rows import ENDED, HUGE, REFUSED, START, STOP, TIME, TYPE, scan_events
from flowsql_connectors.cdc.log import Int64s
from flowsql_connectors.cdc.mysql.gtid import GtidSet
from flowsql_connectors.cdc.mysql.packets import Packets
from flowsql_connectors.cdc.mysql.position import Position
from flowsql_connectors.cdc.mysql.server import Server
from flowsql_connectors.jdbc.mysql import client, said
from flowsql_core.errors import ConnectorError

_DUMP, _DUMP_GTID = 0x12, 0x1E
#: The log is asked for by global transaction ids.
_THROUGH_GTID: Final = 4
_DO_NOT_WAIT: Final = 1
_EVENTS: Final = 8192
#: Bytes of the log that are decoded at once.
_MOST_BYTES: Final = 1 << 19
_HEADER: Final = 20
_PATIENCE_S: Final = 3600
#: Numbers of errors.
_ACCESS, _USER_ACCESS, _SHUTDOWN = 1227, 1045, 1053


class ServerIds:
    """Numbers under which this process reads logs: each by one connection at a time.

    Args:
        first, last: of ``server-id``; None: any.
    """

    _lock = threading.Condition()
    _used: Final[set[tuple[str, int]]] = set()

    def __init__(self, first: int | None = None, last: int | None = None) -> None:
        self._range = None if first is None else range(first, (last or first) + 1)

    def take(self, shown: str, timeout_s: float) -> int:
        """A number that no other connection of this process uses.

        Raises:
            ConnectorError: all of them are used.
        """
        ends = time.monotonic() + timeout_s
        with self._lock:
            while True:
                # What a replica has is seldom a large number.
                wanted = self._range or [random.randrange(1 << 20, 1 << 31)]
                for number in wanted:
                    if (shown, number) not in self._used:
                        self._used.add((shown, number))
                        return number
                if not self._lock.wait(max(0.0, ends - time.monotonic())):
                    raise ConnectorError(
                        "mysql-cdc-server-id",
                        f"All numbers of 'server-id' are used by other scans of this job that read {shown}.",
                        hint="a range, e.g. '5400-5410', has one for each",
                        retryable=True,
                    )

    def give_back(self, shown: str, number: int) -> None:
        """The connection ended."""
        with self._lock:
            self._used.discard((shown, number))
            self._lock.notify_all()


class Dump:
    """A server's log from a position on.

    Args:
        heartbeat_ms: how often a server tells that nothing happened; 0: never.
        waits: False: the log ends where it ends now.

    Raises:
        ConnectorError: no connection; the log may not be read, or not from there.
    """

    def __init__(
        self, server: Server, ids: ServerIds, position: Position, heartbeat_ms: int, *, waits: bool = True
    ) -> None:
        self._server = server
        self._ids = ids
        self._position = position
        self._heartbeat_ms = heartbeat_ms
        self.server_id = ids.take(server.shown, server.login.timeout_ms / 1000)
        self._packets: Packets | None = None
        try:
            connection = client(server.login)
            self._packets = Packets(connection, server.shown)
            with said(server.shown):
                self._ask(connection, waits)
        except BaseException:
            self.close()
            raise
        self.trailer = 0 if server.variables.get("binlog_checksum", "NONE").upper() == "NONE" else 4
        self._consumed = np.zeros(1, np.int64)
        self._heard = time.monotonic()
        #: Bytes behind those that were handed over last.
        self._done = 0

    def _ask(self, connection: Any, waits: bool) -> None:
        server, position = self._server, self._position
        checksum = server.variables.get("binlog_checksum", "NONE")
        settings = {"binlog_checksum": f"'{checksum}'", "heartbeat_period": str(self._heartbeat_ms * 1_000_000)}
        with connection.cursor() as cursor:
            for name, value in settings.items():
                cursor.execute(f"SET @master_{name} = {value}, @source_{name} = {value}")
            # A query that is slower than the log holds its reading up; the server would end it after a minute.
            cursor.execute(f"SET SESSION net_write_timeout = {_PATIENCE_S}")
            if server.is_mariadb:
                # Global transaction ids are told from this ability on.
                cursor.execute("SET @mariadb_slave_capability = 4")
                if not position.file and position.last:
                    cursor.execute("SET @slave_connect_state = %s, @slave_gtid_strict_mode = 0", (position.last,))
        flags = 0 if waits else _DO_NOT_WAIT
        if server.has_gtids and position.gtids is not None:
            known = GtidSet(position.gtids).encoded()
            body = (
                struct.pack("<HII", flags | _THROUGH_GTID, self.server_id, 0)
                + struct.pack("<QI", 4, len(known))
                + known
            )
            connection._execute_command(_DUMP_GTID, body)
        else:
            body = struct.pack("<IHI", position.place, flags, self.server_id) + position.file.encode()
            connection._execute_command(_DUMP, body)

    def read(self, timeout_s: float) -> tuple[Any, Int64s] | None:
        """Data, uint8 (n,), and the places of events in it, (events, 6); None: nothing came, or the log ended.

        What was read before is not valid any more.

        Raises:
            ConnectorError: the connection is lost; the server refused.
        """
        packets = self._packets
        assert packets is not None
        packets.consume(self._done)
        self._done = 0
        found = self._scan(packets)
        if found is None:
            if not packets.receive(timeout_s, _MOST_BYTES):
                self._check_silence()
                return None
            self._heard = time.monotonic()
            found = self._scan(packets)
        return found

    def _scan(self, packets: Packets) -> tuple[Any, Int64s] | None:
        data = packets.data
        events = np.empty((min(_EVENTS, len(data) // _HEADER + 1), 6), np.int64)
        count = scan_events(data, len(data), self.trailer, events, self._consumed)
        last = int(events[count - 1, TYPE]) if count else 0
        if last == HUGE:
            if count > 1:
                self._done = int(self._consumed[0])
                return data, events[: count - 1]
            return self._huge(packets)
        if last in (ENDED, REFUSED):
            if count == 1:
                self._refused(data[events[0, START] : events[0, STOP]].tobytes())
                return None
            # What came before is handed over first.
            count -= 1
            self._done = int(events[count, START]) - 4
        else:
            self._done = int(self._consumed[0])
        return (data, events[:count]) if count else None

    def _huge(self, packets: Packets) -> tuple[Any, Int64s] | None:
        """An event that takes several packets."""
        payload = packets.payload()
        if payload is None:
            return None
        kind, size, following = payload[5], *struct.unpack_from("<II", payload, 10)
        seconds = struct.unpack_from("<I", payload, 1)[0]
        places = [[kind, seconds, size, following, _HEADER, len(payload) - self.trailer]]
        return np.frombuffer(payload, np.uint8), np.array(places, np.int64)

    def _refused(self, packet: bytes) -> None:
        assert self._packets is not None
        if packet[:1] != b"\xff":
            raise ConnectorError(
                "mysql-cdc-connection",
                f"{self._server.shown} ended the reading of its log as server {self.server_id}.",
                hint="it does so when it stops, and when another reader or replica comes with the same 'server-id'",
                retryable=True,
            )
        raise refusal(*self._packets.refusal(packet), self._server, self._position, self.server_id)

    def _check_silence(self) -> None:
        limit_s = (2 * self._heartbeat_ms + self._server.login.timeout_ms) / 1000
        if self._heartbeat_ms and time.monotonic() - self._heard > limit_s:
            raise ConnectorError(
                "mysql-cdc-connection",
                f"{self._server.shown} has said nothing for {limit_s:.0f} s, not even that nothing happened.",
                retryable=True,
            )

    def close(self) -> None:
        """End the connection."""
        if self._packets is not None:
            self._packets.close()
            self._packets = None
        self._ids.give_back(self._server.shown, self.server_id)


def refusal(number: int, text: str, server: Server, position: Position, server_id: int) -> ConnectorError:
    """Why a server does not send its log, in one sentence."""
    lower = text.lower()
    if number in (_ACCESS, _USER_ACCESS):
        return server.lacks("REPLICATION SLAVE", ConnectorError("database", text))
    if "same server" in lower:
        return ConnectorError(
            "mysql-cdc-server-id",
            f"Another reader or replica of {server.shown} has the server id {server_id}.",
            hint="give each scan a 'server-id' of its own, or none",
        )
    purged = (
        "could not find first log",
        "purged",
        "not found in binlog",
        "impossible position",
        "past the end",
        "> file size",
    )
    if any(part in lower for part in purged):
        return ConnectorError(
            "mysql-cdc-purged",
            f"{server.shown} has no log at {position.shown} any more: {text}.",
            hint="the server removed it, or is another one; a job that begins anew reads the tables as they are now",
        )
    passing = number == _SHUTDOWN or "shutdown" in lower
    return ConnectorError(
        "mysql-cdc-log", f"{server.shown} does not send its log from {position.shown} on: {text}.", retryable=passing
    )


def first_second(server: Server, ids: ServerIds, file: str) -> int:
    """When a file of the log was begun, seconds since 1970."""
    dump = Dump(server, ids, Position(file, 4), 0, waits=False)
    try:
        while (found := dump.read(server.login.timeout_ms / 1000)) is not None:
            seconds = found[1][:, TIME]
            if seconds.any():
                return int(seconds[seconds > 0][0])
    finally:
        dump.close()
    return 0
