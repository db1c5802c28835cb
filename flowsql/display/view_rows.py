"""The rows that a view shows, filled by a thread that reads the query: a table kept up to date, or its last changes."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.batch import ChangelogBatch

#: Texts of the cells of a row.
Cells = tuple[str, ...]

#: Changes that the changelog view keeps, as Flink's client does.
CHANGES_KEPT: Final = 1000
_BEFORE, _AFTER, _DELETE = "-U", "+U", "-D"


class ViewRows(ABC):
    """Rows of a query as texts. Filled in one thread, looked at in another."""

    def __init__(self, result: TableResult) -> None:
        self._result = result
        self._lock = threading.Lock()
        #: What made the query fail.
        self.failure: BaseException | None = None
        #: Set behind the last look at the query, also where it is cancelled or fails.
        self.has_ended = threading.Event()

    @property
    def is_complete(self) -> bool:
        """No further rows come: the query has given all of them, or as many as are shown."""
        return self.has_ended.is_set()

    def read(self) -> None:
        """Take the rows of the query up to its end, or as many as are shown."""
        try:
            self.take(self._result.batches())
        except BaseException as error:
            self.failure = error
        self.has_ended.set()

    def take(self, batches: Iterable[ChangelogBatch]) -> None:
        """Take rows."""
        for batch in batches:
            with self._lock:
                self._take(batch)
            if self.has_enough():
                return

    def now(self) -> list[Cells]:
        """All rows at this moment."""
        with self._lock:
            return self._rows()

    def has_enough(self) -> bool:
        """Whether further rows would not be shown."""
        return False

    def texts_of(self, batch: ChangelogBatch) -> tuple[list[str], list[Cells]]:
        """Kinds of change and cells of some rows."""
        from flowsql.table.values.column_texts import columns_as_texts
        from flowsql.table.values.tableau import NULL_CELL

        columns = [texts.to_pylist() for _, texts in columns_as_texts(self._result, batch, NULL_CELL)]
        kinds = columns.pop(0) if self._result.streaming else ["+I"] * batch.num_rows
        return kinds, list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows

    @abstractmethod
    def _take(self, batch: ChangelogBatch) -> None: ...

    @abstractmethod
    def _rows(self) -> list[Cells]: ...


class FirstRows(ViewRows):
    """The first rows of a query whose rows are final, and whether there are more."""

    def __init__(self, result: TableResult, wanted: int) -> None:
        super().__init__(result)
        self._wanted = wanted
        self._first: list[Cells] = []
        #: There are rows behind the first ones.
        self.has_more = False

    def has_enough(self) -> bool:
        """Whether one row more than shown has come."""
        return self.has_more

    def _take(self, batch: ChangelogBatch) -> None:
        left = self._wanted - len(self._first)
        self.has_more = batch.num_rows > left
        self._first.extend(self.texts_of(batch.slice(0, min(left, batch.num_rows)))[1])

    def _rows(self) -> list[Cells]:
        return list(self._first)


class LastRows(ViewRows):
    """The last rows of a query whose rows are final."""

    def __init__(self, result: TableResult, kept: int) -> None:
        super().__init__(result)
        self._last: deque[Cells] = deque(maxlen=kept)

    def _take(self, batch: ChangelogBatch) -> None:
        kept = min(self._last.maxlen or 0, batch.num_rows)
        self._last.extend(self.texts_of(batch.slice(batch.num_rows - kept, batch.num_rows))[1])

    def _rows(self) -> list[Cells]:
        return list(self._last)


class Materialized(ViewRows):
    """The table that the changes make. An updated row stays in its place. At most ``kept`` rows: the oldest go."""

    def __init__(self, result: TableResult, kept: int) -> None:
        super().__init__(result)
        self._kept = kept
        self._by_number: dict[int, Cells] = {}
        self._numbers: dict[Cells, list[int]] = {}
        self._next = 0
        #: The place of a row that was taken back, and whose new values come next.
        self._vacant: int | None = None

    def _take(self, batch: ChangelogBatch) -> None:
        for kind, cells in zip(*self.texts_of(batch), strict=True):
            if kind == _BEFORE:
                self._vacant = self._remove(cells)
            elif kind == _DELETE:
                self._remove(cells)
            elif kind == _AFTER and self._vacant is not None:
                self._put(self._vacant, cells)
                self._vacant = None
            else:
                self._put(self._next, cells)
                self._next += 1

    def _put(self, number: int, cells: Cells) -> None:
        self._by_number[number] = cells
        self._numbers.setdefault(cells, []).append(number)
        while len(self._by_number) > self._kept:
            self._forget(next(iter(self._by_number)))

    def _remove(self, cells: Cells) -> int | None:
        """Take a row away; its place, None where it is not known (it was among the forgotten ones)."""
        numbers = self._numbers.get(cells)
        if not numbers:
            return None
        number = numbers[-1]
        self._forget(number)
        return number

    def _forget(self, number: int) -> None:
        cells = self._by_number.pop(number)
        numbers = self._numbers[cells]
        numbers.remove(number)
        if not numbers:
            del self._numbers[cells]

    def _rows(self) -> list[Cells]:
        return [cells for _, cells in sorted(self._by_number.items())]


class Changes(ViewRows):
    """The last changes, each with its kind in front."""

    def __init__(self, result: TableResult) -> None:
        super().__init__(result)
        self._last: deque[Cells] = deque(maxlen=CHANGES_KEPT)

    def _take(self, batch: ChangelogBatch) -> None:
        kinds, rows = self.texts_of(batch)
        self._last.extend((kind, *cells) for kind, cells in zip(kinds, rows, strict=True))

    def _rows(self) -> list[Cells]:
        return list(self._last)
