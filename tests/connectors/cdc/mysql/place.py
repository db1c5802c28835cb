"""A database of one test at a real server, and scans of it that are read without a job around them."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pymysql
import pytest

from flowsql_connectors.cdc.mysql.factory import MySqlCdcFactory
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types import logical as t

LIMIT_S = 60
#: A change: its kind, and the values of its row.
Change = tuple[Any, ...]


class Place:
    """A database of MariaDB. ``options``: of tables that are scanned."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.name = f"c{uuid.uuid4().hex[:10]}"
        self.options = {
            "connector": "mysql-cdc", "hostname": env["MYSQL_HOST"], "port": env["MYSQL_PORT"],
            "username": env["MYSQL_USER"], "password": env["MYSQL_PASSWORD"], "database-name": self.name,
            "table-name": "t", "server-time-zone": "UTC", "connect.timeout": "5 s",
        }  # fmt: skip
        self.execute(f"CREATE DATABASE {self.name}", database=None)

    def connect(self, database: str | None = "", **more: Any) -> Any:
        """A connection."""
        env = self.env
        return pymysql.connect(
            host=env["MYSQL_HOST"], port=int(env["MYSQL_PORT"]), user=env["MYSQL_USER"], charset="utf8mb4",
            password=env["MYSQL_PASSWORD"], database=self.name if database == "" else database, autocommit=True, **more,
        )  # fmt: skip

    def execute(self, *statements: str, database: str | None = "") -> None:
        """Run statements, each a transaction."""
        with closing(self.connect(database)) as server, server.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with closing(self.connect()) as server, server.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def scan(
        self,
        columns: dict[str, t.LogicalType],
        key: tuple[str, ...] = (),
        metadata: dict[str, t.LogicalType] | None = None,
        **options: str,
    ) -> Scan:
        """A scan of all columns; options have ``__`` for ``.`` and ``_`` for ``-``."""
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        physical = tuple(t.Column(name, type_) for name, type_ in columns.items())
        more = tuple(t.Column(name, type_) for name, type_ in (metadata or {}).items())
        table = TableSpec(("c", "d", "t"), physical, tuple({**self.options, **named}.items()), primary_key=key)
        return Scan(ScanSpec(table, tuple(range(len(physical))), (*physical, *more), tuple(metadata or {})))


class Scan:
    """What a scan gives, read by one reader at a time."""

    def __init__(self, spec: ScanSpec) -> None:
        self.source = MySqlCdcFactory().create_source(spec, {})
        self.splits: list[Split] | None = None
        self.changes: list[Change] = []
        self.reader: SourceReader | None = None

    def open(self, parallelism: int = 1) -> Scan:
        """Begin, or go on where :meth:`stop` stopped."""
        splits = self.source.create_enumerator().initial_splits(1)[0] if self.splits is None else self.splits
        context = ReaderContext(0, parallelism, 100, SystemClock(), {}, lambda name, by: None)
        self.reader = self.source.create_reader(context)
        self.reader.add_splits(splits)
        self.reader.no_more_splits()
        return self

    def poll(self, rows: int = 100) -> bool:
        """Take some rows; whether there were some, or the end."""
        assert self.reader is not None
        polled = self.reader.poll(rows)
        if isinstance(polled, SplitBatch):
            batch = polled.batch
            kinds = [0] * batch.num_rows if batch.kinds is None else batch.kinds.tolist()
            values = [column.to_pylist() for column in batch.columns]
            self.changes += [(SHORT_STRINGS[kind], *row) for kind, *row in zip(kinds, *values, strict=True)]
            return batch.num_rows > 0
        return polled is ReadStatus.END

    def batches(self, count: int, draw: random.Random) -> None:
        """Take rows so many times, a few each time."""
        for _ in range(count):
            until(lambda: self.poll(draw.randint(1, 30)), lambda: f"no rows behind {len(self.changes)}")

    def take(self, count: int, rows: int = 100) -> list[Change]:
        """The next changes, so many at least; they are counted from the beginning."""
        until(lambda: (self.poll(rows), len(self.changes) >= count)[1], lambda: f"{self.changes}")
        return self.changes

    def table(self) -> Counter[Change]:
        """What the changes make."""
        made: Counter[Change] = Counter()
        for kind, *row in self.changes:
            made[tuple(row)] += 1 if kind in ("+I", "+U") else -1
            assert made[tuple(row)] >= 0, f"{row} is taken back and was not there"
        return +made

    def stop(self) -> None:
        """End the reader, with a checkpoint."""
        assert self.reader is not None
        self.splits = self.reader.snapshot()
        self.reader.close()
        self.reader = None

    def close(self) -> None:
        """End the reader."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None


def until(done: Callable[[], bool], found: Callable[[], object]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < end, found()
        time.sleep(0.002)


@pytest.fixture
def place(mariadb_server: dict[str, str]) -> Iterator[Place]:
    """A database of its own."""
    made = Place(mariadb_server)
    yield made
    made.execute(f"DROP DATABASE {made.name}", database=None)
