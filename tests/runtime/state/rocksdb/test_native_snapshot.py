"""Checkpoints that refer to files of RocksDB: what they hold, what they write, how they are restored."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_runtime.checkpoint.completed import CompletedCheckpoint
from flowsql_runtime.checkpoint.manifest import CorruptSnapshotError
from flowsql_runtime.checkpoint.recovery import SnapshotReader, newest_readable
from flowsql_runtime.checkpoint.settings import Retention
from flowsql_runtime.checkpoint.shared_files import SharedUpload
from flowsql_runtime.checkpoint.storage import METADATA, SHARED, LocalFolder, MemoryStorage, open_storage
from flowsql_runtime.state.backend import KeyedStateBackend
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.object_store import ObjectStore
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.stores import StoredColumn

from .checkpoints import GROUPS, Checkpoints, files_of, incremental, restored
from .test_cold_state import EACH, LONG, STEPS, Steps, in_any_order, times, windows


def makers(tmp_path: Path, name: str) -> list[Callable[[range], KeyedStateBackend]]:
    """The backends that take a snapshot over: ``name`` says which, and how many subtasks."""
    hashmap: Callable[[range], KeyedStateBackend] = lambda groups: HashMapBackend(GROUPS, groups)  # noqa: E731
    rocksdb: Callable[[range], KeyedStateBackend] = lambda groups: incremental(tmp_path, groups)  # noqa: E731
    return [hashmap if "hashmap" in name else rocksdb] * int(name[-1])


def comparable(make: Steps, seen: Any) -> Any:
    """What a step saw, without what tables do not keep: keys that have no rows, the order of one window's keys."""
    if make is times:
        return [*seen[:2], *seen[3:]]
    if make is windows and len(seen) > 4:
        return [*seen[:4], sorted(zip(*seen[4:], strict=True), key=repr)]
    return seen


@pytest.mark.parametrize("to", ["rocksdb-1", "rocksdb-3", "hashmap-1", "hashmap-2"])
@pytest.mark.parametrize("make", EACH, ids=lambda make: make.__name__)
def test_each_store_goes_on_from_files(make: Steps, to: str, tmp_path: Path) -> None:
    first, model = incremental(tmp_path), HashMapBackend()
    steps = [(first, make(first), random.Random(8)), (model, make(model), random.Random(8))]
    checkpoints = Checkpoints(tmp_path / "job")
    for now in range(STEPS // 2):
        if now == STEPS // 2 - 3:
            checkpoints.take(first)
        for store, step, rng in steps:
            # At the end some keys are in memory, of which the files have an old state, or which are gone.
            if now != STEPS // 2 - 1:
                store.settle()
            step(rng, now)
    manifest = checkpoints.take(first)
    assert manifest.natives()
    first.close()
    found = restored(checkpoints.newest(), makers(tmp_path, to), make)
    expected = in_any_order(model.snapshot())
    tables: dict[str, list[str]] = {}
    for backend, _ in found:
        for name, rows in in_any_order(backend.snapshot()).items():
            tables.setdefault(name, []).extend(rows)
    assert {name: sorted(rows) for name, rows in tables.items()} == expected
    if len(found) == 1:
        again = HashMapBackend()
        again.restore(model.snapshot())
        both = [(again, make(again), random.Random(9)), (*found[0], random.Random(9))]
        for now in range(STEPS // 2, STEPS):
            seen = []
            for store, step, rng in both:
                seen.append(step(rng, now))
                store.settle()
            assert comparable(make, seen[0]) == comparable(make, seen[1]), now
        assert in_any_order(again.snapshot()) == in_any_order(found[0][0].snapshot())
    for backend, _ in found:
        backend.close()
    assert not any((tmp_path / "local").iterdir())


def numbers(backend: KeyedStateBackend) -> Callable[[range, int], None]:
    """Writes a value to some keys."""
    index = backend.key_index([pa.int64()])
    store = backend.column_store("c", index, [StoredColumn("v", pa.int64()), StoredColumn("t", pa.string())])

    def write(keys: range, value: int) -> None:
        slots, _ = index.find_or_insert(index.encode([pa.array(keys)]))
        store.scatter(slots, [pa.array([value] * len(keys)), pa.array([f"{LONG}{key} {value}" for key in keys])])
        backend.settle()

    return write


def values(backend: KeyedStateBackend) -> dict[int, int]:
    table = backend.snapshot()["c"]
    return dict(zip(table.column("k0").to_pylist(), table.column("v:v").to_pylist(), strict=True))


def test_what_is_written_is_what_changed(tmp_path: Path) -> None:
    # Compactions, which write files anew, come when they like.
    backend = incremental(tmp_path, **{"state.backend.rocksdb.compaction.style": "NONE"})
    write = numbers(backend)
    checkpoints = Checkpoints(tmp_path / "job")
    write(range(100_000), 0)
    first = checkpoints.take(backend)
    on_disk = sum(path.stat().st_size for path in checkpoints.root.rglob("*") if path.is_file())
    assert first.checkpointed_bytes == first.size_bytes > 1_000_000
    assert on_disk >= first.size_bytes
    write(range(5), 1)
    second = checkpoints.take(backend)
    written = sum(path.stat().st_size for path in checkpoints.root.rglob("*") if path.is_file()) - on_disk
    assert files_of(first) < files_of(second)
    assert second.checkpointed_bytes is not None
    assert max(written, second.checkpointed_bytes) < first.size_bytes // 8 < second.size_bytes
    # Nothing changed: nothing but what says so is written.
    third = checkpoints.take(backend)
    assert files_of(third) == files_of(second)
    assert third.checkpointed_bytes is not None
    assert third.checkpointed_bytes < 10_000
    backend.close()


@pytest.mark.parametrize("retained", [1, 3])
def test_files_stay_as_long_as_somebody_refers_to_them(retained: int, tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    write = numbers(backend)
    checkpoints = Checkpoints(tmp_path / "job", retained)
    write(range(3_000), 0)
    manifests = []
    for round_ in range(1, 9):
        manifests.append(checkpoints.take(backend))
        kept = manifests[-retained:]
        assert checkpoints.shared() == set().union(*map(files_of, kept))
        folders = sorted(path.name for path in checkpoints.root.glob("chk-*"))
        assert folders == [f"chk-{one.checkpoint_id}" for one in kept]
        write(range(100 * round_, 100 * round_ + 500), round_)
        if round_ == 5:
            backend.database._db.compact_range(None, None)
    assert not files_of(manifests[0]) <= checkpoints.shared(), "nothing was ever compacted, so nothing was deleted"
    expected = {key: max((r for r in range(1, 8) if 100 * r <= key < 100 * r + 500), default=0) for key in range(3_000)}
    for older in checkpoints.completed.newest_first():
        SnapshotReader(older.folder)
    ((again, _),) = restored(checkpoints.newest(), makers(tmp_path, "rocksdb-1"), numbers)
    assert values(again) == expected
    backend.close()
    again.close()


def test_a_checkpoint_that_is_given_up_leaves_nothing_and_takes_nothing(tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    write = numbers(backend)
    checkpoints = Checkpoints(tmp_path / "job")
    write(range(2_000), 0)
    first = checkpoints.take(backend)
    write(range(5), 1)
    checkpoints.take(backend, complete=False)
    assert checkpoints.shared() == files_of(first)
    SnapshotReader(checkpoints.newest())
    second = checkpoints.take(backend)
    assert files_of(first) < files_of(second) == checkpoints.shared()
    backend.close()


@pytest.mark.parametrize("where", ["memory", "fsspec"])
def test_other_storages_share_files_as_well(where: str, tmp_path: Path) -> None:
    storage = MemoryStorage() if where == "memory" else open_storage(f"memory:/{tmp_path}/job")
    backend = incremental(tmp_path)
    write = numbers(backend)
    checkpoints = Checkpoints(tmp_path, storage=storage)
    write(range(2_000), 0)
    first = checkpoints.take(backend)
    write(range(5), 1)
    second = checkpoints.take(backend)
    assert files_of(first) < files_of(second)
    for to in ("rocksdb-1", "hashmap-1"):
        ((again, _),) = restored(checkpoints.newest(), makers(tmp_path, to), numbers)
        assert values(again) == {key: int(key < 5) for key in range(2_000)}
        again.close()
    checkpoints.completed.close(Retention.NONE, finished=True, failed=False)
    shared = storage.folder(SHARED)
    for name in files_of(second):
        with pytest.raises(ConnectorError, match="missing"):
            shared.read(name)
    backend.close()


def test_what_was_claimed_from_another_storage_is_written_again(tmp_path: Path) -> None:
    """A checkpoint refers to nothing outside of the folder of its jobs."""
    storage = open_storage(f"memory:/{tmp_path}/old")
    backend = incremental(tmp_path)
    numbers(backend)(range(2_000), 0)
    old = Checkpoints(tmp_path, storage=storage)
    first = old.take(backend)
    backend.close()
    new = Checkpoints(tmp_path / "new")
    new.completed.add(CompletedCheckpoint(old.newest(), first))
    ((again, write),) = restored(old.newest(), makers(tmp_path, "rocksdb-1"), numbers)
    new._next = 2
    write(range(1), 1)
    second = new.take(again)
    (native,) = second.natives()
    assert all(one.file.startswith("shared/") for one in native.shared)
    ((third, _),) = restored(new.newest(), makers(tmp_path, "hashmap-1"), numbers)
    assert values(third) == {key: int(key < 1) for key in range(2_000)}
    # The claimed checkpoint is gone, and its files are not.
    with pytest.raises(ConnectorError, match="missing"):
        old.newest().read(METADATA)
    again.close()


def test_an_upload_that_fails_takes_back_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = incremental(tmp_path, **{"state.backend.rocksdb.checkpoint.transfer.thread.num": "1"})
    write = numbers(backend)
    checkpoints = Checkpoints(tmp_path / "job")
    write(range(2_000), 0)
    first = checkpoints.take(backend)
    write(range(1_000), 1)
    whole, written = LocalFolder.write, []

    def failing(self: LocalFolder, name: str, chunks: Any) -> None:
        written.append(name)
        if len(written) == 2:
            raise ConnectorError("snapshot-storage", "no space left")
        whole(self, name, chunks)

    upload = SharedUpload(checkpoints.completed.shared, 2, lambda *_: {})
    snapshot = backend.snapshot_async(native=True)
    native = snapshot.native()
    assert native is not None
    with monkeypatch.context() as full:
        full.setattr(LocalFolder, "write", failing)
        with pytest.raises(ConnectorError, match="no space left"):
            upload.put("op", 0, native)
    assert written[0] in checkpoints.shared()
    checkpoints.completed.shared.release(2)
    assert checkpoints.shared() == files_of(first)
    given_up = SharedUpload(checkpoints.completed.shared, 3, lambda *_: {}, lambda: True)
    with pytest.raises(ExecutionError, match="nobody waits"):
        given_up.put("op", 0, native)
    assert checkpoints.shared() == files_of(first)
    snapshot.release()
    backend.close()


def test_what_a_restored_backend_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    checkpoints = Checkpoints(tmp_path / "job")
    numbers(backend)(range(20_000), 0)
    first = checkpoints.take(backend)
    backend.close()
    ((again, write),) = restored(checkpoints.newest(), makers(tmp_path, "rocksdb-1"), numbers)
    write(range(3), 1)
    second = checkpoints.take(again)
    assert files_of(first) < files_of(second)
    assert second.checkpointed_bytes is not None
    assert second.checkpointed_bytes < first.size_bytes // 10
    again.close()
    # Two lines of files from the same beginning never meet: the names of the second are those of another database.
    ((third, write),) = restored(checkpoints.newest(), makers(tmp_path, "rocksdb-1"), numbers)
    write(range(7), 2)
    checkpoints.take(third)
    assert values(third) == {key: 2 if key < 7 else 0 for key in range(20_000)}
    ((fourth, _),) = restored(checkpoints.newest(), makers(tmp_path, "hashmap-1"), numbers)
    assert values(fourth) == values(third)
    third.close()


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_a_damaged_shared_file_is_named_and_the_older_checkpoint_used(damage: str, tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    write = numbers(backend)
    checkpoints = Checkpoints(tmp_path / "job", retained=2)
    write(range(2_000), 0)
    first = checkpoints.take(backend)
    write(range(5), 1)
    second = checkpoints.take(backend)
    (name,) = files_of(second) - files_of(first)
    file = checkpoints.root / SHARED / name
    data = file.read_bytes()
    match damage:
        case "cut":
            file.write_bytes(data[:-1])
        case "changed":
            file.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
        case _:
            file.unlink()
    with pytest.raises(CorruptSnapshotError, match=name):
        SnapshotReader(checkpoints.newest())
    readable = newest_readable(checkpoints.completed.newest_first())
    assert readable is not None
    assert readable[0].id == first.checkpoint_id
    backend.close()


def test_a_backend_that_ends_while_its_files_are_read_leaves_them_until_then(tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    numbers(backend)(range(100), 0)
    snapshot = backend.snapshot_async(native=True)
    backend.close()
    native = snapshot.native()
    assert native is not None
    assert all(path.read_bytes() for path in native.shared.values())
    snapshot.release()
    snapshot.release()
    assert not any((tmp_path / "local").iterdir())


def test_a_savepoint_is_tables_alone(tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    numbers(backend)(range(100), 3)
    snapshot = backend.snapshot_async()
    assert snapshot.native() is None
    other = HashMapBackend()
    numbers(other)
    other.restore(snapshot.tables())
    assert values(other) == dict.fromkeys(range(100), 3)
    backend.close()


def other_stores(backend: KeyedStateBackend) -> Any:
    """What :func:`numbers` makes, and one more: another query."""
    write = numbers(backend)
    index = backend.key_index([pa.string()])
    backend.accumulators("a", index, [StoredColumn("n", pa.int64(), False)])
    return write


def test_stores_that_were_made_otherwise_read_the_files(tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    numbers(backend)(range(500), 4)
    checkpoints = Checkpoints(tmp_path / "job")
    checkpoints.take(backend)
    ((again, write),) = restored(checkpoints.newest(), makers(tmp_path, "rocksdb-1"), other_stores)
    write(range(2), 5)
    assert values(again) == {key: 5 if key < 2 else 4 for key in range(500)}
    backend.close()
    again.close()


class Emptied:
    """Implements ``Expiry``: lists go when they are empty, and with ``expires`` at the time that they begin with."""

    compaction_ms = 0

    def __init__(self, expires: bool) -> None:
        self.piece = 0 if expires else None
        self.now = 0

    def now_ms(self) -> int:
        return self.now

    def expires_ms(self, value: Any) -> int:
        return int(value[0]) if value else 0

    def cleaned(self, value: Any) -> Any:
        if self.piece is not None and value and int(value[0]) <= self.now:
            return None
        return value or None


def objects(*names: str, expires: bool = False) -> Callable[[KeyedStateBackend], dict[str, ObjectStore]]:
    """Makes stores of objects."""

    def make(backend: KeyedStateBackend) -> dict[str, ObjectStore]:
        made = {}
        for name in names:
            made[name] = ObjectStore(name, GROUPS, name.startswith("window"), Emptied(expires))
            backend.register_objects(name, made[name])
        return made

    return make


@pytest.mark.parametrize("to", ["rocksdb-1", "rocksdb-2", "hashmap-1"])
def test_objects_stay_in_files(to: str, tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    stores = objects("key.a", "window.b")(backend)
    for number in range(300):
        stores["key.a"].entries[number] = [number]
        stores["window.b"].entries[f"k{number}", (number, number + 1)] = [str(number)]
    backend.settle()
    checkpoints = Checkpoints(tmp_path / "job")
    first = checkpoints.take(backend)
    # In memory now, with an old state in the files: changed, empty, and taken out.
    stores["key.a"].entries[7] = [70]
    stores["key.a"].entries[8] = []
    del stores["key.a"].entries[9]
    second = checkpoints.take(backend)
    assert second.checkpointed_bytes is not None
    assert second.checkpointed_bytes < first.size_bytes // 2
    expected_a = {number: [70] if number == 7 else [number] for number in range(300) if number not in (8, 9)}
    expected_b = {(f"k{number}", (number, number + 1)): [str(number)] for number in range(300)}

    def entries(found: list[Any], name: str) -> dict[Any, Any]:
        return {slot: value for _, made in found for slot, value in made[name].entries.items()}

    # The second store is asked for later, after a checkpoint and a savepoint that nobody asked for it before.
    found = restored(checkpoints.newest(), makers(tmp_path, to), objects("key.a"))
    assert entries(found, "key.a") == expected_a
    third = Checkpoints(tmp_path / "third")
    third.take(*(one for one, _ in found))
    for backends in (found, restored(third.newest(), makers(tmp_path, to), objects("key.a"))):
        tables = [one.snapshot()["window.b"] for one, _ in backends]
        canonical = HashMapBackend()
        made = objects("window.b")(canonical)
        for table in tables:
            canonical.restore({"window.b": table})
        assert made["window.b"].entries == expected_b
        late = [(one, objects("window.b")(one)) for one, _ in backends]
        assert entries(late, "window.b") == expected_b
        assert late[0][1]["window.b"].entries.get(("k1", "nothing")) is None
        for one, _ in backends:
            one.close()
    backend.close()


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_objects_in_files_expire(before: bool, after: bool, tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    stores = objects("key.a", expires=before)(backend)
    for number in range(1, 101):
        stores["key.a"].entries[number] = [number]
    backend.settle()
    # Of it the files have an older state, under another moment.
    stores["key.a"].entries[3][0] = 300
    checkpoints = Checkpoints(tmp_path / "job")
    checkpoints.take(backend)
    backend.close()
    for late in (False, True):
        opened = objects(*([] if late else ["key.a"]), expires=after)
        ((again, made),) = restored(checkpoints.newest(), makers(tmp_path, "rocksdb-1"), opened)
        store = (objects("key.a", expires=after)(again) if late else made)["key.a"]
        assert isinstance(store.expiry, Emptied)
        again.settle()
        store.expiry.now = 50
        again.settle()
        left = set(range(1, 101)) - (set(range(1, 51)) - {3} if after else set())
        assert {slot for slot, _ in store.entries.items()} == left
        assert store.entries[3] == [300]
        again.close()


def test_files_of_another_format_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = incremental(tmp_path)
    numbers(backend)(range(10), 0)
    checkpoints = Checkpoints(tmp_path / "job")
    with monkeypatch.context() as older:
        older.setattr("flowsql_runtime.state.rocksdb.native_snapshot.FORMAT", 0)
        checkpoints.take(backend)
    with pytest.raises(ConnectorError, match="format 0"):
        restored(checkpoints.newest(), makers(tmp_path, "rocksdb-1"), numbers)
    backend.close()


def test_keys_that_are_removed_and_come_again_between_checkpoints(tmp_path: Path) -> None:
    backend = incremental(tmp_path)
    index = backend.key_index([pa.int64()])
    store = backend.column_store("c", index, [StoredColumn("v", pa.int64())])
    checkpoints = Checkpoints(tmp_path / "job")
    rng = random.Random(4)
    model: dict[int, int] = {}
    for now in range(30):
        keys = rng.sample(range(200), 40)
        slots, _ = index.find_or_insert(index.encode([pa.array(keys)]))
        store.scatter(slots, [pa.array([now] * len(keys))])
        model |= dict.fromkeys(keys, now)
        if now % 3 == 2:
            gone = rng.sample(keys, 10)
            slots = np.sort(index.lookup(index.encode([pa.array(gone)])))
            store.clear(slots)
            index.remove(slots)
            for key in gone:
                del model[key]
        if rng.random() < 0.7:
            backend.settle()
        if now % 5 == 4:
            checkpoints.take(backend)
            for to in ("rocksdb-1", "hashmap-1"):

                def opened(found: KeyedStateBackend) -> None:
                    found.column_store("c", found.key_index([pa.int64()]), [StoredColumn("v", pa.int64())])

                ((again, _),) = restored(checkpoints.newest(), makers(tmp_path, to), opened)
                assert values(again) == model
                again.close()
    assert isinstance(backend, RocksDBBackend)
    backend.close()
