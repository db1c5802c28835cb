"""A source: temperatures of some rooms, one reading a minute."""

import datetime
import math
from collections.abc import Iterator, Sequence
from typing import Any

from flowsql.connectors import At, ConnectorOption, OptionSet, RowSource

READINGS = ConnectorOption("readings", int, 60, "Readings of each room.")
ROOMS = ConnectorOption("rooms", lambda text: text.split(";"), [], "Names of rooms, with ';' between them.")
START = datetime.datetime(2026, 1, 1)


class Sensors(RowSource):
    """Rows (room STRING, celsius DOUBLE, ts TIMESTAMP(3)), or some of these columns."""

    options = OptionSet(required=(ROOMS,), optional=(READINGS,))

    def splits(self) -> Sequence[str]:
        """The rooms: subtasks read them side by side, and each has a watermark of its own."""
        return self.table.option(ROOMS)

    def read(self, split: str, position: Any) -> Iterator[At]:
        """Readings of a room, from the one behind ``position`` on."""
        for number in range(position or 0, self.table.option(READINGS)):
            row = {
                "room": split,
                "celsius": round(20 + 3 * math.sin(number / 10), 2),
                "ts": START + datetime.timedelta(minutes=number),
            }
            # A checkpoint keeps the position behind the last row that was taken.
            yield At({name: row[name] for name in self.table.columns}, position=number + 1)
