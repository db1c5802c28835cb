from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, RowTimes, WatermarkTrack
from flowsql_core.element import Watermark
from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.graph.specs import CalcSpec, DropUpdateBeforeSpec, ExpandSpec, LimitSpec, UnionSpec, ValuesSpec
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types import logical as t
from flowsql_runtime.operators.values import literal_column
from flowsql_runtime.testing.harness import OperatorHarness

N = InputRef(0, t.BIGINT)


def track(*entries: tuple[int, int]) -> WatermarkTrack:
    return WatermarkTrack(np.array([o for o, _ in entries], np.int32), np.array([w for _, w in entries], np.int64))


def entries(batch: ChangelogBatch) -> list[tuple[int, int]]:
    assert batch.track is not None
    return list(zip(batch.track.offsets.tolist(), batch.track.wm_ms.tolist(), strict=True))


def numbers(*values: int | None, kinds: list[int] | None = None, wm: WatermarkTrack | None = None) -> ChangelogBatch:
    return ChangelogBatch.of([pa.array(values, pa.int64())], None if kinds is None else np.array(kinds, np.uint8), wm)


def test_calc_filters_before_it_projects() -> None:
    # 10 / 0 must not be computed: its row does not pass.
    safe = Call("<>", (N, Literal(0, t.BIGINT)), t.BOOLEAN)
    spec = CalcSpec((Call("/", (Literal(10, t.BIGINT), N), t.BIGINT), N), safe)
    harness = OperatorHarness(spec)
    harness.batch(numbers(5, 0, None, 2, wm=track((1, 100), (4, 200))))
    assert harness.rows == [("+I", 2, 5), ("+I", 5, 2)]
    assert entries(harness.batches[0]) == [(1, 100), (2, 200)]


def test_calc_keeps_kinds_and_time_when_no_row_passes() -> None:
    spec = CalcSpec((N,), Call(">", (N, Literal(9, t.BIGINT)), t.BOOLEAN))
    harness = OperatorHarness(spec)
    harness.batch(numbers(1, 2, wm=track((1, 100), (2, 200))))
    harness.batch(numbers(10, 3, 11, kinds=[UPDATE_BEFORE, UPDATE_AFTER, DELETE]))
    assert harness.output.elements[0] == Watermark(200)
    assert harness.rows == [("-U", 10), ("-D", 11)]


def test_union_takes_the_minimum_of_time() -> None:
    harness = OperatorHarness(UnionSpec(2))
    harness.batch(numbers(1, wm=track((1, 100))), 0)
    harness.batch(numbers(2, 3, wm=track((1, 50), (2, 150))), 1)
    harness.watermark(300, 1)
    harness.watermark(200, 0)
    assert harness.rows == [("+I", 1), ("+I", 2), ("+I", 3)]
    assert harness.batches[0].track is None
    assert entries(harness.batches[1]) == [(1, 50), (2, 100)]
    assert harness.watermarks == [50, 100, 200]


@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize(("offset", "fetch"), [(0, 5), (3, 4), (0, 0), (8, None), (50, 2)])
def test_limit_counts_over_batches(offset: int, fetch: int | None, size: int) -> None:
    harness = OperatorHarness(LimitSpec(offset, fetch))
    for start in range(0, 10, size):
        harness.batch(numbers(*range(start, min(start + size, 10))))
    stop = None if fetch is None else offset + fetch
    assert [row[1] for row in harness.rows] == list(range(10))[offset:stop]


def test_limit_goes_on_counting_after_a_restore() -> None:
    harness = OperatorHarness(LimitSpec(1, 3))
    harness.batch(numbers(0, 1))
    harness = harness.restored(1)
    harness.batch(numbers(2, 3, 4))
    assert harness.rows == [("+I", 1), ("+I", 2), ("+I", 3)]


def test_expand_keeps_the_rows_of_one_row_together() -> None:
    null = Literal(None, t.BIGINT)
    group = [Literal(index, t.BIGINT) for index in (0, 1)]
    harness = OperatorHarness(ExpandSpec(((N, group[0]), (null, group[1]))))
    times = RowTimes(np.array([5, 6], np.int64))
    batch = numbers(7, 8, kinds=[INSERT, DELETE], wm=track((1, 100), (2, 200)))
    harness.batch(ChangelogBatch(batch.columns, 2, batch.kinds, times, batch.track))
    assert harness.rows == [("+I", 7, 0), ("+I", None, 1), ("-D", 8, 0), ("-D", None, 1)]
    out = harness.batches[0]
    assert entries(out) == [(2, 100), (4, 200)]
    assert out.row_times is not None
    assert out.row_times.values_ms.tolist() == [5, 5, 6, 6]


def test_update_before_is_dropped_and_its_time_is_not() -> None:
    harness = OperatorHarness(DropUpdateBeforeSpec())
    harness.batch(numbers(1, 1, 2, 3, kinds=[INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE], wm=track((2, 100))))
    harness.batch(numbers(4, kinds=[UPDATE_BEFORE], wm=track((1, 300))))
    assert harness.rows == [("+I", 1), ("+U", 2), ("-D", 3)]
    assert entries(harness.batches[0]) == [(1, 100)]
    assert harness.output.elements[-1] == Watermark(300)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (t.INT, 7, 7),
        (t.STRING, "x", "x"),
        (t.BOOLEAN, True, True),
        (t.DecimalType(precision=10, scale=2), decimal.Decimal("1.20"), decimal.Decimal("1.20")),
        (t.DATE, 1, "1970-01-02"),
        (t.TimeType(), 61_000, "00:01:01"),
        (t.TimestampType(precision=3), 1_500_000_000, "1970-01-01 00:00:01.500000"),
        (t.TimestampType(precision=6), -1000, "1969-12-31 23:59:59.999999"),
        (t.TimestampLtzType(precision=3), 2_000_000_000, "1970-01-01 00:00:02+00:00"),
        (t.DayTimeIntervalType(), 5, 5),
        (t.BYTES, b"\0", b"\0"),
    ],
)
def test_literals_become_columns(type_: t.LogicalType, value: object, expected: object) -> None:
    column = literal_column([Literal(value, type_), Literal(None, type_)], type_)
    found = column.to_pylist()
    assert found[1] is None
    assert (str(found[0]) if isinstance(expected, str) and type_ != t.STRING else found[0]) == expected


def test_values_without_columns_still_have_rows() -> None:
    harness = OperatorHarness(ValuesSpec(((), ()), ()))
    source = harness.operators[0]
    source.emit_next()  # type: ignore[attr-defined]
    assert harness.batches[0].num_rows == 2
