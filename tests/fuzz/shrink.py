"""Failing cases made small: fewer choices, a plainer way to run, fewer rows, as long as they fail alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .tables import Table
from .world import Case, Finding, World

#: How often a case is run while it shrinks.
TRIES = 800


class Shrinker:
    """Makes one case smaller.

    Args:
        finding: the case and its fault.
        tries: after so many runs the smallest found is good enough.
    """

    def __init__(self, finding: Finding, tries: int = TRIES) -> None:
        self._kind = finding.fault.kind
        self._found = finding
        self._left = tries
        self._world: World | None = None

    def shrink(self) -> Finding:
        """The smallest case that fails alike."""
        with World(self._found.case.tables) as self._world:
            if not self._fails(self._found.case):
                return self._found  # it fails by chance only: as it was found
            for _ in range(3):
                before = self._found.case
                self._shrink_variation()
                self._shrink_depth()
                self._shrink_draws()
                # A smaller query may name another table: rows last.
                self._shrink_rows()
                if self._found.case == before:
                    break
        return self._found

    def _fails(self, case: Case) -> bool:
        """Whether it fails alike; then it is kept."""
        if not self._left:
            return False
        self._left -= 1
        assert self._world is not None
        self._world.load(case.tables)
        query = case.query()
        fault = self._world.judge(query, case.variation).fault
        if fault is None or fault.kind != self._kind:
            return False
        self._found = replace(self._found, case=replace(case, draws=query.draws), fault=fault)
        return True

    def _smaller_query(self, draws: Sequence[int]) -> bool:
        """Try a list of choices; longer queries are none."""
        case = replace(self._found.case, draws=tuple(draws))
        try:
            now, then = case.query(), self._found.case.query()
        except (IndexError, ValueError):
            return False
        if len(now.flink()) > len(then.flink()) or now.flink() == then.flink():
            return False
        return self._fails(case)

    def _shrink_depth(self) -> None:
        while self._found.case.depth > 1:
            if not self._fails(replace(self._found.case, depth=self._found.case.depth - 1)):
                return

    def _shrink_draws(self) -> None:
        """Leave runs of choices out, then make single ones the first."""
        size = 16
        while size:
            place = 0
            while place < len(self._found.case.draws):
                draws = self._found.case.draws
                shorter = draws[:place] + draws[place + size :]
                zeroed = draws[:place] + (0,) * min(size, len(draws) - place) + draws[place + size :]
                if not self._smaller_query(shorter) and not self._smaller_query(zeroed):
                    place += max(1, size // 2)
            size //= 2

    def _shrink_variation(self) -> None:
        changed = True
        while changed:
            changed = any(
                self._fails(replace(self._found.case, variation=simpler))
                for simpler in self._found.case.variation.simpler()
            )

    def _shrink_rows(self) -> None:
        """Tables that the query does not name get none; the others lose pieces, halves first."""
        named = self._found.case.query().tables
        for number, table in enumerate(self._found.case.tables):
            if table.name not in named:
                continue

            def current(number: int = number) -> Table:
                return self._found.case.tables[number]

            for fewer in _pieces(current):
                tables = list(self._found.case.tables)
                tables[number] = fewer
                self._fails(replace(self._found.case, tables=tuple(tables)))


def _pieces(current: Callable[[], Table]) -> Iterator[Table]:
    """The table without some of its events; what was kept before the next one is asked for counts."""
    size = max(1, len(current().events) // 2)
    while size:
        place = 0
        while place < len(current().events):
            events = current().events
            yield replace(current(), events=_consistent(current(), events[:place] + events[place + size :]))
            if len(current().events) == len(events):
                place += size
        size //= 4 if size > 3 else 2


def _consistent(table: Table, events: tuple[Any, ...]) -> tuple[Any, ...]:
    """Changes, each from what the key had before it; those that change nothing are left out."""
    if not table.changes:
        return events
    held: dict[Any, Any] = {}
    made = []
    for before, after in events:
        key = (before or after)[table.key]
        was = held.pop(key, None)
        if after is not None:
            held[key] = after
        if was is not None or after is not None:
            made.append((was, after))
    return tuple(made)
