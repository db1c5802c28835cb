"""Tables of a real PostgreSQL server and what changes in them."""

from __future__ import annotations

import time

import psycopg
import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.errors import ConnectorError, ExecutionError
from tests.connectors.cdc.server import Database, Reading, reading

pytestmark = pytest.mark.servers

#: Type in PostgreSQL, declared type, values as PostgreSQL's literals.
TYPES = [
    ("boolean", "BOOLEAN", ["true", "false"]),
    ("smallint", "SMALLINT", ["-32768", "32767"]),
    ("smallint", "BIGINT", ["-32768"]),
    ("int", "INT", ["-2147483648", "0"]),
    ("int", "BIGINT", ["7"]),
    ("bigint", "BIGINT", ["9223372036854775807"]),
    ("real", "FLOAT", ["1.1", "'NaN'", "-1e-30"]),
    ("real", "DOUBLE", ["1.1"]),
    ("double precision", "DOUBLE", ["0.1", "1e300", "'-Infinity'"]),
    ("numeric(20,5)", "DECIMAL(20, 5)", ["-12345.67891", "0"]),
    ("numeric(20,5)", "DECIMAL(10, 1)", ["12345.65", "-12345.65", "99999999999.1"]),
    ("numeric", "DECIMAL(38, 18)", ["1.25", "1e30", "'NaN'"]),
    ("numeric(60,2)", "STRING", ["123456789012345678901234567890123456789012.25"]),
    ("char(4)", "STRING", ["'ab'"]),
    ("char(4)", "CHAR(4)", ["'ab'"]),
    ("varchar(9)", "STRING", ["'té xt'", "''"]),
    ("text", "STRING", [r"E'a\tb\n\\ \u20ac'", "'NULL'"]),
    ("bytea", "BYTES", [r"'\x00ff10'", r"'\x'"]),
    ("date", "DATE", ["'2026-02-28'", "'0001-01-01'", "'9999-12-31'"]),
    ("time", "TIME(0)", ["'23:59:58.9'", "'00:00:00'"]),
    ("time(3)", "TIME(3)", ["'23:59:58.123'"]),
    ("timestamp(3)", "TIMESTAMP(3)", ["'2026-01-02 03:04:05.678'", "'1900-01-01 00:00:00.123'"]),
    ("timestamp", "TIMESTAMP(6)", ["'2026-01-02 03:04:05.678901'"]),
    ("timestamp", "TIMESTAMP(3)", ["'2026-01-02 03:04:05.678901'", "'1969-12-31 23:59:59.9999'"]),
    ("timestamptz", "TIMESTAMP_LTZ(3)", ["'2026-01-02 03:04:05.678+02'", "'1950-06-01 00:00:00.001-03:30'"]),
    ("timestamptz", "TIMESTAMP_LTZ(6)", ["'2026-01-02 03:04:05.678901+02'"]),
    ("uuid", "STRING", ["'3b241101-e2bb-4255-8caf-4136c566a962'"]),
    ("json", "STRING", ["""'{"a": [1,  2]}'"""]),
    ("jsonb", "STRING", ["""'{"b": 1, "a": [1,  2]}'"""]),
    ("interval", "STRING", ["'1 year 2 days 03:04:05.6'"]),
    ("inet", "STRING", ["'127.0.0.1'", "'10.0.0.0/8'"]),
    ("timetz", "STRING", ["'12:00:00+02'"]),
    ("tstzrange", "STRING", ["'[2026-01-01 00:00+02, 2026-01-02 00:00+02)'"]),
    ("mood", "STRING", ["'sad'"]),
    ("money", "STRING", ["'12.50'"]),
    ("bit(3)", "STRING", ["B'101'"]),
    ("positive", "INT", ["5"]),
    ("int[]", "ARRAY<INT>", ["'{1,NULL,-3}'", "'{}'"]),
    ("bigint[]", "ARRAY<BIGINT>", ["'{9223372036854775807}'"]),
    ("text[]", "ARRAY<STRING>", ["""'{a,NULL,"NULL","b,c","d\\"e"}'""", "'{}'", "'{plain,words}'"]),
    ("numeric(9,2)[]", "ARRAY<DECIMAL(9, 2)>", ["'{1.5,2}'"]),
    ("boolean[]", "ARRAY<BOOLEAN>", ["'{t,f}'"]),
    ("timestamp[]", "ARRAY<TIMESTAMP(6)>", ["""'{"2026-01-02 03:04:05.5"}'"""]),
    ("bytea[]", "ARRAY<BYTES>", [r"""'{"\\x00ff"}'"""]),
    ("uuid[]", "ARRAY<STRING>", ["'{3b241101-e2bb-4255-8caf-4136c566a962}'"]),
    ("double precision[]", "ARRAY<DOUBLE>", ["'{0.1,NaN}'"]),
]


def test_types_are_the_same_in_snapshots_and_in_the_log(database: Database) -> None:
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    names = [f"c{number}" for number in range(len(TYPES))]
    columns = ", ".join(f"{name} {type_}" for name, (type_, _, _) in zip(names, TYPES, strict=True))
    database.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})", "ALTER TABLE t REPLICA IDENTITY FULL")
    most = max(len(values) for _, _, values in TYPES)
    rows = [", ".join((values[row] if row < len(values) else "NULL") for _, _, values in TYPES) for row in range(most)]
    for row, values in enumerate(rows):
        database.execute(f"INSERT INTO t VALUES ({row}, {values})")
    ddl = "id INT NOT NULL, " + ", ".join(f"{name} {type_}" for name, (_, type_, _) in zip(names, TYPES, strict=True))
    with reading(database.table(ddl)) as scan:
        snapshot = [row[1:] for _, row in sorted(scan.take(most), key=lambda change: change[1][0])]
        scan.streaming()
        database.execute(f"INSERT INTO t SELECT id + 100, {', '.join(names)} FROM t ORDER BY id")
        log = [row[1:] for _, row in scan.take(most)]
    for (type_, declared, _), in_snapshot, in_log in zip(TYPES, of_columns(snapshot), of_columns(log), strict=True):
        assert in_snapshot == in_log, f"{type_} as {declared}"
        assert in_log[0] is not None, f"{type_} as {declared}"
    # Unlike in tables of jdbc, times keep their fractions.
    assert snapshot[0][[declared for _, declared, _ in TYPES].index("TIME(3)")] == "23:59:58.123"


def of_columns(rows: list[list[object]]) -> list[tuple[object, ...]]:
    return list(zip(*rows, strict=True))


def test_updates_deletes_keys_and_several_changes_of_a_transaction(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (a int, b text, v int, PRIMARY KEY (a, b))",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20)",
    )
    with reading(database.table("a INT, b STRING, v INT")) as scan:
        scan.take(2)
        scan.streaming()
        database.execute(
            "BEGIN; INSERT INTO t VALUES (3, 'z', 30); UPDATE t SET v = v + 1 WHERE a = 3; DELETE FROM t WHERE a = 3; "
            "UPDATE t SET v = 11 WHERE a = 1; UPDATE t SET b = 'w' WHERE a = 2; COMMIT",
            "BEGIN; INSERT INTO t VALUES (9, '', 0); ROLLBACK",
            "UPDATE t SET v = NULL WHERE a = 1",
        )
        assert scan.take(10) == [
            ("+I", [3, "z", 30]), ("-U", [3, "z", 30]), ("+U", [3, "z", 31]), ("-D", [3, "z", 31]),
            ("-U", [1, "x", 10]), ("+U", [1, "x", 11]), ("-D", [2, "y", 20]), ("+I", [2, "w", 20]),
            ("-U", [1, "x", 11]), ("+U", [1, "x", None]),
        ]  # fmt: skip


def test_projection_and_metadata(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')")
    metadata = ("row_kind", "database_name", "schema_name", "table_name", "op_ts")
    with reading(database.table("a INT, b STRING"), select=["b"], metadata=metadata) as scan:
        ((_, row),) = scan.take(1)
        assert row == ["x", "+I", database.name, "public", "t", "1970-01-01 00:00:00Z"]
        scan.streaming()
        database.execute("INSERT INTO t VALUES (2, 'y')")
        ((_, row),) = scan.take(1)
        assert row[:-1] == ["y", "+I", database.name, "public", "t"]
        ((now,),) = database.rows("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24')")
        assert row[-1] > "2026-01-01"
        assert abs(int(row[-1][11:13]) - int(now[11:13])) in (0, 1, 23)
    with reading(database.table("a INT, b STRING", scan__startup__mode="snapshot"), select=[]) as scan:
        assert scan.all() == [("+I", []), ("+I", [])]


def test_upserts_need_no_old_rows(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    with reading(database.table("a INT, b STRING", ("a",), changelog_mode="upsert")) as scan:
        scan.take(2)
        scan.streaming()
        database.execute("UPDATE t SET b = 'z' WHERE a = 1", "DELETE FROM t WHERE a = 2", "UPDATE t SET a = 5")
        assert scan.take(4) == [("+U", [1, "z"]), ("-D", [2, None]), ("-D", [1, None]), ("+I", [5, "z"])]


def test_keys_of_deleted_rows_are_enough(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    with reading(database.table("a INT, b STRING")) as scan:
        scan.take(2)
        scan.streaming()
        database.execute("UPDATE t SET a = 9 WHERE a = 1", "DELETE FROM t WHERE a = 2", "DELETE FROM t")
        assert scan.take(4) == [("-D", [1, None]), ("+I", [9, "x"]), ("-D", [2, None]), ("-D", [9, None])]
    said = [record.message for record in caplog.records if "REPLICA IDENTITY is DEFAULT" in record.message]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("change", "ddl"),
    [("UPDATE t SET b = 'z'", "a INT, b STRING"), ("DELETE FROM t", "a INT, b STRING NOT NULL")],
)
def test_all_changes_need_old_rows(database: Database, change: str, ddl: str) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')")
    with reading(database.table(ddl)) as scan:
        scan.take(1)
        scan.streaming()
        database.execute("INSERT INTO t VALUES (2, 'w')")
        scan.take(1)
        database.execute(change)
        with pytest.raises(ConnectorError, match=r"no old row for (an UPDATE|a DELETE) of table 'public.t'.* DEFAULT"):
            scan.take(1)


LONG = "repeat('long', 1000) || a"


def toasted(database: Database, identity: str) -> None:
    database.execute(
        "CREATE TABLE t (a int PRIMARY KEY, b text, c bytea, v int)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL",
        f"ALTER TABLE t REPLICA IDENTITY {identity}",
        f"INSERT INTO t SELECT a, {LONG}, convert_to({LONG}, 'UTF8'), 1 FROM generate_series(1, 2) AS s(a)",
    )


def test_long_values_that_did_not_change(database: Database) -> None:
    toasted(database, "FULL")
    with reading(database.table("a INT, b STRING, c BYTES, v INT")) as scan:
        before = {row[0]: row for _, row in scan.take(2)}
        scan.streaming()
        database.execute("UPDATE t SET v = 2 WHERE a = 1")
        old, new = scan.take(2)
        assert old == ("-U", before[1])
        assert new == ("+U", [*before[1][:3], 2])


def test_long_values_that_the_log_does_not_have(database: Database) -> None:
    toasted(database, "DEFAULT")
    database.execute("ALTER TABLE t ADD d int[]", "ALTER TABLE t ALTER d SET STORAGE EXTERNAL")
    database.execute("UPDATE t SET d = array(SELECT generate_series(1, 3000))")
    given = {"changelog_mode": "upsert"}
    ddl = "a INT, b STRING, c BYTES, v INT"
    placeholder = {"debezium__unavailable__value__placeholder": "?"}
    with (
        reading(database.table("a INT, d ARRAY<INT>", ("a",), **given)) as strict,
        reading(database.table(ddl, ("a",), slot__name=database.name + "_3", **given)) as marked,
        reading(database.table(ddl, ("a",), slot__name=database.name + "_1", **given, **placeholder)) as lenient,
        reading(database.table(ddl, ("a",), slot__name=database.name + "_2", **given), select=["a", "v"]) as other,
    ):
        for scan in (strict, lenient, other, marked):
            scan.take(2)
            scan.streaming()
        database.execute("UPDATE t SET v = 2 WHERE a = 1")
        assert other.take(1) == [("+U", [1, 2])]
        assert lenient.take(1) == [("+U", [1, "?", "x3f", 2])]
        mark = "__debezium_unavailable_value"
        assert marked.take(1) == [("+U", [1, mark, "x" + mark.encode().hex(), 2])]
        with pytest.raises(ConnectorError, match="does not have long values of column 'd'"):
            strict.take(1)


def test_truncated_tables(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with (
        reading(database.table("a INT")) as going_on,
        reading(
            database.table("a INT", slot__name=database.name + "_1", debezium__skipped__operations="none")
        ) as strict,
    ):
        for scan in (going_on, strict):
            scan.take(1)
            scan.streaming()
        database.execute("TRUNCATE t", "INSERT INTO t VALUES (2)")
        assert going_on.take(1) == [("+I", [2])]
        with pytest.raises(ConnectorError, match=r"Table 'public.t' was truncated"):
            strict.take(1)


def test_skipped_operations(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with reading(database.table("a INT", debezium__skipped__operations="c, d")) as scan:
        scan.take(1)
        scan.streaming()
        database.execute(
            "INSERT INTO t VALUES (2)", "DELETE FROM t WHERE a = 2", "ALTER TABLE t REPLICA IDENTITY FULL",
            "UPDATE t SET a = a",
        )  # fmt: skip
        assert scan.take(2) == [("-U", [1]), ("+U", [1])]


def test_several_tables_of_several_schemas_in_one_order(database: Database) -> None:
    database.execute(
        "CREATE SCHEMA eu", "CREATE SCHEMA us", "CREATE SCHEMA other",
        *(f"CREATE TABLE {name} (a int PRIMARY KEY, b text)" for name in ("eu.t1", "us.t2", "other.t1", "us.u")),
        "INSERT INTO eu.t1 VALUES (1, 'one')", "INSERT INTO other.t1 VALUES (0, 'no')",
    )  # fmt: skip
    table = database.table("a INT, b STRING", table="t[0-9]", schema_name="eu|us")
    with reading(table, metadata=("schema_name",)) as scan:
        assert scan.take(1) == [("+I", [1, "one", "eu"])]
        scan.streaming()
        database.execute(
            "BEGIN; INSERT INTO us.t2 VALUES (1, 'a'); INSERT INTO eu.t1 VALUES (2, 'b'); INSERT INTO us.u VALUES "
            "(9, 'no'); INSERT INTO us.t2 VALUES (3, 'c'); INSERT INTO other.t1 VALUES (9, 'no'); COMMIT"
        )
        assert [row for _, row in scan.take(3)] == [[1, "a", "us"], [2, "b", "eu"], [3, "c", "us"]]


def test_names_and_keys_that_need_quotes(database: Database) -> None:
    database.execute(
        'CREATE SCHEMA "S.x"',
        'CREATE TABLE "S.x"."T.%" ("Key%" char(8) PRIMARY KEY, "a""b" int)',
        'INSERT INTO "S.x"."T.%" SELECT \'k\' || n, n FROM generate_series(1, 50) AS s(n)',
    )
    table = database.table(
        '`Key%` STRING, `a"b` INT', table="T.%", schema_name="S.x", scan__incremental__snapshot__chunk__size="7"
    )
    with reading(table) as scan:
        assert sorted(row[1] for _, row in scan.take(50)) == list(range(1, 51))
        scan.streaming()
        database.execute('INSERT INTO "S.x"."T.%" VALUES (\'k100\', 100)')
        assert scan.take(1) == [("+I", ["k100    ", 100])]


def test_partitioned_tables(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (a int PRIMARY KEY, b text) PARTITION BY RANGE (a)",
        "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (10) TO (20)",
        "INSERT INTO t VALUES (1, 'x'), (11, 'y')",
    )
    with pytest.raises(ConnectorError, match=r"Table 'public.t' is partitioned"):
        Reading(database.table("a INT, b STRING"))
    table = database.table("a INT, b STRING", scan__include_partitioned_tables__enabled="true")
    with reading(table) as scan:
        scan.take(2)
        scan.streaming()
        database.execute("INSERT INTO t VALUES (2, 'v'), (12, 'w')")
        assert [row for _, row in scan.take(2)] == [[2, "v"], [12, "w"]]


def test_where_reading_begins(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with reading(database.table("a INT", scan__startup__mode="latest-offset")) as scan:
        scan.streaming()
        database.execute("INSERT INTO t VALUES (2)")
        assert scan.take(1) == [("+I", [2])]
    for committed in ({"scan__startup__mode": "committed-offset"}, {"debezium__snapshot__mode": "never"}):
        with reading(database.table("a INT", **committed)) as scan:
            # Nothing was confirmed.
            assert scan.take(1) == [("+I", [2])]
            scan.reader.positions_durable(scan.reader.snapshot())
    with pytest.raises(ConnectorError, match="Replication slot 'none' does not exist"):
        Reading(database.table("a INT", slot__name="none", scan__startup__mode="committed-offset")).take(1)


def test_what_durable_checkpoints_have_is_confirmed(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)")
    with reading(database.table("a INT", scan__lsn_commit__checkpoints_num_delay="0")) as scan:
        scan.streaming()
        database.execute("INSERT INTO t VALUES (1)")
        scan.take(1)
        early = scan.reader.snapshot()
        database.execute("INSERT INTO t VALUES (2)")
        scan.take(1)
        scan.until(lambda: scan.reader.snapshot()[0].data != early[0].data)
        before = database.rows("SELECT confirmed_flush_lsn FROM pg_replication_slots")
        scan.reader.positions_durable(scan.reader.snapshot())
        scan.until(lambda: database.rows("SELECT confirmed_flush_lsn FROM pg_replication_slots") != before)
    with reading(database.table("a INT"), early) as scan, pytest.raises(ConnectorError, match="does not reach back"):
        scan.take(1)


def test_positions_go_on_without_rows(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE TABLE u (a int)")
    with reading(database.table("a INT", heartbeat__interval__ms="100 ms")) as scan:
        scan.streaming()
        before = scan.reader.snapshot()[0].data
        database.execute("INSERT INTO u VALUES (1)")
        scan.until(lambda: scan.reader.snapshot()[0].data != before)
        assert not scan.changes


def test_changed_tables(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b varchar(5), c int)", "INSERT INTO t VALUES (1, 'x', 1)")
    with reading(database.table("a BIGINT, b STRING")) as scan:
        scan.take(1)
        scan.streaming()
        database.execute(
            "ALTER TABLE t ADD d int", "INSERT INTO t VALUES (2, 'y', 2, 2)",
            "ALTER TABLE t DROP c", "INSERT INTO t VALUES (3, 'z', 3)",
            "ALTER TABLE t ALTER a TYPE bigint, ALTER b TYPE text",
            "INSERT INTO t VALUES (4000000000, 'much longer', 4)",
        )  # fmt: skip
        assert [row for _, row in scan.take(3)] == [[2, "y"], [3, "z"], [4000000000, "much longer"]]
        state = scan.reader.snapshot()
        database.execute(
            "INSERT INTO t VALUES (5, 'v', 5)", "ALTER TABLE t RENAME b TO e", "INSERT INTO t VALUES (6, 'w')"
        )
        scan.until(lambda: len(scan.changes) == 1)
        with pytest.raises(ConnectorError, match=r"'public.t' was changed.* no column 'b'"):
            scan.take(2)
    # What was written before is still read when a job goes on with a declaration that fits what is there now.
    database.execute("ALTER TABLE t RENAME e TO b")
    with reading(database.table("a BIGINT, b STRING"), state) as scan:
        scan.until(lambda: len(scan.changes) == 1)
        with pytest.raises(ConnectorError, match="was changed"):
            scan.take(2)


def test_values_that_have_no_declared_type(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b timestamp)", "INSERT INTO t VALUES (1, NULL)")
    with reading(database.table("a INT, b TIMESTAMP(6)")) as scan:
        scan.take(1)
        scan.streaming()
        database.execute("INSERT INTO t VALUES (2, 'infinity')")
        with pytest.raises(ExecutionError, match=r"column 'b' of the database is no TIMESTAMP\(6\)"):
            scan.take(1)


def test_batch_mode_reads_snapshots(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 1000)")
    options = database.options(scan__startup__mode="snapshot", scan__incremental__snapshot__chunk__size="100")
    listed = ", ".join(f"'{key}' = '{text}'" for key, text in options.items())
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.execute_sql(f"CREATE TABLE t (a INT) WITH ({listed})")
    with environment.execute_sql("SELECT COUNT(*), SUM(a) FROM t").collect() as rows:
        assert [list(row) for row in rows] == [[1000, 500500]]


def test_a_reader_that_waits_may_be_closed(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)")
    with psycopg.connect(database.uri) as open_transaction:
        open_transaction.execute("INSERT INTO t VALUES (1)")
        with reading(database.table("a INT")) as scan:
            waits = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%create_logical%' AND wait_event_type = 'Lock'"
            scan.until(lambda: bool(database.rows(waits)))
            begun = time.monotonic()
        assert time.monotonic() - begun < 5
    assert not database.rows(f"SELECT 1 FROM pg_replication_slots WHERE database = '{database.name}'")


def test_snapshots_by_queries(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 9)")
    table = database.table("a INT", **{
        "scan.startup.mode": "snapshot",
        "debezium.snapshot.select.statement.overrides": "public.t",
        "debezium.snapshot.select.statement.overrides.public.t": "SELECT * FROM public.t WHERE a > 6",
        "scan.incremental.snapshot.chunk.size": "2",
    })  # fmt: skip
    with reading(table) as scan:
        assert sorted(row for _, (row,) in scan.all()) == [7, 8, 9]


def test_the_slot_is_dropped_if_asked(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    for dropped in ("false", "true"):
        with reading(database.table("a INT", debezium__slot__drop__on__stop=dropped)) as scan:
            scan.take(1)
            scan.streaming()
        slots = database.rows(f"SELECT 1 FROM pg_replication_slots WHERE database = '{database.name}'")
        assert len(slots) == (dropped == "false")


def test_publications(database: Database) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE TABLE u (a int PRIMARY KEY)")
    filtered = {"debezium__publication__name": "mine", "debezium__publication__autocreate__mode": "filtered"}
    with reading(database.table("a INT", **filtered)) as scan:
        scan.streaming()
    assert database.rows("SELECT tablename FROM pg_publication_tables WHERE pubname = 'mine'") == [("t",)]
    with reading(database.table("a INT", table="[tu]", **filtered)) as scan:
        scan.streaming()
    assert len(database.rows("SELECT tablename FROM pg_publication_tables WHERE pubname = 'mine'")) == 2
    database.execute("ALTER PUBLICATION mine DROP TABLE u")
    other = {**filtered, "debezium__publication__autocreate__mode": "disabled"}
    with pytest.raises(ConnectorError, match=r"Publication 'mine' does not have table 'public.u'"):
        Reading(database.table("a INT", table="u", **other)).take(1)
    other["debezium__publication__name"] = "none"
    with pytest.raises(ConnectorError, match="Publication 'none' does not exist"):
        Reading(database.table("a INT", table="u", **other)).take(1)
