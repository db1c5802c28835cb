"""Top-N, deduplication and sorting by time: what leaves, between which watermarks, and what expires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.graph.rank_specs import (
    DeduplicateSpec,
    RankSpec,
    RankStrategy,
    SortSpec,
    TemporalSortSpec,
    WindowDeduplicateSpec,
    WindowRankSpec,
)
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import BIGINT, INT, STRING, Column, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = pytest.mark.usefixtures("each_backend")

#: Key, a number, a name, a time.
SCHEMA: Final = (Column("k", INT), Column("v", INT), Column("name", STRING), Column("ts", TimestampType(precision=3)))
NUMBERED: Final = (*SCHEMA, Column("n", BIGINT))
TOP: Final = RankSpec((0,), ((1, True, False),), 1, 2, None, True, RankStrategy.APPEND_FAST, (), SCHEMA, NUMBERED, True)
FIRST: Final = DeduplicateSpec((0,), 3, False, True, SCHEMA, False)
LAST: Final = DeduplicateSpec((0,), 3, True, False, SCHEMA, True)

Row = tuple[int | None, int | None, str | None, int]


def batch(rows: Sequence[Row], track: Sequence[tuple[int, int]] = (), kinds: Sequence[str] = ()) -> ChangelogBatch:
    """Rows with watermarks ``(offset, ms)`` between them."""
    columns = [
        pa.array([row[0] for row in rows], pa.int32()),
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2] for row in rows], pa.string()),
        pa.array([row[3] for row in rows], pa.timestamp("ms")),
    ]
    made = None
    if track:
        made = WatermarkTrack(np.array([at for at, _ in track], np.int32), np.array([ms for _, ms in track], np.int64))
    codes = np.array([SHORT_STRINGS.index(kind) for kind in kinds], np.uint8) if kinds else None
    return ChangelogBatch(tuple(columns), len(rows), codes, None, made)


def seen(harness: OperatorHarness[Any], *columns: int) -> list[tuple[Any, ...]]:
    """Kinds and some columns of what left."""
    return [(row[0], *(row[1 + column] for column in columns)) for row in harness.rows]


def between(harness: OperatorHarness[Any], column: int) -> list[Any]:
    """Values of a column and watermarks, as they leave."""
    found: list[Any] = []
    for element in harness.output.elements:
        if not isinstance(element, ChangelogBatch):
            found.append(("wm", element.timestamp_ms))  # type: ignore[union-attr]
            continue
        values = element.columns[column].to_pylist()
        entries = [] if element.track is None else list(zip(element.track.offsets, element.track.wm_ms, strict=True))
        for at in range(element.num_rows + 1):
            found += [("wm", int(ms)) for offset, ms in entries if offset == at]
            found += values[at : at + 1]
    return found


def test_places_change_between_the_watermarks_of_their_rows() -> None:
    harness = OperatorHarness(TOP)
    harness.batch(batch([(1, 5, "a", 0), (1, 7, "b", 0), (1, 4, "c", 0)], [(1, 10), (2, 20), (3, 30)]))
    assert seen(harness, 2, 4) == [
        ("+I", "a", 1),
        ("-U", "a", 1),
        ("+U", "b", 1),
        ("+I", "a", 2),
    ]
    assert between(harness, 2) == ["a", ("wm", 10), "a", "b", "a", ("wm", 20), ("wm", 30)]


def test_one_net_change_a_place_where_only_the_table_is_looked_at() -> None:
    harness = OperatorHarness(replace(TOP, consolidate=True))
    harness.batch(batch([(1, 5, "a", 0), (1, 7, "b", 0), (1, 9, "c", 0)]))
    harness.batch(batch([(1, 1, "d", 0), (1, 8, "e", 0)]))
    assert seen(harness, 2, 4) == [("+I", "c", 1), ("+I", "b", 2), ("-U", "b", 2), ("+U", "e", 2)]


def test_rows_that_sort_alike_stand_in_order_of_arrival() -> None:
    harness = OperatorHarness(replace(TOP, numbered=False, output=SCHEMA))
    harness.batch(batch([(1, 5, name, 0) for name in "abc"]))
    harness.batch(batch([(1, 6, "d", 0)]))
    assert seen(harness, 2) == [("+I", "a"), ("+I", "b"), ("-D", "b"), ("+I", "d")]


def test_the_first_row_of_a_partition_tells_its_last_place() -> None:
    harness = OperatorHarness(replace(TOP, last=None, last_index=0))
    harness.batch(batch([(2, 5, "a", 0), (2, 4, "b", 0), (2, 3, "c", 0), (None, 1, "d", 0)]))
    harness = harness.restored(1)
    harness.batch(batch([(2, 6, "e", 0)]))
    assert [(row[3], row[5]) for row in harness.rows if row[0] in ("+I", "+U")] == [
        ("a", 1), ("b", 2), ("e", 1), ("a", 2),
    ]  # fmt: skip


def test_a_row_that_goes_lets_the_next_one_in() -> None:
    harness = OperatorHarness(replace(TOP, strategy=RankStrategy.RETRACT, numbered=False, output=SCHEMA))
    harness.batch(batch([(1, 5, "a", 0), (1, 4, "b", 0), (1, 3, "c", 0)]))
    harness.batch(batch([(1, 5, "a", 0), (1, 9, "unknown", 0)], kinds=["-D", "-D"]))
    assert seen(harness, 2) == [("+I", "a"), ("+I", "b"), ("-D", "a"), ("+I", "c")]


def test_a_partition_that_nobody_wrote_to_starts_over() -> None:
    harness = OperatorHarness(replace(TOP, state_ttl_ms=1000))
    harness.batch(batch([(1, 5, "a", 0)]))
    harness.advance(1001)
    harness.batch(batch([(1, 7, "b", 0)]))
    assert seen(harness, 2, 4) == [("+I", "a", 1), ("+I", "b", 1)]


def test_a_first_row_leaves_when_the_watermark_reaches_it() -> None:
    harness = OperatorHarness(FIRST)
    # "late" is before its watermark; of key 1 "b" is the earliest; "c" comes when key 1 has left.
    harness.batch(
        batch(
            [(1, 0, "a", 50), (1, 0, "b", 40), (2, 0, "d", 45), (1, 0, "c", 60), (3, 0, "late", 10), (3, 0, "e", 70)],
            [(3, 47), (6, 65)],
        )
    )
    assert between(harness, 2) == ["b", "d", ("wm", 47), ("wm", 65)]
    harness = harness.restored(1)
    harness.batch(batch([(3, 0, "f", 66), (2, 0, "g", 80)]))
    harness.watermark(66)
    assert seen(harness, 2) == [("+I", "b"), ("+I", "d"), ("+I", "f")]


def test_a_time_that_is_the_watermark_waits_for_the_next_one() -> None:
    harness = OperatorHarness(FIRST)
    harness.batch(batch([(1, 0, "a", 50)], [(0, 50)]))
    assert seen(harness, 2) == []
    harness.watermark(51)
    assert seen(harness, 2) == [("+I", "a")]


def test_of_equal_times_the_last_row_stays() -> None:
    harness = OperatorHarness(LAST)
    harness.batch(batch([(1, 0, "a", 50), (1, 0, "b", 50), (1, 0, "c", 49)]))
    harness.batch(batch([(1, 0, "d", 50), (2, 0, "e", 1)]))
    changes = [("+I", "a"), ("-U", "a"), ("+U", "b"), ("-U", "b"), ("+U", "d"), ("+I", "e")]
    assert seen(harness, 2) == changes
    upserts = OperatorHarness(replace(LAST, emit_update_before=False, consolidate=True))
    upserts.batch(batch([(1, 0, "a", 50), (1, 0, "b", 50), (1, 0, "c", 49)]))
    upserts.batch(batch([(1, 0, "d", 50), (2, 0, "e", 1)]))
    assert seen(upserts, 2) == [("+I", "b"), ("+U", "d"), ("+I", "e")]


def test_deduplication_starts_over_after_its_time() -> None:
    harness = OperatorHarness(replace(LAST, time_index=None, keep_last=False, insert_only=True, state_ttl_ms=1000))
    harness.batch(batch([(1, 0, "a", 0), (1, 0, "b", 0)]))
    harness.advance(600)
    harness.batch(batch([(1, 0, "c", 0)]))
    harness.advance(600)
    harness.batch(batch([(1, 0, "d", 0)]))
    assert seen(harness, 2) == [("+I", "a"), ("+I", "d")]


WINDOWED: Final = (*SCHEMA[:3], Column("window_end", TimestampType(precision=3)))


def test_windows_tell_their_rows_once_and_drop_late_ones() -> None:
    spec = WindowRankSpec((0,), ((1, True, False),), 3, 2, 3, True, WINDOWED, (*WINDOWED, Column("n", BIGINT)))
    harness = OperatorHarness(spec)
    rows: list[Row] = [(1, 1, "a", 100), (1, 5, "b", 100), (1, 3, "c", 100), (1, 4, "d", 100), (1, 9, "e", 200)]
    harness.batch(batch(rows, [(5, 98)]))
    harness = harness.restored(1)
    harness.batch(batch([(1, 9, "late", 100), (1, 8, "f", 200)], [(0, 99), (2, 199)]))
    assert seen(harness, 2, 4) == [("+I", "d", 2), ("+I", "c", 3), ("+I", "f", 2)]


def test_of_a_window_the_last_row_by_time_stays() -> None:
    spec = WindowDeduplicateSpec((0,), 4, True, 3, (*WINDOWED, Column("ts", TimestampType(precision=3))))
    harness = OperatorHarness(spec)
    rows = batch([(1, 0, "a", 100), (1, 0, "b", 100), (1, 0, "c", 100), (2, 0, "d", 100)], [(4, 99)])
    times = pa.array([7, 9, 8, 1], pa.timestamp("ms"))
    harness.batch(rows.with_columns((*rows.columns, times)))
    assert seen(harness, 2) == [("+I", "b"), ("+I", "d")]


def test_rows_leave_in_the_order_of_time() -> None:
    harness = OperatorHarness(TemporalSortSpec(3, ((3, False, True), (1, True, False)), SCHEMA))
    # At 20 what is up to 20 leaves; then 15 comes too late, and 25 still in time.
    harness.batch(
        batch(
            [(1, 1, "a", 20), (1, 2, "b", 10), (1, 3, "c", 20), (1, 0, "late", 15), (1, 0, "d", 30), (1, 0, "e", 25)],
            [(3, 22), (6, 26)],
        )
    )
    assert between(harness, 2) == ["b", "c", "a", ("wm", 22), "e", ("wm", 26)]
    harness = harness.restored(1)
    harness.batch(batch([(1, 0, "late", 25), (1, 9, "f", 30), (1, 0, "g", 26)]))
    harness.watermark(40)
    assert seen(harness, 2)[4:] == [("+I", "g"), ("+I", "f"), ("+I", "d")]


def test_rows_that_come_together_are_sorted_in_processing_time() -> None:
    harness = OperatorHarness(TemporalSortSpec(None, ((1, False, True),), SCHEMA))
    harness.batch(batch([(1, 3, "a", 0), (1, None, "b", 0), (1, 1, "c", 0)], [(3, 5)]))
    assert between(harness, 2) == ["b", "c", "a", ("wm", 5)]


def test_all_rows_are_sorted_when_the_input_has_ended() -> None:
    harness = OperatorHarness(SortSpec(((1, True, False), (2, False, True)), SCHEMA, True))
    harness.batch(batch([(1, 3, "b", 0), (1, None, "c", 0), (1, 3, "a", 0), (1, 9, "d", 0)]))
    harness.batch(batch([(1, 9, "d", 0)], kinds=["-D"]))
    assert harness.rows == []
    harness = harness.restored(1)
    harness.end()
    assert seen(harness, 2) == [("+I", "a"), ("+I", "b"), ("+I", "c")]
