"""What is read of the log: from where on, which tables, what stands beside the rows."""

from __future__ import annotations

import datetime
import logging
import time
from contextlib import closing

import pytest

from flowsql_connectors.cdc.mysql import texts
from flowsql_connectors.spi.source import Split
from flowsql_core.errors import ConnectorError
from flowsql_core.types import logical as t

from .place import Place, until

pytestmark = pytest.mark.servers

COLUMNS = {"id": t.INT, "x": t.STRING}
NAMES = {"database_name": t.STRING, "table_name": t.STRING, "row_kind": t.STRING}


@pytest.fixture
def filled(place: Place) -> Place:
    place.execute("CREATE TABLE t (id int PRIMARY KEY, x longtext)", "INSERT INTO t VALUES (1, 'a')")
    return place


def here(place: Place) -> tuple[str, str]:
    file, position = place.rows("SHOW MASTER STATUS")[0][:2]
    return file, str(position)


def test_earliest_and_latest(filled: Place) -> None:
    earliest = filled.scan(COLUMNS, scan__startup__mode="earliest-offset").open()
    latest = filled.scan(COLUMNS, scan__startup__mode="latest-offset").open()
    until(
        lambda: (latest.poll(), b'"place":["' in state(latest) or b'"place":[{' in state(latest))[1],
        lambda: state(latest),
    )
    filled.execute("UPDATE t SET x = 'b'")
    assert earliest.take(3) == [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b")]
    assert latest.take(2) == [("-U", 1, "a"), ("+U", 1, "b")]
    earliest.close()
    latest.close()


def state(scan: object) -> bytes:
    splits: list[Split] = scan.reader.snapshot()  # type: ignore[attr-defined]
    return splits[0].data


def test_a_place(filled: Place) -> None:
    file, position = here(filled)
    filled.execute("INSERT INTO t VALUES (2, 'b'), (3, 'c'), (4, 'd')", "DELETE FROM t WHERE id = 2")
    offset = {
        "scan__startup__mode": "specific-offset", "scan__startup__specific_offset__file": file,
        "scan__startup__specific_offset__pos": position,
    }  # fmt: skip
    scan = filled.scan(COLUMNS, **offset).open()
    expected = [("+I", 2, "b"), ("+I", 3, "c"), ("+I", 4, "d"), ("-D", 2, "b")]
    assert scan.take(4) == expected
    scan.close()
    # The first of the events are the transaction's id and the table map.
    scan = filled.scan(
        COLUMNS, **offset, scan__startup__specific_offset__skip_events="2",
        scan__startup__specific_offset__skip_rows="1",
    ).open()  # fmt: skip
    assert scan.take(3) == expected[1:]
    scan.close()
    scan = filled.scan(COLUMNS, **offset, scan__startup__specific_offset__skip_events="4").open()
    assert scan.take(1) == expected[3:]
    scan.close()


def test_global_transaction_ids(filled: Place) -> None:
    gtids = filled.rows("SELECT @@gtid_binlog_pos")[0][0]
    filled.execute("INSERT INTO t VALUES (2, 'b')")
    scan = filled.scan(
        COLUMNS, scan__startup__mode="specific-offset", scan__startup__specific_offset__gtid_set=gtids
    ).open()
    scan.take(1)
    filled.execute("INSERT INTO t VALUES (3, 'c')")
    assert scan.take(2) == [("+I", 2, "b"), ("+I", 3, "c")]
    after = filled.rows("SELECT @@gtid_binlog_pos")[0][0]
    until(lambda: (scan.poll(), f'"last":"{after}"'.encode() in state(scan))[1], lambda: state(scan))
    scan.stop()
    filled.execute("INSERT INTO t VALUES (4, 'd')")
    scan.open()
    assert scan.take(3)[2:] == [("+I", 4, "d")]
    scan.close()


def test_a_moment(filled: Place) -> None:
    filled.execute("FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'old')")
    second = int(filled.rows("SELECT UNIX_TIMESTAMP()")[0][0]) + 1
    until(lambda: time.time() > second + 0.1, lambda: "time stands still")
    filled.execute("INSERT INTO t VALUES (3, 'new')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4, 'new')")
    scan = filled.scan(
        COLUMNS, scan__startup__mode="timestamp", scan__startup__timestamp_millis=str(second * 1000)
    ).open()
    assert scan.take(2) == [("+I", 3, "new"), ("+I", 4, "new")]
    scan.close()


def test_the_snapshot_alone_ends(filled: Place) -> None:
    scan = filled.scan(COLUMNS, ("id",), scan__startup__mode="snapshot")
    assert scan.source.bounded
    scan.open()
    until(lambda: scan.poll() and not scan.reader.snapshot(), lambda: scan.changes)  # type: ignore[union-attr]
    assert scan.changes == [("+I", 1, "a")]
    scan.close()


def test_tables_and_what_stands_beside_rows(place: Place) -> None:
    place.execute(
        "CREATE TABLE T_1 (id int PRIMARY KEY, x text)", "CREATE TABLE t_2 (y int, x text, id int PRIMARY KEY)",
        "CREATE TABLE u (id int PRIMARY KEY, x text)", "INSERT INTO T_1 VALUES (1, 'a')",
    )  # fmt: skip
    metadata = {**NAMES, "op_ts": t.TimestampLtzType(precision=3)}
    scan = place.scan(COLUMNS, ("id",), metadata, table_name="t_.").open()
    scan.take(1)
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=2)
    with closing(place.connect()) as connection, connection.cursor() as cursor:
        for statement in (
            "BEGIN", "INSERT INTO t_2 VALUES (0, 'b', 2)", "INSERT INTO u VALUES (1, 'no')", "UPDATE T_1 SET x = 'c'",
            "UPDATE t_2 SET id = 1", "COMMIT",
        ):  # fmt: skip
            cursor.execute(statement)
    found = scan.take(6)
    scan.close()
    assert [change[:-1] for change in found] == [
        ("+I", 1, "a", place.name, "T_1", "+I"), ("+I", 2, "b", place.name, "t_2", "+I"),
        ("-U", 1, "a", place.name, "T_1", "-U"), ("+U", 1, "c", place.name, "T_1", "+U"),
        ("-D", 2, "b", place.name, "t_2", "-D"), ("+I", 1, "b", place.name, "t_2", "+I"),
    ]  # fmt: skip
    assert found[0][-1] == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert all(before < change[-1] < before + datetime.timedelta(minutes=2) for change in found[1:])


def test_append_only(filled: Place) -> None:
    scan = filled.scan(
        COLUMNS, ("id",), {"row_kind": t.STRING}, scan__read_changelog_as_append_only__enabled="true"
    ).open()
    scan.take(1)
    filled.execute("UPDATE t SET x = 'b'")
    assert scan.take(3) == [("+I", 1, "a", "+I"), ("+I", 1, "a", "-U"), ("+I", 1, "b", "+U")]
    scan.close()


def test_tables_that_come_later(place: Place) -> None:
    place.execute("CREATE TABLE t_1 (id int PRIMARY KEY, x text)", "INSERT INTO t_1 VALUES (1, 'a')")
    scan = place.scan(COLUMNS, ("id",), table_name="t_.", scan__newly_added_table__enabled="true").open()
    scan.take(1)
    until(lambda: (scan.poll(), b'"place":[' in state(scan))[1], lambda: state(scan))
    scan.stop()
    place.execute(
        "CREATE TABLE t_2 (id int PRIMARY KEY, x text)", "INSERT INTO t_2 VALUES (2, 'b')", "UPDATE t_2 SET x = 'c'"
    )
    scan.open()
    scan.take(2)
    place.execute("DELETE FROM t_1", "DELETE FROM t_2")
    assert scan.take(4)[1:] == [("+I", 2, "c"), ("-D", 1, "a"), ("-D", 2, "c")]
    scan.close()


def test_a_table_without_key(place: Place) -> None:
    place.execute("CREATE TABLE t (id int, x text)", "INSERT INTO t VALUES (1, 'a'), (1, 'a'), (NULL, NULL)")
    scan = place.scan(COLUMNS).open()
    scan.take(3)
    place.execute("UPDATE t SET id = 2 WHERE id = 1 LIMIT 1", "DELETE FROM t WHERE id IS NULL")
    scan.take(6)
    scan.close()
    assert scan.table() == {(1, "a"): 1, (2, "a"): 1}


def test_columns_that_nobody_reads(filled: Place) -> None:
    scan = filled.scan({}, (), {"table_name": t.STRING}).open()
    scan.take(1)
    filled.execute("INSERT INTO t VALUES (2, 'b')", "DELETE FROM t WHERE id = 1")
    assert scan.take(3) == [("+I", "t"), ("+I", "t"), ("-D", "t")]
    scan.close()


def test_large_values(filled: Place) -> None:
    """Events and rows that take more than one packet."""
    size = 17_000_000
    filled.execute("SET GLOBAL max_allowed_packet = 67108864")
    scan = filled.scan(COLUMNS, ("id",)).open()
    scan.take(1)
    filled.execute(f"INSERT INTO t VALUES (2, repeat('x', {size}))", "INSERT INTO t VALUES (3, repeat('y', 70000))")
    found = scan.take(3)
    scan.close()
    assert [(kind, id_, len(x), x[:1]) for kind, id_, x in found[1:]] == [("+I", 2, size, "x"), ("+I", 3, 70000, "y")]
    scan = filled.scan(COLUMNS, ("id",)).open()
    assert scan.take(3) == found
    scan.close()


def test_many_rows(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_BATCH_ROWS", 1000)
    filled.execute("INSERT INTO t SELECT seq, concat('x', seq) FROM seq_2_to_30000")
    scan = filled.scan(COLUMNS, ("id",)).open(2)
    scan.take(30_000)
    filled.execute("DELETE FROM t WHERE id > 10", "UPDATE t SET id = id + 1 ORDER BY id DESC")
    scan.take(30_000 + 29_990 + 20, 5000)
    scan.close()
    assert scan.table() == {(id_ + 1, "a" if id_ == 1 else f"x{id_}"): 1 for id_ in range(1, 11)}


def test_rows_that_go_without_a_word(filled: Place, caplog: pytest.LogCaptureFixture) -> None:
    scan = filled.scan(COLUMNS, ("id",)).open()
    scan.take(1)
    with caplog.at_level(logging.WARNING):
        filled.execute("TRUNCATE TABLE t", "INSERT INTO t VALUES (2, 'b')")
        scan.take(2)
    assert f"TRUNCATE at {here(filled)[0]}" in caplog.text
    assert f"the rows of {filled.name}.t stay in what was read" in caplog.text
    with caplog.at_level(logging.WARNING):
        filled.execute(f"DROP TABLE `{filled.name}`.`t`", "CREATE TABLE t (x text, id int PRIMARY KEY)",
                       "INSERT INTO t VALUES ('c', 3)")  # fmt: skip
        scan.take(3)
    assert "DROP TABLE at" in caplog.text
    scan.close()
    assert scan.changes == [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("binlog_format = 'STATEMENT'", "has a statement before binlog.0"),
        ("binlog_row_image = 'MINIMAL'", "has only parts of rows of table"),
    ],
)
def test_sessions_that_write_otherwise(filled: Place, setting: str, said: str) -> None:
    scan = filled.scan(COLUMNS, ("id",)).open()
    scan.take(1)
    with closing(filled.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION {setting}")
        cursor.execute("UPDATE t SET x = 'b' WHERE id = 1")
    with pytest.raises(ConnectorError) as caught:
        scan.take(2)
    scan.close()
    assert said in caught.value.message, caught.value.message


def test_compressed_events(filled: Place) -> None:
    filled.execute("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10")
    try:
        scan = filled.scan(COLUMNS, ("id",)).open()
        scan.take(1)
        filled.execute(
            "UPDATE t SET x = repeat('b', 99999)", "INSERT INTO t VALUES (2, repeat('c', 999))",
            f"ALTER TABLE t ADD COLUMN y text COMMENT '{'x' * 900}'", "DELETE FROM t",
        )  # fmt: skip
        found = [(kind, id_, x[:1], len(x)) for kind, id_, x in scan.take(6)]
        scan.close()
    finally:
        filled.execute("SET GLOBAL log_bin_compress = OFF")
    assert found == [
        ("+I", 1, "a", 1), ("-U", 1, "a", 1), ("+U", 1, "b", 99999), ("+I", 2, "c", 999),
        ("-D", 1, "b", 99999), ("-D", 2, "c", 999),
    ]  # fmt: skip


def test_a_position_moves_where_nothing_is_read(filled: Place) -> None:
    """Heartbeats and other tables: what is purged was never needed."""
    scan = filled.scan(COLUMNS, ("id",), heartbeat__interval="200 ms").open()
    scan.take(1)
    filled.execute("CREATE TABLE u (id int)", "INSERT INTO u VALUES (1)", "FLUSH BINARY LOGS")
    file = here(filled)[0]
    until(lambda: (scan.poll(), f'"place":[{{"file":"{file}"'.encode() in state(scan))[1], lambda: state(scan))
    scan.close()


def test_a_connection_that_is_lost(filled: Place) -> None:
    scan = filled.scan(COLUMNS, ("id",)).open()
    scan.take(1)
    for number in range(2, 5):
        for (thread,) in filled.rows("SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'"):
            filled.execute(f"KILL {thread}")
        filled.execute(f"INSERT INTO t VALUES ({number}, 'b')")
        scan.take(number)
    scan.close()
    assert scan.table() == {(1, "a"): 1, (2, "b"): 1, (3, "b"): 1, (4, "b"): 1}


def test_bytes_as_texts(place: Place) -> None:
    place.execute("CREATE TABLE t (id int PRIMARY KEY, x varbinary(9))", "INSERT INTO t VALUES (1, x'00ff'), (2, NULL)")
    for mode, text in (("base64", "AP8="), ("hex", "00ff")):
        scan = place.scan(COLUMNS, ("id",), debezium__binary__handling__mode=mode).open()
        scan.take(2)
        place.execute("UPDATE t SET x = x'00ff' WHERE id = 2", "UPDATE t SET x = NULL WHERE id = 2")
        assert [x for _, _, x in scan.take(6)] == [text, None, None, text, text, None]
        scan.close()


def test_a_time_that_is_none(place: Place) -> None:
    place.execute("CREATE TABLE t (id int PRIMARY KEY, x time)", "INSERT INTO t VALUES (1, '25:00:00')")
    scan = place.scan({"id": t.INT, "x": t.TimeType(precision=0)}, ("id",)).open()
    with pytest.raises(Exception, match="The value 25:00:00 of column 'x' of the database is no TIME"):
        scan.take(1)
    scan.close()
