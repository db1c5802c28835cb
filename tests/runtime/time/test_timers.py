"""Alarms of an operator."""

from __future__ import annotations

import random

import numpy as np

from flowsql_runtime.time.timers import DueTimers, TimerService


def ints(*values: int) -> np.typing.NDArray[np.int64]:
    return np.array(values, np.int64)


def pairs(due: DueTimers | None) -> list[tuple[int, int]]:
    return [] if due is None else list(zip(due.times_ms.tolist(), due.slots.tolist(), strict=True))


def test_alarms_fire_once_in_time_order_up_to_the_clock() -> None:
    timers = TimerService()
    timers.register_processing_timers(ints(30, 10, 20, 10), ints(1, 2, 3, 2))
    timers.register_processing_timers(ints(10), ints(2))
    assert timers.next_processing_ms == 10
    assert pairs(timers.pop_processing_timers(20)) == [(10, 2), (20, 3)]
    assert timers.pop_processing_timers(29) is None
    assert pairs(timers.pop_processing_timers(30)) == [(30, 1)]
    assert timers.next_processing_ms is None


def test_a_deleted_alarm_wakes_nobody() -> None:
    timers = TimerService()
    timers.register_processing_timers(ints(10, 20), ints(1, 1))
    timers.delete_processing_timers(ints(10, 99), ints(1, 9))
    assert timers.next_processing_ms == 20
    timers.delete_processing_timers(ints(20), ints(1))
    assert timers.next_processing_ms is None
    timers.register_processing_timers(ints(20), ints(1))
    assert pairs(timers.pop_processing_timers(100)) == [(20, 1)]


def test_alarms_are_a_sorted_set() -> None:
    rng = random.Random(9)
    timers = TimerService()
    model: set[tuple[int, int]] = set()
    for _ in range(500):
        times, slots = [rng.randrange(50) for _ in range(5)], [rng.randrange(3) for _ in range(5)]
        chance = rng.random()
        if chance < 0.5:
            timers.register_processing_timers(ints(*times), ints(*slots))
            model |= set(zip(times, slots, strict=True))
        elif chance < 0.8:
            timers.delete_processing_timers(ints(*times), ints(*slots))
            model -= set(zip(times, slots, strict=True))
        else:
            until = rng.randrange(50)
            assert pairs(timers.pop_processing_timers(until)) == sorted(p for p in model if p[0] <= until)
            model = {p for p in model if p[0] > until}
        assert timers.next_processing_ms == min((at for at, _ in model), default=None)
