"""Databases of a real PostgreSQL server for tests, and scans of them without an engine."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from flowsql_connectors.spi.source import ReadStatus, Split, SplitBatch
from flowsql_core.graph.specs import TableSpec
from flowsql_core.row import SHORT_STRINGS
from tests.connectors.tables import reader_of, rows_of, source_of, table_of

LIMIT_S = 60.0


class Database:
    """A database of one test, and its tables as ``postgres-cdc`` tables."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.name = f"t{uuid.uuid4().hex[:10]}"
        self.uri = env["PG_URL"].rpartition("/")[0] + f"/{self.name}"
        with psycopg.connect(env["PG_URL"], autocommit=True) as server:
            server.execute(f"CREATE DATABASE {self.name} TEMPLATE template0")  # type: ignore[arg-type]

    def execute(self, *statements: str) -> None:
        """Statements, each a transaction of its own."""
        with psycopg.connect(self.uri, autocommit=True) as server:
            for statement in statements:
                server.execute(statement)  # type: ignore[arg-type]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.uri, autocommit=True) as server:
            return server.execute(query).fetchall()  # type: ignore[arg-type]

    def options(self, table: str = "t", **more: str) -> dict[str, str]:
        """WITH options; ``__`` of a keyword is a dot, ``_`` a dash."""
        given = {
            "connector": "postgres-cdc",
            "hostname": self.env["PG_HOST"],
            "port": self.env["PG_PORT"],
            "username": self.env["PG_USER"],
            "password": self.env["PG_PASSWORD"],
            "database-name": self.name,
            "schema-name": "public",
            "table-name": table,
            "slot.name": self.name,
        }
        return {**given, **{key.replace("__", ".").replace("_", "-"): text for key, text in more.items()}}

    def table(self, ddl: str, key: tuple[str, ...] = (), table: str = "t", **more: str) -> TableSpec:
        return replace(table_of(ddl, self.options(table, **more)), primary_key=key)

    def drop(self) -> None:
        """Also its slots, without which it could not be dropped."""
        with psycopg.connect(self.env["PG_URL"], autocommit=True) as server:
            for _ in range(100):
                try:
                    server.execute(
                        "SELECT pg_terminate_backend(active_pid), pg_sleep(0.1) FROM pg_replication_slots "
                        "WHERE database = %s AND active_pid IS NOT NULL", (self.name,),
                    )  # fmt: skip
                    server.execute(
                        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s",
                        (self.name,),
                    )
                    break
                except psycopg.errors.ObjectInUse:
                    time.sleep(0.1)
            server.execute(f"DROP DATABASE {self.name} WITH (FORCE)")  # type: ignore[arg-type]


class Reading:
    """A reader of a table, and the changes that it gave: ``["+I", [values]]``."""

    def __init__(self, table: TableSpec, splits: list[Split] | None = None, parallelism: int = 1, **scan: Any) -> None:
        source, self._schema = source_of(table, **scan)
        self.changes: list[tuple[str, list[Any]]] = []
        self.ended = False
        begun = source.create_enumerator().initial_splits(parallelism)[0] if splits is None else splits
        self.reader = reader_of(source, parallelism=parallelism)
        self.reader.add_splits(begun)
        self.reader.no_more_splits()

    def poll(self, most: int = 1000) -> bool:
        """Whether there was something; waits a moment for it."""
        polled = self.reader.poll(most)
        if isinstance(polled, SplitBatch):
            batch = polled.batch
            kinds = ["+I"] * batch.num_rows if batch.kinds is None else [SHORT_STRINGS[kind] for kind in batch.kinds]
            self.changes += list(zip(kinds, rows_of(batch, self._schema) if batch.num_rows else [], strict=True))
            return True
        self.ended = polled is ReadStatus.END
        if not self.ended:
            woken = threading.Event()
            self.reader.wake_when_available(woken.set)
            woken.wait(0.2)
        return False

    def until(self, condition: Callable[[], bool], most: int = 1000) -> None:
        end = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < end, self.changes
            self.poll(most)

    def take(self, count: int) -> list[tuple[str, list[Any]]]:
        """The next so many changes, and no more of them."""
        self.until(lambda: len(self.changes) >= count)
        taken, self.changes = self.changes, []
        assert len(taken) == count, taken
        return taken

    def all(self) -> list[tuple[str, list[Any]]]:
        """The changes of a scan that ends."""
        self.until(lambda: self.ended)
        self.reader.close()
        return self.changes

    def streaming(self) -> Reading:
        """Wait until the log is read."""
        self.until(lambda: b'"place":null' not in self.reader.snapshot()[0].data)
        return self


@contextmanager
def reading(table: TableSpec, splits: list[Split] | None = None, **more: Any) -> Iterator[Reading]:
    made = Reading(table, splits, **more)
    try:
        yield made
    finally:
        made.reader.close()


@pytest.fixture
def database(postgres_server: dict[str, str]) -> Iterator[Database]:
    """A database of one test."""
    made = Database(postgres_server)
    yield made
    made.drop()
