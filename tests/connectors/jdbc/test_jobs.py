"""Scans, lookups and sinks over real databases, by the jobs of SQL."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from flowsql.errors import ConnectorError, FlowSqlError
from flowsql.table.catalog import JdbcCatalog
from flowsql_connectors.jdbc.source import JdbcSource
from flowsql_connectors.spi.lookup import LookupContext
from flowsql_connectors.spi.source import ReaderContext, SourceReader
from flowsql_core.clock import ManualClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import INT, Column

from .databases import KINDS, Place, answer, insert, session

pytestmark = pytest.mark.parametrize("place", KINDS, indirect=True)

COLUMNS = (
    "id BIGINT, s SMALLINT, i INT, r FLOAT, d DOUBLE, n DECIMAL(20, 5), b BOOLEAN, c STRING, x STRING, y BYTES, "
    "dt DATE, tm TIME(0), ts TIMESTAMP(3), ts6 TIMESTAMP(6)"
)
NATIVE = {
    "sqlite": "id INTEGER PRIMARY KEY, s INT, i INT, r REAL, d DOUBLE, n TEXT, b BOOLEAN, c CHAR(3), x TEXT, y BLOB, "
    "dt DATE, tm TIME, ts TIMESTAMP, ts6 TIMESTAMP",
    "postgres": "id bigint PRIMARY KEY, s smallint, i int, r real, d float8, n numeric(20, 5), b bool, c varchar(9), "
    "x text, y bytea, dt date, tm time, ts timestamp(3), ts6 timestamp",
    "mariadb": "id bigint PRIMARY KEY, s smallint, i int, r float, d double, n decimal(20, 5), b boolean, "
    "c varchar(9), x text, y blob, dt date, tm time, ts datetime(3), ts6 datetime(6)",
}
ROW = (
    "(1, CAST(-1 AS SMALLINT), 2147483647, CAST(0.1 AS FLOAT), 1E100, 12345.67891, TRUE, 'it''s', 'té 100%', X'00FF', "
    "DATE '1956-02-28', TIME '23:59:58', TIMESTAMP '1956-01-02 03:04:05.678', TIMESTAMP '1956-01-02 03:04:05.678901')"
)
READ = (
    1, -1, 2147483647, pytest.approx(0.1, rel=1e-7), 1e100, Decimal("12345.67891"), True, "it's", "té 100%",
    b"\x00\xff", datetime.date(1956, 2, 28), datetime.time(23, 59, 58),
    datetime.datetime(1956, 1, 2, 3, 4, 5, 678000), datetime.datetime(1956, 1, 2, 3, 4, 5, 678901),
)  # fmt: skip
ODD_TEXTS = ["", "'", '"', "\\", "\\'", "%", "%s", "{}", "?", "$1", "`", "\n", "𝄞", "a -- b", "x'; DROP TABLE t; --"]


@pytest.fixture
def numbers(place: Place) -> Place:
    """A table ``g`` of a thousand rows, and one without a value."""
    values = ", ".join(f"({i}, {i % 7}, 'name {i}', {i / 2})" for i in range(1, 1001))
    place.execute(
        "CREATE TABLE g (id INT, k INT, name VARCHAR(20), x DOUBLE PRECISION)",
        f"INSERT INTO g VALUES {values}, (NULL, NULL, NULL, NULL)",
    )
    return place


def test_all_types_go_in_and_come_back(place: Place) -> None:
    place.execute(f"CREATE TABLE t ({NATIVE[place.kind]})")
    made = session()
    made.execute_sql(f"CREATE TABLE t ({COLUMNS}) {place.table('t')}")
    insert(made, f"INSERT INTO t VALUES {ROW}")
    insert(made, "INSERT INTO t (id) VALUES (2)")
    assert sorted(answer(made, "SELECT * FROM t"), key=lambda row: row[0]) == [READ, (2, *[None] * 13)]


def test_texts_of_all_kinds(place: Place) -> None:
    place.execute("CREATE TABLE t (k INT PRIMARY KEY, x VARCHAR(40))")
    made = session()
    made.execute_sql(f"CREATE TABLE t (k INT, x STRING) {place.table('t')}")
    made.execute_sql(f"CREATE TABLE by_text (x STRING, k INT) {place.table('t')}")
    texts = [text.replace("'", "''") for text in ODD_TEXTS]
    insert(made, "INSERT INTO t VALUES " + ", ".join(f"({at}, '{text}')" for at, text in enumerate(texts)))
    assert sorted(answer(made, "SELECT * FROM t")) == list(enumerate(ODD_TEXTS))
    for at, text in enumerate(texts):
        assert answer(made, f"SELECT k FROM t WHERE x = '{text}'") == [(at,)]
    looked_up = (
        "SELECT s.x, d.k FROM (SELECT x, PROCTIME() AS pt FROM t) AS s "
        "JOIN by_text FOR SYSTEM_TIME AS OF s.pt AS d ON s.x = d.x"
    )
    assert sorted(answer(made, looked_up), key=lambda row: row[1]) == [(x, at) for at, x in enumerate(ODD_TEXTS)]


@pytest.mark.parametrize("fetch_size", [0, 7])
def test_parts(numbers: Place, fetch_size: int) -> None:
    """Rows beyond the bounds, and one without a value, are not read, as in Flink."""
    more = (
        ", 'scan.partition.column' = 'id', 'scan.partition.num' = '4', 'scan.partition.lower-bound' = '100', "
        f"'scan.partition.upper-bound' = '900', 'scan.fetch-size' = '{fetch_size}', 'scan.auto-commit' = 'false'"
    )
    for parallelism in ("1", "3"):
        made = session({"parallelism.default": parallelism, "execution.runtime-mode": "batch"})
        made.execute_sql(f"CREATE TABLE g (id INT, k INT, name STRING, x DOUBLE) {numbers.table('g', more)}")
        assert answer(made, "SELECT COUNT(*) AS n, COUNT(id) AS i, SUM(id) AS s, SUM(x) AS x FROM g") == [
            (801, 801, 400500, 200250.0)
        ]
        assert answer(made, "SELECT COUNT(*) AS n FROM g WHERE k = 3") == [(115,)]
        assert len(answer(made, "SELECT name FROM g LIMIT 5")) == 5


@pytest.mark.parametrize(
    ("column", "number", "lower", "upper", "ids"),
    [
        ("id", 3, "5", "7", [5, 6, 7]),
        ("id", 9, "5", "7", [5, 6, 7]),
        ("id", 2, "7", "7", [7]),
        # Between the whole numbers, too.
        ("x", 2, "3", "4", [6, 7, 8]),
        ("x", 9, "3", "4", [6, 7, 8]),
    ],
)
def test_bounds_of_parts(numbers: Place, column: str, number: int, lower: str, upper: str, ids: list[int]) -> None:
    more = (
        f", 'scan.partition.column' = '{column}', 'scan.partition.num' = '{number}', "
        f"'scan.partition.lower-bound' = '{lower}', 'scan.partition.upper-bound' = '{upper}'"
    )
    made = session({"execution.runtime-mode": "batch"})
    made.execute_sql(f"CREATE TABLE g (id INT, k INT, name STRING, x DOUBLE) {numbers.table('g', more)}")
    assert [row[0] for row in answer(made, "SELECT id FROM g ORDER BY id")] == ids


def test_conditions_stay_at_home_where_told(numbers: Place) -> None:
    made = session()
    more = ", 'filter.handling.policy' = 'never'"
    made.execute_sql(f"CREATE TABLE g (id INT, k INT, name STRING, x DOUBLE) {numbers.table('g', more)}")
    query = "SELECT id FROM g WHERE id = 7"
    assert answer(made, query) == [(7,)]
    assert "filter=[" not in made.explain_sql(query)


def test_times_are_whole_seconds(place: Place) -> None:
    """Of Flink's connector, whose drivers cut them on both ways."""
    type_ = {"sqlite": "TEXT", "postgres": "time", "mariadb": "TIME(3)"}[place.kind]
    place.execute(f"CREATE TABLE t (k INT, x {type_})", "INSERT INTO t VALUES (1, '23:59:58.789')")
    made = session()
    made.execute_sql(f"CREATE TABLE t (k INT, x TIME(3)) {place.table('t')}")
    insert(made, "INSERT INTO t VALUES (2, CAST('10:11:12.345' AS TIME(3)))")
    whole = [(1, datetime.time(23, 59, 58)), (2, datetime.time(10, 11, 12))]
    assert sorted(answer(made, "SELECT * FROM t")) == whole
    (there,) = place.rows("SELECT x FROM t WHERE k = 2")
    assert str(there[0]).partition(".")[0] == "10:11:12"
    assert str(there[0]).partition(".")[2].strip("0") == ""


def test_names_in_other_capitals(place: Place) -> None:
    """Flink leaves names without quotes, so that databases find them in their own case."""
    place.execute("CREATE TABLE t (customerid INT PRIMARY KEY, n INT)")
    made = session()
    made.execute_sql(
        f"CREATE TABLE t (customerId INT, N INT, PRIMARY KEY (customerId) NOT ENFORCED) {place.table('t')}"
    )
    insert(made, "INSERT INTO t VALUES (1, 2), (2, 3) ON CONFLICT DO DEDUPLICATE")
    insert(made, "INSERT INTO t VALUES (1, 5) ON CONFLICT DO DEDUPLICATE")
    assert sorted(answer(made, "SELECT * FROM t")) == [(1, 5), (2, 3)]
    looked_up = (
        "SELECT d.N FROM (SELECT customerId AS c, PROCTIME() AS pt FROM t WHERE customerId = 1) AS s "
        "JOIN t FOR SYSTEM_TIME AS OF s.pt AS d ON s.c = d.customerId"
    )
    assert answer(made, looked_up) == [(5,)]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("k = 3 AND id > 990", 1),
        ("(k = 1 OR name = 'name 5') AND x < 20", 7),
        ("name LIKE 'name 99%' AND NOT (k = 3) AND x IS NOT NULL", 9),
        ("name LIKE 'NAME 9%'", 0),
        ("name = 'NAME 5' OR name = 'name 5 '", 0),
        ("name >= 'name 99' AND name <> 'name 999'", 10),
        ("k IN (2, 5) AND id BETWEEN 10 AND 20", 3),
        ("k NOT IN (2, 5) AND 10 >= id", 7),
        ("x IS NULL", 1),
        ("x > 499.25 OR id < 1.5", 3),
        ("id + 1 = 3", 1),
        ("LOWER(name) = 'name 7'", 1),
    ],
)
def test_conditions(numbers: Place, condition: str, count: int) -> None:
    made = session()
    made.execute_sql(f"CREATE TABLE g (id INT, k INT, name STRING, x DOUBLE) {numbers.table('g')}")
    assert len(answer(made, f"SELECT id FROM g WHERE {condition}")) == count


def test_upserts_and_deletes(place: Place, tmp_path: Path) -> None:
    place.execute("CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, n BIGINT, s INT)", "INSERT INTO o VALUES ('b', 0, 0)")
    place.execute("INSERT INTO o VALUES ('z', 26, 26)", "CREATE TABLE a (k VARCHAR(9), v INT)")
    (tmp_path / "in.csv").write_text("a,1\nb,2\na,4\nc,1\nb,20\na,3\n")
    for rows in ("1", "3", "0"):
        made = session({"flowsql.source.batch-rows": "1"})
        made.execute_sql(
            "CREATE TABLE src (k STRING, v INT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{tmp_path / 'in.csv'}')"
        )
        more = f", 'sink.buffer-flush.max-rows' = '{rows}', 'sink.buffer-flush.interval' = '0'"
        made.execute_sql(
            f"CREATE TABLE o (k STRING, n BIGINT, s INT, PRIMARY KEY (k) NOT ENFORCED) {place.table('o', more)}"
        )
        made.execute_sql(f"CREATE TABLE a (k STRING, v INT) {place.table('a', more)}")
        insert(made, "INSERT INTO o SELECT k, COUNT(*), SUM(v) FROM src GROUP BY k HAVING SUM(v) < 10")
        assert sorted(place.rows("SELECT * FROM o")) == [("a", 3, 8), ("c", 1, 1), ("z", 26, 26)]
        insert(made, "INSERT INTO a SELECT * FROM src")
    assert len(place.rows("SELECT * FROM a")) == 18
    with pytest.raises(FlowSqlError, match="doesn't support consuming update"):
        insert(made, "INSERT INTO a SELECT k, SUM(v) FROM src GROUP BY k")


def test_keys_of_two_columns(place: Place) -> None:
    place.execute("CREATE TABLE o (a INT, b VARCHAR(9), PRIMARY KEY (a, b))", "INSERT INTO o VALUES (1, 'x')")
    made = session()
    made.execute_sql(f"CREATE TABLE o (a INT, b STRING, PRIMARY KEY (a, b) NOT ENFORCED) {place.table('o')}")
    insert(made, "INSERT INTO o VALUES (1, 'x'), (1, 'y'), (2, 'x'), (1, 'y') ON CONFLICT DO DEDUPLICATE")
    assert sorted(place.rows("SELECT * FROM o")) == [(1, "x"), (1, "y"), (2, "x")]


def test_odd_names(place: Place) -> None:
    """Of tables and columns: blanks, marks of parameters, words of SQL, capitals."""
    names = ["a b", "x%y", "%s", "c:d", "Ünd", "select", "Key?", "e(f)", "$1"]
    mark = "`" if place.kind == "mariadb" else '"'
    there = ", ".join(f"{mark}{name}{mark} INT" for name in names)
    place.execute(f"CREATE TABLE {mark}My Table{mark} ({there}, PRIMARY KEY ({mark}a b{mark}, {mark}x%y{mark}))")
    made = session()
    here = ", ".join(f"`{name}` INT" for name in names)
    made.execute_sql(f"CREATE TABLE t ({here}, PRIMARY KEY (`a b`, `x%y`) NOT ENFORCED) {place.table('My Table')}")
    rows = [tuple(range(at, at + len(names))) for at in (10, 20)]
    listed = ", ".join(map(str, rows))
    for _ in range(2):
        insert(made, f"INSERT INTO t VALUES {listed} ON CONFLICT DO DEDUPLICATE")
    assert sorted(answer(made, "SELECT * FROM t")) == rows
    assert answer(made, "SELECT `%s` FROM t WHERE `c:d` = 13 AND `Ünd` < 15 AND `select` IN (15, 16)") == [(12,)]
    looked_up = (
        "SELECT d.`Key?` FROM (SELECT k, v, PROCTIME() AS pt FROM (VALUES (20, 21), (10, 21)) AS v(k, v)) AS s "
        "JOIN t FOR SYSTEM_TIME AS OF s.pt AS d ON s.k = d.`a b`"
    )
    assert answer(made, looked_up) == [(26,), (16,)]
    assert answer(made, f"{looked_up} AND s.v = d.`x%y`") == [(26,)]


def test_rows_that_wait_are_written_in_time(place: Place) -> None:
    """The input does not end: the interval alone sends them."""
    place.execute("CREATE TABLE o (n BIGINT)")
    made = session()
    made.execute_sql(
        "CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '1000000')"
    )
    more = ", 'sink.buffer-flush.max-rows' = '0', 'sink.buffer-flush.interval' = '50 ms'"
    made.execute_sql(f"CREATE TABLE o (n BIGINT) {place.table('o', more)}")
    running = made.execute_sql("INSERT INTO o SELECT * FROM ticks").get_job_client()
    assert running is not None
    end = datetime.datetime.now() + datetime.timedelta(seconds=30)
    while not (found := place.rows("SELECT COUNT(*) AS n FROM o")[0][0]) and datetime.datetime.now() < end:
        pass
    running.cancel().result()
    assert found


@pytest.mark.parametrize(
    "cache",
    [
        "",
        ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '9'",
        ", 'lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '1 h'",
    ],
)
def test_lookups(place: Place, cache: str, tmp_path: Path) -> None:
    place.execute(
        "CREATE TABLE dim (id INT PRIMARY KEY, name VARCHAR(9), born DATE)",
        "INSERT INTO dim VALUES (1, 'ann', '2026-01-01'), (2, 'bob', '2026-01-02'), (3, 'cid', NULL)",
        "CREATE TABLE tags (k INT, tag VARCHAR(9))",
        "INSERT INTO tags VALUES (1, 'x'), (1, 'y'), (1, 'y'), (2, NULL)",
    )
    (tmp_path / "in.csv").write_text("1,1\n2,2\n3,9\n4,1\n5,\n6,3\n")
    made = session()
    made.execute_sql(
        "CREATE TABLE f (id INT, k INT, pt AS PROCTIME()) WITH ('connector' = 'filesystem', 'format' = 'csv', "
        f"'csv.null-literal' = '', 'path' = '{tmp_path / 'in.csv'}')"
    )
    made.execute_sql(f"CREATE TABLE dim (id INT, name STRING, born DATE) {place.table('dim', cache)}")
    made.execute_sql(f"CREATE TABLE tags (k INT, tag STRING) {place.table('tags', cache)}")
    by_id = "FROM f LEFT JOIN dim FOR SYSTEM_TIME AS OF f.pt AS d ON f.k = d.id"
    assert answer(made, f"SELECT f.id, d.name {by_id}") == [
        (1, "ann"), (2, "bob"), (3, None), (4, "ann"), (5, None), (6, "cid")
    ]  # fmt: skip
    days = answer(made, f"SELECT d.born {by_id} AND d.name = 'bob' WHERE d.id IS NOT NULL")
    assert days == [(datetime.date(2026, 1, 2),)]
    tagged = "SELECT f.id, t.tag FROM f JOIN tags FOR SYSTEM_TIME AS OF f.pt AS t ON f.k = t.k"
    assert sorted(answer(made, tagged), key=str) == [
        (1, "x"),
        (1, "y"),
        (1, "y"),
        (2, None),
        (4, "x"),
        (4, "y"),
        (4, "y"),
    ]


def test_a_full_cache_is_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.execute("CREATE TABLE d (k INT PRIMARY KEY, v INT)", "INSERT INTO d VALUES (1, 10), (2, 20)")
    options = dict(re.findall("'([^']+)' = '([^']*)'", place.table("d")))
    more = {
        "lookup.cache": "FULL", "lookup.full-cache.periodic-reload.interval": "1 min", "scan.partition.column": "k",
        "scan.partition.num": "2", "scan.partition.lower-bound": "1", "scan.partition.upper-bound": "2",
    }  # fmt: skip
    table = TableSpec(("c", "d", "t"), (Column("k", INT), Column("v", INT)), tuple({**options, **more}.items()))
    source = JdbcSource(ScanSpec(table, (0, 1), table.columns), {})
    clock = ManualClock()
    lookup = source.create_lookup(LookupContext((0,), clock, {}, lambda name, count: None))

    def values() -> list[int]:
        found = lookup.find([pa.array([2, 1, 7], pa.int32())])
        assert found.positions.tolist() == [0, 1]
        return list(found.columns[1].to_pylist())

    assert not source.concurrent
    assert source.partial_cache() is None
    failures = [ConnectorError("database", "The connection is lost.", retryable=True)]
    whole = JdbcSource.create_reader

    def lost(self: JdbcSource, context: ReaderContext) -> SourceReader:
        if failures:
            raise failures.pop()
        return whole(self, context)

    monkeypatch.setattr(JdbcSource, "create_reader", lost)
    assert values() == [20, 10]
    assert not failures
    failures.append(ConnectorError("database", "There is no such table."))
    clock.advance(60_000)
    with pytest.raises(ConnectorError, match="no such table"):
        values()
    assert values() == [20, 10]
    place.execute("UPDATE d SET v = v + 1")
    clock.advance(59_999)
    assert values() == [20, 10]
    clock.advance(1)
    assert values() == [21, 11]
    lookup.close()


def test_many_keys_are_asked_side_by_side(place: Place) -> None:
    values = ", ".join(f"({n}, {n * n})" for n in range(5000))
    place.execute("CREATE TABLE squares (n INT PRIMARY KEY, square INT)", f"INSERT INTO squares VALUES {values}")
    made = session({"flowsql.source.batch-rows": "10000"})
    made.execute_sql(f"CREATE TABLE squares (n INT, square INT) {place.table('squares')}")
    made.execute_sql(
        "CREATE TABLE f (n INT, pt AS PROCTIME()) WITH ('connector' = 'datagen', 'number-of-rows' = '6000', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '5999')"
    )
    joined = "FROM f JOIN squares FOR SYSTEM_TIME AS OF f.pt AS s ON f.n = s.n WHERE s.square = f.n * f.n"
    assert len(answer(made, f"SELECT f.n {joined}")) == 5000


def test_a_catalog(place: Place) -> None:
    keys = "id INT NOT NULL, part VARCHAR(9) NOT NULL, total DECIMAL(10, 2), PRIMARY KEY (part, id)"
    place.execute(f"CREATE TABLE orders ({keys})", "INSERT INTO orders VALUES (1, 'a', 9.99)", "CREATE TABLE b (n INT)")
    made = session()
    made.execute_sql(
        f"CREATE CATALOG shop WITH ('type' = 'jdbc', 'base-url' = '{place.base}', 'default-database' = '{place.name}'"
        f"{place.login})"
    )
    made.execute_sql("USE CATALOG shop")
    if place.login:
        user, password = place.login.split("'")[3], place.login.split("'")[7]
        made.register_catalog("same", JdbcCatalog("same", place.name, user, password, place.base))
        assert answer(made, "SELECT part FROM same.`" + place.name + "`.orders") == [("a",)]
    schema = "public." if place.kind == "postgres" else ""
    assert answer(made, "SHOW TABLES") == [(f"{schema}b",), (f"{schema}orders",)]
    assert (place.name,) in answer(made, "SHOW DATABASES")
    described = [row[:4] for row in answer(made, "DESCRIBE orders")]
    assert described[1:] == [
        ("part", "VARCHAR(9)" if place.kind != "sqlite" else "STRING", False, "PRI(part, id)"),
        ("total", "DECIMAL(10, 2)", True, None),
    ]
    insert(
        made, "INSERT INTO orders SELECT id, CAST('b' AS VARCHAR(9)), total * 2 FROM orders ON CONFLICT DO DEDUPLICATE"
    )
    assert sorted(answer(made, "SELECT part, total FROM orders")) == [("a", Decimal("9.99")), ("b", Decimal("19.98"))]
    for statement in ("CREATE TABLE fresh (a INT)", "DROP TABLE orders", "CREATE DATABASE d"):
        with pytest.raises(FlowSqlError, match="Catalog 'shop' of type 'jdbc' shows what is elsewhere"):
            made.execute_sql(statement)
    with pytest.raises(FlowSqlError, match="nowhere"):
        answer(made, "SELECT * FROM nowhere")


@pytest.mark.parametrize(
    ("columns", "table", "said"),
    [
        ("id INT, colour STRING", "g", "Table 'g' of the database has no column 'colour'"),
        ("id INT", "nowhere", "Table 'nowhere' does not exist"),
    ],
)
def test_what_is_not_there(numbers: Place, columns: str, table: str, said: str) -> None:
    made = session()
    made.execute_sql(f"CREATE TABLE g ({columns}) {numbers.table(table)}")
    with pytest.raises(FlowSqlError, match=said) as caught:
        answer(made, "SELECT * FROM g")
    assert "flowsql" not in caught.value.message.partition("at jdbc")[0]


def test_values_that_do_not_fit(place: Place) -> None:
    place.execute("CREATE TABLE t (x VARCHAR(9))", "INSERT INTO t VALUES ('seven')")
    made = session()
    made.execute_sql(f"CREATE TABLE t (x INT) {place.table('t')}")
    said = "A value of column 'x' of the database is no INT" if place.kind == "sqlite" else "does not fit INT"
    with pytest.raises(FlowSqlError, match=said):
        answer(made, "SELECT * FROM t")


def test_values_that_are_not_taken(place: Place) -> None:
    place.execute("CREATE TABLE t (x INT)")
    made = session()
    made.execute_sql(f"CREATE TABLE t (x DOUBLE) {place.table('t')}")
    if place.kind == "sqlite":
        insert(made, "INSERT INTO t VALUES (CAST(1.5 AS DOUBLE))")
        assert place.rows("SELECT x FROM t") == [(1.5,)]
        return
    with pytest.raises(FlowSqlError, match=r"Column 'x' of table 't' is int.* which does not fit DOUBLE"):
        insert(made, "INSERT INTO t VALUES (CAST(1.5 AS DOUBLE))")


def test_what_the_database_refuses_to_take(place: Place) -> None:
    place.execute("CREATE TABLE t (x INT NOT NULL)")
    made = session()
    made.execute_sql(f"CREATE TABLE t (x INT) {place.table('t')}")
    with pytest.raises(FlowSqlError, match=r"Table 't' (at|in) .*(null|NULL)"):
        insert(made, "INSERT INTO t VALUES (1), (CAST(NULL AS INT))")
    assert place.rows("SELECT * FROM t") == []


def test_the_size_decides_where_batch_mode_runs(numbers: Place) -> None:
    made = session({"execution.runtime-mode": "batch", "execution.batch.local-threshold": "1"})
    made.execute_sql(f"CREATE TABLE g (id INT, k INT) {numbers.table('g')}")
    why = "Spark does not read by dialects" if numbers.alchemy else "Spark was given no driver of the database"
    assert why in made.explain_sql("SELECT COUNT(*) FROM g")
