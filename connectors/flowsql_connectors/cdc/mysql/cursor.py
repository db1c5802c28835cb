"""Where reading stands in the log, transaction by transaction."""

from __future__ import annotations

import uuid
from typing import Any

from flowsql_connectors.cdc.log import Json, Transaction
from flowsql_connectors.cdc.mysql.gtid import GtidSet
from flowsql_connectors.cdc.mysql.position import Position, file_number


class Cursor:
    """Moves along the log: to where a transaction begins, and behind its end.

    Args:
        begin: where reading begins.
        has_gtids: the server is MySQL that numbers all transactions.
    """

    def __init__(self, begin: Position, has_gtids: bool) -> None:
        self.file = begin.file
        self._number = file_number(begin.file)
        self.place = begin.place
        self._begin = begin
        #: What was given as the beginning, as long as no transaction came.
        self._given: Json = begin.to_json()
        self._done = GtidSet(begin.gtids or "") if has_gtids else None
        #: The id of the transaction that is being read, as its event has it, with the number of its server.
        self._id: tuple[bytes, int] | None = None
        self._last: tuple[bytes, int] | None = None

    def begin(self, place: int, id_: bytes, server: int) -> None:
        """A transaction begins.

        Args:
            id_: the body of the event that names it; empty: it has no name.
        """
        self.place = place
        self._id = (id_, server) if id_ else None

    def end(self, place: int) -> None:
        """The transaction is complete."""
        if self._id is not None:
            if self._done is not None:
                self._done.add(*_gtid(self._id[0]))
            else:
                self._last = self._id
        self.place, self._id, self._given = place, None, None

    def idle(self, place: int) -> None:
        """Nothing happens, and the log stands there."""
        if place > self.place:
            self.place, self._given = place, None

    def rotate(self, file: str, place: int, within: bool) -> None:
        """The log goes on in a file.

        Args:
            within: in the middle of a transaction; it stands where it begins.
        """
        if file != self.file and not within:
            if not self.file:
                # By global transaction ids: the server says where their place is.
                self._given = None
            self.place = place
        self.file = file
        self._number = file_number(file)

    def transaction(self) -> Transaction:
        """The transaction that begins here; the first one stands where reading began, whatever lies between."""
        named = None if self._id is None or self._done is None else _gtid(self._id[0])
        position, self._given = self._given or self._here(), None
        return Transaction(position, ((self._number, self.place), named))

    def position(self) -> Json:
        """Where reading goes on between two transactions."""
        if self._given is not None:
            return self._given
        here = self._here()
        if self._last is not None:
            body, server = self._last
            number, domain = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:12], "little")
            here["last"] = f"{domain}-{server}-{number}"
        return here

    def _here(self) -> dict[str, Any]:
        made: dict[str, Any] = {"file": self.file, "place": self.place}
        if self._done is not None:
            made["gtids"] = str(self._done)
        if self._begin.since_s:
            made["since_s"] = self._begin.since_s
        return made


def _gtid(body: bytes) -> tuple[str, int]:
    """Source and number of an event of MySQL."""
    return str(uuid.UUID(bytes=body[1:17])), int.from_bytes(body[17:25], "little")
