"""What every backend must do with rows of slots: lists, sorted lists, queues. See ``test_conformance.py``."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.errors import InternalError
from flowsql_runtime.state.stores import SortColumn
from tests.runtime.state.backends import LONG, Make, slots_of


def test_rows_that_stay_are_not_taken_out(make: Make) -> None:
    """The kernel would read and write what is not of the list."""
    backend = make()
    index = backend.key_index([pa.int64()])
    rows = backend.row_list("r", index, [pa.int64()])
    slots = slots_of(index, [1])
    rows.apply(np.array([1], np.int8), slots, [pa.array([7])])
    with pytest.raises(InternalError, match="whose rows stay"):
        rows.apply(np.array([-1], np.int8), slots, [pa.array([7])])


@pytest.mark.parametrize("unique", [None, (0,), ()])
def test_row_list_is_a_list(make: Make, unique: tuple[int, ...] | None) -> None:
    rng = random.Random(7)
    backend = make()
    index = backend.key_index([pa.int64()])
    types = [pa.string(), pa.int64()]
    rows = backend.row_list("r", index, types, removable=True, unique=unique, stamped=True)
    kept: dict[int, list[Any]] = defaultdict(list)
    stamps: dict[int, list[int]] = defaultdict(list)

    def same(a: Any, b: Any) -> bool:
        return bool(a == b if unique is None else all(a[i] == b[i] for i in unique))

    for now in range(60):
        changes = []
        for _ in range(rng.randint(1, 30)):
            row = (rng.choice([None, "", "t", LONG, LONG + "!"]), rng.choice([None, 1, 2]))
            changes.append((rng.choice([1, 1, -1]), rng.randint(0, 5), row))
        slots = slots_of(index, [key for _, key, _ in changes])
        columns = [pa.array([row[i] for *_, row in changes], type_) for i, type_ in enumerate(types)]
        out = rows.apply(np.array([sign for sign, *_ in changes], np.int8), slots, columns, now)
        for (sign, key, row), id_ in zip(changes, out.tolist(), strict=True):
            at = next((i for i, old in enumerate(kept[key]) if same(old, row)), None)
            if sign > 0 and at is not None and unique is not None:
                kept[key][at], stamps[key][at] = row, now
            elif sign > 0:
                kept[key].append(row)
                stamps[key].append(now)
            elif at is not None:
                del kept[key][at]
                del stamps[key][at]
            assert (id_ >= 0) == (sign > 0 or at is not None)
        if now % 7 == 6:
            touched = rows.remove_older(now - 9)
            old = [key for key in kept for stamp in stamps[key] if stamp <= now - 9]
            assert sorted(touched.tolist()) == sorted(slots_of(index, old, pa.int64()).tolist())
            for key in kept:
                kept[key] = [row for row, stamp in zip(kept[key], stamps[key], strict=True) if stamp > now - 9]
                stamps[key] = [stamp for stamp in stamps[key] if stamp > now - 9]
        if now % 11 == 10:
            rows.drop_slots(slots_of(index, [1, 4]))
            for key in (1, 4):
                kept[key], stamps[key] = [], []
        keys = list(kept)
        slots = slots_of(index, keys)
        probes, found = rows.rows_of(slots)
        got = zip(probes.tolist(), *(column.to_pylist() for column in rows.gather(found)), strict=True)
        assert list(got) == [(i, *row) for i, key in enumerate(keys) for row in kept[key]]
        assert rows.counts(slots).tolist() == [len(kept[key]) for key in keys]
        limit = now - 3
        assert rows.younger(found, limit).tolist() == [stamp > limit for key in keys for stamp in stamps[key]]


def test_apply_latest_says_what_became_of_the_newest_row(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    rows = backend.row_list("r", index, [pa.string()], removable=True)
    slots = slots_of(index, [1] * 5)
    texts = pa.array(["a", "b", "a", "b", "z"])
    kinds, shown = rows.apply_latest(np.array([1, 1, -1, -1, -1], np.int8), slots, [texts])
    assert kinds.tolist() == [0, 2, -1, 3, -1]
    assert shown.tolist() == [-1] * 5
    kinds, shown = rows.apply_latest(np.array([1, 1, -1], np.int8), slots[:3], [pa.array(["c", "d", "d"])])
    assert kinds.tolist() == [0, 2, 2]
    assert rows.gather(shown[2:])[0].to_pylist() == ["c"]


def test_rows_count_their_partners(make: Make) -> None:
    rng = random.Random(2)
    backend = make()
    index = backend.key_index([pa.int64()])
    rows = backend.row_list("r", index, [pa.int64()], removable=True, counted=True)
    slots = slots_of(index, [0] * 50)
    ids = rows.apply(np.ones(50, np.int8), slots, [pa.array(range(50))], associations=np.arange(50, dtype=np.int32) % 3)
    counts = [number % 3 for number in range(50)]
    for _ in range(10):
        picked = [rng.randrange(50) for _ in range(80)]
        changes = [rng.choice([-1, 1]) for _ in picked]
        before = []
        for place, change in zip(picked, changes, strict=True):
            before.append(counts[place])
            counts[place] += change
        assert rows.associate(ids[picked], np.array(changes, np.int32)).tolist() == before
    assert rows.associations(ids).tolist() == counts
    snapshot = backend.snapshot_async()
    rows.associate(ids, np.ones(50, np.int32))
    rows.apply(np.full(25, -1, np.int8), slots[:25], [pa.array(range(25))])
    new = rows.apply(np.ones(25, np.int8), slots[:25], [pa.array(range(100, 125))])
    assert rows.associations(new).tolist() == [0] * 25
    other = make()
    other.restore(snapshot.tables())
    index = other.key_index([pa.int64()])
    rows = other.row_list("r", index, [pa.int64()], removable=True, counted=True)
    found = rows.rows_of(slots_of(index, [0]))[1]
    assert rows.gather(found)[0].to_pylist() == list(range(50))
    assert rows.associations(found).tolist() == counts


def test_rows_that_stay_count_their_partners(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    nested = pa.list_(pa.string())
    rows = backend.kept_rows("r", index, [pa.int64(), nested], counted=True)
    slots = slots_of(index, [0, 1, 0])
    lists = pa.array([["a"], None, []], nested)
    rows.append(slots, [pa.array([10, 11, 12]), lists], np.array([2, 0, 1], np.int32))
    rows.append(np.array([-1, slots[0]], np.int32), [pa.array([13, 14]), lists[:2]])
    found = rows.rows_of(slots_of(index, [0, 1]))[1]
    assert rows.associations(found).tolist() == [2, 1, 0, 0]
    again = np.array([found[0], found[0], found[3]], np.int32)
    assert rows.associate(again, np.array([1, -1, 1], np.int32)).tolist() == [2, 3, 0]
    snapshot = backend.snapshot_async()
    rows.associate(found, np.ones(4, np.int32))
    other = make()
    other.restore(snapshot.tables())
    index = other.key_index([pa.int64()])
    rows = other.kept_rows("r", index, [pa.int64(), nested], counted=True)
    found = rows.rows_of(slots_of(index, [0, 1]))[1]
    assert rows.gather(found)[0].to_pylist() == [10, 12, 14, 11]
    assert rows.gather(found)[1].to_pylist() == [["a"], [], None, None]
    assert rows.associations(found).tolist() == [2, 1, 0, 1]


def test_partners_put_off_the_end_of_rows(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    rows = backend.row_list("r", index, [pa.int64()], removable=True, stamped=True, counted=True)
    slots = slots_of(index, [0, 1])
    ids = rows.apply(np.ones(2, np.int8), slots, [pa.array([10, 11])], stamp=100)
    rows.associate(ids[:1], np.ones(1, np.int32), stamp=200)
    assert rows.younger(ids, 150).tolist() == [True, False]
    assert rows.remove_older(150).tolist() == slots[1:].tolist()


def test_nested_rows_are_taken_out_by_equal_ones(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    types = [pa.list_(pa.string()), pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int64()))])]
    rows = backend.row_list("r", index, types, removable=True)
    lists = pa.array([["x", None], [], None, ["x", None]], types[0])
    structs = pa.array([{"a": 1, "b": [2]}, None, {"a": None, "b": None}, {"a": 1, "b": [3]}], types[1])
    slots = slots_of(index, [0] * 4)
    rows.apply(np.ones(4, np.int8), slots, [lists, structs])
    rows.apply(np.full(2, -1, np.int8), slots[:2], [lists.take([3, 2]), structs.take([3, 2])])
    found = rows.rows_of(slots[:1])[1]
    assert rows.gather(found)[0].to_pylist() == [["x", None], []]
    assert rows.gather(found)[1].to_pylist() == [{"a": 1, "b": [2]}, None]
    other = make()
    other.restore(backend.snapshot_async().tables())
    index = other.key_index([pa.int64()])
    rows = other.row_list("r", index, types, removable=True)
    assert rows.gather(rows.rows_of(slots_of(index, [0]))[1])[0].to_pylist() == [["x", None], []]


def test_kept_rows_and_rows_in_arrival_order(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    stores = [backend.kept_rows("kept", index, [pa.int64()]), backend.row_list("list", index, [pa.int64()])]
    expected: dict[int, list[int]] = defaultdict(list)
    for start in range(0, 3000, 300):
        keys = [number % 7 for number in range(start, start + 300)]
        slots = slots_of(index, keys)
        slots[::10] = -1
        for number in range(start, start + 300):
            if (number - start) % 10:
                expected[number % 7].append(number)
        for store in stores:
            store.append(slots, [pa.array(range(start, start + 300))])
    slots = slots_of(index, list(expected))
    for store in stores:
        probes, found = store.rows_of(slots)
        assert store.counts(slots).tolist() == [len(numbers) for numbers in expected.values()]
        got = [[] for _ in slots]
        for probe, number in zip(probes.tolist(), next(iter(store.gather(found))).to_pylist(), strict=True):
            got[probe].append(number)
        assert got == list(expected.values())


SORT_TYPES: list[tuple[Any, list[Any]]] = [
    (pa.int32(), [None, -(2**31), -1, 0, 1, 7, 2**31 - 1]),
    (pa.float64(), [None, float("-inf"), -1.5, -0.0, 0.0, 2.5, float("inf"), float("nan")]),
    (pa.decimal128(38, 1), [None, *(Decimal(i) * 10**30 for i in range(-3, 3)), Decimal("0.5"), Decimal("-0.5")]),
    (pa.string(), [None, "", "a", "ab", "b", "ä", LONG, LONG + "1"]),
    (pa.bool_(), [None, True, False]),
    (pa.timestamp("ms"), [None, 0, -5, 10**12]),
]


def _sort_key(value: Any, column: SortColumn) -> Any:
    """What Python sorts by: where NULLs go, then the value; numbers with NaN last, texts by bytes."""
    nulls_first = column.ascending if column.nulls_first is None else column.nulls_first
    if value is None:
        return (0 if nulls_first else 1, 0)
    if isinstance(value, float):
        value = (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    elif isinstance(value, str):
        value = value.encode()
    return (1 if nulls_first else 0, value if column.ascending else _Falling(value))


class _Falling:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Falling) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


@pytest.mark.parametrize("unique", [None, (2,)])
@pytest.mark.parametrize("first", range(len(SORT_TYPES)))
def test_sorted_list_is_a_sorted_list(make: Make, first: int, unique: tuple[int, ...] | None) -> None:
    rng = random.Random(first)
    second = (first + 1) % len(SORT_TYPES)
    types = [SORT_TYPES[first][0], SORT_TYPES[second][0], pa.int64()]
    values = [SORT_TYPES[first][1], SORT_TYPES[second][1], list(range(4))]
    order = [
        SortColumn(0, rng.random() < 0.5, rng.choice([None, True, False])),
        SortColumn(1, rng.random() < 0.5, rng.choice([None, True, False])),
    ]
    backend = make()
    index = backend.key_index([pa.int64()])
    store = backend.sorted_list("s", index, types, order, unique)
    kept: dict[int, list[tuple[Any, ...]]] = {key: [] for key in range(5)}
    slots = slots_of(index, list(kept))

    def key_of(row: tuple[Any, ...], parts: int = 2) -> Any:
        return tuple(_sort_key(row[column.index], column) for column in order[:parts])

    def same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        return repr(a) == repr(b) if unique is None else a[2] == b[2]

    for step in range(50):
        n = rng.randint(1, 20)
        changes = [(rng.choice([1, 1, 1, -1, 0]), rng.randint(0, 4), tuple(map(rng.choice, values))) for _ in range(n)]
        columns = [pa.array([row[i] for *_, row in changes], type_) for i, type_ in enumerate(types)]
        signs = np.array([sign for sign, *_ in changes], np.int8)
        found, ranks = store.apply(signs, slots[[key for _, key, _ in changes]], columns)
        for (sign, key, row), id_, rank in zip(changes, found.tolist(), ranks.tolist(), strict=True):
            rows = kept[key]
            at = next((i for i, old in enumerate(rows) if same(old, row)), None)
            if sign > 0 and at is not None and unique is not None:
                del rows[at]
            if sign > 0:
                at = sum(not key_of(row) < key_of(old) for old in rows)
                rows.insert(at, row)
            elif sign < 0 and at is not None:
                del rows[at]
            assert (id_ >= 0) == (rank >= 0) == (sign > 0 or (sign < 0 and at is not None))
            if rank >= 0:
                assert rank == at
        if step % 10 == 9:
            store.drop_slots(slots[1:2])
            kept[1] = []
        probes, found = store.rows_of(slots)
        got = zip(probes.tolist(), *(column.to_pylist() for column in store.gather(found)), strict=True)
        wanted = [(key, *(column[0] for column in _as_stored(row, types))) for key in kept for row in kept[key]]
        assert repr(list(got)) == repr(wanted)
        assert store.ranks(found).tolist() == [rank for key in kept for rank in range(len(kept[key]))]
        assert store.counts(slots).tolist() == [len(rows) for rows in kept.values()]
        # A piece of each, and what stands between bounds of one or both sort columns.
        skipped = np.array([rng.randint(0, 4) for _ in kept])
        _, piece = store.rows_of(slots, skipped, 2)
        starts = np.cumsum([0, *(len(rows) for rows in kept.values())])
        assert piece.tolist() == [
            row
            for start, stop, skip in zip(starts[:-1].tolist(), starts[1:].tolist(), skipped.tolist(), strict=True)
            for row in found[min(start + skip, stop) : min(start + skip + 2, stop)].tolist()
        ]
        parts, with_low, with_high = rng.randint(1, 2), rng.random() < 0.5, rng.random() < 0.5
        low, high = ([tuple(map(rng.choice, values)) for _ in kept] for _ in range(2))
        bounds = [[pa.array([row[i] for row in side], types[i]) for i in range(parts)] for side in (low, high)]
        _, inside = store.between(slots, *bounds, with_low=with_low, with_high=with_high)
        expected = []
        for start, rows, lowest, highest in zip(starts.tolist(), kept.values(), low, high, strict=False):
            for place, row in enumerate(rows):
                own, least, most = key_of(row, parts), key_of(lowest, parts), key_of(highest, parts)
                if (least < own or (with_low and least == own)) and (own < most or (with_high and own == most)):
                    expected.append(int(found[start + place]))
        assert inside.tolist() == expected
        assert store.between(slots)[1].tolist() == found.tolist()
    # Restored, also the order of rows that sort alike is what it was.
    shown = [column.to_pylist() for column in store.gather(store.rows_of(slots)[1])]
    other = make()
    other.restore(backend.snapshot_async().tables())
    again = other.sorted_list("s", other_index := other.key_index([pa.int64()]), types, order, unique)
    back = [column.to_pylist() for column in again.gather(again.rows_of(slots_of(other_index, list(kept)))[1])]
    assert repr(back) == repr(shown)


def test_numbered_rows_go_by_number_and_count_partners(make: Make) -> None:
    rng = random.Random(1)
    backend = make()
    index = backend.key_index([pa.int64()])
    types = [pa.string(), pa.int64()]
    store = backend.sorted_list("s", index, types, [SortColumn(1)], numbered=True, counted=True)
    slots = slots_of(index, range(4))
    #: By row: slot, time, partners; rows of one time stand in order of arrival.
    kept: dict[int, tuple[int, int, int]] = {}

    def expected() -> list[int]:
        return sorted(kept, key=lambda row: (kept[row][:2], list(kept).index(row)))

    saved = None
    for step in range(30):
        n = rng.randint(1, 20)
        places, times = [rng.randint(0, 3) for _ in range(n)], [rng.randint(0, 9) for _ in range(n)]
        partners = np.array([rng.randint(0, 1) for _ in range(n)], np.int32)
        texts = [f"{'a longer text ' * rng.randint(0, 2)}{place}" for place in places]
        rows, _ = store.apply(np.ones(n, np.int8), slots[places], [pa.array(texts), pa.array(times)], partners)
        for row, place, time, partner in zip(rows.tolist(), places, times, partners.tolist(), strict=True):
            assert row not in kept
            kept[row] = (place, time, partner)
        found = store.rows_of(slots)[1].tolist()
        assert found == expected()
        assert store.associations(np.array(found, np.int32)).tolist() == [kept[row][2] for row in found]
        low, high = (np.array([rng.randint(0, 9) for _ in slots]) for _ in range(2))
        bounds = [pa.array(low)], [pa.array(high)]
        counts = np.bincount(store.between(slots, *bounds)[0], minlength=4)
        assert store.count_between(slots, *bounds).tolist() == counts.tolist()
        if step == 20:
            saved, stood = backend.snapshot_async(), [kept[row] for row in found]
        some = rng.sample(found, len(found) // 2)
        store.associate(np.array(some[:3], np.int32), np.ones(len(some[:3]), np.int32))
        for row in some[:3]:
            kept[row] = (*kept[row][:2], kept[row][2] + 1)
        store.remove(np.array(some, np.int32))
        kept = {row: value for row, value in kept.items() if row not in some}
        assert store.counts(slots).tolist() == [sum(value[0] == place for value in kept.values()) for place in range(4)]
    assert saved is not None
    other = make()
    other.restore(saved.tables())
    other_index = other.key_index([pa.int64()])
    again = other.sorted_list("s", other_index, types, [SortColumn(1)], numbered=True, counted=True)
    probes, found_again = again.rows_of(slots_of(other_index, range(4)))
    times_again = again.gather(found_again)[1].to_pylist()
    partners_again = again.associations(found_again).tolist()
    assert list(zip(probes.tolist(), times_again, partners_again, strict=True)) == stood


def _as_stored(row: tuple[Any, ...], types: list[Any]) -> list[list[Any]]:
    return [pa.array([value], type_).to_pylist() for value, type_ in zip(row, types, strict=True)]


def test_row_queue_is_taken_from_the_front(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    queue = backend.row_queue("q", index, [pa.string()])
    slots = slots_of(index, [1, 2, 1])
    queue.append(slots, np.array([1, -1, 1], np.int8), [pa.array(["a", "b", "c"])])
    queue.append(slots[:1], np.array([-1], np.int8), [pa.array(["d"])])
    assert len(queue) == 4
    found, signs, columns = queue.first(3)
    assert (found.tolist(), signs.tolist(), columns[0].to_pylist()) == (slots.tolist(), [1, -1, 1], ["a", "b", "c"])
    queue.drop_first(3)
    assert queue.slots().tolist() == slots[:1].tolist()
    queue.drop_first(1)
    assert len(queue) == 0
    assert queue.first(5)[2][0].to_pylist() == []


def test_rows_leave_in_the_order_in_which_they_came(make: Make) -> None:
    rng = random.Random(11)
    backend = make()
    index = backend.key_index([pa.int64()])
    rows = backend.row_fifo("f", index, [pa.string(), pa.int64()])
    kept: dict[int, list[Any]] = defaultdict(list)
    for now in range(60):
        new = [(rng.randint(0, 5), (rng.choice([None, "", "t", LONG]), now)) for _ in range(rng.randint(0, 20))]
        slots = slots_of(index, [key for key, _ in new])
        rows.append(
            slots, [pa.array([row[i] for _, row in new], type_) for i, type_ in enumerate([pa.string(), pa.int64()])]
        )
        for key, row in new:
            kept[key].append(row)
        keys = list(kept)
        limits = [now - rng.randint(1, 9) for _ in keys]
        slots = slots_of(index, keys)
        counts = rows.count_below(slots, 1, np.array(limits, np.int64))
        assert counts.tolist() == [
            sum(at < limit for _, at in kept[key]) for key, limit in zip(keys, limits, strict=True)
        ]
        probes, found = rows.first(slots, counts)
        got = list(zip(probes.tolist(), *(column.to_pylist() for column in rows.gather(found)), strict=True))
        assert got == [(i, *row) for i, key in enumerate(keys) for row in kept[key][: counts[i]]]
        if now % 3 == 2:
            rows.drop_first(slots, counts)
            for i, key in enumerate(keys):
                del kept[key][: counts[i]]
        if now % 17 == 16:
            rows.drop_slots(slots_of(index, [1, 4]))
            kept[1], kept[4] = [], []
        slots = slots_of(index, keys)
        probes, found = rows.rows_of(slots)
        got = list(zip(probes.tolist(), *(column.to_pylist() for column in rows.gather(found)), strict=True))
        assert got == [(i, *row) for i, key in enumerate(keys) for row in kept[key]]
        assert rows.counts(slots).tolist() == [len(kept[key]) for key in keys]
