"""Lookup joins: over files that change, over a database that is asked side by side, with caches and second attempts."""

from __future__ import annotations

import dataclasses
import os
import random
import sqlite3
import threading
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.graph.specs import JoinKind, ScanSpec, TableSpec
from flowsql_core.graph.time_join_specs import AsyncLookup, KeyedLookupJoinSpec, LookupJoinSpec, LookupKey
from flowsql_core.types.logical import BIGINT, STRING, BooleanType, Column
from flowsql_runtime.operators.join import side
from flowsql_runtime.testing.harness import OperatorHarness

from ... import sqlite_lookup

LEFT: Final = (Column("id", BIGINT), Column("k", STRING))
TABLE: Final = (Column("key", STRING), Column("value", BIGINT))
DAY: Final = 86_400_000
KINDS: Final = ("+I", "-U", "+U", "-D")


def spec(options: dict[str, str], **changes: Any) -> LookupJoinSpec:
    table = TableSpec(("c", "d", "t"), TABLE, tuple(options.items()))
    fields: dict[str, Any] = {
        "kind": JoinKind.LEFT, "scan": ScanSpec(table, (0, 1), TABLE), "keys": (LookupKey(0, left=1),),
        "projections": (InputRef(0, STRING), InputRef(1, BIGINT)), "filter": None, "condition": None, "left": LEFT,
        "output": LEFT + TABLE,
    }  # fmt: skip
    return LookupJoinSpec(**(fields | changes))


def keyed(options: dict[str, str], **changes: Any) -> KeyedLookupJoinSpec:
    """A lookup join that keeps what it found, by the id."""
    made = spec(options)
    fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    kept = {"state_key": (0,), "kept": ("t.key", "t.value")}
    return KeyedLookupJoinSpec(**(fields | kept | changes))


def batch(keys: list[str | None], kinds: list[int] | None = None) -> ChangelogBatch:
    columns = [pa.array(range(len(keys)), pa.int64()), pa.array(keys, pa.string())]
    return ChangelogBatch.of(columns, None if kinds is None else np.array(kinds, np.uint8))


def values(harness: OperatorHarness[Any]) -> list[Any]:
    """What was found since the last question."""
    found = [row[-1] for row in harness.rows]
    harness.output.elements.clear()
    return found


@pytest.fixture
def database(tmp_path: Path) -> dict[str, str]:
    sqlite_lookup.provide()
    path = str(tmp_path / "values.db")
    sqlite_lookup.REQUESTS[path] = []
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE t (key TEXT, value INTEGER)")
        made.executemany("INSERT INTO t VALUES (?, ?)", [("a", 1), ("a", 2), ("b", 3), ("d", 4)])
    return {"connector": "sqlite", "path": path, "table": "t"}


def requests(options: dict[str, str]) -> list[list[Any]]:
    """Keys of the requests since the last question, in each request sorted."""
    found = [sorted(key[0] for key in request) for request in sqlite_lookup.REQUESTS[options["path"]]]
    sqlite_lookup.REQUESTS[options["path"]].clear()
    return found


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT], ids=lambda kind: kind.name)
@pytest.mark.parametrize("most", [2, 262_144])
def test_rows_keep_their_order_and_kinds(
    database: dict[str, str], kind: JoinKind, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side, "MOST_PAIRS", most)
    harness = OperatorHarness(spec(database, kind=kind))
    asked = batch(["b", "x", "a", None, "a"], [0, 0, 1, 2, 3]).with_track(single_watermark(2, 77))
    harness.batch(asked)
    inner = [
        ("+I", 0, "b", "b", 3),
        ("-U", 2, "a", "a", 1),
        ("-U", 2, "a", "a", 2),
        ("-D", 4, "a", "a", 1),
        ("-D", 4, "a", "a", 2),
    ]
    left = [inner[0], ("+I", 1, "x", None, None), *inner[1:3], ("+U", 3, None, None, None), *inner[3:]]
    assert harness.rows == (left if kind is JoinKind.LEFT else inner)
    assert harness.watermarks == [77]
    before = sum(part.num_rows if part.track is None else int(part.track.offsets[0]) for part in harness.batches[:1])
    assert before <= (2 if kind is JoinKind.LEFT else 1)
    assert requests(database) == [["a", "b", "x"]]


def test_conditions_and_constants(database: dict[str, str]) -> None:
    """A constant is a key like any other; what the condition refuses was not found."""
    many = Call(">", (InputRef(3, BIGINT), Literal(1, BIGINT)), BooleanType())
    odd = Call("<", (InputRef(1, BIGINT), Literal(3, BIGINT)), BooleanType())
    harness = OperatorHarness(spec(database, condition=many, filter=odd))
    harness.batch(batch(["a", "b"]))
    assert [row[1:] for row in harness.rows] == [(0, "a", "a", 2), (1, "b", None, None)]
    requests(database)
    harness = OperatorHarness(spec(database, keys=(LookupKey(0, constant=Literal("d", STRING)), LookupKey(1, left=0))))
    harness.batch(batch(["x"] * 5))
    assert [row[-1] for row in harness.rows] == [None, None, None, None, 4]
    assert requests(database) == [["d"] * 5]


def test_requests_run_side_by_side(database: dict[str, str]) -> None:
    """Three requests meet at a barrier: none of them would pass it alone."""
    sqlite_lookup.GATES[database["path"]] = threading.Barrier(3)
    harness = OperatorHarness(spec(database, asynchronous=AsyncLookup(3, 60_000)))
    try:
        harness.batch(batch(["d", "x", "b", "y", "a", "z"]))
    finally:
        del sqlite_lookup.GATES[database["path"]]
        harness.close()
    assert [row[-1] for row in harness.rows] == [4, None, 3, None, 1, 2, None]
    assert sorted(map(len, requests(database))) == [2, 2, 2]


def test_a_request_that_takes_too_long_fails_the_job(database: dict[str, str]) -> None:
    gate = sqlite_lookup.GATES[database["path"]] = threading.Event()
    harness = OperatorHarness(spec(database, asynchronous=AsyncLookup(2, 20)))
    try:
        with pytest.raises(ExecutionError, match="did not answer within 20 ms"):
            harness.batch(batch(["a", "b"]))
    finally:
        gate.set()
        del sqlite_lookup.GATES[database["path"]]
        harness.close()


def test_a_key_that_is_missing_is_asked_for_again(database: dict[str, str]) -> None:
    harness = OperatorHarness(spec(database, attempts=4, delay_ms=1500))
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        with sqlite3.connect(database["path"]) as made:
            made.execute("INSERT INTO t VALUES (?, ?)", (["x", "y", "other"][len(pauses) - 1], len(pauses)))

    harness.operators[0].ctx.pause = pause
    harness.batch(batch(["x", "a", "y", "z"]))
    assert values(harness) == [1, 1, 2, 2, None]
    assert pauses == [1.5, 1.5, 1.5]
    assert requests(database) == [["a", "x", "y", "z"], ["x", "y", "z"], ["y", "z"], ["z"]]


def test_a_partial_cache_expires(database: dict[str, str]) -> None:
    clock = ManualClock()
    partial = database | {
        "lookup.cache": "PARTIAL",
        "lookup.partial-cache.expire-after-write": "10 s",
        "lookup.partial-cache.expire-after-access": "4 s",
    }
    harness = OperatorHarness(spec(partial), clock=clock)
    harness.batch(batch(["a", "x", "b"]))
    assert values(harness) == [1, 2, None, 3]
    for _ in range(3):
        clock.advance(3000)
        harness.batch(batch(["x", "a"]))
        assert values(harness) == [None, 1, 2]
    assert requests(database) == [["a", "b", "x"]]
    harness.batch(batch(["b", "a"]))
    assert requests(database) == [["b"]]
    clock.advance(1000)
    harness.batch(batch(["b", "a", "x"]))
    assert requests(database) == [["a", "x"]]
    assert values(harness) == [3, 1, 2, 3, 1, 2, None]


def test_a_partial_cache_is_bounded(database: dict[str, str]) -> None:
    partial = database | {
        "lookup.cache": "PARTIAL",
        "lookup.partial-cache.max-rows": "3",
        "lookup.partial-cache.cache-missing-key": "false",
    }
    harness = OperatorHarness(spec(partial))
    harness.batch(batch(["a", "x"]))
    harness.batch(batch(["b", "x"]))
    harness.batch(batch(["a"]))
    with sqlite3.connect(database["path"]) as made:
        made.executemany("INSERT INTO t VALUES (?, ?)", [("e", 5), ("f", 6)])
    requests(database)
    harness.batch(batch(["d"]))
    harness.batch(batch(["e"]))
    assert len(harness.operators[0]._cache) == 3  # type: ignore[attr-defined]
    # b was not asked for longest.
    harness.batch(batch(["a", "d", "e"]))
    assert requests(database) == [["d"], ["e"]]
    harness.batch(batch(["b"]))
    assert requests(database) == [["b"]]
    harness.batch(batch(["a", "b", "d", "e", "f"]))
    assert len(harness.operators[0]._cache) <= 3  # type: ignore[attr-defined]
    assert values(harness)[-6:] == [1, 2, 3, 4, 5, 6]


def write(path: Path, text: str, at: int) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (at, at))


def test_files_are_read_again_once_they_change(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    write(folder / "one.csv", "a,1\nb,2\n", 1000)
    harness = OperatorHarness(spec({"connector": "filesystem", "format": "csv", "path": str(folder)}))
    harness.batch(batch(["a", "b", "c"]))
    assert values(harness) == [1, 2, None]
    write(folder / "one.csv", "a,8\nb,9\n", 1001)
    harness.batch(batch(["a", "b", "c"]))
    assert values(harness) == [8, 9, None]
    write(folder / "two.csv", "c,4\na,5\n", 1000)
    harness.batch(batch(["a", "b", "c"]))
    assert sorted(values(harness)[:2]) == [5, 8]


@pytest.mark.parametrize(
    ("options", "stays", "changes"),
    [
        ({"reload-strategy": "PERIODIC", "periodic-reload.interval": "10 min"}, 599_999, 1),
        ({"periodic-reload.interval": "1 min", "periodic-reload.schedule-mode": "FIXED_RATE"}, 59_999, 1),
        ({"reload-strategy": "TIMED", "timed-reload.iso-time": "10:15"}, 36_900_000 - 5_000_000 - 1, 1),
        (
            {"reload-strategy": "TIMED", "timed-reload.iso-time": "00:30Z", "timed-reload.interval-in-days": "2"},
            2 * DAY + 1_800_000 - 5_000_000 - 1,
            1,
        ),
    ],
)
def test_a_full_cache_is_read_again_by_the_clock(
    tmp_path: Path, options: dict[str, str], stays: int, changes: int
) -> None:
    path = tmp_path / "one.csv"
    write(path, "a,1\n", 1000)
    full = {f"lookup.full-cache.{key}": value for key, value in options.items()}
    table = {"connector": "filesystem", "format": "csv", "path": str(path), "lookup.cache": "FULL"}
    clock = ManualClock()
    clock.advance(5_000_000 - clock.now_ms() % DAY)
    harness = OperatorHarness(spec(table | full), clock=clock)
    harness.batch(batch(["a"]))
    write(path, "a,2\n", 1001)
    clock.advance(stays)
    harness.batch(batch(["a"]))
    clock.advance(changes)
    harness.batch(batch(["a"]))
    assert values(harness) == [1, 1, 2]


def rows_of(*rows: tuple[str, int, str | None]) -> ChangelogBatch:
    """Kind, id and key of each row."""
    columns = [pa.array([row[1] for row in rows], pa.int64()), pa.array([row[2] for row in rows], pa.string())]
    return ChangelogBatch.of(columns, np.array([KINDS.index(row[0]) for row in rows], np.uint8))


def renumber(options: dict[str, str], more: int) -> None:
    """Another value in each row of the table."""
    with sqlite3.connect(options["path"]) as made:
        made.execute("UPDATE t SET value = value + ?", (more,))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT], ids=lambda kind: kind.name)
@pytest.mark.parametrize("whole", [True, False], ids=["one batch", "row by row"])
def test_what_is_taken_back_was_told(database: dict[str, str], kind: JoinKind, whole: bool) -> None:
    """Kinds and rows as Flink 2.3 answered, over a table that changes between the batches."""
    harness = OperatorHarness(keyed(database, kind=kind))
    told = [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 4, "x"), ("+I", 5, "b"), ("+I", 6, "a")]
    harness.batch(rows_of(*told))
    inner = [
        ("+I", 1, "a", "a", 1), ("+I", 1, "a", "a", 2), ("+I", 2, "b", "b", 3), ("+I", 5, "b", "b", 3),
        ("+I", 6, "a", "a", 1), ("+I", 6, "a", "a", 2),
    ]  # fmt: skip
    assert [row for row in harness.rows if row[-1] is not None] == inner
    harness.output.elements.clear()
    requests(database)
    renumber(database, 10)
    changes = [
        ("-U", 1, "a"), ("+U", 1, "b"), ("-D", 2, "b"), ("-D", 9, "a"), ("-U", 1, "b"), ("+U", 1, None),
        ("-U", 1, None), ("+U", 1, "d"), ("-D", 4, "x"), ("+U", 5, "d"), ("-D", 5, "d"),
    ]  # fmt: skip
    for part in [changes] if whole else [[change] for change in changes]:
        harness.batch(rows_of(*part))
    expected = [
        ("-D", 1, "a", "a", 1), ("-D", 1, "a", "a", 2), ("+U", 1, "b", "b", 13), ("-D", 2, "b", "b", 3),
        ("-D", 9, "a", None, None), ("-D", 1, "b", "b", 13), ("+U", 1, None, None, None), ("-D", 1, None, None, None),
        ("+U", 1, "d", "d", 14), ("-D", 4, "x", None, None), ("+U", 5, "d", "d", 14), ("-D", 5, "d", "d", 14),
    ]  # fmt: skip
    assert harness.rows == [row for row in expected if kind is JoinKind.LEFT or row[-1] is not None]
    # What goes is not looked up, and keys without rows stay in no state.
    assert requests(database) == ([["b", "d"]] if whole else [["b"], ["d"], ["d"]])
    assert len(harness.operators[0]._index) == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("most", [2, 262_144])
def test_rows_are_told_alike_in_batches_of_any_size(
    database: dict[str, str], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition on top: what it refuses is not kept. Each row that is told goes again."""
    monkeypatch.setattr(side, "MOST_PAIRS", most)
    draw = random.Random(7)
    current: dict[int, str | None] = {}
    changes: list[tuple[str, int, str | None]] = []
    while len(changes) < 300:
        number, key = draw.randrange(6), draw.choice(["a", "b", "d", "x", None])
        before = number in current
        if before and draw.randrange(3):
            changes.append(("-U" if draw.randrange(2) else "-D", number, current.pop(number)))
        elif not before:
            changes.append((draw.choice(["+I", "+U"]), number, key))
            current[number] = key
    many = Call(">", (InputRef(3, BIGINT), InputRef(0, BIGINT)), BooleanType())
    answers = []
    for size in (1, 7, 300):
        harness = OperatorHarness(keyed(database, condition=many))
        for first in range(0, len(changes), size):
            harness.batch(rows_of(*changes[first : first + size]))
        answers.append(harness.rows)
    assert answers[0] == answers[1] == answers[2]
    table: dict[tuple[Any, ...], int] = {}
    for op, *row in answers[0]:
        table[tuple(row)] = table.get(tuple(row), 0) + (1 if op in ("+I", "+U") else -1)
        assert table[tuple(row)] >= 0
    assert {row[0] for row, count in table.items() if count} == set(current)


def test_what_was_told_expires(database: dict[str, str]) -> None:
    """A key that was not written to for so long counts as one that found nothing; reading it does not keep it."""
    clock = ManualClock()
    harness = OperatorHarness(keyed(database, state_ttl_ms=1000), clock=clock)
    harness.batch(rows_of(("+I", 1, "b"), ("+I", 2, "b"), ("+I", 3, "b")))
    clock.advance(600)
    harness.batch(rows_of(("+U", 2, "d")))
    harness.output.elements.clear()
    clock.advance(399)
    harness.batch(rows_of(("-D", 3, "b")))
    clock.advance(1)
    harness.batch(rows_of(("-D", 1, "b"), ("-D", 2, "d")))
    assert harness.rows == [("-D", 3, "b", "b", 3), ("-D", 1, "b", None, None), ("-D", 2, "d", "d", 4)]
    assert not len(harness.operators[0]._index)  # type: ignore[attr-defined]
