"""Tables that others write all the time: copies are equal however often readers, jobs and servers are killed."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from tests import servers
from tests.connectors.cdc.server import Database, Reading, reading
from tests.restarted_job import Job
from tests.servers import Server

pytestmark = pytest.mark.servers

#: Keys of tables as SQL of a number; texts sort otherwise by their collation than by their bytes.
KEYS = {
    "int": "{}",
    "text": "(CASE {0} % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'B' ELSE '-' END) || {0}",
    "uuid": "md5({}::text)::uuid",
}
ROWS = 1500
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND application_name = 'flowsql'"
)


def made(database: Database, key: str, rows: int = ROWS) -> None:
    collate = ' COLLATE "en-x-icu"' if key == "text" else ""
    database.execute(
        f"CREATE TABLE t (id {key}{collate} PRIMARY KEY, n int, v bigint)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        f"INSERT INTO t SELECT {KEYS[key].format('n')}, n, n FROM generate_series(1, {rows}) AS s(n)",
    )


@contextlib.contextmanager
def writing(database: Database, key: str, pause_s: float = 0.0, rows: int = ROWS) -> Iterator[None]:
    """Transactions of random changes, some open for a while, until the end; a server that is away is tried again."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def write(seed: int) -> None:
        draw = random.Random(seed)
        while not ended.is_set():
            with (
                contextlib.suppress(psycopg.OperationalError, psycopg.errors.UniqueViolation),
                psycopg.connect(database.uri) as server,
            ):
                while not ended.is_set():
                    for _ in range(draw.randint(1, 4)):
                        server.execute(change(draw))  # type: ignore[arg-type]
                    if draw.random() < 0.1:
                        ended.wait(0.02)
                    server.rollback() if draw.random() < 0.1 else server.commit()
                    ended.wait(pause_s)
            ended.wait(0.05)

    def change(draw: random.Random) -> str:
        # Rows of a writer are its own, so that writers do not wait for each other.
        id_ = KEYS[key].format(draw.randint(1, rows * 11 // 10))
        value = draw.randrange(10**12)
        what = draw.random()
        if what < 0.25:
            return f"DELETE FROM t WHERE id = {id_}"
        if what < 0.5:
            number = draw.randint(1, rows * 11 // 10)
            new = KEYS[key].format(number)
            return f"INSERT INTO t VALUES ({new}, {number}, {value}) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v"
        if what < 0.6:
            new = KEYS[key].format(draw.randint(rows * 2, rows * 3))
            free = f"NOT EXISTS (SELECT 1 FROM t WHERE id = {new})"
            return f"UPDATE t SET id = {new}, v = {value} WHERE id = {id_} AND {free}"
        return f"UPDATE t SET v = {value} WHERE id = {id_}"

    def run(seed: int) -> None:
        try:
            write(seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failures


def folded(changes: list[tuple[str, Any]], onto: Counter[str] | None = None) -> Counter[str]:
    """The rows of a table after changes; a change that takes back what is not there is an error."""
    rows = Counter(onto or {})
    for kind, row in changes:
        text = json.dumps([str(row[0]), row[1]])
        rows[text] += -1 if kind in ("-U", "-D") else 1
        assert rows[text] >= 0, (kind, row)
    return rows


def has(scan: Reading, changes: int) -> bool:
    return len(scan.changes) > changes


def contents(database: Database) -> Counter[str]:
    return Counter(json.dumps([str(id_), v]) for id_, v in database.rows("SELECT id::text, v FROM t"))


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("key", KEYS)
def test_copies_are_equal_wherever_readers_stop(database: Database, key: str, parallelism: int) -> None:
    made(database, key)
    declared = "INT" if key == "int" else "STRING"
    table = database.table(f"id {declared}, v BIGINT", scan__incremental__snapshot__chunk__size="60")
    draw = random.Random(key)
    splits, rows = None, Counter[str]()
    with writing(database, key):
        for _ in range(6):
            with reading(table, splits, parallelism=parallelism) as scan:
                goal = draw.randint(1, ROWS // 2)
                scan.until(partial(has, scan, goal), most=draw.choice((7, 100, 1000)))
                if draw.random() < 0.5:
                    # A connection is lost, not the job.
                    database.execute(TERMINATE)
                    scan.until(partial(has, scan, goal + 200))
                # What is read behind the checkpoint is lost with the job.
                kept, changes = scan.reader.snapshot(), list(scan.changes)
                scan.until(partial(has, scan, len(changes) + 50))
            rows, splits = folded(changes, rows), kept
    wanted = contents(database)
    with reading(table, splits, parallelism=parallelism) as scan:
        scan.until(lambda: folded(scan.changes, rows) == wanted)


class Files:
    """Changes are copied to files, exactly once: what the files come to is the table."""

    def __init__(self, database: Database, folder: Path, key: str) -> None:
        self._database = database
        self._folder = folder / "copy"
        self._source = source(database, key, "kind STRING METADATA FROM 'row_kind' VIRTUAL", append_only="true")

    @property
    def script(self) -> str:
        # Files of Parquet appear with each checkpoint.
        return f"""{self._source}
CREATE TABLE dst (id STRING, v BIGINT, kind STRING)
WITH ('connector' = 'filesystem', 'path' = '{self._folder}', 'format' = 'parquet');
INSERT INTO dst SELECT CAST(id AS STRING), v, kind FROM src;
"""

    def wanted(self) -> Counter[str]:
        return contents(self._database)

    def found(self) -> Counter[str]:
        rows: Counter[str] = Counter()
        for path in self._folder.rglob("*"):
            if path.is_file() and not path.name.startswith((".", "_")):
                for row in pq.read_table(path).to_pylist():
                    rows[json.dumps([row["id"], row["v"]])] += -1 if row["kind"] in ("-U", "-D") else 1
        return Counter({row: count for row, count in rows.items() if count})


class Sums:
    """Groups are counted and summed, and written by key to another table of the database."""

    def __init__(self, database: Database, folder: Path, key: str) -> None:
        self._database = database
        self._source = source(database, key, "n INT")
        database.execute("CREATE TABLE sums (k int PRIMARY KEY, n bigint, s bigint)")

    @property
    def script(self) -> str:
        env = self._database.env
        address = f"jdbc:postgresql://{env['PG_HOST']}:{env['PG_PORT']}/{self._database.name}"
        return f"""{self._source}
CREATE TABLE dst (k INT, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = '{address}', 'table-name' = 'sums', 'username' = '{env["PG_USER"]}',
  'password' = '{env["PG_PASSWORD"]}', 'sink.buffer-flush.interval' = '20 ms', 'sink.max-retries' = '10');
INSERT INTO dst SELECT n % 100, COUNT(*), SUM(v) FROM src GROUP BY n % 100;
"""

    def wanted(self) -> list[tuple[Any, ...]]:
        return self._database.rows("SELECT n % 100, count(*), sum(v)::int8 FROM t GROUP BY 1 ORDER BY 1")

    def found(self) -> list[tuple[Any, ...]]:
        return self._database.rows("SELECT * FROM sums ORDER BY 1")


def source(database: Database, key: str, more: str, append_only: str = "false") -> str:
    options = database.options(
        **{
            "scan.incremental.snapshot.chunk.size": "50",
            "scan.read-changelog-as-append-only.enabled": append_only,
            "scan.lsn-commit.checkpoints-num-delay": "1",
        }
    )
    listed = ", ".join(f"'{name}' = '{text}'" for name, text in options.items())
    return f"""
SET 'flowsql.source.batch-rows' = '200';
CREATE TABLE src (id {"INT" if key == "int" else "STRING"}, v BIGINT, {more}) WITH ({listed});"""


def killed_again_and_again(
    database: Database,
    tmp_path: Path,
    key: str,
    kills: int,
    server: Server | None = None,
    target: type[Files] | type[Sums] = Files,
) -> None:
    """A job that is killed between and in checkpoints; its server as well, in every second run."""
    made(database, key)
    copy = target(database, tmp_path, key)
    job = Job(copy.script, tmp_path)
    draw = random.Random(kills)
    with writing(database, key, pause_s=0.005):
        for number in range(kills):
            job.start()
            if number % 2:
                job.wait_for_checkpoint()
            else:
                time.sleep(draw.uniform(0.5, 2))
            if server is not None and number % 2 == 0:
                server.kill()
                time.sleep(draw.uniform(0, 1))
                server.start()
                job.wait_for_checkpoint()
            time.sleep(draw.uniform(0, 0.5))
            job.kill()
    wanted = copy.wanted()
    job.start()
    job.wait_for("the copy", lambda: copy.found() == wanted)
    job.kill()


@pytest.mark.parametrize("target", [Files, Sums])
def test_a_job_that_is_killed(database: Database, tmp_path: Path, target: type[Files] | type[Sums]) -> None:
    killed_again_and_again(database, tmp_path, "int", 4, target=target)


@pytest.mark.nightly
@pytest.mark.parametrize(("key", "target"), [("int", Files), ("uuid", Files), ("text", Sums)])
def test_a_job_that_is_killed_many_times(
    database: Database, tmp_path: Path, key: str, target: type[Files] | type[Sums]
) -> None:
    killed_again_and_again(database, tmp_path, key, 34, target=target)


@pytest.fixture
def own_server() -> Iterator[tuple[Server, Database]]:
    """A server that may be killed, and a database of it."""
    with servers.own_server("postgres") as server:
        yield server, Database(server.env)


def test_a_server_that_goes_away_and_returns(own_server: tuple[Server, Database], tmp_path: Path) -> None:
    killed_again_and_again(own_server[1], tmp_path, "int", 2, own_server[0])


@pytest.mark.nightly
def test_a_server_that_goes_away_many_times(own_server: tuple[Server, Database], tmp_path: Path) -> None:
    killed_again_and_again(own_server[1], tmp_path, "text", 20, own_server[0])
