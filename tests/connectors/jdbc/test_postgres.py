"""Types that PostgreSQL alone has, its schemas, and a server that comes back."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from flowsql.errors import FlowSqlError

from .databases import KINDS, Place, answer, insert, session

pytestmark = pytest.mark.parametrize("place", [KINDS[1], KINDS[4]], indirect=True)


def test_its_own_types(place: Place) -> None:
    place.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN amount AS numeric(10, 2)",
        "CREATE TABLE t (id int PRIMARY KEY, u uuid, j jsonb, m mood, a amount, n numeric, c char(3), tz timestamptz, "
        "na numeric(6, 2)[], ua text[], i2 smallint[], ip inet)",
        "INSERT INTO t VALUES (1, '4b3d3f60-1d4b-4ee6-a106-20ebf2d88eff', '{\"a\": 1}', 'glad', 1.5, 1.256, 'ab', "
        "'2026-01-02 03:04:05.678+02', '{1.5,NULL}', '{x,NULL}', '{1,2}', '10.0.0.1')",
        "INSERT INTO t (id, n) VALUES (2, 12345678), (3, NULL)",
    )
    made = session({"table.local-time-zone": "UTC"})
    made.execute_sql(
        "CREATE TABLE t (id INT, u STRING, j STRING, m STRING, a DECIMAL(10, 2), n DECIMAL(6, 2), c STRING, "
        "tz TIMESTAMP_LTZ(3), na ARRAY<DECIMAL(6, 2)>, ua ARRAY<STRING>, i2 ARRAY<BIGINT>, ip STRING) "
        + place.table("t")
    )
    moment = datetime.datetime(2026, 1, 2, 1, 4, 5, 678000, datetime.UTC)
    own = (
        1, "4b3d3f60-1d4b-4ee6-a106-20ebf2d88eff", '{"a": 1}', "glad", Decimal("1.50"), Decimal("1.26"), "ab ",
        moment, [Decimal("1.50"), None], ["x", None], [1, 2], "10.0.0.1/32",
    )  # fmt: skip
    found = sorted(answer(made, "SELECT * FROM t"), key=lambda row: row[0])
    assert [str(value) for value in found[0]] == [str(value) for value in own]
    # Rounded and NULL beyond nine digits, as in Flink; the condition is about what is read.
    assert found[1][5] is None
    assert answer(made, "SELECT id FROM t WHERE n = 1.26") == [(1,)]
    insert(made, "INSERT INTO t SELECT 4, u, j, m, a, n, c, tz, na, ua, i2, ip FROM t WHERE id = 1")
    (again,) = answer(made, "SELECT * FROM t WHERE id = 4")
    assert [str(value) for value in again[1:]] == [str(value) for value in own[1:]]
    looked_up = (
        "SELECT d.id FROM (SELECT u, m, PROCTIME() AS pt FROM t WHERE id = 1) AS s "
        "JOIN t FOR SYSTEM_TIME AS OF s.pt AS d ON s.u = d.u AND s.m = d.m"
    )
    assert sorted(answer(made, looked_up)) == [(1,), (4,)]


@pytest.mark.parametrize(
    ("zone", "at_ten"),
    [("UTC", "10:00:00+00"), ("Europe/Berlin", "08:00:00+00"), ("+09:00", "01:00:00+00")],
)
def test_moments_with_a_zone_as_timestamps(place: Place, zone: str, at_ten: str) -> None:
    place.execute("CREATE TABLE t (tz timestamptz)")
    made = session({"table.local-time-zone": zone})
    made.execute_sql(f"CREATE TABLE t (tz TIMESTAMP(3)) {place.table('t')}")
    insert(made, "INSERT INTO t VALUES (TIMESTAMP '2026-07-01 10:00:00')")
    assert place.rows(f"SELECT tz = '2026-07-01 {at_ten}' FROM t") == [(True,)]
    assert answer(made, "SELECT * FROM t") == [(datetime.datetime(2026, 7, 1, 10),)]
    assert answer(made, "SELECT COUNT(*) AS n FROM t WHERE tz = TIMESTAMP '2026-07-01 10:00:00'") == [(1,)]


def test_a_query_in_place_of_a_table(place: Place) -> None:
    """Flink leaves the name without quotes, so that a query may stand there."""
    place.execute(
        "CREATE TABLE t (k int PRIMARY KEY, n numeric(6, 2), u uuid[], m date)",
        "INSERT INTO t VALUES (1, 1.5, '{4b3d3f60-1d4b-4ee6-a106-20ebf2d88eff}', '2026-01-02'), (2, NULL, NULL, NULL)",
    )
    made = session()
    query = "(SELECT k, n * 2 AS n, u, m, ''it''''s'' AS x FROM t WHERE k < 9) AS made"
    columns = "k INT, n DECIMAL(8, 2), u ARRAY<STRING>, m DATE, x STRING"
    made.execute_sql(f"CREATE TABLE q ({columns}) {place.table(query)}")
    if place.alchemy:
        with pytest.raises(FlowSqlError, match="'table-name' is a query, which is read at jdbc:postgresql alone"):
            answer(made, "SELECT * FROM q")
        return
    first = (1, Decimal("3.00"), ["4b3d3f60-1d4b-4ee6-a106-20ebf2d88eff"], datetime.date(2026, 1, 2), "it's")
    assert sorted(answer(made, "SELECT * FROM q"), key=lambda row: row[0]) == [first, (2, None, None, None, "it's")]
    assert answer(made, "SELECT k FROM q WHERE n > 2") == [(1,)]
    looked_up = (
        "SELECT d.n FROM (SELECT k, PROCTIME() AS pt FROM q) AS s "
        "JOIN q FOR SYSTEM_TIME AS OF s.pt AS d ON s.k = d.k AND d.x = 'it''s' WHERE d.n IS NOT NULL"
    )
    assert answer(made, looked_up) == [(Decimal("3.00"),)]
    with pytest.raises(FlowSqlError, match="Rows cannot be written into a query"):
        insert(made, "INSERT INTO q SELECT * FROM q")
    made.execute_sql(f"CREATE TABLE w (k INT) {place.table('(SELECT nothing) AS x')}")
    with pytest.raises(FlowSqlError, match='column "nothing" does not exist'):
        answer(made, "SELECT * FROM w")


def test_its_catalog_lists_tables_alone(place: Place) -> None:
    """As Flink's; a view is read where it is named."""
    place.execute(
        "CREATE TABLE t (k int)",
        "INSERT INTO t VALUES (1)",
        "CREATE VIEW v AS SELECT k FROM t",
        "CREATE MATERIALIZED VIEW m AS SELECT k FROM t",
        "CREATE TABLE p (k int) PARTITION BY RANGE (k)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9)",
    )
    made = session()
    made.execute_sql(
        f"CREATE CATALOG pg WITH ('type' = 'jdbc', 'base-url' = '{place.base}', 'default-database' = '{place.name}'"
        f"{place.login})"
    )
    made.execute_sql("USE CATALOG pg")
    assert answer(made, "SHOW TABLES") == [("public.p",), ("public.p1",), ("public.t",)]
    assert answer(made, "SELECT * FROM v") == [(1,)]


def test_not_a_number(place: Place) -> None:
    place.execute("CREATE TABLE t (n numeric(6, 2))", "INSERT INTO t VALUES ('NaN')")
    made = session()
    made.execute_sql(f"CREATE TABLE t (n DECIMAL(6, 2)) {place.table('t')}")
    with pytest.raises(FlowSqlError, match=r"A value of column 'n' of the database is no DECIMAL\(6, 2\)"):
        answer(made, "SELECT * FROM t")


def test_texts_too_long_are_refused(place: Place) -> None:
    place.execute("CREATE TABLE t (x varchar(3), y char(3))")
    made = session()
    made.execute_sql(f"CREATE TABLE t (x STRING, y STRING) {place.table('t')}")
    for row in ("'four', 'a'", "'a', 'four'"):
        with pytest.raises(FlowSqlError, match=r"Table 't' at .*: value too long for type"):
            insert(made, f"INSERT INTO t VALUES ({row})")


def test_schemas(place: Place) -> None:
    place.execute("CREATE SCHEMA sales", "CREATE TABLE sales.orders (n int)", "INSERT INTO sales.orders VALUES (7)")
    made = session()
    made.execute_sql(f"CREATE TABLE o (n INT) {place.table('sales.orders')}")
    assert answer(made, "SELECT * FROM o") == [(7,)]
    parameter = "options=-csearch_path%3Dsales" if place.alchemy else "currentSchema=sales"
    by_parameter = place.table("orders").replace(place.url, f"{place.url}?{parameter}")
    made.execute_sql(f"CREATE TABLE p (n INT) {by_parameter}")
    assert answer(made, "SELECT * FROM p") == [(7,)]


def test_a_server_that_comes_back(place: Place) -> None:
    """The connection is ended behind the writer's back: it connects anew."""
    place.execute("CREATE TABLE o (k BIGINT PRIMARY KEY, n BIGINT)")
    made = session({"flowsql.source.batch-rows": "10"})
    made.execute_sql(
        "CREATE TABLE n (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200', "
        "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '400')"
    )
    more = ", 'sink.buffer-flush.max-rows' = '1'"
    made.execute_sql(f"CREATE TABLE o (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) {place.table('o', more)}")
    running = made.execute_sql("INSERT INTO o SELECT MOD(id, 5), COUNT(*) FROM n GROUP BY MOD(id, 5)")
    while not place.rows("SELECT * FROM o"):
        pass
    ended = place.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    assert ended
    running.wait()
    assert sorted(place.rows("SELECT * FROM o")) == [(k, 80) for k in range(5)]
