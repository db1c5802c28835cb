from __future__ import annotations

import random

import numpy as np
import pytest

from flowsql_core.batch import WatermarkTrack
from flowsql_core.element import ACTIVE, IDLE, MIN_WATERMARK
from flowsql_runtime.time.emission import emissions
from flowsql_runtime.time.watermarks import WatermarkMerger


def track(*entries: tuple[int, int]) -> WatermarkTrack:
    return WatermarkTrack(np.array([o for o, _ in entries], np.int32), np.array([w for _, w in entries], np.int64))


def entries(found: WatermarkTrack | None) -> list[tuple[int, int]]:
    return [] if found is None else list(zip(found.offsets.tolist(), found.wm_ms.tolist(), strict=True))


def test_minimum_over_channels_keeps_the_row_positions() -> None:
    merger = WatermarkMerger(2)
    assert merger.advance(0, track((1, 100), (3, 200))) is None
    assert entries(merger.advance(1, track((0, 50), (2, 150), (4, 300)))) == [(0, 50), (2, 150), (4, 200)]
    assert entries(merger.advance(0, track((5, 250)))) == [(5, 250)]
    assert merger.combined_ms == 250


def test_an_idle_channel_does_not_hold_back_and_realigns_before_it_does() -> None:
    merger = WatermarkMerger(2)
    merger.advance_to(0, 100)
    assert merger.set_status(1, IDLE) == (None, 100)
    assert merger.advance_to(0, 200) == 200
    assert merger.advance_to(1, 50) is None  # time of an idle channel is not heard
    assert merger.set_status(1, ACTIVE) == (None, None)
    assert merger.advance_to(1, 150) is None  # behind: not yet aligned, holds nothing
    assert merger.advance_to(0, 300) == 300
    assert merger.advance_to(1, 310) is None
    assert merger.advance_to(0, 400) == 310  # aligned again: holds back


def test_all_idle_lifts_to_the_highest_and_is_forwarded_once() -> None:
    merger = WatermarkMerger(2)
    merger.advance_to(0, 100)
    merger.advance_to(1, 60)
    assert merger.set_status(0, IDLE) == (None, None)
    assert merger.set_status(1, IDLE) == (IDLE, 100)
    assert merger.set_status(1, IDLE) == (None, None)
    assert merger.set_status(0, ACTIVE) == (ACTIVE, None)


def test_only_unaligned_channels_left_lift_nothing() -> None:
    merger = WatermarkMerger(2)
    merger.advance_to(0, 100)
    merger.set_status(1, IDLE)
    merger.set_status(1, ACTIVE)
    assert merger.set_status(0, IDLE) == (None, None)
    assert merger.combined_ms == 100


def naive(levels: list[int], last: int, interval: int) -> list[tuple[int, int]]:
    found = []
    for row, level in enumerate(levels):
        if level - last > interval:
            found.append((row + 1, level))
            last = level
    return found


@pytest.mark.parametrize("seed", range(30))
def test_emissions_follow_the_recurrence(seed: int) -> None:
    rng = random.Random(seed)
    levels, level = [], rng.choice([0, 1_700_000_000_000, -5000])
    for _ in range(rng.randrange(400)):
        level += rng.choice([0, 0, 1, 50, 199, 200, 201, 5000])
        levels.append(level)
    for interval in (0, 200):
        for last in (0, MIN_WATERMARK):
            found = emissions(np.array(levels, np.int64), last, interval)
            assert entries(found) == naive(levels, last, interval)
