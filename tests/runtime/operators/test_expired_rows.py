"""``table.exec.state.ttl`` on ``rocksdb``: what expired leaves the disk, though its keys never come again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.graph.specs import OperatorSpec
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.testing.harness import OperatorHarness

from ...cold_state import COLD
from . import test_aggregate as aggregate
from . import test_join as join
from . import test_sink_keys as sink

KEYS: Final = 2_000
TEXT: Final = "a text that takes its room, number "

#: A spec whose state lives for 100 ms, and the batch of a range of keys.
Case = tuple[OperatorSpec, Callable[[range], ChangelogBatch]]
CASES: Final[dict[str, Case]] = {
    "group aggregate": (
        aggregate.spec([aggregate.call("MAX", 3)], state_ttl_ms=100, input_retracts=False),
        lambda keys: aggregate.batch(
            [(0, (f"{TEXT}{key}", 5, None, f"{TEXT}{key}", None, None, None)) for key in keys]
        ),
    ),
    "distinct values": (
        aggregate.spec([aggregate.call("COUNT", 3, distinct=True)], state_ttl_ms=100, input_retracts=False),
        lambda keys: aggregate.batch(
            [(0, (f"{TEXT}{key}", 5, None, f"{TEXT}{key}", None, None, None)) for key in keys]
        ),
    ),
    "join": (
        join.spec(left_ttl_ms=100, left_retracts=False),
        lambda keys: join.batch(0, [(0, key, f"{TEXT}{key}") for key in keys]),
    ),
    "sink": (
        sink.materializer(True, ttl_ms=100),
        lambda keys: sink.batch([("+I", (f"{TEXT}{key}", key, f"{TEXT}{key}")) for key in keys]),
    ),
}


def stored(harness: OperatorHarness[Any]) -> int:
    """Bytes of what is to be found in RocksDB."""
    backend = harness.operators[0].ctx.state
    assert isinstance(backend, RocksDBBackend)
    pieces = backend.database.scan(b"", b"\xff" * 9, 1000)
    return sum(sum(map(len, keys)) + sum(map(len, values)) for keys, values in pieces)


def on_disk(harness: OperatorHarness[Any]) -> int:
    """Bytes of the files of RocksDB, after they were compacted."""
    database = harness.operators[0].ctx.state.database
    database.table_properties()  # writes the files of now
    database._db.compact_range(None, None)
    return sum(path.stat().st_size for path in database.path.glob("*.sst"))


@pytest.mark.parametrize("name", CASES)
def test_expired_rows_leave_the_disk(name: str) -> None:
    spec, batch = CASES[name]
    clock = ManualClock(1_000)
    keys = ((0,), (0,)) if name == "join" else ((sink.KEY,),) if name == "sink" else ((0,),)
    harness = OperatorHarness(spec, keys=keys, clock=clock, parameters=COLD)
    for first in range(0, KEYS, 500):
        harness.batch(batch(range(first, first + 500)))
    before, files = stored(harness), on_disk(harness)
    assert before > KEYS * 20
    clock.advance(101)
    harness.batch(batch(range(1)))
    assert stored(harness) < before / 50
    assert on_disk(harness) < files / 5
    harness.close()
