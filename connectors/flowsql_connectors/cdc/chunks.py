"""Cutting tables into chunks, and dealing these out to the threads that read them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from flowsql_connectors.cdc.log import CapturedTable, Chunk, DatabaseLog, Json
from flowsql_connectors.cdc.options import CdcSettings
from flowsql_connectors.cdc.state import TableState


class ChunkPlan:
    """Chunks that are still to be read, table by table.

    Integer keys that lie evenly are cut by arithmetic, others by asking for one bound after another between chunks.

    Args:
        tables: with their states, to which bounds are added under ``lock``.
    """

    def __init__(
        self,
        tables: Sequence[tuple[CapturedTable, TableState]],
        settings: CdcSettings,
        lock: threading.Condition,
    ) -> None:
        self._settings = settings
        self._state_lock = lock
        #: One thread at a time asks for chunks, as cutting may ask the database.
        self._turn = threading.Lock()
        self._ready: deque[Chunk] = deque()
        self._uncut: deque[tuple[CapturedTable, TableState]] = deque()
        for table, state in tables:
            self._ready += [
                chunk for chunk in _known(table, state, settings.last_chunk_first) if chunk.number not in state.marks
            ]
            if not state.complete:
                self._uncut.append((table, state))

    def next(self, log: DatabaseLog) -> Chunk | None:
        """A chunk that nobody was given yet; None: there are no more."""
        with self._turn:
            while not self._ready and self._uncut:
                self._cut(*self._uncut[0], log)
            return self._ready.popleft() if self._ready else None

    def _cut(self, table: CapturedTable, state: TableState, log: DatabaseLog) -> None:
        """Find at least one more chunk of a table."""
        if table.key is None:
            self._add(table, state, [], complete=True)
            return
        even = None if state.bounds or not table.key.integer else self._evenly(table, log)
        if even is not None:
            self._add(table, state, even, complete=True)
            return
        low = state.bounds[-1] if state.bounds else None
        bound = log.next_bound(table, low, self._settings.chunk_rows)
        self._add(table, state, [] if bound is None else [bound], complete=bound is None)

    def _evenly(self, table: CapturedTable, log: DatabaseLog) -> list[Json] | None:
        found = log.extremes(table)
        if found is None:
            return []
        least, greatest, rows = found
        factor = (greatest - least + 1) / max(rows, 1.0)
        if not self._settings.least_factor <= factor <= self._settings.most_factor:
            return None
        if rows <= self._settings.chunk_rows:
            return []
        step = max(int(factor * self._settings.chunk_rows), 1)
        return list(range(least + step, greatest + 1, step))

    def _add(self, table: CapturedTable, state: TableState, bounds: list[Json], *, complete: bool) -> None:
        with self._state_lock:
            known = len(state.bounds)
            state.bounds += bounds
            state.complete = complete
        self._ready += [
            chunk for chunk in _known(table, state, self._settings.last_chunk_first) if chunk.number >= known
        ]
        if complete:
            self._uncut.popleft()


def _known(table: CapturedTable, state: TableState, last_first: bool) -> list[Chunk]:
    """The chunks whose bounds are known."""
    bounds = [None, *state.bounds, None]
    count = len(state.bounds) + state.complete
    chunks = [Chunk(table, number, bounds[number], bounds[number + 1]) for number in range(count)]
    return chunks[-1:] + chunks[:-1] if state.complete and last_first else chunks
