"""Snapshots as bytes: dealt out by kind and key group, checked to the last bit, whole or not there."""

from __future__ import annotations

import os
import random
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest
import xxhash
from pyarrow import fs

from flowsql_core.errors import ConnectorError
from flowsql_runtime.checkpoint.encode import WHOLE_ROWS, decode_keyed, encode_keyed
from flowsql_runtime.checkpoint.manifest import CorruptSnapshotError, Manifest, decode_manifest, encode_manifest
from flowsql_runtime.checkpoint.of_snapshots import reader_of
from flowsql_runtime.checkpoint.recovery import SnapshotReader, open_snapshot
from flowsql_runtime.checkpoint.storage import (
    METADATA,
    LocalStorage,
    MemoryStorage,
    RemoteStorage,
    below,
    open_folder,
    open_storage,
)
from flowsql_runtime.checkpoint.write import publish_within
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.task.restore import TaskPlace


def table(rows: int, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    groups = draw.integers(0, 128, rows).astype(np.int32)
    return pa.table({"__key_group": groups, "n": np.arange(rows), "s": [f"s{i}" for i in range(rows)]})


def test_state_is_dealt_out_by_its_kind() -> None:
    keyed = pa.table({"__key_group": pa.array([1, 90], pa.int32())})
    old = [
        OperatorSnapshot({"s": keyed}, {"l": (b"1", b"2")}, {"u": (b"x",)}, {"b": b"same"}, (5, 7)),
        OperatorSnapshot({"s": keyed}, {"l": (b"3",)}, {"u": (b"y",)}, {"b": b"same"}, (6, 4)),
    ]
    reader = reader_of({"op": old}, 128)
    ranges = [range(0, 43), range(43, 86), range(86, 128)]
    places = [TaskPlace(subtask, 3, groups, 128) for subtask, groups in enumerate(ranges)]
    new = [reader.task(["op"], place).operators["op"] for place in places]
    assert [snapshot.lists["l"] for snapshot in new] == [(b"1",), (b"2",), (b"3",)]
    assert all(snapshot.union["u"] == (b"x", b"y") for snapshot in new)
    assert all(snapshot.broadcast == {"b": b"same"} for snapshot in new)
    assert all(snapshot.watermarks_ms == (5, 4) for snapshot in new)
    assert [snapshot.keyed["s"].num_rows if "s" in snapshot.keyed else 0 for snapshot in new] == [2, 0, 2]
    assert reader.operator_lists("op", "l") == [b"1", b"2", b"3"]
    assert reader.operator_lists("other", "l") is None


@pytest.mark.parametrize("rows", [0, 1, WHOLE_ROWS, WHOLE_ROWS + 1, 50_000])
@pytest.mark.parametrize("compress", [False, True])
def test_keyed_state_comes_back_by_key_groups_in_its_order(rows: int, compress: bool) -> None:
    whole = table(rows)
    parts = list(encode_keyed(whole, compress))
    assert sum(part.rows for part in parts) == rows
    for wanted in (range(0, 128), range(17, 23), range(127, 128)):
        found = decode_keyed(
            (p.data for p in parts if p.groups and p.groups[0] < wanted.stop and p.groups[1] >= wanted.start), wanted
        )
        groups = whole.column("__key_group").to_numpy()
        mine = whole.filter(pa.array((groups >= wanted.start) & (groups < wanted.stop)))
        assert (0 if found is None else found.num_rows) == mine.num_rows
        if found is not None:
            for group in range(wanted.start, wanted.stop):
                here = pa.compute.equal(found.column("__key_group"), group)
                there = pa.compute.equal(mine.column("__key_group"), group)
                assert found.filter(here).column("n").to_pylist() == mine.filter(there).column("n").to_pylist()


def saved(root: Path, name: str = "chk-1", rows: int = 20_000) -> Path:
    snapshot = OperatorSnapshot({"state": table(rows)}, {"l": (b"split",)}, watermarks_ms=(1, 1))
    reader_of({"op": [snapshot, snapshot]}, 128, LocalStorage(str(root)).folder(name))
    return root / name


def cut(file: Path, draw: random.Random) -> None:
    file.write_bytes(file.read_bytes()[: draw.randrange(file.stat().st_size)])


def flip(file: Path, draw: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    file.write_bytes(data)


def remove(file: Path, draw: random.Random) -> None:
    file.unlink()


@pytest.mark.parametrize("damage", [cut, flip, remove])
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_is_named_and_the_older_snapshot_is_used(
    tmp_path: Path, damage: Callable[[Path, random.Random], None], seed: int
) -> None:
    older, newer = saved(tmp_path, "chk-1", 5_000), saved(tmp_path, "chk-2")
    draw = random.Random(seed)
    file = draw.choice(sorted(newer.iterdir()))
    before = file.read_bytes()
    damage(file, draw)
    if file.exists() and _only_padding(before, file.read_bytes(), newer):
        pytest.skip("the damage struck the gap between two parts")
    gone = file.name == METADATA and damage is remove
    with pytest.raises(ConnectorError) as raised:
        SnapshotReader(LocalStorage(str(tmp_path)).folder("chk-2"))
    assert file.name in raised.value.message
    assert isinstance(raised.value, CorruptSnapshotError) or gone
    assert open_snapshot(str(tmp_path)).folder.path == str(older)


def _only_padding(before: bytes, after: bytes, folder: Path) -> bool:
    """Whether only bytes that belong to no part differ."""
    if len(before) != len(after):
        return False
    try:
        SnapshotReader(LocalStorage(str(folder.parent)).folder(folder.name))
    except ConnectorError:
        return False
    (place,) = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    return before[place] == 0


def test_snapshots_of_format_1_are_read(tmp_path: Path) -> None:
    folder = saved(tmp_path, rows=100)
    data = (folder / METADATA).read_bytes()
    magic, _, reserved, length = struct.unpack_from("<8sHHQ", data)
    header = orjson.loads(data[20 : 20 + length])
    # What format 1 did not know.
    del header["checkpointed_bytes"]
    for state in header["operators"]["op"]["subtasks"]:
        assert state.pop("native") is None
    text = orjson.dumps(header)
    body = struct.pack("<8sHHQ", magic, 1, reserved, len(text)) + text + data[20 + length : -16]
    (folder / METADATA).write_bytes(body + xxhash.xxh3_128_digest(body))
    reader = open_snapshot(str(folder))
    assert reader.manifest.checkpointed_bytes is None
    found = reader.task(["op"], TaskPlace(0, 1, range(128), 128)).operators["op"]
    assert found.keyed["state"].num_rows == 200
    body = struct.pack("<8sHHQ", magic, 4, reserved, len(text)) + text
    (folder / METADATA).write_bytes(body + xxhash.xxh3_128_digest(body))
    with pytest.raises(ConnectorError, match="has format 4; this version of FlowSQL reads the formats 1, 2 and 3"):
        open_snapshot(str(folder))


def test_committables_stand_behind_the_header() -> None:
    prepared = {"one": (b"\0\xff" * 40, b""), "two": (b"x",)}
    manifest = Manifest(7, "checkpoint", 0, "", "", {}, committables=prepared)
    data = encode_manifest(manifest, b"inline")
    found, behind = decode_manifest(memoryview(data), "here")
    assert found == manifest
    assert bytes(behind[:6]) == b"inline"
    # In format 2 they were digits in the header.
    magic, _, reserved, length = struct.unpack_from("<8sHHQ", data)
    digits = {uid: [one.hex() for one in parts] for uid, parts in prepared.items()}
    header = orjson.dumps({**orjson.loads(data[20 : 20 + length]), "committables": digits})
    body = struct.pack("<8sHHQ", magic, 2, reserved, len(header)) + header + b"inline"
    older, behind = decode_manifest(memoryview(body + xxhash.xxh3_128_digest(body)), "here")
    assert (older, bytes(behind)) == (manifest, b"inline")


def test_without_a_readable_snapshot_the_damage_is_told(tmp_path: Path) -> None:
    flip(saved(tmp_path) / METADATA, random.Random(3))
    with pytest.raises(CorruptSnapshotError, match="_metadata"):
        open_snapshot(str(tmp_path))


def test_a_folder_without_snapshots_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="no checkpoint or savepoint"):
        open_snapshot(str(tmp_path))


def test_a_folder_whose_metadata_is_not_there_yet_is_no_snapshot(tmp_path: Path) -> None:
    folder = LocalStorage(str(tmp_path)).folder("chk-7")
    folder.write("1-0.state", [b"half"])
    (tmp_path / "chk-7" / f".{METADATA}.inprogress").write_bytes(b"half")
    assert LocalStorage(str(tmp_path)).snapshots() == []


def test_the_newest_checkpoint_is_the_one_with_the_highest_number(tmp_path: Path) -> None:
    for number in (9, 10, 2):
        saved(tmp_path, f"chk-{number}", 10)
    assert LocalStorage(str(tmp_path)).snapshots() == ["chk-2", "chk-9", "chk-10"]


def test_memory_holds_what_was_published_until_it_is_removed() -> None:
    storage = MemoryStorage()
    folder = storage.folder("chk-1")
    folder.write("a", [b"1", memoryview(b"23")])
    assert storage.snapshots() == []
    folder.publish(b"m")
    assert storage.snapshots() == ["chk-1"]
    assert bytes(folder.read("a")) == b"123"
    folder.remove()
    assert storage.snapshots() == []


def test_a_storage_that_refuses_says_where_and_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConnectorError, match="chk-1") as raised:
        LocalStorage(str(tmp_path / "file")).folder("chk-1").write("x", [b"1"])
    assert raised.value.retryable


def test_any_file_system_of_arrow_holds_snapshots(tmp_path: Path) -> None:
    storage = RemoteStorage(fs.LocalFileSystem(), str(tmp_path), f"test://{tmp_path}")
    folder = storage.folder("chk-3")
    folder.write("a", [b"abc"])
    folder.publish(b"meta")
    assert storage.snapshots() == ["chk-3"]
    assert bytes(folder.read("a")) == b"abc"
    with pytest.raises(ConnectorError, match="missing"):
        folder.read("b")
    folder.remove()
    assert storage.snapshots() == []


def test_files_of_one_snapshot_may_be_written_at_the_same_time(tmp_path: Path) -> None:
    folder = LocalStorage(str(tmp_path)).folder("chk-1")
    data = [bytes([number]) * 100_000 for number in range(8)]
    threads = [threading.Thread(target=folder.write, args=(f"{n}", [data[n]])) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bytes(folder.read(f"{n}")) for n in range(8)] == data


def test_fsspec_opens_what_arrow_does_not_know(tmp_path: Path) -> None:
    storage = open_storage(below("memory://checkpoints", "job"))
    folder = storage.folder("chk-3")
    folder.write("a", [b"abc"])
    folder.publish(b"meta")
    assert storage.snapshots() == ["chk-3"]
    assert bytes(open_folder("memory://checkpoints/job/chk-3").read("a")) == b"abc"
    folder.remove()
    assert storage.snapshots() == []


def test_options_of_a_uri_stay_behind_its_path() -> None:
    assert below("s3://bucket/c?endpoint_override=localhost:9000", "job") == (
        "s3://bucket/c/job?endpoint_override=localhost:9000"
    )
    assert below("/tmp/what?/", "job") == "/tmp/what?/job"


def test_an_unknown_scheme_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConnectorError, match="nowhere://x"):
        open_storage("nowhere://x")


def test_a_storage_that_hangs_at_the_end_of_a_job_is_given_up(tmp_path: Path) -> None:
    """A pipe that nobody reads: opening it hangs. What arrives after all does not count and goes."""
    folder = LocalStorage(str(tmp_path)).folder("chk-1")
    os.makedirs(folder.path)
    pipe = tmp_path / "chk-1" / f".{METADATA}.inprogress"
    os.mkfifo(pipe)
    assert not publish_within(folder, b"metadata", 0.05)
    with open(pipe, "rb"):
        deadline = time.monotonic() + 20
        while os.path.exists(folder.path):
            assert time.monotonic() < deadline
            time.sleep(0.001)
    assert publish_within(folder, b"metadata", 20)
    assert bytes(folder.read(METADATA)) == b"metadata"
