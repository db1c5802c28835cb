"""``JdbcSink`` of DataStreams."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Row, Types
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from flowsql_core.errors import NotSupportedYetError

TYPE = Types.ROW([Types.INT(), Types.STRING()])
APPEND = "INSERT INTO books (id, title) VALUES (?, ?)"
UPSERT = f"{APPEND} ON CONFLICT (id) DO UPDATE SET title = excluded.title"


def options(path: Path, prefix: str = "jdbc:sqlite:") -> JdbcConnectionOptions:
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"{prefix}{path}").build()


@pytest.mark.parametrize(
    ("sql", "prefix", "wanted"),
    [
        (APPEND, "jdbc:sqlite:", [(1, "a"), (2, "b"), (1, "c")]),
        (UPSERT, "jdbc:sqlite:", [(1, "c"), (2, "b")]),
        (UPSERT, "sqlite:///", [(1, "c"), (2, "b")]),
    ],
    ids=["append", "upsert", "sqlalchemy"],
)
def test_rows_are_written(tmp_path: Path, sql: str, prefix: str, wanted: list[Any]) -> None:
    path = tmp_path / "books.db"
    database = sqlite3.connect(path)
    database.execute(f"CREATE TABLE books (id INTEGER{' PRIMARY KEY' if sql == UPSERT else ''}, title TEXT)")
    database.commit()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    rows = env.from_collection([Row(1, "a"), Row(2, "b"), Row(1, "c")], TYPE)
    gathered = JdbcExecutionOptions.builder().with_batch_size(2).with_batch_interval_ms(10).with_max_retries(1).build()
    rows.add_sink(JdbcSink.sink(sql, TYPE, options(path, prefix), gathered))
    env.execute()
    assert database.execute("SELECT id, title FROM books ORDER BY rowid").fetchall() == wanted
    database.close()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE books SET title = ? WHERE id = ?",
        "INSERT INTO books VALUES (?, ?)",
        "INSERT INTO books (id, title) VALUES (?, UPPER(?))",
        "INSERT INTO books (id, title) SELECT ?, ?",
        f"{APPEND} ON CONFLICT (id) DO NOTHING",
        f"{APPEND} ON CONFLICT (id) DO UPDATE SET title = 'x'",
        f"{APPEND} ON CONFLICT (id) DO UPDATE SET id = excluded.id",
        "REPLACE nonsense",
    ],
)
def test_other_statements_are_refused(sql: str) -> None:
    with pytest.raises(NotSupportedYetError, match="JdbcSink with the statement"):
        JdbcSink.sink(sql, TYPE, options(Path("x.db")))


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build(), "with_url"),
        (lambda: JdbcSink.sink(APPEND, Types.ROW([Types.INT()]), options(Path("x.db"))), "2 question marks"),
        (lambda: JdbcSink.sink(APPEND, Types.INT(), options(Path("x.db"))), "no type of rows"),
    ],
)
def test_what_does_not_fit_is_said(build: Callable[[], Any], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        build()
