"""Databases of tests: SQLite everywhere, PostgreSQL and MariaDB where servers are asked for; all of them also by
SQLAlchemy."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration

#: For ``parametrize``, with ``indirect``.
KINDS = (
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.servers),
    pytest.param("mariadb", marks=pytest.mark.servers),
    # The fast tests of these are in test_alchemy.
    *(
        pytest.param(f"{kind} by sqlalchemy", marks=pytest.mark.servers, id=f"sqlalchemy-{kind}")
        for kind in ("sqlite", "postgres", "mariadb")
    ),
)


class Place:
    """A database of one test. ``options``: of the WITH clause of its tables, but ``table-name``."""

    kind: str
    base: str
    name: str
    login: str = ""
    #: Whether the address is a URL of SQLAlchemy.
    alchemy: bool = False

    @property
    def url(self) -> str:
        return f"{self.base}/{self.name}"

    @property
    def options(self) -> str:
        return f"'connector' = 'jdbc', 'url' = '{self.url}'{self.login}"

    def table(self, name: str, more: str = "") -> str:
        """The WITH clause of a table."""
        return f"WITH ({self.options}, 'table-name' = '{name}'{more})"

    def execute(self, *statements: str) -> None:
        raise NotImplementedError

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError


class Sqlite(Place):
    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.base, self.name = f"jdbc:sqlite:{folder}", "shop.db"
        self.path = folder / self.name
        with closing(sqlite3.connect(self.path)) as made:
            made.execute("PRAGMA journal_mode = WAL")

    def execute(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path, timeout=20)) as database, database:
            for statement in statements:
                database.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, timeout=20)) as database:
            return database.execute(query).fetchall()


class Postgres(Place):
    kind = "postgres"

    def __init__(self, env: dict[str, str]) -> None:
        import adbc_driver_postgresql.dbapi as adbc

        self.base, self.name = f"jdbc:postgresql://{env['PG_HOST']}:{env['PG_PORT']}", f"t{uuid.uuid4().hex[:10]}"
        self.login = f", 'username' = '{env['PG_USER']}', 'password' = '{env['PG_PASSWORD']}'"
        with adbc.connect(env["PG_URL"], autocommit=True) as server, server.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {self.name}")
        self.uri = env["PG_URL"].rpartition("/")[0] + f"/{self.name}"
        self._adbc = adbc

    def execute(self, *statements: str) -> None:
        with self._adbc.connect(self.uri, autocommit=True) as server, server.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._adbc.connect(self.uri, autocommit=True) as server, server.cursor() as cursor:
            cursor.execute(query)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found


class MariaDb(Place):
    kind = "mariadb"

    def __init__(self, env: dict[str, str]) -> None:
        import pymysql

        self.base, self.name = f"jdbc:mariadb://{env['MYSQL_HOST']}:{env['MYSQL_PORT']}", f"t{uuid.uuid4().hex[:10]}"
        self.login = f", 'username' = '{env['MYSQL_USER']}', 'password' = '{env['MYSQL_PASSWORD']}'"

        def connect(database: str = self.name) -> pymysql.Connection[Any]:
            return pymysql.connect(
                host=env["MYSQL_HOST"], port=int(env["MYSQL_PORT"]), user=env["MYSQL_USER"],
                password=env["MYSQL_PASSWORD"], database=database, autocommit=True,
            )  # fmt: skip

        self._connect = connect
        with closing(connect(env["MYSQL_DATABASE"])) as server, server.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {self.name}")

    def execute(self, *statements: str) -> None:
        with closing(self._connect()) as server, server.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self._connect()) as server, server.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


def by_sqlalchemy(place: Place) -> Place:
    """The same database by a URL of SQLAlchemy."""
    jdbc, url = {
        "sqlite": ("jdbc:sqlite:", "sqlite:///"),
        "postgres": ("jdbc:postgresql:", "postgresql+psycopg:"),
        "mariadb": ("jdbc:mariadb:", "mysql+pymysql:"),
    }[place.kind]
    place.base = place.base.replace(jdbc, url)
    place.alchemy = True
    return place


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The database that a parameter names."""
    kind, _, alchemy = request.param.partition(" by ")
    made: Place
    match kind:
        case "postgres":
            made = Postgres(request.getfixturevalue("postgres_server"))
        case "mariadb":
            made = MariaDb(request.getfixturevalue("mariadb_server"))
        case _:
            made = Sqlite(tmp_path)
    return by_sqlalchemy(made) if alchemy else made


def session(options: dict[str, str] | None = None) -> TableEnvironment:
    """A session with options."""
    return TableEnvironment.of_configuration(Configuration(values=options or {}))


def answer(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with made.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


def insert(made: TableEnvironment, statement: str) -> None:
    """Run an INSERT to its end."""
    made.execute_sql(statement).wait()


def explain(options: str, planned: str) -> None:
    """Plan that a table with these options, of one number, is read (``read``) or written."""
    made = session()
    made.execute_sql("CREATE TABLE s (k INT) WITH ('connector' = 'print')")
    made.execute_sql("CREATE TABLE g (k INT) WITH ('connector' = 'datagen')")
    made.execute_sql(f"CREATE TABLE t (k INT) WITH ({options})")
    made.explain_sql("INSERT INTO s SELECT * FROM t" if planned == "read" else "INSERT INTO t SELECT * FROM g")
