"""How far a source of changes has read: the one split of its scan."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as default
from typing import Final

import orjson

from flowsql_connectors.cdc.log import Json, Place
from flowsql_connectors.spi.source import Split
from flowsql_core.record import record

SPLIT_ID: Final = "changes"


@dataclass(slots=True)
class TableState:
    """Chunks of a table: cut at ``bounds``, all of them where it is ``complete``; ``marks`` of those that were read."""

    bounds: list[Json] = default(default_factory=list)
    complete: bool = False
    marks: dict[int, Json] = default(default_factory=dict)


@record
class Rest:
    """Rows of a chunk that were read and not polled yet, as an Arrow stream with one batch. They are not read again:
    the chunk would have others by then."""

    table: str
    number: int
    num_rows: int
    rows: bytes


@dataclass(slots=True)
class ScanState:
    """``tables``: by id; None: nothing was read, not even which there are. ``start``: where the log is read from once
    all chunks are; None: there is no log to be read. ``place``: where the log goes on; None: not begun. ``durable``:
    positions of the last complete checkpoints that the log was not told: jobs that end after each few of them tell it
    together."""

    tables: dict[str, TableState] | None = None
    start: Json = None
    place: Place | None = None
    rest: Rest | None = None
    durable: list[Json] = default(default_factory=list)

    def encode(self) -> Split:
        """The state as a split."""
        tables = None
        if self.tables is not None:
            tables = {
                id_: [table.bounds, table.complete, [[number, mark] for number, mark in table.marks.items()]]
                for id_, table in self.tables.items()
            }
        place = None if self.place is None else [self.place.position, self.place.done]
        rest = None
        if self.rest is not None:
            rest = [self.rest.table, self.rest.number, self.rest.num_rows, base64.b64encode(self.rest.rows).decode()]
        data = {"tables": tables, "start": self.start, "place": place, "rest": rest, "durable": self.durable}
        return Split(SPLIT_ID, orjson.dumps(data))

    @staticmethod
    def decode(split: Split) -> ScanState:
        """The state behind a split."""
        data: Mapping[str, Json] = orjson.loads(split.data)
        tables = data["tables"]
        if tables is not None:
            tables = {id_: TableState(one[0], one[1], dict(one[2])) for id_, one in tables.items()}
        place, rest = data["place"], data["rest"]
        return ScanState(
            tables,
            data["start"],
            None if place is None else Place(*place),
            None if rest is None else Rest(rest[0], rest[1], rest[2], base64.b64decode(rest[3])),
            # Savepoints of earlier versions have none.
            data.get("durable", []),
        )
