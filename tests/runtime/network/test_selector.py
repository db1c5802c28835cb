from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.keys import key_groups, subtask_of
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.errors import InternalError
from flowsql_core.graph.job import Partitioning, ShipStrategy
from flowsql_runtime.network.selector import ChannelSelector, make_selector, receivers


def batch(n: int, track: WatermarkTrack | None = None) -> ChangelogBatch:
    keys = pa.array([None if i % 7 == 0 else i % 50 for i in range(n)], pa.int64())
    return ChangelogBatch.of([keys, pa.array([str(i) for i in range(n)])], np.arange(n, dtype=np.uint8) % 4, track)


def selector(
    strategy: ShipStrategy,
    channels: int,
    keys: tuple[int, ...] = (),
    resource: str | None = None,
    resources: Mapping[str, Any] | None = None,
) -> ChannelSelector:
    return make_selector(Partitioning(strategy, keys, resource), channels, 128, random.Random(3), resources or {})


def texts(part: ChangelogBatch | None) -> list[str]:
    return [] if part is None else part.columns[1].to_pylist()


@pytest.mark.parametrize("channels", [2, 3, 5])
def test_hash_keeps_keys_together_in_order_with_the_whole_track(channels: int) -> None:
    track = WatermarkTrack(np.array([10, 500, 1000], np.int32), np.array([1, 2, 3], np.int64))
    whole = batch(1000, track)
    parts = selector(ShipStrategy.HASH, channels, keys=(0,)).select(whole)
    owner = subtask_of(key_groups([whole.columns[0]], 128), 128, channels)
    for index, part in enumerate(parts):
        rows = np.flatnonzero(owner == index)
        assert part is not None
        assert texts(part) == [str(row) for row in rows]
        assert part.kinds is not None
        assert part.kinds.tolist() == (rows % 4).tolist()
        assert part.track is not None
        assert part.track.wm_ms.tolist() == [1, 2, 3]
        assert part.track.offsets.tolist() == [int((rows < at).sum()) for at in (10, 500, 1000)]


def test_a_channel_without_rows_gets_none() -> None:
    one_key = ChangelogBatch.of([pa.array([5, 5, 5], pa.int64())])
    parts = selector(ShipStrategy.HASH, 4, keys=(0,)).select(one_key)
    assert [part is None for part in parts].count(True) == 3
    assert one_key in parts  # not copied


def test_hash_without_keys_and_global_send_all_to_the_first() -> None:
    for found in (selector(ShipStrategy.HASH, 3), selector(ShipStrategy.GLOBAL, 3)):
        parts = found.select(batch(9))
        assert [len(texts(part)) for part in parts] == [9, 0, 0]


def test_rebalance_goes_on_where_it_stopped() -> None:
    found = selector(ShipStrategy.REBALANCE, 3)
    counts = np.zeros(3, int)
    for _ in range(10):
        counts += [len(texts(part)) for part in found.select(batch(1))]
    assert sorted(counts) == [3, 3, 4]


def test_rescale_feeds_neighbours() -> None:
    assert [receivers(ShipStrategy.RESCALE, i, 2, 4) for i in range(2)] == [range(2), range(2, 4)]
    assert [receivers(ShipStrategy.RESCALE, i, 4, 2) for i in range(4)] == [
        range(1),
        range(1),
        range(1, 2),
        range(1, 2),
    ]
    parts = selector(ShipStrategy.RESCALE, 2).select(batch(4))
    assert [texts(part) for part in parts] == [["0", "2"], ["1", "3"]]


def test_shuffle_loses_nothing_and_uses_every_channel() -> None:
    parts = selector(ShipStrategy.SHUFFLE, 4).select(batch(400))
    assert sorted(int(text) for part in parts for text in texts(part)) == list(range(400))
    assert all(texts(part) for part in parts)


def test_broadcast_shares_one_batch() -> None:
    whole = batch(3)
    assert all(part is whole for part in selector(ShipStrategy.BROADCAST, 3).select(whole))


def test_forward_goes_to_the_same_subtask_and_needs_equal_parallelism() -> None:
    assert receivers(ShipStrategy.FORWARD, 1, 3, 3) == range(1, 2)
    parts = selector(ShipStrategy.FORWARD, 1).select(batch(2))
    assert [len(texts(part)) for part in parts] == [2]
    with pytest.raises(InternalError):
        receivers(ShipStrategy.FORWARD, 0, 2, 3)


def test_custom_partitioner_must_name_existing_channels() -> None:
    def by_length(rows: ChangelogBatch, channels: int) -> np.ndarray:
        return np.arange(rows.num_rows, dtype=np.int32) % channels

    parts = selector(ShipStrategy.CUSTOM, 2, resource="p", resources={"p": by_length}).select(batch(4))
    assert [texts(part) for part in parts] == [["0", "2"], ["1", "3"]]
    bad = selector(ShipStrategy.CUSTOM, 2, resource="p", resources={"p": lambda rows, channels: np.full(4, 2)})
    with pytest.raises(InternalError):
        bad.select(batch(4))
