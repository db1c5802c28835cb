"""What a server refuses, or cannot give: one sentence each."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest

from flowsql_connectors.cdc.mysql.server import Server
from flowsql_core.errors import ConnectorError
from flowsql_core.types import logical as t

from .place import Place, Scan, until

pytestmark = pytest.mark.servers

COLUMNS = {"id": t.INT, "x": t.STRING}


@pytest.fixture
def filled(place: Place) -> Place:
    place.execute("CREATE TABLE t (id int PRIMARY KEY, x varchar(20), extra int)", "INSERT INTO t VALUES (1, 'a', 0)")
    return place


@contextlib.contextmanager
def variable(place: Place, name: str, value: str, back: str) -> Iterator[None]:
    """A server whose variable has a value for a while."""
    place.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        place.execute(f"SET GLOBAL {name} = {back}")


def refused(scan: Scan) -> ConnectorError:
    """What a scan says at its beginning, or while it reads."""
    try:
        scan.open()
        with pytest.raises(ConnectorError) as caught:
            until(lambda: (scan.poll(), False)[1], lambda: scan.changes)
    except ConnectorError as error:
        return error
    scan.close()
    return caught.value


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"password": "wrong"}, "Access denied for user 'flowsql'"),
        ({"hostname": "no-such-host.invalid"}, "no-such-host.invalid"),
        ({"port": str(free_port())}, "No connection to jdbc:mysql://127.0.0.1"),
        ({"table_name": "tt"}, "'table-name' = 'tt'"),
        ({"database_name": "nowhere"}, "'database-name' = 'nowhere'"),
        ({"scan__incremental__snapshot__chunk__key_column": "y"}, "has no column 'y'"),
    ],
)
def test_what_is_not_there(filled: Place, options: dict[str, str], said: str) -> None:
    error = refused(filled.scan(COLUMNS, ("id",), **options))
    assert said in error.message, error.message
    assert "\n" not in error.message
    assert "wrong" not in error.message


@pytest.mark.parametrize(
    ("columns", "said", "hint"),
    [
        ({"id": t.INT, "xx": t.STRING}, "has no column 'xx'", "did you mean 'x'?"),
        ({"id": t.STRING}, "is int(11) in the database, which does not fit STRING", "declare it as INT"),
        ({"id": t.INT, "extra": t.SMALLINT}, "is int(11) in the database, which does not fit SMALLINT", "INT"),
        ({"id": t.INT, "u": t.STRING}, "which cannot be read out of its log", "leave the column out"),
    ],
)
def test_columns_that_do_not_fit(filled: Place, columns: dict[str, t.LogicalType], said: str, hint: str) -> None:
    filled.execute("ALTER TABLE t ADD COLUMN u uuid")
    error = refused(filled.scan(columns, ("id",)))
    assert said in error.message, error.message
    assert hint in (error.hint or ""), error.hint


def test_a_log_without_rows(filled: Place) -> None:
    with variable(filled, "binlog_format", "'MIXED'", "'ROW'"):
        assert "its binary log has statements (binlog_format = MIXED)" in refused(filled.scan(COLUMNS)).message
    with variable(filled, "binlog_row_image", "'MINIMAL'", "'FULL'"):
        assert "its binary log has parts of rows (binlog_row_image = MINIMAL)" in refused(filled.scan(COLUMNS)).message


def test_a_server_without_log(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "variables", {"log_bin": "OFF"})
    assert "it writes no binary log (log_bin = OFF)" in refused(filled.scan(COLUMNS)).message


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        ("SELECT", "it needs the privilege REPLICATION CLIENT"),
        ("SELECT, REPLICATION CLIENT", "it needs the privilege REPLICATION SLAVE"),
        ("REPLICATION CLIENT, REPLICATION SLAVE", "No table at"),
    ],
)
def test_rights(filled: Place, rights: str, said: str) -> None:
    user = f"u{filled.name}"
    filled.execute(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'secret!'", f"GRANT {rights} ON *.* TO '{user}'@'%'")
    try:
        error = refused(filled.scan(COLUMNS, username=user, password="secret!"))
    finally:
        filled.execute(f"DROP USER '{user}'@'%'")
    assert said in error.message, error.message
    assert "secret!" not in f"{error.message}{error.hint}"


def test_a_log_that_is_gone(filled: Place) -> None:
    scan = filled.scan(COLUMNS).open()
    scan.take(1)
    filled.execute("INSERT INTO t VALUES (2, 'b', 0)")
    scan.take(2)
    scan.stop()
    filled.execute("INSERT INTO t VALUES (3, 'b', 0)", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    newest = filled.rows("SHOW BINARY LOGS")[-1][0]

    def purged() -> bool:
        # The server keeps what the connection that ended just now may still read.
        filled.execute(f"PURGE BINARY LOGS TO '{newest}'")
        return bool(filled.rows("SHOW BINARY LOGS")[0][0] == newest)

    until(purged, lambda: filled.rows("SHOW BINARY LOGS"))
    error = refused(scan)
    assert error.code == "mysql-cdc-purged", error.message
    assert "has no log at binlog.0" in error.message
    assert "begins anew" in (error.hint or "")


def test_a_place_that_is_none(filled: Place) -> None:
    file = filled.rows("SHOW MASTER STATUS")[0][0]
    scan = filled.scan(
        COLUMNS, scan__startup__mode="specific-offset", scan__startup__specific_offset__file=file,
        scan__startup__specific_offset__pos="4000000000",
    )  # fmt: skip
    assert refused(scan).code == "mysql-cdc-purged"


def test_two_readers_of_one_number(filled: Place) -> None:
    first = filled.scan(COLUMNS, server_id="6001").open()
    first.take(1)
    second = filled.connect(None)
    with second.cursor() as cursor:
        cursor.execute("SET @master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4")
    until(lambda: (first.poll(), dumps(filled) == 1)[1], lambda: dumps(filled))
    file, place = filled.rows("SHOW MASTER STATUS")[0][:2]
    second._execute_command(0x12, struct.pack("<IHI", place, 0, 6001) + file.encode())
    with pytest.raises(ConnectorError) as caught:
        first.take(2)
    first.close()
    second.close()
    assert "Another reader or replica" in caught.value.message
    assert caught.value.message.endswith("has the server id 6001.")


def dumps(place: Place) -> int:
    found = place.rows("SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump'")
    return int(found[0][0])


def test_two_scans_of_one_number_in_one_job(filled: Place) -> None:
    """The second one waits for the number, and says so."""
    # The server keeps what earlier tests left until it has something to send there.
    for (left,) in filled.rows("SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'"):
        filled.execute(f"KILL {left}")
    until(lambda: dumps(filled) == 0, lambda: dumps(filled))
    first = filled.scan(COLUMNS, server_id="6002").open()
    first.take(1)
    until(lambda: (first.poll(), dumps(filled) == 1)[1], lambda: dumps(filled))
    second = filled.scan(COLUMNS, server_id="6002", connect__timeout="300 ms")
    with pytest.raises(ConnectorError, match="All numbers of 'server-id' are used by other scans of this job"):
        second.open()
    first.close()
    assert second.open().take(1) == [("+I", 1, "a")]
    second.close()


@pytest.mark.parametrize("metadata", ["FULL", "NO_LOG"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP COLUMN x", "has no column 'x' any more"),
        ("RENAME COLUMN x TO z", "has no column 'x' any more"),
        ("MODIFY x int", "Column 'x' of table"),
    ],
)
def test_columns_that_change(filled: Place, metadata: str, change: str, said: str) -> None:
    with variable(filled, "binlog_row_metadata", f"'{metadata}'", "'FULL'"):
        scan = filled.scan(COLUMNS, ("id",)).open()
        scan.take(1)
        filled.execute("UPDATE t SET x = NULL", f"ALTER TABLE t {change}", "INSERT INTO t (id) VALUES (2)")
        with pytest.raises(ConnectorError) as caught:
            until(lambda: (scan.poll(), False)[1], lambda: scan.changes)
        scan.close()
    message = caught.value.message
    assert said in message or (metadata == "NO_LOG" and "has no column 'x'" in message), message
    assert scan.changes == [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, None)]


@pytest.mark.parametrize("metadata", ["FULL", "NO_LOG"])
def test_other_columns_may_change(filled: Place, metadata: str) -> None:
    with variable(filled, "binlog_row_metadata", f"'{metadata}'", "'FULL'"):
        scan = filled.scan(COLUMNS, ("id",)).open()
        scan.take(1)
        filled.execute("ALTER TABLE t ADD COLUMN y text FIRST, DROP COLUMN extra", "UPDATE t SET x = 'b', y = 'c'")
        scan.take(3)
        filled.execute("ALTER TABLE t RENAME COLUMN y TO w, MODIFY x varchar(500)", "UPDATE t SET x = repeat('b', 300)")
        assert scan.take(5)[3:] == [("-U", 1, "b"), ("+U", 1, "b" * 300)]
        scan.close()
