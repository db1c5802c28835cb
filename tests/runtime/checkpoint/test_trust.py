"""Snapshots as what strangers may have written: no code of theirs runs, no file of others is read or deleted."""

from __future__ import annotations

import os
import pickle
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql.table.udf import AggregateFunction, udaf
from flowsql_connectors.filesystem.part import Part as Part_
from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_runtime.checkpoint.manifest import (
    Manifest,
    NativeState,
    OperatorState,
    Part,
    SharedFile,
    SubtaskState,
    decode_manifest,
    encode_manifest,
)
from flowsql_runtime.checkpoint.storage import METADATA, LocalFolder
from flowsql_runtime.checkpoint.trust import why_foreign
from flowsql_runtime.network.batch_bytes import decode_batch, encode_batch


class Bag(AggregateFunction):
    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], value: Any) -> None:
        accumulator.append(value)

    def get_value(self, accumulator: list[Any]) -> int:
        return len(accumulator)


def stopped(folder: Path, query: str) -> Path:
    """A savepoint of a job that has seen some rows."""
    environment = opened(folder)
    result = environment.execute_sql(query)
    rows = result.collect()
    next(rows)
    client = result.get_job_client()
    assert client is not None
    return Path(client.stop_with_savepoint(False, str(folder / "savepoints")).result())


def opened(folder: Path, **options: str) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.create_temporary_function("bag", udaf(Bag(), result_type="INT", accumulator_type="ARRAY<INT>"))
    folder.mkdir(exist_ok=True)
    for key, value in options.items():
        environment.get_config().set(key.replace("__", ".").replace("_", "-"), value)
    environment.execute_sql(
        "CREATE TABLE IF NOT EXISTS numbers (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100', "
        "'fields.n.min' = '0', 'fields.n.max' = '3')"
    )
    return environment


def resumed(folder: Path, savepoint: Path, query: str, **options: str) -> None:
    result = opened(folder, execution__state_recovery__path=str(savepoint), **options).execute_sql(query)
    rows = result.collect()
    next(rows)
    client = result.get_job_client()
    assert client is not None
    client.cancel().result()


BAGS = "SELECT n, bag(n) AS b FROM numbers GROUP BY n"
COUNTS = "SELECT n, COUNT(*) AS c FROM numbers GROUP BY n"


def manifest_of(savepoint: Path) -> Manifest:
    return decode_manifest(memoryview((savepoint / METADATA).read_bytes()), f"{savepoint}/{METADATA}")[0]


def test_user_functions_start_from_the_users_own_snapshots(tmp_path: Path) -> None:
    savepoint = stopped(tmp_path / "a", BAGS)
    assert manifest_of(savepoint).objects is True
    assert why_foreign(str(savepoint), manifest_of(savepoint)) is None
    resumed(tmp_path / "a", savepoint, BAGS)
    os.chmod(savepoint / METADATA, 0o622)
    with pytest.raises(FlowSqlError, match=r"others can write to .*_metadata'\. It holds Python objects"):
        resumed(tmp_path / "a", savepoint, BAGS)
    resumed(tmp_path / "a", savepoint, BAGS, execution__state_recovery__trusted="true")
    os.chmod(savepoint / METADATA, 0o600)
    os.chmod(savepoint, 0o770)
    with pytest.raises(FlowSqlError) as caught:
        resumed(tmp_path / "a", savepoint, BAGS)
    assert "SET 'execution.state-recovery.trusted' = 'true'" in caught.value.render()


def test_sql_needs_no_trust(tmp_path: Path) -> None:
    savepoint = stopped(tmp_path / "a", COUNTS)
    assert manifest_of(savepoint).objects is False
    os.chmod(savepoint / METADATA, 0o666)
    resumed(tmp_path / "a", savepoint, COUNTS)


def test_what_makes_a_snapshot_foreign(tmp_path: Path) -> None:
    folder = tmp_path / "job" / "chk-1"
    LocalFolder(str(folder)).write("1.state", [b"x"])
    LocalFolder(str(folder)).publish(b"x")
    manifest = manifest_with(Part("1.state", 0, 1, ""))
    assert why_foreign(str(folder), manifest) is None
    assert why_foreign("s3://bucket/job/chk-1", manifest) == "it is not in a local folder"
    for path in (folder.parent, folder, folder / "1.state"):
        mode = stat.S_IMODE(path.stat().st_mode)
        for bit in (0o020, 0o002):
            os.chmod(path, mode | bit)
            assert why_foreign(str(folder), manifest) == f"others can write to '{path}'"
        os.chmod(path, mode)
    os.rename(folder / "1.state", tmp_path / "elsewhere")
    (folder / "1.state").symlink_to(tmp_path / "elsewhere")
    assert why_foreign(str(folder), manifest) == f"'{folder / '1.state'}' is a link"
    link = tmp_path / "job" / "chk-2"
    link.symlink_to(folder)
    assert why_foreign(str(link), manifest) == f"'{link}' is a link"


def test_files_and_folders_are_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = LocalFolder(str(tmp_path / "a" / "b" / "chk-1"))
        folder.write("1.state", [b"x"])
        folder.publish(b"y")
    finally:
        os.umask(before)
    for path in (tmp_path / "a").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


class Bomb:
    """Runs code where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


def test_rows_on_their_way_run_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    batch = ChangelogBatch((PyObjectColumn(np.array([Bomb()], object)),), 1)
    data = encode_batch(batch)
    with pytest.raises(ConnectorError, match="Rows on their way hold Python objects, and the job has none"):
        decode_batch(data, objects=False)
    assert not Path("exploded").exists()
    # As DataStreams have them.
    decode_batch(data, objects=True)
    assert Path("exploded").exists()
    plain = decode_batch(encode_batch(ChangelogBatch((pa.array([1, 2]),), 2)), objects=False)
    assert plain.columns[0].to_pylist() == [1, 2]


def manifest_with(part: Part, native: NativeState | None = None) -> Manifest:
    state = SubtaskState(0, {"s": (part,)}, native=native)
    return Manifest(1, "checkpoint", 0, "j", "n", {"u": OperatorState("u", "u", "GroupAggregate", 1, 1, (state,))})


@pytest.mark.parametrize(
    "name",
    ["../victim", "/etc/passwd", "a/b", "..", ".", "a/../../victim", "shared/x", "x\0", "x\n", "a\\..\\b", "file:///x"],
)
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/root/job/chk-1/{METADATA}"
    digits = "0" * 32

    def refused(manifest: Manifest) -> None:
        with pytest.raises(ConnectorError, match="is not in the snapshot's folder") as caught:
            decode_manifest(memoryview(encode_manifest(manifest, b"")), path)
        assert caught.value.code == "snapshot-names-other-files"

    refused(manifest_with(Part(name, 0, 1, "")))
    plain = Part("1.state", 0, 1, "")
    native = NativeState("rocksdb", "d", (0, 1), (), {name: plain})
    refused(manifest_with(plain, native))
    for one in (
        SharedFile(name, f"shared/{digits}", 1, ""),
        SharedFile("1.sst", name if name != "shared/x" else "shared/../x", 1, ""),
        SharedFile("1.sst", f"shared/{name}", 1, ""),
        SharedFile("1.sst", f"{tmp_path}/elsewhere/job/shared/{digits}", 1, ""),
        SharedFile("1.sst", f"{tmp_path}/root/../root/job/shared/{digits}", 1, ""),
        SharedFile("1.sst", f"{tmp_path}/root/other/shared/{name}", 1, ""),
    ):
        refused(manifest_with(plain, replace(native, private={}, shared=(one,))))
    # Another job of the same storage, as claimed checkpoints have it.
    for file in (f"shared/{digits}", f"{tmp_path}/root/other/shared/{digits}"):
        made = manifest_with(plain, replace(native, private={}, shared=(SharedFile("1.sst", file, 1, ""),)))
        assert decode_manifest(memoryview(encode_manifest(made, b"")), path)[0] == made


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"secret")
    (tmp_path / "job" / "shared").mkdir(parents=True)
    folder = LocalFolder(str(tmp_path / "job" / "shared"))
    (tmp_path / "job" / "shared" / "x").symlink_to(victim)
    with pytest.raises(ConnectorError, match="Cannot read the snapshot's file"):
        folder.read("x")
    with pytest.raises(ConnectorError):
        folder.fetch("x", tmp_path / "copy")
    with pytest.raises(ConnectorError, match="Cannot write the snapshot's file"):
        folder.write("x", [b"other"])
    folder.delete("x")
    assert victim.read_bytes() == b"secret"
    (tmp_path / "job2").mkdir()
    (tmp_path / "job2" / "shared").symlink_to(tmp_path)
    linked = LocalFolder(str(tmp_path / "job2" / "shared"))
    with pytest.raises(ConnectorError):
        linked.read("victim")
    linked.delete("victim")
    assert victim.exists()


def test_a_job_of_sql_never_unpickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints, failures and restores of all kinds of SQL go without: see ``test_cut_pickles.py``."""
    savepoint = stopped(tmp_path / "a", COUNTS)
    unpickled: list[str] = []
    original = pickle.loads

    def loads(*args: Any, **options: Any) -> Any:
        unpickled.append(threading.current_thread().name)
        return original(*args, **options)

    monkeypatch.setattr(pickle, "loads", loads)
    resumed(tmp_path / "a", savepoint, COUNTS)
    assert not unpickled


@pytest.mark.parametrize(
    ("folder", "hidden", "final"),
    [
        ("", "victim", "other"),
        ("", "../.x.inprogress.j", "x"),
        ("", ".x.inprogress.j", "../x"),
        ("../..", ".x.inprogress.j", "x"),
        ("/etc", ".x.inprogress.j", "x"),
        ("", ".x", "x"),
        ("", ".x.inprogress.j", ""),
    ],
)
def test_parts_of_tables_that_are_none(folder: str, hidden: str, final: str) -> None:
    with pytest.raises(ConnectorError, match="and they are none"):
        Part_.of_fields(["/table", folder, hidden, final, 1, 0, 0, 0])
    assert Part_.of_fields(["/table", "day=1", ".x.inprogress.j", "x", 1, 0, 0, 0]).final_path == "/table/day=1/x"
