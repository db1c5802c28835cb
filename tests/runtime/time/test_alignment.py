"""Groups of sources with splits of any lengths and speeds: whoever is behind reads, and nobody else is far ahead."""

from __future__ import annotations

import random

import pytest

from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.graph.specs import WatermarkAlignment
from flowsql_runtime.time.alignment import BATCH_ROWS, AlignedSource, AlignmentGroups

DRIFT_MS = 500
ALIGNMENT = WatermarkAlignment("g", DRIFT_MS, 20)


class Source:
    """Reads splits, which are lists of rising times."""

    def __init__(self, groups: AlignmentGroups, name: str, splits: dict[str, list[int]], pauses: bool = True) -> None:
        self.levels: dict[str | None, int] = {}
        self.unfinished = set(splits)
        self.splits = {split: list(times) for split, times in splits.items()}
        self.pauses = pauses
        self.pending = False
        self.aligned = AlignedSource(ALIGNMENT, groups, name, self.levels, self.unfinished, self._later)
        self.aligned.of_splits = True
        self.aligned.pauses = pauses
        self.aligned.look()

    def _later(self, after_ms: int) -> None:
        assert after_ms == ALIGNMENT.update_interval_ms
        assert not self.pending
        self.pending = True

    def tick(self) -> None:
        if self.pending:
            self.pending = False
            self.aligned.interval_over()

    def read(self, most: int) -> None:
        assert not self.aligned.waits
        split = next(split for split in self.splits if split not in self.aligned.paused)
        rows = self.aligned.most_rows(most)
        times = self.splits[split]
        if times:
            self.levels[split] = times[: max(rows, 1)][-1]
        del times[:rows]
        if not times:
            del self.splits[split]
            self.unfinished.discard(split)
        if self.unfinished:
            self.aligned.look()
        else:
            self.aligned.leave()


def rising(rng: random.Random) -> list[int]:
    at, times = rng.randrange(3_000), []
    for _ in range(rng.randrange(120)):
        at += rng.randrange(1, rng.choice((3, 100)))
        times.append(at)
    return times


@pytest.mark.parametrize("seed", range(40))
def test_somebody_always_reads_and_nobody_runs_ahead(seed: int) -> None:
    rng = random.Random(seed)
    groups = AlignmentGroups()
    for number in range(4):
        groups.report("g", f"s{number}", MIN_WATERMARK)
    left = [
        Source(groups, f"s{number}", {f"{number}/{at}": rising(rng) for at in range(rng.randrange(1, 6))}, pauses)
        for number, pauses in enumerate(rng.choices((True, False), (3, 1), k=4))
    ]
    while left:
        reading = [source for source in left if not source.aligned.waits]
        if not reading or rng.random() < 0.3:
            for source in left:
                source.tick()
            reading = [source for source in left if not source.aligned.waits]
            assert reading, "all wait for each other"
            begun = [source for source in left if source.unfinished <= source.levels.keys()]
            if len(begun) == len(left):
                lowest = min(source.levels[split] for source in left for split in source.unfinished)
                for source in reading:
                    ahead = {split for split in source.unfinished if source.levels[split] > lowest + DRIFT_MS}
                    assert ahead <= source.aligned.paused or not source.pauses
        source = rng.choice(reading)
        source.read(rng.randrange(1, 8))
        left = [source for source in left if source.unfinished]


def test_the_first_row_of_each_split_comes_before_the_second_of_any() -> None:
    source = Source(AlignmentGroups(), "s", {"a": [10, 20], "b": [5, 6], "c": [900]})
    assert source.aligned.most_rows(5_000) == 1
    for paused in ({"a"}, {"a", "b"}):
        source.read(5_000)
        assert source.aligned.paused == paused
    source.read(5_000)
    assert source.aligned.paused == frozenset()
    assert source.aligned.most_rows(5_000) == BATCH_ROWS
    source.aligned.leave()


def test_a_split_that_comes_later_is_begun_at_once() -> None:
    groups = AlignmentGroups()
    groups.report("g", "other", 100)
    source = Source(groups, "s", {"a": [700, 800]})
    source.read(1)
    assert source.aligned.waits
    source.splits["b"] = [90, 95]
    source.unfinished.add("b")
    source.aligned.look()
    assert not source.aligned.waits
    assert source.aligned.paused == {"a"}
    source.read(9)
    assert source.levels["b"] == 90
    assert groups.report("g", "other", 5_000) == 90


def test_who_has_nothing_to_read_counts_with_the_last_watermark_if_there_is_one() -> None:
    groups = AlignmentGroups()
    source = Source(groups, "s", {})
    assert groups.report("g", "other", 900) == 900
    source.aligned.emitted_ms = 100
    source.aligned.look()
    assert groups.report("g", "other", 900) == 100
    source.aligned.idle = True
    source.aligned.look()
    assert groups.report("g", "other", MAX_WATERMARK) == MAX_WATERMARK


def test_a_negative_drift_is_none() -> None:
    levels: dict[str | None, int] = {"a": 5}
    aligned = AlignedSource(
        WatermarkAlignment("g", -1, 0), AlignmentGroups(), "s", levels, {"a"}, lambda after_ms: None
    )
    aligned.look()
    assert not aligned.waits
