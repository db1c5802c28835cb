from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import ACTIVE, IDLE, MAX_WATERMARK, MIN_WATERMARK, Watermark
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.graph.job import JobGraph, JobVertex, OperatorNode
from flowsql_core.graph.specs import MiniBatchAssignerSpec, WatermarkAlignment, WatermarkAssignerSpec, WatermarkEmit
from flowsql_core.types.logical import DayTimeIntervalType, TimestampType
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.testing.harness import OperatorHarness
from flowsql_runtime.time.alignment import AlignmentGroups

MS = TimestampType(precision=3)


def assigner(delay_ms: int = 0, **options: object) -> WatermarkAssignerSpec:
    time = InputRef(0, MS)
    delay = Literal(delay_ms, DayTimeIntervalType(resolution="SECOND"))
    expression = time if not delay_ms else Call("-", (time, delay), MS)
    return WatermarkAssignerSpec(0, "ts", expression, **options)  # type: ignore[arg-type]


def times(*values: int | None, unit: str = "ms") -> ChangelogBatch:
    return ChangelogBatch.of([pa.array(values, pa.timestamp(unit))])


def emitted(harness: OperatorHarness[WatermarkAssignerSpec]) -> list[tuple[int, int]]:
    """(rows before it, watermark) over all batches."""
    found, base = [], 0
    for element in harness.output.elements:
        if isinstance(element, ChangelogBatch):
            if element.track is not None:
                found += [
                    (base + int(o), int(w)) for o, w in zip(element.track.offsets, element.track.wm_ms, strict=True)
                ]
            base += element.num_rows
        elif isinstance(element, Watermark):
            found.append((base, element.timestamp_ms))
    return found


def flink(values: list[int], delay_ms: int, interval_ms: int) -> list[tuple[int, int]]:
    """``WatermarkAssignerOperator.processElement``, row by row."""
    current = last = 0
    found = []
    for row, value in enumerate(values):
        current = max(current, value - delay_ms)
        if current - last > interval_ms:
            last = current
            found.append((row + 1, current))
    return found


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_rows_emit_exactly_where_flink_does_however_the_input_is_cut(seed: int, size: int) -> None:
    rng = random.Random(seed)
    values = [1_000_000 + 40 * row + rng.randrange(-3000, 300) for row in range(600)]
    harness = OperatorHarness(assigner(1000))
    for start in range(0, len(values), size):
        harness.batch(times(*values[start : start + size]))
    assert emitted(harness) == flink(values, 1000, 200)
    harness.end()
    assert emitted(harness)[-1] == (600, MAX_WATERMARK)


def test_time_starts_at_zero_as_in_flink() -> None:
    harness = OperatorHarness(assigner())
    harness.batch(times(-5000, 100, 200, 201))
    assert emitted(harness) == [(4, 201)]


def test_a_finer_unit_is_floored_to_milliseconds() -> None:
    harness = OperatorHarness(assigner())
    harness.batch(times(999_999_999, unit="us"))
    assert emitted(harness) == [(1, 999_999)]


def test_a_null_row_time_fails_with_flinks_text_and_names_the_column() -> None:
    harness = OperatorHarness(assigner())
    with pytest.raises(ExecutionError, match="RowTime field should not be null") as raised:
        harness.batch(times(1000, None))
    assert "'ts'" in (raised.value.hint or "")


def test_a_null_watermark_lifts_nothing() -> None:
    spec = WatermarkAssignerSpec(0, "ts", InputRef(1, MS))
    harness = OperatorHarness(spec)
    column = pa.array([None, 5000, None, 6000], pa.timestamp("ms"))
    harness.batch(ChangelogBatch.of([pa.array([1, 2, 3, 4], pa.timestamp("ms")), column]))
    assert emitted(harness) == [(2, 5000), (4, 6000)]


def test_on_event_emits_at_every_row_that_lifts() -> None:
    harness = OperatorHarness(assigner(emit=WatermarkEmit.ON_EVENT))
    harness.batch(times(-10, -9, -9, 5, 4, 6))
    assert emitted(harness) == [(1, -10), (2, -9), (4, 5), (6, 6)]


def test_what_is_below_the_interval_leaves_with_the_tick() -> None:
    harness = OperatorHarness(assigner())
    harness.batch(times(1000, 1100))
    harness.advance(100)
    harness.batch(times(1150))
    harness.advance(99)
    assert emitted(harness) == [(1, 1000)]
    harness.advance(1)
    assert emitted(harness) == [(1, 1000), (3, 1150)]
    harness.batch(times(1160))
    harness.advance(200)
    assert emitted(harness) == [(1, 1000), (3, 1150), (4, 1160)]


def test_a_batch_that_passes_a_whole_interval_is_followed_by_its_watermark() -> None:
    harness = OperatorHarness(assigner())
    harness.operators[0].ctx.progress.paced = True
    harness.batch(times(1050))
    harness.batch(times(1198))
    assert emitted(harness) == [(1, 1050)]
    # The late row of the same batch is before the watermark.
    harness.batch(times(1199, 1100))
    harness.batch(times(1210, 1260, 1410))
    harness.batch(times(1460, 1700, 1801))
    assert emitted(harness) == [(1, 1050), (4, 1199), (7, 1410), (9, 1700), (10, 1801)]


def test_a_bounded_source_gives_the_same_answer_at_any_speed() -> None:
    harness = OperatorHarness(assigner())
    harness.operators[0].ctx.progress.bounded = True
    harness.batch(times(1000, 1100))
    harness.advance(10_000)
    assert emitted(harness) == [(1, 1000)]


def test_idleness_is_declared_after_the_timeout_and_ends_with_a_row() -> None:
    harness = OperatorHarness(assigner(idle_timeout_ms=1000))
    harness.batch(times(1000))
    harness.advance(900)
    harness.batch(times(2000))
    harness.advance(999)
    statuses = [element for element in harness.output.elements if element in (ACTIVE, IDLE)]
    assert statuses == []
    harness.advance(1)
    harness.batch(times(3000))
    assert harness.output.elements[-2] is ACTIVE
    assert [element for element in harness.output.elements if element in (ACTIVE, IDLE)] == [IDLE, ACTIVE]


def test_splits_that_are_read_side_by_side_are_idle_one_by_one() -> None:
    harness = OperatorHarness(assigner(idle_timeout_ms=1000))
    progress = harness.operators[0].ctx.progress
    progress.side_by_side = True
    progress.unfinished |= {"a", "b"}

    def read(split: str, *values: int) -> None:
        progress.current = split
        harness.batch(times(*values))
        progress.current = None

    read("a", 5_000)
    harness.advance(600)
    read("a", 6_000)
    assert emitted(harness) == []
    harness.advance(400)
    assert emitted(harness) == [(2, 6_000)]
    assert IDLE not in harness.output.elements
    # It comes back behind the others, and holds them back from then on.
    read("b", 3_000)
    read("a", 8_000)
    assert emitted(harness) == [(2, 6_000)]
    read("b", 7_000)
    assert emitted(harness)[-1] == (5, 7_000)
    harness.advance(999)
    assert IDLE not in harness.output.elements
    harness.advance(1)
    assert harness.output.elements[-1] is IDLE
    read("b", 9_000)
    assert harness.output.elements[-2] is ACTIVE
    assert emitted(harness)[-1] == (6, 9_000)


def test_splits_that_are_read_one_behind_another_are_idle_together() -> None:
    harness = OperatorHarness(assigner(idle_timeout_ms=1000))
    progress = harness.operators[0].ctx.progress
    progress.unfinished |= {"a", "b"}
    progress.current = "a"
    harness.batch(times(5_000))
    harness.advance(999)
    harness.batch(times(6_000))
    harness.advance(999)
    assert emitted(harness) == []
    harness.advance(1)
    assert harness.output.elements[-1] is IDLE
    assert emitted(harness) == []


def test_an_idle_assigner_wakes_for_the_end() -> None:
    harness = OperatorHarness(assigner(idle_timeout_ms=1000))
    harness.advance(1000)
    harness.watermark(MAX_WATERMARK)
    assert harness.output.elements == [IDLE, ACTIVE, Watermark(MAX_WATERMARK)]


def test_incoming_time_is_replaced() -> None:
    harness = OperatorHarness(assigner())
    harness.watermark(77)
    harness.idle()
    assert harness.output.elements == []


@pytest.mark.parametrize("cut", [0, 1, 5, 9])
def test_a_restored_assigner_goes_on_where_it_stopped(cut: int) -> None:
    values = [1000, 1150, 1190, 1201, 1300, 1410, 1411, 5000, 4000, 5300]
    harness = OperatorHarness(assigner())
    harness.batch(times(*values[:cut]))
    harness = harness.restored(1)
    harness.batch(times(*values[cut:]))
    found = [entry for index, entry in enumerate(emitted(harness)) if entry not in emitted(harness)[:index]]
    # The level that stood is told again to receivers, at the cut.
    assert [entry for entry in found if entry in flink(values, 0, 200)] == flink(values, 0, 200)
    assert {level for _, level in found} == {level for _, level in flink(values, 0, 200)}


def test_mini_batch_marks_are_multiples_of_the_interval() -> None:
    harness = OperatorHarness(MiniBatchAssignerSpec(100))
    harness.batch(times(1))
    harness.advance(250)
    harness.batch(times(2))
    harness.advance(49)
    harness.advance(1)
    harness.watermark(5)
    harness.end()
    shown = [element.timestamp_ms if isinstance(element, Watermark) else "rows" for element in harness.output.elements]
    assert shown == ["rows", 200, "rows", 300, MAX_WATERMARK]


def test_marks_by_row_time_are_the_watermarks_that_complete_an_interval() -> None:
    watermarks = OperatorHarness(assigner())
    watermarks.batch(times(300, 998, 1200, 1500, 3999, 3100, 4000, 4900))
    watermarks.batch(times(4950, 5200, 5900))
    harness = OperatorHarness(MiniBatchAssignerSpec(1000, row_time=True))
    for batch in watermarks.batches:
        harness.operators[0].process_batch(0, batch)
    track = [batch.track for batch in harness.batches]
    assert track[0] is not None
    assert track[1] is not None
    # 999 ends an interval; 998 does not, and 3999 ends the fourth one.
    assert list(zip(track[0].offsets, track[0].wm_ms, strict=True)) == [(3, 1200), (5, 3999)]
    assert list(zip(track[1].offsets, track[1].wm_ms, strict=True)) == [(2, 5200)]


def test_what_marks_by_row_time_hold_back_comes_at_the_end_of_the_input() -> None:
    operator = OperatorHarness(MiniBatchAssignerSpec(1000, row_time=True))
    operator.watermark(1500)
    operator.watermark(1900)
    operator.operators[0].end_input(0)
    shown = [element.timestamp_ms for element in operator.output.elements if isinstance(element, Watermark)]
    assert shown == [1500, 1900]


def test_emission_positions_are_int32_and_levels_int64() -> None:
    harness = OperatorHarness(assigner())
    harness.batch(times(1000, 2000))
    track = harness.batches[0].track
    assert track is not None
    assert track.offsets.dtype == np.int32
    assert track.wm_ms.dtype == np.int64


def test_a_subtask_ahead_of_its_group_waits_and_looks_again() -> None:
    job = JobServices()
    spec = assigner(alignment=WatermarkAlignment("g", 1_000, 500))
    other = "another source"
    job.alignment.report("g", other, 0)
    harness = OperatorHarness(spec, job=job)
    source = harness.operators[0].ctx.progress.aligned
    assert source is not None
    harness.batch(times(900))
    assert not source.waits
    harness.batch(times(1_400))
    assert source.waits
    job.alignment.report("g", other, 400)
    harness.advance(499)
    assert source.waits
    harness.advance(1)
    assert not source.waits
    harness.batch(times(9_000))
    assert source.waits
    job.alignment.leave("g", other)
    harness.advance(500)
    assert not source.waits


def test_a_subtask_that_waits_is_not_idle_and_one_that_is_idle_holds_nobody_back() -> None:
    job = JobServices()
    job.alignment.report("g", "another source", 0)
    harness = OperatorHarness(assigner(alignment=WatermarkAlignment("g", 1_000, 10_000), idle_timeout_ms=50), job=job)
    harness.batch(times(5_000))
    harness.advance(60)
    assert IDLE not in harness.output.elements
    job.alignment.leave("g", "another source")
    harness.advance(10_000)
    harness.advance(60)
    assert IDLE in harness.output.elements
    assert job.alignment.report("g", "another source", 7) == 7


def test_a_job_counts_all_its_subtasks_before_they_are_there() -> None:
    groups = AlignmentGroups()
    spec = assigner(alignment=WatermarkAlignment("g", 1_000))
    node = OperatorNode(1, "w", "w", spec, ())
    groups.expect(JobGraph("j", (JobVertex(1, "v", (node,), (), 2),), ()))
    assert groups.report("g", ("w", 0), 5_000) == MIN_WATERMARK
    groups.leave("g", ("w", 1))
    assert groups.report("g", ("w", 0), 5_000) == 5_000
