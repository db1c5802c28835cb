"""A catalog: each room of a house is a table, which nobody needs to declare."""

from collections.abc import Mapping

from flowsql.connectors import ListedTable, OptionSet, TableCatalog
from flowsql_sensors.source import READINGS, ROOMS


class House(TableCatalog):
    """CREATE CATALOG house WITH ('type' = 'sensors', 'rooms' = 'hall;kitchen')."""

    options = OptionSet(required=(ROOMS,), optional=(READINGS,))
    default_database = "rooms"

    def tables(self, database: str) -> Mapping[str, ListedTable]:
        """A table a room."""
        columns = {"room": "STRING", "celsius": "DOUBLE", "ts": "TIMESTAMP(3)"}
        # As they are declared: references to secrets stay references.
        kept = {key: text for key, text in self.given.declared.items() if key == READINGS.key}
        return {
            room: ListedTable(columns, {"connector": "sensors", "rooms": room, **kept})
            for room in self.given.value(ROOMS)
        }
