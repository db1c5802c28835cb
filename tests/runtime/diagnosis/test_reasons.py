"""Reasons that no real job holds still for: told of jobs that are written down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flowsql_core.element import MIN_WATERMARK
from flowsql_core.expr import InputRef
from flowsql_core.graph.job import OperatorNode
from flowsql_core.graph.specs import (
    CollectSinkSpec,
    OperatorSpec,
    ScanSpec,
    TableSpec,
    WatermarkAssignerSpec,
    WindowAggregateSpec,
    WindowKind,
    WindowSpec,
)
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import Column, TimestampType
from flowsql_runtime.diagnosis.silence import explain
from flowsql_runtime.diagnosis.snapshot import JobNow, OperatorNow, SubtaskNow
from flowsql_runtime.metrics.told import AssignerState, AtWork, SourceState, Waiting

TS = TimestampType(precision=3)
SCHEMA = (Column("ts", TS),)
MINUTE = 60_000
SPECS: tuple[OperatorSpec, ...] = (
    ScanSpec(TableSpec(("c", "d", "clicks"), SCHEMA, ()), (0,), SCHEMA),
    WatermarkAssignerSpec(0, "ts", InputRef(0, TS)),
    WindowAggregateSpec((), (), WindowSpec(WindowKind.TUMBLE, MINUTE, MINUTE, time_index=0), (), SCHEMA, (), False),
    CollectSinkSpec("out", (), INSERT_ONLY),
)
WINDOW = Waiting("window", 1, 0, MINUTE, MINUTE - 1)
SOURCE = SourceState(bounded=True, splits_left=("/t/a.csv@0",), follows=False, paused=False)
ASSIGNER = AssignerState(idle=False, by_split=(), not_begun=(), idle_timeout_ms=0)
WAITS = "the window [1970-01-01 00:00:00, 00:01:00) of TUMBLE over 'ts' waits for a watermark of 1970-01-01 00:01:00"


def job(source: SourceState = SOURCE, assigner: AssignerState = ASSIGNER, window: Waiting = WINDOW) -> JobNow:
    """Two rows are in a window."""
    told: tuple[tuple[object, ...], ...] = ((source,), (assigner,), (window,), ())
    operators = {}
    for number, (spec, tells) in enumerate(zip(SPECS, told, strict=True)):
        node = OperatorNode(number, str(number), "x", spec, SCHEMA, number_of_inputs=int(number > 0))
        rows_in, rows_out = (2 if number in (1, 2) else 0), (2 if number < 2 else 0)
        operators[number] = OperatorNow(node, (SubtaskNow(0, rows_in, rows_out, told=(AtWork(), *tells)),))
    return JobNow(operators, {number: {0: (number - 1,)} for number in range(1, len(SPECS))})


def with_subtasks(of: JobNow, number: int, *subtasks: SubtaskNow) -> JobNow:
    """With other subtasks of one operator."""
    return replace(of, operators={**of.operators, number: replace(of.operators[number], subtasks=subtasks)})


BUSY = SubtaskNow(0, 2, 0)
OPEN = SubtaskNow(0, told=(AtWork(),))
LEVELS = ((f"/t/{name}.csv@{start}", level) for name, start, level in (("a", 0, 50_000), ("a", 4_096, 20_000)))

CASES = {
    "a file that was not begun": (
        job(assigner=replace(ASSIGNER, by_split=(("/t/a.csv@0", 50_000),), not_begun=("/t/b.csv@0",))),
        f"{WAITS}; there is no watermark yet: no row of file b.csv of table 'clicks' has been read yet",
    ),
    "partitions that may never have a row": (
        job(replace(SOURCE, bounded=False), replace(ASSIGNER, not_begun=("t-0", "t-1"))),
        f"{WAITS}; there is no watermark yet: no row of split 't-0' and 1 other of table 'clicks' has been read yet; "
        "'table.exec.source.idle-timeout' lets time go on without it",
    ),
    "several files that were not begun": (
        job(assigner=replace(ASSIGNER, not_begun=("/t/b.csv@0", "/t/c.csv@0", "/t/d.csv@0"))),
        f"{WAITS}; there is no watermark yet: no row of file b.csv and 2 others of table 'clicks' has been read yet",
    ),
    "a part of a file that is behind": (
        job(assigner=replace(ASSIGNER, by_split=tuple(LEVELS))),
        f"{WAITS}; there is no watermark yet: file a.csv from byte 4,096 on of table 'clicks' stands at "
        "1970-01-01 00:00:20",
    ),
    "a source that is ahead of its group": (
        with_subtasks(
            with_subtasks(with_subtasks(job(), 1, OPEN), 2, OPEN),
            0,
            replace(OPEN, told=(AtWork(), replace(SOURCE, paused=True))),
        ),
        "table 'clicks' is ahead of the other sources of its watermark group and waits for them",
    ),
    "the clock": (
        job(window=replace(WINDOW, by_clock=True)),
        "the window [1970-01-01 00:00:00, 00:01:00) of TUMBLE over 'ts' waits for the clock",
    ),
    "an operator in the middle of a batch": (with_subtasks(job(), 2, BUSY), None),
    "a bounded table that is still being read": (replace(job(), reads=True), None),
    "an unbounded table that is still being read": (
        replace(job(source=replace(SOURCE, bounded=False)), reads=True),
        f"{WAITS}; there is no watermark yet: only further rows of table 'clicks' move it on",
    ),
    "no operator is there": (JobNow({}), None),
}


@pytest.mark.parametrize("name", CASES)
def test_reasons(name: str) -> None:
    now, told = CASES[name]
    found = explain(now)
    assert (None if found is None else found.text) == told


def test_moments_are_those_of_the_windows_zone() -> None:
    now = job(window=replace(WINDOW, start_ms=0, end_ms=MINUTE, due_ms=MINUTE - 1 - 3_600_000, zone="Europe/Berlin"))
    window = now.operators[2].subtasks[0]
    assert window.input_watermark_ms == MIN_WATERMARK
    now = with_subtasks(now, 2, replace(window, input_watermark_ms=30_000 - 3_600_000))
    found = explain(now)
    assert found is not None
    assert found.text.startswith(f"{WAITS}; the watermark is 1970-01-01 00:00:30: ")


def test_the_key_of_a_finding_stays_while_the_watermark_rises() -> None:
    first = job()
    window = first.operators[2].subtasks[0]
    second = with_subtasks(first, 2, replace(window, input_watermark_ms=10_000))
    keys = {found.key for now in (first, second) if (found := explain(now)) is not None}
    assert len(keys) == 1
