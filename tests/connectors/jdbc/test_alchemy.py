"""URLs of SQLAlchemy: a table of SQLite by its dialect, and what other dialects are told. The tests of all databases
run by SQLAlchemy, too, where servers are asked for (``databases.KINDS``)."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite

from flowsql.errors import ConnectorError, FlowSqlError
from flowsql_connectors.jdbc.alchemy import dialect, expressions, values, writing
from flowsql_connectors.jdbc.alchemy.types import logical_type
from flowsql_connectors.jdbc.database import Selection, Target
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.parts import Part
from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.types import logical as t

from .databases import KINDS, Place, Sqlite, answer, by_sqlalchemy, insert, session
from .test_jobs import COLUMNS, NATIVE, READ, ROW

EPOCH = datetime.datetime(1970, 1, 1)


@pytest.fixture
def shop(tmp_path: Path) -> Place:
    return by_sqlalchemy(Sqlite(tmp_path))


@pytest.mark.parametrize("upserts", ["by conflict", "by steps"])
def test_rows_go_in_and_come_back(shop: Place, upserts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if upserts == "by steps":
        monkeypatch.delitem(writing.UPSERTS, "sqlite")
    shop.execute(
        "CREATE TABLE t (a INT, b VARCHAR(9), n DECIMAL(10, 2), d DATE, ts TIMESTAMP, y BLOB, other INT DEFAULT 7, "
        "PRIMARY KEY (a, b))",
        "INSERT INTO t VALUES (1, 'x', 9.99, NULL, NULL, NULL, 5), (2, 'gone', 1, NULL, NULL, NULL, 5)",
    )
    made = session()
    columns = "a INT, b STRING, n DECIMAL(10, 2), d DATE, ts TIMESTAMP(3), y BYTES"
    made.execute_sql(f"CREATE TABLE t ({columns}, PRIMARY KEY (a, b) NOT ENFORCED) {shop.table('t')}")
    insert(
        made,
        "INSERT INTO t VALUES (1, 'x', 1.50, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05.678', X'00FF') "
        "ON CONFLICT DO DEDUPLICATE",
    )
    insert(made, "INSERT INTO t (a, b) VALUES (3, '%s ''') ON CONFLICT DO DEDUPLICATE")
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)
    first = (1, "x", Decimal("1.50"), datetime.date(2026, 1, 2), moment, b"\x00\xff")
    empty = (None, None, None)
    assert sorted(answer(made, "SELECT * FROM t")) == [
        first, (2, "gone", Decimal("1.00"), *empty), (3, "%s '", None, *empty)
    ]  # fmt: skip
    assert sorted(shop.rows("SELECT a, other FROM t")) == [(1, 5), (2, 5), (3, 7)]
    assert answer(made, "SELECT a FROM t WHERE b = '%s ''' OR (a < 2 AND b > 'y')") == [(3,)]
    looked_up = (
        "SELECT s.a, t.n FROM (SELECT a, b, PROCTIME() AS pt FROM (VALUES (2, 'gone'), (1, 'x'), (1, 'y')) AS v(a, b)) "
        "AS s JOIN t FOR SYSTEM_TIME AS OF s.pt ON s.a = t.a"
    )
    assert answer(made, looked_up) == [(2, Decimal("1.00")), (1, Decimal("1.50")), (1, Decimal("1.50"))]
    assert answer(made, f"{looked_up} AND s.b = t.b") == [(2, Decimal("1.00")), (1, Decimal("1.50"))]


def test_changes_of_a_query_are_written_and_deleted_by_steps(shop: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(writing.UPSERTS, "sqlite")
    shop.execute("CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, s INT)", "INSERT INTO o VALUES ('b', 1), ('z', 26)")
    made = session({"flowsql.source.batch-rows": "1"})
    more = ", 'sink.buffer-flush.max-rows' = '2'"
    made.execute_sql(f"CREATE TABLE o (k STRING, s INT, PRIMARY KEY (k) NOT ENFORCED) {shop.table('o', more)}")
    rows = "VALUES ('a', 1), ('b', 2), ('a', 4), ('b', 20), ('c', 3)"
    insert(made, f"INSERT INTO o SELECT k, SUM(v) FROM ({rows}) AS v(k, v) GROUP BY k HAVING SUM(v) < 10")
    assert sorted(shop.rows("SELECT * FROM o")) == [("a", 5), ("c", 3), ("z", 26)]


@pytest.mark.parametrize("place", KINDS[4:], indirect=True)
def test_all_types_by_steps(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "UPSERTS", {})
    place.execute(f"CREATE TABLE t ({NATIVE[place.kind]})")
    made = session()
    made.execute_sql(f"CREATE TABLE t ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) {place.table('t')}")
    insert(made, "INSERT INTO t (id) VALUES (1) ON CONFLICT DO DEDUPLICATE")
    assert answer(made, "SELECT * FROM t") == [(1, *[None] * 13)]
    insert(made, f"INSERT INTO t VALUES {ROW} ON CONFLICT DO DEDUPLICATE")
    assert answer(made, "SELECT * FROM t") == [READ]


def test_a_catalog_over_a_folder(shop: Place) -> None:
    shop.execute("CREATE TABLE g (id INT PRIMARY KEY, x VARCHAR(9))", "INSERT INTO g VALUES (7, 'a')")
    made = session()
    made.execute_sql(
        f"CREATE CATALOG c WITH ('type' = 'jdbc', 'base-url' = '{shop.base}', 'default-database' = '{shop.name}')"
    )
    assert answer(made, f"SHOW TABLES FROM c.`{shop.name}`") == [("g",)]
    assert answer(made, f"SELECT * FROM c.`{shop.name}`.g") == [(7, "a")]
    assert [row[:4] for row in answer(made, f"DESCRIBE c.`{shop.name}`.g")] == [
        ("id", "BIGINT", False, "PRI(id)"), ("x", "STRING", True, None)
    ]  # fmt: skip


NUMBERS = {"id": NativeColumn("id", "bigint", t.BIGINT, False, 1), "v": NativeColumn("v", "int", t.INT)}


def selection(**more: Any) -> Selection:
    declared = (t.Column("v", t.INT), t.Column("id", t.BIGINT))
    return Selection("s.Orders", declared, {0: NUMBERS["v"], 1: NUMBERS["id"]}, (0,), declared[:1], **more)


def spelled(statement: Any, dialect_: Any) -> str:
    return " ".join(str(statement.compile(dialect=dialect_)).split())


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        # In no known order, rows are read in that of the key, so that a restored scan skips the same ones.
        ("mssql", mssql.dialect(paramstyle="qmark"), "SELECT TOP __[POSTCOMPILE_param_1] s.[Orders].v FROM s.[Orders] "
         "WHERE (s.[Orders].v = ? OR s.[Orders].v = ?) AND s.[Orders].id >= ? AND s.[Orders].id < ? "
         "ORDER BY s.[Orders].id"),
        ("oracle", oracle.dialect(), 'SELECT s."Orders".v FROM s."Orders" WHERE (s."Orders".v = :param_1 OR '
         's."Orders".v = :param_2) AND s."Orders".id >= :param_3 AND s."Orders".id <= :param_4 ORDER BY s."Orders".id '
         "FETCH FIRST __[POSTCOMPILE_param_5] ROWS ONLY"),
        ("sqlite", sqlite.dialect(), 'SELECT s."Orders".v FROM s."Orders" WHERE (s."Orders".v = ? OR '
         's."Orders".v = ?) AND s."Orders".id >= ? AND s."Orders".id < ? LIMIT ? OFFSET ?'),
    ],
)  # fmt: skip
def test_scans_in_words_of_others(kind: str, words: Any, said: str) -> None:
    filter_ = Call("IN", (InputRef(0, t.INT), Literal(3, t.INT), Literal(5, t.INT)), t.BOOLEAN)
    wanted = selection(filters=(filter_,), part=Part(1, 10, 20, kind == "oracle"), limit=4)
    found = spelled(expressions.select(wanted, NUMBERS, kind), words)
    assert found == said


def test_upserts_in_words_of_others() -> None:
    columns = (t.Column("id", t.BIGINT), t.Column("v", t.INT))
    target = Target("t", columns, (NUMBERS["id"], NUMBERS["v"]), (0,))
    types = {"id": sa.BigInteger(), "v": sa.Integer()}
    update, new = (spelled(each, mssql.dialect(paramstyle="qmark")) for each in writing.writing(target, types, "mssql"))
    assert update == "UPDATE t SET v=? WHERE t.id = ?"
    assert new == (
        "INSERT INTO t (id, v) SELECT CAST(? AS BIGINT) AS anon_1, CAST(? AS INTEGER) AS anon_2 "
        "WHERE NOT (EXISTS (SELECT 1 FROM t WHERE t.id = ?))"
    )
    (replaced,) = writing.writing(target, types, "mysql")
    assert "ON DUPLICATE KEY UPDATE v = VALUES(v)" in spelled(replaced, mysql.dialect())
    only_key = Target("t", columns[:1], (NUMBERS["id"],), (0,))
    (kept,) = writing.writing(only_key, types, "duckdb")
    assert spelled(kept, postgresql.dialect()).endswith("ON CONFLICT (id) DO NOTHING")
    assert len(writing.writing(only_key, types, "mssql")) == 1


OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def holds(condition: Any, value: datetime.datetime) -> bool:
    """A condition of SQLAlchemy over one column, for one value of it."""
    if isinstance(condition, sa.BooleanClauseList):
        parts = [holds(each, value) for each in condition.clauses]
        return any(parts) if condition.operator.__name__ == "or_" else all(parts)
    found: bool = condition.operator(value, condition.right.value)
    return found


@pytest.mark.parametrize("operator", OPERATORS)
def test_digits_that_a_column_does_not_have_are_not_compared(operator: str) -> None:
    """TIMESTAMP(3) over a column of microseconds, beside the answer of FlowSQL over what it would read."""
    moments = [EPOCH + datetime.timedelta(microseconds=at) for at in range(-2500, 2500, 250)]
    compared = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[operator]
    taken_over = 0
    for precision, micros in ((3, 1000), (6, 1)):
        for at in range(-2000, 2000, 250):
            constant = EPOCH + datetime.timedelta(microseconds=at)
            expr = Call(operator, (InputRef(0, t.TimestampType(precision=precision)),
                                   Literal(at * 1000, t.TimestampType(precision=6))), t.BOOLEAN)  # fmt: skip
            column = (sa.column("c"), t.TimestampType(precision=precision))
            made = expressions._condition(expr, lambda place, column=column: column, "postgresql")
            if made is None:
                assert at % micros
                assert operator in ("=", "<>")
                continue
            taken_over += 1
            for moment in moments:
                read = EPOCH + (moment - EPOCH) // datetime.timedelta(microseconds=micros) * datetime.timedelta(
                    microseconds=micros
                )
                assert holds(made, moment) == getattr(read, compared)(constant), (moment, constant)
    assert taken_over >= 20


@pytest.mark.parametrize(
    ("kind", "operator", "value", "type_", "taken"),
    [
        ("mssql", "=", 1, t.INT, True),
        ("mssql", "<", Decimal("1.5"), t.DecimalType(precision=2, scale=1), True),
        ("sqlite", "<", Decimal("1.5"), t.DecimalType(precision=2, scale=1), False),
        ("mssql", "=", "a", t.STRING, False),
        ("mysql", "=", "a", t.STRING, False),
        ("sqlite", "=", "a", t.STRING, True),
        ("postgresql", "LIKE", "a%", t.STRING, True),
        ("sqlite", "LIKE", "a%", t.STRING, False),
        ("mssql", "=", 1, t.DATE, False),
        ("duckdb", "=", 1, t.DATE, True),
        ("duckdb", "=", 10**9, t.DATE, False),
        ("postgresql", "=", float("nan"), t.DOUBLE, False),
    ],
)
def test_what_is_taken_over(kind: str, operator: str, value: Any, type_: t.LogicalType, taken: bool) -> None:
    expr = Call(operator, (InputRef(0, type_), Literal(value, type_)), t.BOOLEAN)
    assert expressions.takes_over(expr, {0: type_}, kind) is taken


@pytest.mark.parametrize(
    ("kind", "type_", "logical"),
    [
        ("postgresql", sa.BigInteger(), t.BIGINT),
        ("postgresql", sa.SmallInteger(), t.SMALLINT),
        ("sqlite", sa.Integer(), t.BIGINT),
        ("mysql", mysql.INTEGER(unsigned=True), t.BIGINT),
        ("mysql", mysql.BIGINT(unsigned=True), t.DecimalType(precision=20, scale=0)),
        ("mysql", mysql.TINYINT(display_width=1), t.BOOLEAN),
        ("mysql", mysql.TINYINT(unsigned=True), t.SMALLINT),
        ("mysql", mysql.BIT(1), t.BOOLEAN),
        ("mysql", mysql.BIT(9), None),
        ("mysql", mysql.FLOAT(), t.FLOAT),
        ("mysql", mysql.REAL(), t.DOUBLE),
        ("mysql", mysql.DATETIME(), t.TimestampType(precision=0)),
        ("mysql", mysql.DATETIME(fsp=3), t.TimestampType(precision=3)),
        ("mysql", mysql.ENUM("a", "b"), t.STRING),
        ("mysql", mysql.YEAR(), None),
        ("postgresql", postgresql.ENUM("a", name="e"), None),
        ("postgresql", postgresql.DOMAIN("d", sa.Integer()), t.INT),
        ("mssql", mssql.TINYINT(), t.SMALLINT),
        ("mssql", mssql.BIT(), t.BOOLEAN),
        ("mssql", mssql.REAL(), t.FLOAT),
        ("mssql", mssql.DATETIMEOFFSET(7), t.TimestampLtzType(precision=6)),
        ("mssql", mssql.ROWVERSION(), t.BYTES),
        ("mssql", sa.FLOAT(53), t.DOUBLE),
        ("oracle", oracle.NUMBER(9, 0), t.INT),
        ("oracle", oracle.NUMBER(19, 0), t.DecimalType(precision=19, scale=0)),
        ("oracle", oracle.NUMBER(9, 2), t.DecimalType(precision=9, scale=2)),
        ("oracle", sa.INTEGER(), t.DecimalType(precision=38, scale=0)),
        ("oracle", oracle.DATE(), t.TimestampType(precision=0)),
        ("oracle", oracle.RAW(16), t.BYTES),
        ("postgresql", sa.NUMERIC(), t.DecimalType(precision=38, scale=18)),
        ("postgresql", sa.NUMERIC(50, 2), None),
        ("postgresql", sa.CHAR(3), t.CharType(length=3)),
        ("postgresql", sa.VARCHAR(3), t.VarCharType(length=3)),
        ("postgresql", sa.Text(), t.STRING),
        ("postgresql", postgresql.CITEXT(), None),
        ("postgresql", postgresql.UUID(), None),
        ("postgresql", postgresql.JSONB(), None),
        ("postgresql", postgresql.TIMESTAMP(True, 3), t.TimestampLtzType(precision=3)),
        ("postgresql", postgresql.TIME(True), None),
        ("postgresql", sa.Date(), t.DATE),
        ("postgresql", postgresql.BYTEA(), t.BYTES),
        ("postgresql", postgresql.ARRAY(sa.Integer()), t.ArrayType(element=t.INT)),
        ("postgresql", postgresql.ARRAY(sa.Integer(), dimensions=2), None),
        ("duckdb", sa.types.NullType(), None),
    ],
)
def test_types(kind: str, type_: Any, logical: t.LogicalType | None) -> None:
    assert logical_type(type_, kind) == logical


@pytest.mark.parametrize(
    ("given", "type_", "read"),
    [
        ([2**64 - 1, None], t.DecimalType(precision=20, scale=0), [Decimal(2**64 - 1), None]),
        (["1.5", "2"], t.DecimalType(precision=5, scale=2), [Decimal("1.50"), Decimal("2.00")]),
        ([Decimal("12.34000")], t.DecimalType(precision=4, scale=2), [Decimal("12.34")]),
        ([b"\x01", b"\x00", None], t.BOOLEAN, [True, False, None]),
        ([1, 0], t.BOOLEAN, [True, False]),
        ([Decimal(7)], t.INT, [7]),
        ([datetime.timedelta(hours=1), None], t.TimeType(precision=0), [datetime.time(1), None]),
        ([memoryview(b"a"), bytearray(b"b")], t.BYTES, [b"a", b"b"]),
        ([None, None], t.ArrayType(element=t.INT), [None, None]),
        (["2026-01-02"], t.DATE, [datetime.date(2026, 1, 2)]),
        ([[Decimal("1.5")]], t.ArrayType(element=t.DecimalType(precision=4, scale=2)), [[Decimal("1.50")]]),
    ],
)
def test_values_of_drivers(given: list[Any], type_: t.LogicalType, read: list[Any]) -> None:
    (found,) = values.arrays([(value,) for value in given], (t.Column("c", type_),))
    assert found.to_pylist() == read


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        (2**40, t.INT),
        ("seven", t.INT),
        (uuid.UUID(int=7), t.STRING),
        (Decimal("NaN"), t.DecimalType(precision=4, scale=2)),
    ],
)
def test_values_that_are_none_of_their_type(given: Any, type_: t.LogicalType) -> None:
    with pytest.raises(FlowSqlError, match=r"A value of column 'c' of the database is no .*: .*\."):
        values.arrays([(given,)], (t.Column("c", type_),))


def test_a_host_that_does_not_answer() -> None:
    late, closed = threading.Event(), threading.Event()

    def connect() -> Any:
        late.wait(30)
        return SimpleNamespace(close=closed.set)

    with pytest.raises(ConnectorError, match="No connection to h within 20 ms") as caught:
        dialect._Connecting(SimpleNamespace(connect=connect), "h").wait(20)
    assert caught.value.retryable
    # The connection that comes after all is not kept.
    late.set()
    assert closed.wait(30)


def test_rows_of_a_batch_by_their_keys() -> None:
    from flowsql_connectors.jdbc.alchemy.database import _in_order

    rows = [pa.array(["c", "beyond", "a", "b"])]
    numbers, (found,) = _in_order(pa.array([2, 3, 0, 2]).to_numpy(), rows, 3)
    assert numbers.tolist() == [0, 2, 2]
    assert found.to_pylist() == ["a", "c", "b"]


def url(more: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in more.items())


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        ({"url": "nosuch://h/d"}, "SQLAlchemy has no dialect 'nosuch' here (nosuch://h/d).", "install the package"),
        ({"url": "snowflake://a:b@h/d"}, "has no dialect 'snowflake' here (snowflake://h/d).", "snowflake-sqlalchemy"),
        ({"url": "mysql+nosuch://h/d"}, "SQLAlchemy has no dialect 'mysql+nosuch' here", "leave '+nosuch' out"),
        ({"url": "oracle+oracledb://h/d"}, "Tables at oracle+oracledb://h/d need the Python module 'oracledb'",
         "pip install 'oracledb'"),
        ({"url": "mysql+mysqldb://h/d"}, "need the Python module 'MySQLdb'", "pip install 'mysqlclient'"),
        ({"url": "postgresql+asyncpg://h/d"}, "The driver of postgresql+asyncpg://h/d is asynchronous", "synchronous"),
        ({"url": "postgresql+psycopg://h:x/d"}, "'postgresql+psycopg://h:x/d' is no URL of SQLAlchemy.", "dialect+dri"),
        ({"url": "sqlite://"}, "'sqlite://' names no file.", "sqlite:///PATH"),
        ({"url": "sqlite:///x.db", "username": "ada"}, "sqlite:///x.db is a file, which has no host and no users.", ""),
        ({"url": "sqlite://host/x.db"}, "sqlite://host/x.db is a file", "write sqlite:///PATH"),
        ({"url": "sqlite:///no/such/file.db"}, "file.db cannot be opened: there is no such file.", ""),
        ({"url": "sqlite:///x.db", "driver": "org.sqlite.JDBC"}, "The driver 'org.sqlite.JDBC' is one of JDBC", ""),
        ({"url": "mysql+pymysql://ada@h/d", "username": "bob"}, "names a user, and so does 'username'.", "take one"),
        ({"url": "postgresql+psycopg://127.0.0.1:1/d"}, "No connection to postgresql+psycopg://127.0.0.1:1/d: ", ""),
        ({"url": "mysql+pymysql://127.0.0.1:1/d"}, "No connection to mysql+pymysql://127.0.0.1:1/d: Can't connect", ""),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, str], said: str, hint: str) -> None:
    made = session()
    made.execute_sql(f"CREATE TABLE t (id INT) WITH ('connector' = 'jdbc', 'table-name' = 'g', {url(options)})")
    with pytest.raises(FlowSqlError) as caught:
        answer(made, "SELECT id FROM t")
    assert said in caught.value.message
    assert hint in caught.value.render()


def test_a_moment_as_a_timestamp_of_the_zone() -> None:
    column = (t.Column("c", t.TimestampType(precision=6)),)
    moment = datetime.datetime(2026, 7, 1, 22, tzinfo=datetime.UTC)
    (found,) = values.arrays([(moment,), (None,)], column, "Europe/Rome")
    assert found.to_pylist() == [datetime.datetime(2026, 7, 2), None]


def test_exactly_once_cannot_be(shop: Place) -> None:
    made = session()
    more = ", 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'p'"
    made.execute_sql(f"CREATE TABLE t (id INT) {shop.table('t', more)}")
    with pytest.raises(FlowSqlError, match=r"'sink\.delivery-guarantee' = 'exactly-once' cannot be used: sqlite:///"):
        insert(made, "INSERT INTO t VALUES (1)")


def test_sqlalchemy_may_be_missing(shop: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("flowsql_connectors.jdbc.alchemy")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    made = session()
    made.execute_sql(f"CREATE TABLE t (id INT) {shop.table('t')}")
    with pytest.raises(FlowSqlError, match=r"Tables at sqlite:///.* need the Python module 'sqlalchemy'") as caught:
        answer(made, "SELECT id FROM t")
    assert "pip install 'flowsql[jdbc]'" in caught.value.render()
