"""What every backend must do with rankings: ``SortedList.rank``. See ``test_conformance.py``."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_runtime.state.rankings import Keeping, Places, Telling
from flowsql_runtime.state.stores import SortColumn
from tests.runtime.state.backends import LONG, Make, slots_of

_KINDS = ("+I", "-U", "+U", "-D")
_TEXTS = ["", "a", LONG, LONG + "!"]

Row = tuple[int, int, str, int]


class _Model:
    """Rows of keys, sorted anew for each change."""

    def __init__(self, keeping: Keeping, last: int) -> None:
        self.keeping = keeping
        self.last = last
        self.rows: dict[int, list[tuple[Any, int, Row]]] = {}
        self.arrived = 0

    def change(self, sign: int, key: int, row: Row) -> None:
        kept = self.rows.setdefault(key, [])
        order = _order(row)
        self.arrived += 1
        arrived = self.arrived
        if sign < 0:
            found = next((entry for entry in sorted(kept, key=lambda one: one[1]) if entry[2] == row), None)
            if found is not None:
                kept.remove(found)
            return
        if self.keeping is Keeping.REPLACED:
            old = next((entry for entry in kept if entry[2][0] == row[0]), None)
            if old is not None:
                kept.remove(old)
                # A row that sorts like the one it replaces keeps its place.
                arrived = old[1] if old[0] == order else arrived
        kept.append((order, arrived, row))
        kept.sort(key=lambda one: one[:2])
        if self.keeping is not Keeping.ALL:
            del kept[self.last :]

    def places(self, first: int) -> dict[tuple[int, int], Row]:
        return {
            (key, place): row
            for key, rows in self.rows.items()
            for place, (_, _, row) in enumerate(rows, 1)
            if first <= place <= self.last
        }


def _order(row: Row) -> Any:
    return (-row[1], row[2].encode())


def _row(rng: random.Random, keeping: Keeping, best: dict[tuple[int, int], int], key: int) -> Row:
    ident = rng.randint(0, 6)
    number = rng.randint(0, 5)
    if keeping is Keeping.REPLACED:
        # Rows never fall.
        number = best[key, ident] = max(number, best.get((key, ident), 0) + rng.randint(0, 1))
        return (ident, number, "", key)
    return (ident, number, rng.choice(_TEXTS), key)


@pytest.mark.parametrize("telling", [Telling.EVERY, Telling.NET])
@pytest.mark.parametrize(("first", "last", "by_place"), [(1, 3, True), (1, 3, False), (2, 4, True), (1, 1, True)])
@pytest.mark.parametrize("keeping", list(Keeping))
def test_a_ranking_tells_what_changes(
    make: Make, keeping: Keeping, first: int, last: int, by_place: bool, telling: Telling
) -> None:
    rng = random.Random(last * 7 + first)
    backend = make()
    index = backend.key_index([pa.int64()])
    types = [pa.int64(), pa.int32(), pa.string(), pa.int64()]
    order = [SortColumn(1, ascending=False), SortColumn(2)]
    rows = backend.sorted_list(
        "r", index, types, order, (0,) if keeping is Keeping.REPLACED else None, keeps_best=keeping is not Keeping.ALL
    )
    model = _Model(keeping, last)
    table: dict[tuple[int, int], Row] = {}
    members: Counter[Row] = Counter()
    best: dict[tuple[int, int], int] = {}
    places = Places(first, np.array([last], np.int64), last, by_place, telling, before=True)
    for _ in range(40):
        changes = []
        for _ in range(rng.randint(1, 40)):
            key = rng.randint(0, 3)
            sign = rng.choice([1, 1, -1]) if keeping is Keeping.ALL else 1
            changes.append((sign, key, _row(rng, keeping, best, key)))
        slots = slots_of(index, [key for _, key, _ in changes])
        columns = [pa.array([row[i] for *_, row in changes], type_) for i, type_ in enumerate(types)]
        for change in changes:
            model.change(*change)
        signs = np.array([sign for sign, *_ in changes], np.int8)
        # What was told may be read when the ranking is over: bytes then stand where they stood.
        for ranked in [*rows.rank(signs, slots, columns, places)]:
            values = [ranked.columns[i].to_pylist() for i in range(4)]
            for kind, place, *row_values in zip(ranked.kinds.tolist(), ranked.places.tolist(), *values, strict=True):
                row = tuple(row_values)
                members[row] += 1 if _KINDS[kind] in ("+I", "+U") else -1
                if not by_place:
                    continue
                was = table.pop((row[3], place), None)
                if _KINDS[kind] in ("-U", "-D"):
                    assert was == row
                else:
                    assert was is None
                    table[row[3], place] = row
        expected = model.places(first)
        assert +members == Counter(expected.values())
        assert not -members
        assert table == (expected if by_place else {})
