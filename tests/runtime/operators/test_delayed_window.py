"""Windows whose early and late answers wait: the clock is moved, each window's changes are those of Flink's trigger."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.specs import WindowKind, WindowProperty, WindowSpec
from flowsql_core.graph.window_specs import EmittingWindowSpec
from flowsql_core.row import DELETE, INSERT
from flowsql_core.types.logical import BIGINT, STRING, Column, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness

SIZE = 10
BOUND = TimestampType(precision=3, nullable=False)
INPUT = (Column("k", STRING), Column("v", BIGINT), Column("ts", TimestampType(precision=3)))


@dataclass
class Window:
    """A window of Flink's ``AggregateWindowOperator`` with ``AfterEndOfWindowEarlyAndLate``."""

    end: int
    values: list[int] = field(default_factory=list)
    told: Any = None
    alarms: dict[int, int] = field(default_factory=dict)
    fired: bool = False


@dataclass
class Model:
    """``early``, ``late``: delays, -1 for off."""

    early: int
    late: int
    lateness: int
    windows: dict[tuple[str, int], Window] = field(default_factory=dict)
    changes: dict[tuple[str, int], list[tuple[Any, ...]]] = field(default_factory=dict)
    level: int = -(2**63)
    now: int = 0

    def fire(self, key: tuple[str, int]) -> None:
        window = self.windows[key]
        result = (len(window.values), sum(window.values)) if window.values else None
        if result == window.told:
            return
        out = self.changes.setdefault(key, [])
        if window.told is not None:
            out.append(("-U" if result is not None else "-D", *window.told))
        if result is not None:
            out.append(("+U" if window.told is not None else "+I", *result))
        window.told = result

    def element(self, delay: int, key: tuple[str, int]) -> None:
        """``onElement`` of the trigger of a phase."""
        window = self.windows[key]
        if delay == 0:
            self.fire(key)
        elif delay > 0:
            window.alarms.setdefault(delay, self.now + delay)

    def row(self, key: str, value: int, time: int, sign: int) -> None:
        end = time // SIZE * SIZE + SIZE
        if end - 1 + self.lateness <= self.level:
            return
        window = self.windows.setdefault((key, end), Window(end))
        if sign > 0:
            window.values.append(value)
        else:
            window.values.remove(value)
        if window.fired:
            self.element(self.late, (key, end))
        elif end - 1 <= self.level:
            self.fire((key, end))
        else:
            self.element(self.early, (key, end))

    def watermark(self, to: int) -> None:
        before, self.level = self.level, to
        for key, window in sorted(self.windows.items()):
            if before < window.end - 1 <= to:
                window.fired = True
                self.fire(key)
        for key in [key for key, window in self.windows.items() if window.end - 1 + self.lateness <= to]:
            del self.windows[key]

    def advance(self, by: int) -> None:
        for _ in range(by):
            self.now += 1
            for key, window in self.windows.items():
                delay = self.late if window.fired else self.early
                if window.alarms.get(delay) == self.now:
                    window.alarms[delay] = self.now + delay
                    self.fire(key)


def spec(early: int, late: int, lateness: int) -> EmittingWindowSpec:
    calls = (
        AggregateCall("COUNT", (), BIGINT.as_nullable(False), "c"),
        AggregateCall("SUM", (InputRef(1, BIGINT),), BIGINT, "s"),
    )
    window = WindowSpec(WindowKind.TUMBLE, SIZE, 0, 0, 2, False)
    output = (INPUT[0], Column("c", BIGINT), Column("s", BIGINT), Column("we", BOUND))
    return EmittingWindowSpec(
        (0,), calls, window, (WindowProperty.END,), INPUT, output, True, early=early >= 0, lateness_ms=lateness,
        early_delay_ms=max(early, 0), late_delay_ms=max(late, 0),
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(
    ("early", "late", "lateness"),
    [(3, -1, 0), (3, 5, 25), (3, 3, 25), (0, 4, 25), (4, 0, 25), (-1, 4, 25)],
)
def test_changes_of_each_window_are_those_of_the_trigger(early: int, late: int, lateness: int, backend: str) -> None:
    draw = random.Random(f"{early} {late}")
    model = Model(early, late, lateness)
    parameters = {"state.backend.type": backend}
    made = OperatorHarness(spec(early, late, lateness), parallelism=2, keys=((0,),), parameters=parameters)
    left: list[tuple[str, int, int]] = []
    for step in range(160):
        rows = []
        for _ in range(draw.choice([0, 1, 1, 3])):
            base = max(model.level, 0)
            if left and draw.random() < 0.25:
                row, sign = left.pop(draw.randrange(len(left))), -1
                if row[2] // SIZE * SIZE + SIZE - 1 + lateness <= model.level:
                    continue
            else:
                row, sign = (draw.choice("ab"), draw.randrange(3), max(base + draw.randrange(-20, 15), 0)), 1
                if row[2] // SIZE * SIZE + SIZE - 1 + lateness > model.level:
                    left.append(row)
            rows.append((*row, sign))
            model.row(*row, sign)
        if rows:
            keys, values, times, signs = zip(*rows, strict=True)
            kinds = np.array([DELETE if sign < 0 else INSERT for sign in signs], np.uint8)
            columns = (pa.array(keys), pa.array(values, pa.int64()), pa.array(times, pa.timestamp("ms")))
            made.batch(ChangelogBatch(columns, len(rows), kinds))
        match draw.randrange(4):
            case 0:
                to = max(model.level, 0) + draw.randrange(1, 9)
                model.watermark(to)
                made.watermark(to)
            case 1 | 2:
                model.advance(1)
                made.advance(1)
            case _ if step % 10 == 9:
                made = made.restored(draw.randrange(1, 4))
    found: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    for kind, key, count, total, end in made.rows:
        found.setdefault((key, end.microsecond // 1000 + 1000 * end.second), []).append((kind, count, total))
    assert found == model.changes
    assert sum(map(len, found.values())) > 60
    made.close()
