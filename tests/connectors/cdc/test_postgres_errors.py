"""What a real PostgreSQL server refuses, each in one sentence; secrets are in none of them."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from flowsql_core.errors import ConnectorError, FlowSqlError
from tests.connectors.cdc.server import Database, Reading, reading
from tests.servers import SCRIPTS, Server

pytestmark = pytest.mark.servers

#: Options, what is said.
REFUSED = {
    "password": ({"password": "S3cret"}, r'No connection to PostgreSQL at .*: password authentication failed for user'),
    "host": ({"hostname": "nowhere.invalid"}, r"No connection to PostgreSQL at nowhere.invalid:\d+: .*resolve"),
    "port": ({"port": "1"}, r"No connection to PostgreSQL at .*:1: Connection refused"),
    "database": ({"database_name": "nowhere"}, r'database "nowhere" does not exist'),
    "table": ({"table_name": "tt"}, r"has no table 'public.tt'"),
    "schema": ({"schema_name": "nowhere"}, r"has no table 'nowhere.t'"),
    "chunk column": (
        {"scan__incremental__snapshot__chunk__key_column": "c"}, r"key-column': table 'public.t' has no column 'c'"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_at_once(database: Database, options: dict[str, str], said: str) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)")
    begun = time.monotonic()
    with pytest.raises(ConnectorError) as raised:
        Reading(database.table("a INT", **options))
    assert re.search(said, str(raised.value)), raised.value
    assert "S3cret" not in str(raised.value)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("a INT, c INT", "Table 'public.t' of the database has no column 'c'"),
        ("a SMALLINT", "Column 'a' of table 'public.t' is integer in the database, which does not fit SMALLINT"),
        ("g INT", "Column 'g' of table 'public.t' is generated: the log does not have it"),
    ],
)
def test_columns_that_are_not_there(database: Database, ddl: str, said: str) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, g int GENERATED ALWAYS AS (a + 1) STORED)")
    with pytest.raises(ConnectorError, match=re.escape(said)):
        Reading(database.table(ddl))


def test_generated_columns_are_in_snapshots(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (a int PRIMARY KEY, g int GENERATED ALWAYS AS (a + 1) STORED)", "INSERT INTO t VALUES (1)"
    )
    with reading(database.table("g INT", scan__startup__mode="snapshot")) as scan:
        assert scan.all() == [("+I", [2])]


@pytest.fixture
def role(database: Database) -> str:
    """A user who may log in and nothing else."""
    name = database.name + "_r"
    database.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'S3cret'")
    return name


def test_users_without_privileges(database: Database, role: str) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    table = database.table("a INT", username=role, password="S3cret")
    with pytest.raises(ConnectorError, match=f"User '{role}' may not read table 'public.t'"):
        Reading(table)
    database.execute(f"GRANT SELECT ON t TO {role}")
    said = "Publication 'dbz_publication' cannot be made"
    with reading(table) as scan, pytest.raises(ConnectorError, match=said) as raised:
        scan.take(1)
    assert "S3cret" not in str(raised.value)
    database.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    with reading(table) as scan, pytest.raises(ConnectorError, match=r"(?i)replication"):
        scan.take(1)
    database.execute(f"ALTER ROLE {role} REPLICATION")
    with reading(table) as scan:
        assert scan.take(1) == [("+I", [1])]
        scan.streaming()
    with reading(database.table("a INT", username=role, password="S3cret", scan__startup__mode="snapshot")) as scan:
        assert scan.all() == [("+I", [1])]


def test_slots_that_are_in_use_or_of_others(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)")
    hasty = {"connect__timeout": "1 s", "connect__max_retries": "1"}
    with reading(database.table("a INT")) as scan:
        scan.streaming()
        said = f"slot '{database.name}' is read by another client"
        with reading(database.table("a INT", **hasty)) as second, pytest.raises(ConnectorError, match=said):
            second.take(1)
    database.execute(f"SELECT pg_create_logical_replication_slot('{database.name}_o', 'test_decoding')")
    foreign = database.table("a INT", slot__name=database.name + "_o")
    with reading(foreign) as other, pytest.raises(ConnectorError, match="is of plug-in 'test_decoding'"):
        other.take(1)


def test_a_slot_that_is_gone(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)")
    with reading(database.table("a INT")) as scan:
        splits = scan.streaming().reader.snapshot()
    for _ in range(100):
        try:
            database.execute(f"SELECT pg_drop_replication_slot('{database.name}')")
            break
        except psycopg.errors.ObjectInUse:
            time.sleep(0.05)
    said = f"Replication slot '{database.name}' does not exist"
    with reading(database.table("a INT"), splits) as scan, pytest.raises(ConnectorError, match=said):
        scan.take(1)


def test_a_log_without_rows(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if not SCRIPTS.exists():
        pytest.skip("needs the scripts that start servers")
    ((binaries,),) = database.rows("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    with tempfile.TemporaryDirectory(prefix="flowsql-") as folder:
        Path(folder).chmod(0o755)
        # The scripts tell a server its wal_level: an installation whose server takes another one.
        home = Path(folder) / "home" / "bin"
        home.mkdir(parents=True)
        for path in Path(binaries).iterdir():
            if path.name != "postgres":
                (home / path.name).symlink_to(path)
        server_binary = f'exec {binaries}/postgres "$@"'
        (home / "postgres").write_text(
            f'#!/bin/sh\ncase "$1" in -D) {server_binary} -c wal_level=replica;; *) {server_binary};; esac\n'
        )
        (home / "postgres").chmod(0o755)
        monkeypatch.setenv("PG_HOME", str(home.parent))
        server = Server("postgres", Path(folder) / "postgres")
        try:
            without = Database(server.env)
            without.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
            with pytest.raises(ConnectorError, match="writes a log that has no rows: 'wal_level' is replica"):
                Reading(without.table("a INT"))
            with reading(without.table("a INT", scan__startup__mode="snapshot")) as scan:
                assert scan.all() == [("+I", [1])]
        finally:
            server.stop()


def test_a_server_that_stays_away(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)")
    with reading(database.table("a INT")) as scan:
        splits = scan.streaming().reader.snapshot()
    gone = database.table("a INT", port="1", connect__timeout="1 s", connect__max_retries="2")
    with reading(gone, splits) as scan, pytest.raises(FlowSqlError, match="Connection refused"):
        scan.take(1)
