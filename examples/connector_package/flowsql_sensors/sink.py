"""A sink: rows as lines of JSON at the end of a file."""

import json

import pyarrow as pa

from flowsql.connectors import BatchSink, ConnectorOption, DeclaredTable, OptionSet

PATH = ConnectorOption("path", str, "", "The file.")


class JsonLines(BatchSink):
    """Lines are in the file once a checkpoint has completed, or the input has ended."""

    options = OptionSet(required=(PATH,))

    def __init__(self, table: DeclaredTable) -> None:
        super().__init__(table)
        self._waiting: list[pa.RecordBatch] = []

    def write(self, rows: pa.RecordBatch, kinds: pa.StringArray | None) -> None:
        """Keep the rows; there are only inserts, as ``takes_changes`` is False."""
        self._waiting.append(rows)

    def flush(self) -> None:
        """Write what is kept."""
        with open(self.table.option(PATH), "a", encoding="utf-8") as file:
            for rows in self._waiting:
                file.writelines(json.dumps(row, default=str) + "\n" for row in rows.to_pylist())
        self._waiting.clear()
