"""Jobs whose checkpoints refer to files of RocksDB: restarted, restored, rescaled, stopped, killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.errors import FlowSqlError
from flowsql_runtime.checkpoint.manifest import Manifest, decode_manifest
from flowsql_runtime.checkpoint.storage import METADATA, SHARED

KEYS = 500
INCREMENTAL = {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "true"}


def manifest_of(folder: Path) -> Manifest:
    data = (folder / METADATA).read_bytes()
    return decode_manifest(memoryview(data), str(folder))[0]


def files_of(manifest: Manifest) -> list[str]:
    """How a checkpoint refers to its shared files."""
    return [one.file for native in manifest.natives() for one in native.shared]


class Counting:
    """A job that sums numbers by key from files that arrive in a folder; its results come with checkpoints."""

    def __init__(self, root: Path, *, key_type: str = "INT", **options: str) -> None:
        self.arriving = root / "arriving"
        self.arriving.mkdir(exist_ok=True)
        self.root = root / "checkpoints"
        self.environment = TableEnvironment.create()
        values = {
            "parallelism.default": "1",
            "execution.checkpointing.interval": "20 ms",
            "execution.checkpointing.dir": str(self.root),
            "execution.checkpointing.num-retained": "2",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "state.backend.rocksdb.memory.fixed-per-slot": "1",
            "io.tmp.dirs": str(root / "local"),
            **INCREMENTAL,
            **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()},
        }
        for key, value in values.items():
            self.environment.get_config().set(key, value)
        self.environment.execute_sql(
            f"CREATE TABLE numbers (k {key_type}, n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{self.arriving}', 'source.monitor-interval' = '10 ms')"
        )
        self.sums: dict[int, int] = {}

    def start(self, path: str = "", claim: bool = False, columns: str = "SUM(n) AS s, COUNT(*) AS c") -> None:
        config = self.environment.get_config()
        config.set("execution.state-recovery.path", path)
        config.set("execution.state-recovery.claim-mode", "CLAIM" if claim else "NO_CLAIM")
        result = self.environment.execute_sql(f"SELECT k, {columns} FROM numbers GROUP BY k")
        self.client: Any = result.get_job_client()
        self.rows: Iterator[Any] = result.collect()

    @property
    def folder(self) -> Path:
        """The job's own folder."""
        return self.root / str(self.client.get_job_id())

    def arrives(self, name: str, keys: range, value: int) -> None:
        """A file with a number for each of some keys."""
        hidden = self.arriving / f".{name}"
        hidden.write_text("".join(f"{key},{value}\n" for key in keys))
        hidden.rename(self.arriving / f"{name}.csv")

    def until(self, expected: dict[int, int]) -> None:
        """Until these are among the results."""
        for row in self.rows:
            if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
                self.sums[row[0]] = row[1]
            if expected.items() <= self.sums.items():
                return
        raise AssertionError("the job ended before")

    def cancel(self) -> list[Path]:
        """Its retained checkpoints, the newest last."""
        self.client.cancel().result()
        with pytest.raises(FlowSqlError):
            list(self.rows)
        found = [path.parent for path in self.folder.glob(f"*/{METADATA}")]
        return sorted(found, key=lambda path: int(path.name.removeprefix("chk-")))


def sums(*values: tuple[range, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for keys, value in values:
        for key in keys:
            found[key] = found.get(key, 0) + value
    return found


ALL = range(KEYS)
SOME = range(7)


@pytest.fixture
def retained(tmp_path: Path) -> tuple[Counting, list[Path]]:
    """A job that was cancelled, and its checkpoints."""
    job = Counting(tmp_path)
    job.start()
    job.arrives("first", ALL, 1)
    job.until(sums((ALL, 1)))
    job.arrives("second", SOME, 10)
    job.until(sums((ALL, 1), (SOME, 10)))
    found = job.cancel()
    assert len(found) == 2
    assert files_of(manifest_of(found[-1]))
    return job, found


@pytest.mark.parametrize(
    ("parallelism", "backend"), [("1", "rocksdb"), ("3", "rocksdb"), ("1", "hashmap"), ("2", "hashmap")]
)
def test_a_retained_checkpoint_is_taken_over(
    parallelism: str, backend: str, retained: tuple[Counting, list[Path]], tmp_path: Path
) -> None:
    job, found = retained
    before = {path: path.stat().st_mtime_ns for path in job.folder.rglob("*") if path.is_file()}
    other = Counting(tmp_path, parallelism__default=parallelism, state__backend__type=backend)
    other.start(str(found[-1]))
    other.arrives("third", range(5, 9), 100)
    other.until({key: value for key, value in sums((ALL, 1), (SOME, 10), (range(5, 9), 100)).items() if 5 <= key < 9})
    mine = other.cancel()
    # Nobody claimed it: nothing of it changed, and nothing of the new job refers to it.
    assert {path: path.stat().st_mtime_ns for path in job.folder.rglob("*") if path.is_file()} == before
    for folder in mine:
        files = files_of(manifest_of(folder))
        assert all(file.startswith(f"{SHARED}/") for file in files)
        assert bool(files) == (backend == "rocksdb")


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_a_changed_query_takes_over_what_it_needs_of_the_files(
    parallelism: str, retained: tuple[Counting, list[Path]], tmp_path: Path
) -> None:
    _, found = retained
    options = {"flowsql.state-recovery.changed-state": "migrate", "parallelism.default": parallelism}
    other = Counting(tmp_path, **options)
    other.start(str(found[-1]), columns="SUM(n) AS s, COUNT(*) AS c, COUNT(*) FILTER (WHERE n > 50) AS f")
    other.arrives("third", range(5, 9), 100)
    other.until({5: 111, 6: 111, 7: 101, 8: 101})
    other.cancel()


@pytest.mark.parametrize(("parallelism", "backend"), [("1", "rocksdb"), ("3", "rocksdb"), ("2", "hashmap")])
def test_keys_in_files_become_wider_and_find_their_key_groups(
    parallelism: str, backend: str, retained: tuple[Counting, list[Path]], tmp_path: Path
) -> None:
    _, found = retained
    other = Counting(tmp_path, key_type="BIGINT", parallelism__default=parallelism, state__backend__type=backend)
    other.start(str(found[-1]))
    other.arrives("third", ALL, 100)
    other.until(sums((ALL, 101), (SOME, 10)))
    (mine, *_) = other.cancel()[::-1]
    # What was made wider is the state of later checkpoints.
    again = Counting(tmp_path, key_type="BIGINT")
    again.start(str(mine))
    again.arrives("fourth", SOME, 1000)
    again.until(sums((SOME, 1111)))
    again.cancel()


def test_a_job_that_fails_goes_on_with_the_files_that_it_has(tmp_path: Path) -> None:
    job = Counting(
        tmp_path,
        **{
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "0 ms",
            "state.backend.rocksdb.compaction.style": "NONE",
        },
    )
    failures = []

    def once(n: int) -> int:
        if n == 13 and not failures:
            failures.append(n)
            raise RuntimeError("a bad moment")
        return n

    job.environment.create_temporary_function("once", udf(once, result_type="BIGINT"))
    job.start(columns="SUM(once(n)) AS s, COUNT(*) AS c")
    job.arrives("first", ALL, 1)
    job.until(sums((ALL, 1)))
    before = {file for path in job.folder.glob(f"*/{METADATA}") for file in files_of(manifest_of(path.parent))}
    job.arrives("second", SOME, 13)
    job.until(sums((SOME, 14)))
    assert failures
    found = job.cancel()
    after = files_of(manifest_of(found[-1]))
    assert all(file.startswith(f"{SHARED}/") for file in after)
    assert before
    assert set(after) >= before, "files from before the failure were written again"
    assert {f"{SHARED}/{path.name}" for path in (job.folder / SHARED).iterdir()} == {
        file for folder in found for file in files_of(manifest_of(folder))
    }


def test_a_claimed_checkpoint_is_gone_on_with_and_goes(retained: tuple[Counting, list[Path]], tmp_path: Path) -> None:
    job, found = retained
    first = manifest_of(found[-1])
    # Without compactions the files of before stay part of what follows.
    options = {
        "state.backend.rocksdb.compaction.style": "NONE",
        "execution.checkpointing.num-retained": "1",
    }
    other = Counting(tmp_path, **options)
    other.start(str(found[-1]), claim=True)
    other.arrives("third", range(3), 100)
    other.until(sums((range(3), 111)))
    mine = other.cancel()
    second = manifest_of(mine[-1])
    elsewhere = [file for file in files_of(second) if not file.startswith(f"{SHARED}/")]
    assert sorted(elsewhere) == sorted(str(job.folder / file) for file in files_of(first))
    assert second.checkpointed_bytes is not None
    assert second.checkpointed_bytes < second.size_bytes
    assert not found[-1].exists(), "the claimed checkpoint is older than the retained ones"
    # The newest one is whole without it, and another job can start from it.
    third = Counting(tmp_path)
    third.start(str(mine[-1]), claim=True)
    third.arrives("fourth", range(2), 1000)
    third.until(sums((range(2), 1111)))
    third.cancel()


def test_a_savepoint_of_such_a_job_is_canonical(retained: tuple[Counting, list[Path]], tmp_path: Path) -> None:
    _, found = retained
    job = Counting(tmp_path)
    job.start(str(found[-1]))
    job.arrives("third", range(3), 100)
    job.until(sums((range(3), 111)))
    path = Path(job.client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result())
    list(job.rows)
    manifest = manifest_of(path)
    assert manifest.kind == "savepoint"
    assert manifest.natives() == []
    assert manifest.size_bytes == manifest.checkpointed_bytes
    moved = path.rename(tmp_path / "moved")
    for backend in ("rocksdb", "hashmap"):
        other = Counting(tmp_path, state__backend__type=backend)
        other.start(str(moved))
        other.arrives(f"fourth-{backend}", range(1), 1000)
        # The file of the other job is there as well.
        other.until({0: 1111 if backend == "rocksdb" else 2111})
        other.cancel()


def test_a_damaged_newest_checkpoint_gives_way_to_the_older_one(tmp_path: Path) -> None:
    job = Counting(tmp_path, **{"execution.checkpointing.num-retained": "1000"})
    job.start()
    for number in range(2):
        job.arrives(str(number), ALL, 1)
        job.until(sums((ALL, number + 1)))
    found = job.cancel()
    files = [set(files_of(manifest_of(folder))) for folder in found]
    # The newest that has files which those before it lack.
    place = max(place for place in range(1, len(found)) if files[place] - files[place - 1])
    for folder in found[place + 1 :]:
        shutil.rmtree(folder)
    (job.folder / (files[place] - files[place - 1]).pop()).write_bytes(b"")
    other = Counting(tmp_path)
    other.start(str(job.folder))
    other.arrives("late", range(400, 401), 100)
    other.until({400: 102})
    other.cancel()


def test_state_in_files_can_be_read(retained: tuple[Counting, list[Path]], tmp_path: Path) -> None:
    _, found = retained
    environment = TableEnvironment.create()

    def rows(sql: str) -> list[Any]:
        with environment.execute_sql(sql).collect() as result:
            return [tuple(row) for row in result]

    shown = {row[3]: row for row in rows(f"SHOW OPERATORS IN '{found[-1]}'") if row[2] == "GroupAggregate"}
    accumulators, files = shown["aggregate.accumulators"], shown["files of rocksdb"]
    assert accumulators[4] is None
    assert files[5] == sum(one.length for native in manifest_of(found[-1]).natives() for one in native.shared)
    kept = rows(f"SELECT k, sum_n, row_count FROM state('{found[-1]}', '{files[0]}')")
    expected = sums((ALL, 1), (SOME, 10))
    assert sorted(kept) == [(key, value, 2 if key in SOME else 1) for key, value in sorted(expected.items())]
    assert os.listdir(tmp_path / "local") == []
