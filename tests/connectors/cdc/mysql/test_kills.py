"""A job that copies changes to files, and its server, are killed again and again: the copy is the table."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pymysql
import pytest

from tests import servers
from tests.restarted_job import Job
from tests.servers import Server

from .place import Place
from .writer import Writer

pytestmark = pytest.mark.servers

TABLES = ["p_1", "p_2"]


def script(place: Place, folder: Path) -> str:
    options = {
        **place.options, "table-name": "p_[0-9]+", "scan.incremental.snapshot.chunk.size": "50",
        "scan.read-changelog-as-append-only.enabled": "true", "connect.timeout": "30 s",
    }  # fmt: skip
    listed = ", ".join(f"'{name}' = '{text}'" for name, text in options.items())
    return f"""
SET 'flowsql.source.batch-rows' = '200';
CREATE TABLE src (
  id INT, k INT, x STRING, tab STRING METADATA FROM 'table_name' VIRTUAL, kind STRING METADATA FROM 'row_kind' VIRTUAL,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ({listed});
CREATE TABLE dst (id INT, k INT, x STRING, tab STRING, kind STRING)
-- Files of Parquet appear with each checkpoint.
WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet');
INSERT INTO dst SELECT id, k, x, tab, kind FROM src;
"""


def committed(folder: Path) -> Counter[str]:
    """The multiset of rows that the files come to, in whatever order they are."""
    rows: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith((".", "_")):
            for row in pq.read_table(path).to_pylist():
                kind = row.pop("kind")
                rows[json.dumps(list(row.values()))] += -1 if kind in ("-U", "-D") else 1
    return Counter({row: count for row, count in rows.items() if count})


def contents(place: Place) -> Counter[str]:
    return Counter(
        json.dumps(row) for table in TABLES for row in place.rows(f"SELECT id, k, x, '{table}' FROM {table}")
    )


def killed_again_and_again(place: Place, folder: Path, kills: int, server: Server | None = None) -> None:
    for table in TABLES:
        place.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, k int, x text)")
        place.execute(f"INSERT INTO {table} SELECT seq * 2, seq, 'first' FROM seq_1_to_1000")
    target = folder / "copy"
    job = Job(script(place, target), folder)
    draw = random.Random(kills)
    with Writer(place, TABLES, lambda number: number * 5, kills, pause_s=0.01, survives=server is not None):
        for number in range(kills):
            job.start()
            if number % 2:
                job.wait_for_checkpoint()
            else:
                time.sleep(draw.uniform(0.5, 2))
            if server is not None and number % 3 == 0:
                server.kill()
                time.sleep(draw.uniform(0, 1))
                server.start()
                job.wait_for_checkpoint()
            time.sleep(draw.uniform(0, 0.5))
            job.kill()
    wanted = contents(place)
    job.start()
    job.wait_for("the copy", lambda: committed(target) == wanted)
    job.kill()


def test_a_job_that_is_killed(place: Place, tmp_path: Path) -> None:
    killed_again_and_again(place, tmp_path, 4)


@pytest.mark.nightly
def test_a_job_that_is_killed_many_times(place: Place, tmp_path: Path) -> None:
    killed_again_and_again(place, tmp_path, 50)


@pytest.fixture
def own_server() -> Iterator[tuple[Server, Place]]:
    """A server that may be killed, and a database of it."""
    with servers.own_server("mariadb") as server:
        yield server, Place(server.env)


def test_a_server_that_goes_away_and_returns(own_server: tuple[Server, Place], tmp_path: Path) -> None:
    server, place = own_server
    killed_again_and_again(place, tmp_path, 2, server)


@pytest.mark.nightly
def test_a_server_that_goes_away_many_times(own_server: tuple[Server, Place], tmp_path: Path) -> None:
    server, place = own_server
    with suppress(pymysql.MySQLError):
        place.execute("SET GLOBAL binlog_row_metadata = 'NO_LOG'")
    killed_again_and_again(place, tmp_path, 15, server)
