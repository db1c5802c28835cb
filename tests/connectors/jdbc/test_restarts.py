"""Scans go on where a snapshot was taken; jobs that are killed leave tables as if they had not been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowsql_connectors import registry
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, SplitBatch, TableSource
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import INT, STRING, Column

from .databases import KINDS, Place

ROWS = 6000
KEYS = 40


def scan_of(place: Place, more: dict[str, str]) -> TableSource:
    login = dict(part.split("' = '") for part in place.login.strip(", '").split("', '")) if place.login else {}
    options = {"connector": "jdbc", "url": place.url, "table-name": "g", **login, **more}
    columns = (Column("id", INT), Column("name", STRING))
    table = TableSpec(("c", "d", "g"), columns, tuple(options.items()))
    return registry.create_source(ScanSpec(table, (0, 1), columns), {})


def reader_of(source: TableSource) -> SourceReader:
    return source.create_reader(ReaderContext(0, 1, 1000, SystemClock(), {}, lambda name, by: None))


def polled(reader: SourceReader, most: int) -> list[int]:
    """About so many rows, or all that are left."""
    found: list[int] = []
    end = time.monotonic() + 60
    while len(found) < most and time.monotonic() < end:
        batch = reader.poll(17)
        if batch is ReadStatus.END:
            break
        if isinstance(batch, SplitBatch):
            found += batch.batch.columns[0].to_pylist() if batch.batch.num_rows else []
    return found


@pytest.mark.parametrize("place", KINDS, indirect=True)
@pytest.mark.parametrize("parts", ["1", "3"])
def test_each_row_once_over_snapshots(place: Place, parts: str) -> None:
    values = ", ".join(f"({i}, 'name {i}')" for i in range(1000))
    place.execute("CREATE TABLE g (id INT, name VARCHAR(20))", f"INSERT INTO g VALUES {values}")
    source = scan_of(
        place,
        {
            "scan.partition.column": "id", "scan.partition.num": parts, "scan.partition.lower-bound": "0",
            "scan.partition.upper-bound": "999",
        },
    )  # fmt: skip
    splits = source.create_enumerator().initial_splits(1)[0]
    assert len(splits) == int(parts)
    seen: list[int] = []
    while True:
        reader = reader_of(source)
        reader.add_splits(splits)
        reader.no_more_splits()
        found = polled(reader, 150)
        splits = reader.snapshot()
        reader.close()
        seen += found
        if not found:
            break
    assert sorted(seen) == list(range(1000))


def script(place: Place) -> str:
    more = ", 'sink.buffer-flush.max-rows' = '7', 'sink.buffer-flush.interval' = '20 ms'"
    return (
        "CREATE TABLE n (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '4000', "
        f"'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{ROWS}');\n"
        f"CREATE TABLE o (k BIGINT, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) {place.table('o', more)};\n"
        f"INSERT INTO o SELECT MOD(id, {KEYS}), COUNT(*), SUM(id) FROM n GROUP BY MOD(id, {KEYS}) "
        f"HAVING MOD(SUM(id), 7) > 2;\n"
    )


def killed(text: str, folder: Path, times: int, dice: random.Random) -> None:
    """Run a script, and kill it so often behind a checkpoint; each run goes on from the last one."""
    kills = 0
    while True:
        options = {
            "execution.checkpointing.interval": "40 ms", "execution.checkpointing.dir": str(folder),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "flowsql.source.batch-rows": "50",
        }  # fmt: skip
        snapshots = sorted(folder.glob("*/chk-*/_metadata"), key=lambda file: file.stat().st_mtime)
        if snapshots:
            options["execution.state-recovery.path"] = str(snapshots[-1].parent)
        flags = [part for key, value in options.items() for part in ("-D", f"{key}={value}")]
        job = subprocess.Popen(
            [sys.executable, "-m", "flowsql.cli", *flags, "-c", text],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
        known = len(snapshots)
        try:
            while kills < times and job.poll() is None and len(list(folder.glob("*/chk-*/_metadata"))) <= known:
                time.sleep(0.01)
            if kills < times and job.poll() is None:
                time.sleep(dice.random() * 0.3)
                job.send_signal(signal.SIGKILL)
                kills += 1
                continue
            assert job.wait(120) == 0, job.stderr.read().decode() if job.stderr else ""
            break
        finally:
            if job.poll() is None:
                job.kill()
            job.communicate()
    assert kills == times


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_killed_jobs_leave_the_table_of_an_undisturbed_one(place: Place, tmp_path: Path) -> None:
    place.execute("CREATE TABLE o (k INT PRIMARY KEY, n BIGINT, s BIGINT)")
    killed(script(place), tmp_path / "checkpoints", 2, random.Random(place.kind))
    counts = dict.fromkeys(range(KEYS), ROWS // KEYS)
    sums = {k: sum(range(k or KEYS, ROWS + 1, KEYS)) for k in range(KEYS)}
    expected = [(k, counts[k], sums[k]) for k in range(KEYS) if sums[k] % 7 > 2]
    assert 0 < len(expected) < KEYS
    assert sorted(place.rows("SELECT * FROM o")) == expected
