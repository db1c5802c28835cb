"""Lookup side: tables whose rows can be found by key, one batch of keys a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_connectors.spi.source import TableSource
from flowsql_core.clock import Clock
from flowsql_core.record import record

Int32s = npt.NDArray[np.int32]


@record
class LookupContext:
    """What the runtime gives to a lookup of one subtask.

    ``keys``: columns of the scan's output that rows are found by.
    """

    keys: tuple[int, ...]
    clock: Clock
    configuration: Mapping[str, str]
    #: Counter hooks, e.g. ``count("numRecordsInErrors", 3)`` for skipped rows.
    count: Callable[[str, int], None]


@record
class FoundRows:
    """Rows that were found.

    ``positions`` int32 (m,), not falling: which key of the batch each row has. ``columns``: Arrow arrays of the scan's
    output, of m rows.
    """

    positions: Int32s
    columns: Sequence[Any]


@record
class PartialCache:
    """Rows of keys that were asked for are kept. Times in milliseconds of the last request or reading; None: no bound.

    ``missing_keys``: keys without rows are known, too.
    """

    expire_after_access_ms: int | None = None
    expire_after_write_ms: int | None = None
    max_keys: int | None = None
    missing_keys: bool = True


class TableLookup(ABC):
    """Finds rows of a table. Used in one thread, unless its source says that it is ``concurrent``."""

    #: Keys for which a request of its own is worth a round trip: fewer of a batch are not parted.
    fewest_keys: int = 1

    @abstractmethod
    def find(self, keys: Sequence[Any]) -> FoundRows:
        """All rows of each key.

        Args:
            keys: an Arrow array a key column, in the order of ``LookupContext.keys``, of distinct keys without NULL.

        Raises:
            ConnectorError: the table cannot be asked.
        """

    def close(self) -> None:
        """Release files, threads, connections."""


class LookupTableSource(TableSource):
    """A source that can also look up. What its scan leaves out (columns, filters), lookups leave out, too."""

    @property
    def concurrent(self) -> bool:
        """Whether ``find`` may be called from several threads at once: then a slow table is asked for parts of a batch
        side by side."""
        return False

    def partial_cache(self) -> PartialCache | None:
        """What whoever looks up shall keep of what was found; None: nothing."""
        return None

    @abstractmethod
    def create_lookup(self, context: LookupContext) -> TableLookup:
        """A lookup for one subtask."""
