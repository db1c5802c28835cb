"""A streaming job that is killed again and again leaves each row in the table once, as other engines read it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.changing_folders import files_below

from .lake import KINDS, Lake

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("", "grammar", "planner", "runtime", "connectors")
ROWS = 40_000
KILLS = 12


APPENDS = """
        CREATE TABLE t (a INT, p INT) PARTITIONED BY (p) WITH ({clause});
        INSERT INTO t SELECT a, a % 3 FROM numbers;
"""
BY_KEY = """
        CREATE TABLE t (p INT, n BIGINT, m INT, PRIMARY KEY (p) NOT ENFORCED) WITH ({clause});
        INSERT INTO t SELECT a % 100, COUNT(*), MAX(a) FROM numbers GROUP BY a % 100;
"""


def _script(lake: Lake, rows: int, into: str) -> str:
    return f"""
        CREATE TABLE numbers (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '4000',
          'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '{rows}');
        {into.format(clause=lake.clause)}
    """


def _by_duckdb(lake: Lake) -> list[int]:
    """The files that the newest commit names, read by another engine."""
    table = lake.opened()
    if lake.kind == "delta":
        paths = table.file_uris()
    else:
        paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    found = duckdb.sql(f"SELECT a FROM read_parquet({paths!r}, hive_partitioning = false)").fetchall()
    return sorted(row[0] for row in found)


def _run(lake: Lake, kills: int, into: str = APPENDS) -> int:
    """The job until it ends; the number of times that it was killed, each behind a checkpoint of its own."""
    lake.folder.mkdir(exist_ok=True)
    script, checkpoints = lake.folder / "job.sql", lake.folder / "checkpoints"
    script.write_text(_script(lake, ROWS, into))
    options = {
        "execution.checkpointing.interval": "150 ms",
        "execution.checkpointing.dir": f"file://{checkpoints}",
        "execution.checkpointing.create-subdir": "false",
        "execution.state-recovery.claim-mode": "CLAIM",
        "table.dml-sync": "true",
        "parallelism.default": "2",
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)}
    draw, killed = random.Random(7), 0
    while True:
        before = set(files_below(checkpoints, "_metadata"))
        if before:
            options["execution.state-recovery.path"] = f"file://{checkpoints}"
        command = [sys.executable, "-m", "flowsql.cli"]
        for key, value in options.items():
            command += ["-D", f"{key}={value}"]
        log = lake.folder / f"log-{killed}"
        with log.open("w") as file:
            job = subprocess.Popen([*command, "-f", str(script)], env=environment, stdout=file, stderr=file)
            while killed < kills and job.poll() is None and not set(files_below(checkpoints, "_metadata")) - before:
                time.sleep(0.01)
            try:
                job.wait(None if killed >= kills else draw.uniform(0, 0.5))
            except subprocess.TimeoutExpired:
                job.kill()
                job.wait()
                killed += 1
                continue
        assert job.returncode == 0, log.read_text()
        return killed


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_killed_again_and_again(tmp_path: Path, kind: str) -> None:
    lake = Lake(kind, tmp_path / "lake")
    assert _run(lake, KILLS) >= KILLS // 2
    assert [row[0] for row in sorted(lake.rows("a"))] == list(range(1, ROWS + 1))
    assert _by_duckdb(lake) == list(range(1, ROWS + 1))
    assert lake.commits() > KILLS // 2


@pytest.mark.nightly
def test_killed_while_it_updates(tmp_path: Path) -> None:
    lake = Lake("delta", tmp_path / "lake")
    assert _run(lake, KILLS, BY_KEY) >= KILLS // 2
    wanted = [(key, ROWS // 100, ROWS - 100 + key if key else ROWS) for key in range(100)]
    assert sorted(lake.rows("p", "n", "m")) == sorted(wanted)
