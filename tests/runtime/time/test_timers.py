from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.errors import InternalError
from flowsql_runtime.time.timers import EVENT_TABLE, SlotCodec, TimerService


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def pairs(due: object) -> list[tuple[int, int]]:
    return [] if due is None else list(zip(due.times_ms.tolist(), due.slots.tolist(), strict=True))  # type: ignore[attr-defined]


def test_timers_fire_once_in_time_order_up_to_the_watermark() -> None:
    timers = TimerService()
    timers.register_event_timers(ints(30, 10, 20, 10), ints(1, 2, 3, 2))
    timers.register_event_timers(ints(10), ints(2))
    assert timers.next_event_ms == 10
    assert pairs(timers.pop_event_timers(20)) == [(10, 2), (20, 3)]
    assert timers.pop_event_timers(29) is None
    assert pairs(timers.pop_event_timers(30)) == [(30, 1)]
    assert timers.next_event_ms is None


def test_what_was_said_last_about_a_timer_counts() -> None:
    timers = TimerService()
    timers.register_event_timers(ints(10, 20), ints(1, 1))
    timers.delete_event_timers(ints(10), ints(1))
    timers.delete_event_timers(ints(99), ints(9))
    assert pairs(timers.pop_event_timers(15)) == []
    timers.delete_event_timers(ints(20), ints(1))
    timers.register_event_timers(ints(20), ints(1))
    assert pairs(timers.pop_event_timers(100)) == [(20, 1)]


def test_domains_are_apart() -> None:
    timers = TimerService()
    timers.register_processing_timers(ints(5), ints(0))
    assert timers.pop_event_timers(10) is None
    assert timers.next_processing_ms == 5
    assert pairs(timers.pop_processing_timers(5)) == [(5, 0)]


@pytest.mark.parametrize("seed", range(20))
def test_log_behaves_like_a_set(seed: int) -> None:
    rng = random.Random(seed)
    timers, model = TimerService(), set[tuple[int, int]]()
    for _ in range(60):
        chosen = [(rng.randrange(40), rng.randrange(5)) for _ in range(rng.randrange(6))]
        times, slots = ints(*(t for t, _ in chosen)), ints(*(s for _, s in chosen))
        match rng.randrange(4):
            case 0 | 1:
                timers.register_event_timers(times, slots)
                model |= set(chosen)
            case 2:
                timers.delete_event_timers(times, slots)
                model -= set(chosen)
            case _:
                until = rng.randrange(40)
                assert pairs(timers.pop_event_timers(until)) == sorted(p for p in model if p[0] <= until)
                model = {p for p in model if p[0] > until}
        if rng.random() < 0.2:
            assert timers.event_times().tolist() == sorted({t for t, _ in model})
    assert pairs(timers.pop_event_timers(100)) == sorted(model)


def test_snapshot_names_slots_by_their_keys_and_is_dealt_out_by_key_group() -> None:
    keys = ["a", "b", "c"]
    codec = SlotCodec(
        lambda slots: {
            "__key_group": pa.array(slots.astype(np.int32)),
            "key": pa.array([keys[slot] for slot in slots]),
        },
        lambda table: ints(*(100 + keys.index(key) for key in table.column("key").to_pylist())),
    )
    old = TimerService()
    old.bind_slots(codec)
    old.register_event_timers(ints(10, 20, 30), ints(0, 1, 2))
    saved = old.snapshot()
    assert saved[EVENT_TABLE].column_names[0] == "__key_group"
    found = []
    for groups in (range(0, 1), range(1, 3)):
        new = TimerService()
        new.restore(saved, groups)
        new.bind_slots(codec)
        found.append(pairs(new.pop_event_timers(100)))
    assert found == [[(10, 100)], [(20, 101), (30, 102)]]


def test_event_timers_without_names_are_never_lost_silently() -> None:
    timers = TimerService()
    timers.register_processing_timers(ints(1), ints(0))
    assert timers.snapshot() == {}
    timers.register_event_timers(ints(1), ints(0))
    with pytest.raises(InternalError):
        timers.snapshot()
