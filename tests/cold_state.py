"""Jobs on ``rocksdb`` whose state leaves memory after each element, and the proof that it did."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, Final

import pytest

from flowsql_core.config import Configuration
from flowsql_runtime.cluster import deploy
from flowsql_runtime.operators.base import Operator
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.testing import harness

#: No byte of state may stay in memory between two elements.
COLD: Final = {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1"}
#: The options of a job by the backend that it runs on.
BACKENDS: Final[dict[str, dict[str, str]]] = {"hashmap": {}, "rocksdb": COLD}


class ColdOperators:
    """The operators of jobs that ran on ``rocksdb``, and whether their state was in RocksDB."""

    def __init__(self) -> None:
        self._seen: list[tuple[type, RocksDBBackend]] = []

    def note(self, operator: Operator[Any]) -> None:
        """An operator gets its state."""
        if isinstance(operator.ctx.state, RocksDBBackend):
            self._seen.append((type(operator.spec), operator.ctx.state))

    def clear(self) -> None:
        """Forget what was seen."""
        self._seen.clear()

    def specs(self) -> set[type]:
        """The specs of operators that made stores whose slots can leave memory."""
        return {spec for spec, backend in self._seen if backend._cold_indexes or backend._entries}

    def written(self) -> set[type]:
        """Those of them that put something into RocksDB, in some subtask."""
        return {spec for spec, backend in self._seen if backend.database.batches}


def in_memory(backend: RocksDBBackend) -> int:
    """Keys and objects in memory that could leave it."""
    keys = sum(index.in_memory() for index in backend._cold_indexes if not index.region.queues)
    return keys + sum(map(len, backend._entries.values()))


@pytest.fixture
def cold_operators(monkeypatch: pytest.MonkeyPatch) -> ColdOperators:
    """Watches operators as they are set up; where no state may stay in memory, none does."""
    found = ColdOperators()
    setup, settle = Operator.setup, RocksDBBackend.settle

    def watched(self: Operator[Any], ctx: Any, output: Any) -> None:
        setup(self, ctx, output)
        found.note(self)

    def settled(self: RocksDBBackend) -> None:
        settle(self)
        assert self._settings.resident_bytes or not in_memory(self)

    monkeypatch.setattr(Operator, "setup", watched)
    monkeypatch.setattr(RocksDBBackend, "settle", settled)
    return found


def on_each_backend(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs and harnesses get these options for their state, whatever others they have."""
    make_state = deploy.make_state

    def making(stateful: bool, most: int, parallelism: int, subtask: int, given: Configuration, memory: Any) -> Any:
        return make_state(stateful, most, parallelism, subtask, given.with_layer(options), memory)

    for module in (deploy, harness):
        monkeypatch.setattr(module, "make_state", making)


@pytest.fixture(params=sorted(BACKENDS))
def each_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, cold_operators: ColdOperators) -> str:
    """The test runs once on each backend; no state stays in memory on ``rocksdb``."""
    on_each_backend(BACKENDS[request.param], monkeypatch)
    found: str = request.param
    return found


def leave_to_chaos(items: Iterable[pytest.Item]) -> None:
    """Of tests marked as ``sampled`` most that run on ``rocksdb`` are left to ``make chaos``; always the same ones."""
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and "rocksdb" in item.name and zlib.crc32(item.name.encode()) % mark.args[0]:
            item.add_marker(pytest.mark.nightly)
