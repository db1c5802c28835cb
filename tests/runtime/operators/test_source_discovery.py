"""Splits that appear while a job runs: none is lost and none is read twice, whenever a checkpoint falls."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from flowsql_connectors import registry
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitEnumerator, TableSource
from flowsql_core.clock import ManualClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_runtime.operators.base import OperatorSnapshot, SourceStatus
from flowsql_runtime.operators.source import SPLITS, ScanOperator, decode_splits
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.testing.harness import OperatorHarness, RecordingOutput

from ..checkpoint.job_bench import eventually
from ..fake_connector import FakeReader, FakeStore
from ..graphs import NUMBERS

SCAN = ScanSpec(TableSpec(("c", "d", "t"), NUMBERS, (("connector", "fake"),)), (0, 1), NUMBERS)
UID = "ScanSpec"


class Enumerator(SplitEnumerator):
    """Finds the names in a store that it does not know."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self._known: set[str] = set()
        self._turn = 0

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        return self.assign(self.discover(parallelism), parallelism)

    def discovery_interval_ms(self) -> int | None:
        return 100

    def discover(self, parallelism: int) -> list[Split]:
        if "broken" in self._store.splits:
            del self._store.splits["broken"]
            raise OSError("the folder cannot be read")
        return [Split(name, b"0") for name in list(self._store.splits) if name not in self._known]

    def assign(self, found: list[Split], parallelism: int) -> list[list[Split]]:
        self._known.update(split.id for split in found)
        dealt: list[list[Split]] = [[] for _ in range(parallelism)]
        for split in found:
            dealt[self._turn % parallelism].append(split)
            self._turn += 1
        return dealt

    def snapshot(self) -> bytes:
        return ",".join(sorted(self._known)).encode()

    def restore(self, state: bytes) -> None:
        self._known = set(state.decode().split(","))


class Reader(FakeReader):
    """Does not end when it has nothing."""

    def poll(self, max_rows: int) -> Any:
        return super().poll(max_rows) if self._left else ReadStatus.NOTHING_NOW


class Source(TableSource):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    @property
    def bounded(self) -> bool:
        return False

    def create_enumerator(self) -> SplitEnumerator:
        return Enumerator(self._store)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return Reader(self._store)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    store = FakeStore()

    def source(scan: Any, configuration: Mapping[str, str]) -> TableSource:
        return Source(store)

    monkeypatch.setattr(registry, "create_source", source)
    return store


class Checkpoint:
    """One checkpoint: the enumerator's state at its trigger, and what the readers said at its barrier."""

    def __init__(self, number: int, state: bytes, parallelism: int) -> None:
        self.number = number
        self.state = state
        self.readers: list[OperatorSnapshot | None] = [None] * parallelism
        self.seen: list[Counter[int]] = [Counter() for _ in range(parallelism)]

    @property
    def whole(self) -> bool:
        return None not in self.readers


class Play:
    """A job of scan operators, driven step by step in any order."""

    def __init__(self, parallelism: int, restored: Checkpoint | None, seed: int) -> None:
        self.random = random.Random(seed)
        self.services = JobServices()
        if restored is not None:
            splits: list[Split] = []
            for snapshot in restored.readers:
                assert snapshot is not None
                splits += decode_splits(snapshot.lists[SPLITS])
            self.services.restore_splits(UID, splits)
            self.services.restore_enumerators({UID: restored.state} if restored.state else {})
        self.outputs = [RecordingOutput() for _ in range(parallelism)]
        self.harness = OperatorHarness(SCAN, parallelism, clock=ManualClock(), job=self.services)
        self.wakes: list[int] = []
        self.mails: list[list[Any]] = [[] for _ in range(parallelism)]
        for subtask, operator in enumerate(self.operators):
            operator.output = self.outputs[subtask]
            # New splits come as mails, which another thread may send late, and which run later.
            self.services._sources[UID].join(subtask, partial(self.wakes.append, subtask))
        self.done: Counter[int] = sum(restored.seen, Counter()) if restored is not None else Counter()
        self.number = restored.number if restored is not None else 0
        self.pending: list[Checkpoint] = []
        self.restored = self.complete = restored
        #: Of readers that went back, the rows up to there.
        self.before: list[Counter[int]] = [Counter() for _ in range(parallelism)]

    @property
    def operators(self) -> Sequence[ScanOperator]:
        return self.harness.operators  # type: ignore[return-value]

    def read(self, subtask: int) -> bool:
        return self.operators[subtask].emit_next() is SourceStatus.MORE

    def rows(self, subtask: int) -> Counter[int]:
        elements = self.outputs[subtask].elements
        shown = Counter(value for batch in elements for value in batch.columns[0].to_pylist())  # type: ignore[union-attr]
        return self.before[subtask] + shown

    def step(self, store: FakeStore, action: str) -> None:
        subtask = self.random.randrange(len(self.operators))
        match action:
            case "appear":
                name = f"s{len(store.splits)}"
                first = 10 * len(store.splits)
                store.splits[name] = [(first + at, name) for at in range(self.random.randrange(1, 4))]
            case "discover":
                self.services._sources[UID].discover()
            case "wake" if self.wakes:
                at = self.wakes.pop(0)
                self.mails[at].append(self.operators[at]._take_new)
            case "mail" if self.mails[subtask]:
                self.mails[subtask].pop(0)()
            case "read":
                self.read(subtask)
            case "trigger":
                self.number += 1
                state = self.services.snapshot_enumerators(self.number).get(UID, b"")
                pending = Checkpoint(self.number, state, len(self.operators))
                self.pending.append(pending)
                # A barrier is a mail, too.
                for at in range(len(self.operators)):
                    self.mails[at].append(partial(self._barrier, pending, at))
            case "abort" if self.pending:
                gone = self.pending.pop(self.random.randrange(len(self.pending)))
                for at, operator in enumerate(self.operators):
                    self.mails[at].append(partial(operator.notify_checkpoint_aborted, gone.number))

            case "fail":
                self._go_back(subtask)

    def _go_back(self, subtask: int) -> None:
        """One reader begins again where it was at the newest complete checkpoint; the others go on."""
        for at, operator in enumerate(self.operators):
            for gone in self.pending:
                self.mails[at].append(partial(operator.notify_checkpoint_aborted, gone.number))
        self.pending = []
        self.operators[subtask].close()
        self.mails[subtask].clear()
        newest = None if self.complete is self.restored else self.complete

        def splits(uid: str, at: int) -> list[Split] | None:
            if newest is None:
                return None
            snapshot = newest.readers[at]
            assert snapshot is not None
            return decode_splits(snapshot.lists[SPLITS])

        number = None if newest is None else newest.number
        self.services.go_back({(0, subtask)}, [(UID, subtask)], number, splits)
        seen = Counter[int]() if newest is None else newest.seen[subtask]
        self.before[subtask] = seen if subtask else seen - self.done
        again = self.harness._make(subtask, None if newest is None else newest.readers[subtask])
        self.harness.operators[subtask] = again
        self.outputs[subtask] = again.output = RecordingOutput()
        self.services._sources[UID].join(subtask, partial(self.wakes.append, subtask))

    def _barrier(self, checkpoint: Checkpoint, subtask: int) -> None:
        checkpoint.readers[subtask] = self.operators[subtask].snapshot_state(checkpoint.number)
        checkpoint.seen[subtask] = self.rows(subtask)
        if subtask == 0:
            checkpoint.seen[0] += self.done
        if checkpoint.whole and checkpoint in self.pending:
            self.pending = [one for one in self.pending if one.number > checkpoint.number]
            self.complete = checkpoint
            self.services.commit(checkpoint.number)

    def finish(self) -> Counter[int]:
        """No more checkpoints: look, take and read until nothing is left."""
        for _ in range(3):
            self.services._sources[UID].discover()
            for subtask, mails in enumerate(self.mails):
                while mails:
                    mails.pop(0)()
                self.operators[subtask].notify_checkpoint_aborted(self.number)
                while self.read(subtask):
                    pass
        return sum((self.rows(subtask) for subtask in range(len(self.operators))), self.done)


ACTIONS = ["appear", "discover", "wake", "mail", "mail", "read", "read", "trigger", "abort", "fail"]


@pytest.mark.parametrize("seed", range(60))
def test_no_split_is_lost_or_read_twice(store: FakeStore, seed: int) -> None:
    choices = random.Random(seed)
    restored: Checkpoint | None = None
    for attempt in range(4):
        play = Play(choices.randrange(1, 4), restored, choices.randrange(1 << 30))
        for _ in range(choices.randrange(10, 80)):
            play.step(store, choices.choice(ACTIONS))
        if attempt == 3:
            found = play.finish()
            assert found == Counter({row[0]: 1 for rows in store.splits.values() for row in rows})
        restored = play.complete
        play.harness.close()


def test_a_reader_that_goes_back_reads_at_once_what_it_was_given_since(store: FakeStore) -> None:
    """Also splits that were found behind a checkpoint that was given up, whose barrier it will never see."""
    play = Play(1, None, 1)
    play.services.snapshot_enumerators(1)
    store.splits["a"] = [(1, "a")]
    play.services._sources[UID].discover()
    assert not play.read(0), "it waits for the barrier"
    play._go_back(0)
    assert play.read(0)
    assert play.rows(0) == Counter([1])
    play.harness.close()


def test_new_splits_come_when_the_clock_says_so(store: FakeStore) -> None:
    harness = OperatorHarness(SCAN, 2, job=(services := JobServices()))
    assert all(operator.emit_next() is SourceStatus.NOTHING_NOW for operator in harness.operators)  # type: ignore[attr-defined]
    store.splits["broken"] = []
    harness.clock.advance(100)
    eventually(lambda: "broken" not in store.splits, "a look that failed")
    store.splits["a"] = [(1, "a")]
    eventually(lambda: harness.clock.advance(100) or any(map(_reads, harness.operators)), "the next look finds it")
    thread = services._discovery._thread  # type: ignore[union-attr]
    assert thread is not None
    harness.close()
    thread.join(20)
    assert not thread.is_alive(), "with the last reader the looking ends"


def _reads(operator: Any) -> bool:
    return bool(operator.emit_next() is SourceStatus.MORE)


def test_two_looks_at_once_find_each_split_once(store: FakeStore) -> None:
    """The thread that looks by itself and whoever else asks for a look."""
    play = Play(1, None, 1)
    coordinator = play.services._sources[UID]
    enumerator: Any = coordinator._enumerator
    look, both = enumerator.discover, threading.Barrier(2)

    def slow(parallelism: int) -> list[Split]:
        found: list[Split] = look(parallelism)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return found

    enumerator.discover = slow
    store.splits["a"] = [(1, "a")]
    looks = [threading.Thread(target=coordinator.discover) for _ in range(2)]
    for one in looks:
        one.start()
    for one in looks:
        one.join()
    assert [split.id for split in coordinator.take(0, 1)] == ["a"]
