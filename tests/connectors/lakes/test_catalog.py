"""``CREATE CATALOG ... WITH ('type' = 'iceberg')``: tables are made, changed and dropped in it, and others see them."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from flowsql.errors import FlowSqlError
from flowsql.table.session.environment import TableEnvironment

from .lake import Lake
from .sessions import answer, session


@pytest.fixture
def lake(iceberg: Lake) -> Lake:
    """Of Iceberg alone."""
    return iceberg


def catalog(lake: Lake, more: str = "") -> str:
    return (
        f"CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'sql', 'uri' = '{lake.options['uri']}', "
        f"'warehouse' = '{lake.options['warehouse']}', 'default-database' = 'd'{more})"
    )


def filled(lake: Lake) -> TableEnvironment:
    """A session in the catalog, with a table of two rows."""
    found = session()
    run(
        found,
        catalog(lake),
        "USE CATALOG c",
        "CREATE TABLE t (id INT, name STRING COMMENT 'how it is called', price DECIMAL(10, 2), dt DATE, "
        "PRIMARY KEY (id) NOT ENFORCED) COMMENT 'things' PARTITIONED BY (dt) "
        "WITH ('write.parquet.compression-codec' = 'snappy')",
        "INSERT INTO t VALUES (1, 'a', 1.5, DATE '2026-01-01'), (2, 'b', 2.5, DATE '2026-01-02')",
    )
    return found


@pytest.fixture
def made(lake: Lake) -> TableEnvironment:
    """Such a session."""
    return filled(lake)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    """Such a session of which nothing is changed."""
    return filled(Lake("iceberg", tmp_path_factory.mktemp("unchanged")))


def run(made: TableEnvironment, *statements: str) -> None:
    for statement in statements:
        result = made.execute_sql(statement)
        if statement.startswith("INSERT") or " AS SELECT" in statement:
            result.wait()


def text(made: TableEnvironment, statement: str) -> str:
    return str(answer(made, statement))


def test_tables_as_others_see_them(made: TableEnvironment, lake: Lake) -> None:
    table = lake.opened()
    assert table.properties["comment"] == "things"
    assert [(field.name, field.required) for field in table.schema().fields] == [
        ("id", True), ("name", False), ("price", False), ("dt", False),
    ]  # fmt: skip
    assert [str(field.transform) for field in table.spec().fields] == ["identity"]
    assert table.schema().identifier_field_names() == {"id"}
    assert lake.rows("id", "name") == [(1, "a"), (2, "b")]
    # What others add is seen at once, in a session of its own too.
    import pyarrow as pa

    added = pa.schema([pa.field("id", pa.int32(), False), pa.field("dt", pa.date32())])
    table.append(pa.table({"id": [3], "dt": [None]}, schema=added))
    assert answer(made, "SELECT id FROM t WHERE dt IS NULL") == [(3,)]


def test_show_and_describe(unchanged: TableEnvironment) -> None:
    made = unchanged
    assert answer(made, "SHOW DATABASES") == [("d",)]
    assert answer(made, "SHOW TABLES") == [("t",)]
    assert [row[:4] for row in answer(made, "DESCRIBE t")] == [
        ("id", "INT", False, "PRI(id)"),
        ("name", "STRING", True, None),
        ("price", "DECIMAL(10, 2)", True, None),
        ("dt", "DATE", True, None),
    ]
    shown = answer(made, "SHOW CREATE TABLE t")[0][0]
    for part in ("COMMENT 'how it is called'", "COMMENT 'things'", "PARTITIONED BY (`dt`)", "'connector' = 'iceberg'"):
        assert part in shown
    # The text makes a table that reads the same rows elsewhere.
    run(made, shown.replace("CREATE TABLE `c`.`d`.`t`", "CREATE TEMPORARY TABLE `c`.`d`.`u`"))
    assert len(answer(made, "SELECT * FROM u")) == 2


@pytest.mark.parametrize(
    ("statements", "described", "rows"),
    [
        (
            ["ALTER TABLE t ADD (note STRING COMMENT 'new' AFTER id)", "INSERT INTO t (id, note) VALUES (3, 'n')"],
            [("id", "INT"), ("note", "STRING"), ("name", "STRING"), ("price", "DECIMAL(10, 2)"), ("dt", "DATE")],
            "SELECT id, note, name FROM t ORDER BY id -> [(1, None, 'a'), (2, None, 'b'), (3, 'n', None)]",
        ),
        pytest.param(
            ["ALTER TABLE t ADD (first INT FIRST)"],
            [("first", "INT"), ("id", "INT"), ("name", "STRING"), ("price", "DECIMAL(10, 2)"), ("dt", "DATE")],
            "SELECT id, name FROM t ORDER BY id -> [(1, 'a'), (2, 'b')]",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ["ALTER TABLE t RENAME name TO title", "ALTER TABLE t MODIFY (price DECIMAL(12, 2) COMMENT 'EUR')"],
            [("id", "INT"), ("title", "STRING"), ("price", "DECIMAL(12, 2)"), ("dt", "DATE")],
            "SELECT id, title FROM t ORDER BY id -> [(1, 'a'), (2, 'b')]",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ["ALTER TABLE t DROP name", "ALTER TABLE t ADD name INT"],
            [("id", "INT"), ("price", "DECIMAL(10, 2)"), ("dt", "DATE"), ("name", "INT")],
            # A column of the same name is another one: rows that were there have no value.
            "SELECT id, name FROM t ORDER BY id -> [(1, None), (2, None)]",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ["ALTER TABLE t MODIFY (id BIGINT)"],
            [("id", "BIGINT"), ("name", "STRING"), ("price", "DECIMAL(10, 2)"), ("dt", "DATE")],
            "SELECT id FROM t ORDER BY id -> [(1,), (2,)]",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_alter_columns(
    made: TableEnvironment, statements: list[str], described: list[tuple[str, str]], rows: str
) -> None:
    run(made, *statements)
    assert [row[:2] for row in answer(made, "DESCRIBE t")] == described
    query, _, wanted = rows.partition(" -> ")
    assert text(made, query) == wanted


def test_alter_properties_and_names(made: TableEnvironment, lake: Lake) -> None:
    run(
        made,
        "ALTER TABLE t SET ('write.target-file-size-bytes' = '1000', 'commit.retry.num-retries' = '9')",
        "ALTER TABLE t RESET ('write.parquet.compression-codec')",
    )
    properties = lake.opened().properties
    assert properties["write.target-file-size-bytes"] == "1000"
    assert properties["commit.retry.num-retries"] == "9"
    assert "write.parquet.compression-codec" not in properties
    snapshots = [snapshot.snapshot_id for snapshot in lake.opened().snapshots()]
    run(made, "ALTER TABLE t RENAME TO u")
    assert answer(made, "SHOW TABLES") == [("u",)]
    assert text(made, "SELECT id FROM u ORDER BY id") == "[(1,), (2,)]"
    run(made, "ALTER TABLE u RENAME TO t")
    assert [snapshot.snapshot_id for snapshot in lake.opened().snapshots()] == snapshots


def test_tables_by_queries(made: TableEnvironment, lake: Lake) -> None:
    run(made, "CREATE TABLE u AS SELECT id, name FROM t")
    assert text(made, "SELECT * FROM u ORDER BY id") == "[(1, 'a'), (2, 'b')]"
    run(made, "CREATE OR REPLACE TABLE u AS SELECT id FROM t WHERE id = 2", "CREATE TABLE v LIKE t")
    assert text(made, "SELECT * FROM u") == "[(2,)]"
    assert answer(made, "SELECT * FROM v") == []
    run(made, "INSERT INTO v SELECT * FROM t", "INSERT OVERWRITE v SELECT * FROM t WHERE id = 1")
    assert text(made, "SELECT id FROM v ORDER BY id") == "[(1,), (2,)]"
    run(made, "DROP TABLE u", "DROP TABLE v", "DROP TABLE t")
    assert answer(made, "SHOW TABLES") == []
    assert lake.data_files() == []


def test_databases(made: TableEnvironment) -> None:
    run(
        made,
        "CREATE DATABASE e COMMENT 'other' WITH ('a' = '1', 'b' = '2')",
        "ALTER DATABASE e SET ('a' = '3')",
        "CREATE TABLE e.n (a INT)",
        "INSERT INTO e.n VALUES (1)",
    )
    assert answer(made, "SHOW DATABASES") == [("d",), ("e",)]
    assert "option:a', '3'" in text(made, "DESCRIBE DATABASE EXTENDED e")
    with pytest.raises(FlowSqlError, match="Database e in catalog c is not empty"):
        run(made, "DROP DATABASE e")
    run(made, "DROP DATABASE e CASCADE")
    assert answer(made, "SHOW DATABASES") == [("d",)]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "CREATE TABLE u (a INT) WITH ('connector' = 'datagen')",
            r"keeps tables of Iceberg alone, and 'c\.d\.u' is one",
        ),
        ("CREATE TABLE u (a INT) WITH ('snapshot-id' = '1')", r"'snapshot-id' is no property of Iceberg tables\."),
        ("CREATE TABLE u (a INT, b AS a + 1)", r"Creating table with computed columns is not supported yet\."),
        ("CREATE TABLE u (a TIMESTAMP(3), WATERMARK FOR a AS a)", r"Creating table with watermark specs is not"),
        ("CREATE TABLE u (a TIMESTAMP(9))", r"Column 'a' is TIMESTAMP\(9\): Iceberg's timestamps hold 6 digits"),
        ("CREATE OR REPLACE TABLE t AS SELECT CAST(NULL AS TIMESTAMP(9)) AS a", r"Iceberg's timestamps hold 6 digits"),
        ("CREATE VIEW u AS SELECT * FROM t", r"Iceberg catalog 'c' keeps no views of SQL \('c\.d\.u'\)\."),
        ("CREATE FUNCTION f AS 'os.getcwd' LANGUAGE PYTHON", r"Iceberg catalog 'c': it keeps no functions"),
        ("ALTER TABLE t ADD (b INT NOT NULL)", r"column 'b' is added to rows that have no value for it"),
        ("ALTER TABLE t MODIFY (name INT)", r"column 'name' is STRING, and Iceberg does not read its values as INT\."),
        ("ALTER TABLE t MODIFY (name STRING NOT NULL)", r"column 'name' may hold NULL already, and cannot become NOT"),
        ("INSERT INTO t /*+ OPTIONS('upsert-enabled' = 'true') */ SELECT * FROM t", r"pyiceberg writes no equality"),
        ("INSERT INTO t /*+ OPTIONS('write-format' = 'orc') */ SELECT * FROM t", r"pyiceberg writes parquet alone"),
        (
            "INSERT INTO t /*+ OPTIONS('distribution-mode' = 'range') */ SELECT * FROM t",
            r"'distribution-mode' = 'range'",
        ),
        ("SELECT * FROM t /*+ OPTIONS('snapshotid' = '1') */", r"Unsupported options:\n\nsnapshotid"),
    ],
)
def test_what_is_refused(unchanged: TableEnvironment, statement: str, said: str) -> None:
    with pytest.raises(FlowSqlError, match=said):
        run(unchanged, statement)
    assert text(unchanged, "SELECT id FROM t ORDER BY id") == "[(1,), (2,)]"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("'catalog-type' = 'jdbc'", r"no Iceberg catalogs of the type 'jdbc'; Iceberg's catalog in a database: 'sql'"),
        (
            "'catalog-type' = 'sql', 'uri' = 'sqlite:////nowhere/at/all.db'",
            r"Iceberg catalog 'e': unable to open database",
        ),
        ("'catalog-type' = 'sql', 'url' = 'x'", r"Unsupported options: url"),
        ("'uri' = 'x'", r"Missing required options are: catalog-type"),
        (
            "'catalog-type' = 'sql', 'uri' = 'postgresql+psycopg2://me:hush@host/db'",
            r"'uri' = 'postgresql\+psycopg2://\*{6}@host/db' holds a password, which definitions would show\.",
        ),
        ("'catalog-type' = 'rest', 'uri' = 'http://127.0.0.1:9'", r"Iceberg catalog 'e': .*127\.0\.0\.1"),
    ],
)
def test_catalogs_that_cannot_be(options: str, said: str) -> None:
    with pytest.raises(FlowSqlError, match=said) as told:
        session().execute_sql(f"CREATE CATALOG e WITH ('type' = 'iceberg', {options})")
    assert "hush" not in told.value.message


def test_secrets_are_not_shown(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", "hush-hush-hush")
    keys = ("s3.secret-access-key", "s3.access-key-id", "s3.session-token", "credential", "adls.account-key")
    more = "".join(f", '{key}' = 'open-secret'" for key in keys) + ", 'token' = '${env:LAKE_SECRET}'"
    made = session()
    run(made, catalog(lake, more), "USE CATALOG c", "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)")
    shown = (
        text(made, "SHOW CREATE CATALOG c") + text(made, "SHOW CREATE TABLE t") + text(made, "EXPLAIN SELECT * FROM t")
    )
    shown += text(made, "DESCRIBE CATALOG EXTENDED c")
    assert "'${env:LAKE_SECRET}'" in shown
    with pytest.raises(FlowSqlError) as told:
        answer(made, "SELECT * FROM t /*+ OPTIONS('s3.secret' = 'x') */")
    shown += told.value.render()
    assert "hush-hush-hush" not in shown
    assert "open-secret" not in shown
    assert answer(made, "SELECT * FROM t") == [(1,)]


def test_catalogs_come_back(lake: Lake, tmp_path: Path) -> None:
    store = {"table.catalog-store.kind": "file", "table.catalog-store.file.path": str(tmp_path / "store")}
    run(session(store), catalog(lake), "CREATE TABLE c.d.t (a INT)", "INSERT INTO c.d.t VALUES (1)")
    assert answer(session(store), "SELECT * FROM c.d.t") == [(1,)]


def test_a_table_that_the_connector_makes(lake: Lake) -> None:
    made = session()
    run(
        made,
        f"CREATE TABLE t (a INT, b STRING) PARTITIONED BY (b) WITH ({lake.clause}, 'write.format.default' = 'parquet')",
    )
    with pytest.raises(FlowSqlError, match=r"Iceberg table 'c\.d\.t' does not exist\."):
        answer(made, "SELECT * FROM t")
    run(made, "INSERT INTO t VALUES (1, 'x')", catalog(lake))
    assert answer(made, "SELECT * FROM c.d.t") == [(1, "x")]
    assert lake.opened().properties["write.format.default"] == "parquet"


def test_tables_as_they_were(lake: Lake) -> None:
    """FOR SYSTEM_TIME AS OF, in the session's zone."""
    made = session({"table.local-time-zone": "Asia/Kolkata"})
    run(made, f"CREATE TABLE t (a INT) WITH ({lake.clause})", "INSERT INTO t VALUES (1)")
    then = datetime.datetime.fromtimestamp(lake.opened().snapshots()[0].timestamp_ms / 1000, ZoneInfo("Asia/Kolkata"))
    run(made, "INSERT INTO t VALUES (2)")
    shown = then.replace(tzinfo=None).isoformat(" ", "milliseconds")
    for moment in (
        f"TIMESTAMP '{shown}'",
        f"TIMESTAMP '{shown}' + INTERVAL '0' DAY",
        f"CAST('{shown}' AS TIMESTAMP(3))",
    ):
        assert answer(made, f"SELECT x.a FROM t FOR SYSTEM_TIME AS OF {moment} AS x") == [(1,)]
    assert len(answer(made, "SELECT a FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2999-01-01 00:00:00'")) == 2
    for query, said in (
        ("t FOR SYSTEM_TIME AS OF TIMESTAMP '2000-01-01 00:00:00'", "had no snapshot at 1999-12-31 18:30:00"),
        ("t FOR SYSTEM_TIME AS OF 'then'", "expects Timestamp type but is 'CHAR"),
        ("t FOR SYSTEM_TIME AS OF CAST(NULL AS TIMESTAMP(3))", "takes a constant here"),
        ("t FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP", "takes a constant here"),
    ):
        with pytest.raises(FlowSqlError, match=said):
            answer(made, f"SELECT * FROM {query}")
    run(made, "CREATE TEMPORARY VIEW v AS SELECT * FROM t")
    with pytest.raises(FlowSqlError, match="The catalog of table 'v' keeps no older versions"):
        answer(made, "SELECT * FROM v FOR SYSTEM_TIME AS OF TIMESTAMP '2999-01-01 00:00:00'")


def test_delta_as_it_was(delta: Lake) -> None:
    made = session()
    run(made, f"CREATE TABLE t (a INT) WITH ({delta.clause})", "INSERT INTO t VALUES (1)")
    then = datetime.datetime.now()
    # A version counts from when its file was written, by a clock that goes in steps of some milliseconds.
    time.sleep(0.02)
    run(made, "INSERT INTO t VALUES (2)")
    shown = then.isoformat(" ", "milliseconds")
    assert answer(made, f"SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '{shown}'") == [(1,)]
