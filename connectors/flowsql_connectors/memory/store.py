"""The rows of a table in memory: changes are taken as they come, and put together when somebody looks."""

from __future__ import annotations

import itertools
import threading
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.row import DELETE, UPDATE_BEFORE
from flowsql_core.types.arrow import arrow_schema
from flowsql_core.types.logical import Schema

#: Changes that wait before they are put together although nobody looks.
_MANY: Final = 65_536
_PLACE: Final = "place"


class KeptRows:
    """The rows of one table; the last change of a key counts. Any thread may write and look.

    Args:
        key: places of the columns of the primary key; without one, only inserts come.
        max_rows: more are refused.
    """

    def __init__(self, name: str, schema: Schema, key: tuple[int, ...], max_rows: int) -> None:
        self.schema = schema
        self.key = key
        self._name = name
        self._max_rows = max_rows
        self._arrow = arrow_schema(schema)
        self._lock = threading.Lock()
        self._rows = self._arrow.empty_table()
        self._waiting: list[tuple[pa.RecordBatch, npt.NDArray[np.uint8] | None]] = []
        self._waiting_rows = 0

    def write(self, batch: ChangelogBatch) -> None:
        """Take changes, in their order.

        Raises:
            ConnectorError: the table would have more rows than it may.
        """
        if not batch.num_rows:
            return
        rows = pa.RecordBatch.from_arrays(list(batch.columns), schema=self._arrow)
        with self._lock:
            self._waiting.append((rows, batch.kinds))
            self._waiting_rows += batch.num_rows
            most = self._max_rows - self._rows.num_rows
            if self._waiting_rows > min(most, max(_MANY, self._rows.num_rows)):
                self._settle()

    def now(self) -> pa.Table:
        """The rows at this moment."""
        with self._lock:
            self._settle()
            return self._rows

    def _settle(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        whole = pa.concat_tables([self._rows, pa.Table.from_batches([rows for rows, _ in waiting], self._arrow)])
        self._rows = whole if not self.key else self._last_of_keys(whole, waiting)
        if self._rows.num_rows > self._max_rows:
            raise ConnectorError(
                "memory-table-full",
                f"The table '{self._name}' in memory has more than {self._max_rows:,} rows.",
                hint="'max-rows' allows more",
            )

    def _last_of_keys(
        self, whole: pa.Table, waiting: list[tuple[pa.RecordBatch, npt.NDArray[np.uint8] | None]]
    ) -> pa.Table:
        """The rows that are left when each key has its last change."""
        names = [str(place) for place in range(len(self.key))]
        keyed = pa.table([*(whole.column(place) for place in self.key), np.arange(whole.num_rows)], [*names, _PLACE])
        last = keyed.group_by(names, use_threads=False).aggregate([(_PLACE, "max")])
        places = np.sort(last.column(f"{_PLACE}_max").to_numpy())
        kinds = np.concatenate(
            [
                np.zeros(self._rows.num_rows, np.uint8),
                *(np.zeros(rows.num_rows, np.uint8) if kinds is None else kinds for rows, kinds in waiting),
            ]
        )[places]
        return pc.take(whole, pa.array(places[(kinds != DELETE) & (kinds != UPDATE_BEFORE)])).combine_chunks()


class Stores:
    """The tables of this process by name, and what running scans look at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, KeptRows] = {}
        self._scans: dict[int, tuple[pa.Table, int]] = {}
        self._numbers = itertools.count()

    def table(self, name: str, schema: Schema, key: tuple[int, ...], max_rows: int) -> KeptRows:
        """The table of a name, made where it is not there.

        Raises:
            BindError: it is there with other columns or another key.
        """
        with self._lock:
            found = self._tables.get(name)
            if found is None:
                found = self._tables[name] = KeptRows(name, schema, key, max_rows)
        if [(c.name, c.type.as_nullable()) for c in found.schema] != [(c.name, c.type.as_nullable()) for c in schema]:
            columns = ", ".join(f"{column.name} {column.type}" for column in found.schema)
            raise BindError("other-columns", f"The table '{name}' in memory has the columns {columns}.")
        if found.key != key:
            shown = ", ".join(found.schema[place].name for place in found.key) or "none"
            raise BindError("other-key", f"The table '{name}' in memory has another primary key: {shown}.")
        return found

    def begin_scan(self, rows: pa.Table, parts: int) -> int:
        """Keep rows until ``parts`` readers have read them; the number of the scan."""
        with self._lock:
            number = next(self._numbers)
            if parts:
                self._scans[number] = (rows, parts)
            return number

    def scanned(self, number: int) -> pa.Table | None:
        """What a scan looks at; None where it is over, or was begun by another process."""
        with self._lock:
            return self._scans.get(number, (None, 0))[0]

    def end_part(self, number: int) -> None:
        """A reader has read its part."""
        with self._lock:
            rows, parts = self._scans.pop(number, (None, 0))
            if rows is not None and parts > 1:
                self._scans[number] = (rows, parts - 1)


#: Those of this process.
STORES: Final = Stores()
