"""What ``jdbc`` tables and catalogs refuse, in one sentence and without passwords."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from flowsql.errors import ConnectorError, FlowSqlError
from flowsql_connectors.jdbc.address import Address, parse_address
from flowsql_connectors.jdbc.xa import Xid, check_version, names_of

from .databases import Sqlite, answer, by_sqlalchemy, insert, session

POSTGRES = "jdbc:postgresql://127.0.0.1:1/shop"
SECRET = "en1gma"


def refused(url: str, more: str = "", columns: str = "id INT, ts TIMESTAMP(3), b BOOLEAN") -> str:
    made = session()
    made.execute_sql(
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'g', "
        f"'username' = 'ada', 'password' = '{SECRET}'{more})"
    )
    began = time.monotonic()
    with pytest.raises(FlowSqlError) as caught:
        answer(made, "SELECT id FROM t")
    assert time.monotonic() - began < 20
    assert SECRET not in caught.value.render()
    return caught.value.render()


def parts(column: str, number: str = "2", lower: str = "1", upper: str = "9") -> str:
    return (
        f", 'scan.partition.column' = '{column}', 'scan.partition.num' = '{number}', "
        f"'scan.partition.lower-bound' = '{lower}', 'scan.partition.upper-bound' = '{upper}'"
    )


@pytest.mark.parametrize(
    ("url", "more", "said"),
    [
        ("jdbc:x", "", "a table of the connector 'jdbc' outside of batch mode on Spark, but of jdbc:postgresql, "),
        ("postgresql:h/d", "", "a table of the connector 'jdbc' outside of batch mode on Spark, but of jdbc:postgr"),
        ("jdbc:postgresql:shop", "", "'jdbc:postgresql:shop' is no address of a database: there is no //host."),
        ("jdbc:postgresql://h:x/d", "", "is no address of a database: Port could not be cast"),
        (f"jdbc:postgresql://ada:{SECRET}@h/d", "", "the user belongs into 'username' and 'password'"),
        ("jdbc:sqlite:", "", "'jdbc:sqlite:' names no file."),
        ("jdbc:sqlite::memory:", "", "'jdbc:sqlite::memory:' names no file."),
        ("jdbc:sqlite:/no/such/file.db", "", "The database /no/such/file.db cannot be opened: unable to open"),
        (POSTGRES, ", 'driver' = 'org.sqlite.JDBC'", "The driver 'org.sqlite.JDBC' is not for jdbc:postgresql."),
        (POSTGRES, ", 'scan.partition.num' = '3'", "Either all or none of the following options should be provided:"),
        (POSTGRES, parts("size"), "'scan.partition.column': table default_catalog.default_database.t has no column"),
        (POSTGRES, parts("b"), "'scan.partition.column': column 'b' is BOOLEAN, of which there are no ranges."),
        (POSTGRES, parts("id", lower="a"), "Could not parse value 'a' for key 'scan.partition.lower-bound'."),
        (POSTGRES, parts("ts", lower="5"), "Could not parse value '5' for key 'scan.partition.lower-bound'."),
        (POSTGRES, parts("id", lower="10"), "'scan.partition.lower-bound'='10' must not be larger than"),
        (POSTGRES, parts("id", number="0"), "Could not parse value '0' for key 'scan.partition.num'."),
        (POSTGRES, ", 'connection.max-retry-timeout' = '10 ms'", "option must be at least 1 second"),
        (POSTGRES, ", 'lookup.cache' = 'ALL'", "Supported values are [NONE, PARTIAL, FULL]."),
        (POSTGRES, ", 'scan.fetch-sise' = '1'", "Unsupported options found for 'jdbc'."),
        (POSTGRES, ", 'lookup.cache' = 'PARTIAL'", "Missing 'lookup.partial-cache.expire-after-access', 'lookup."),
        (POSTGRES, ", 'lookup.cache.ttl' = '1 s'", "Either all or none of the following options should be provided:"),
        (POSTGRES, ", 'compatible-mode' = 'x'", "Not supported option 'compatible-mode' with value: x"),
        (POSTGRES, ", 'filter.handling.policy' = 'some'", "Supported values are [always, never]."),
        (POSTGRES, "", "No connection to jdbc:postgresql://127.0.0.1:1: connection to server at"),
        ("jdbc:mysql://127.0.0.1:1/shop", "", "No connection to jdbc:mysql://127.0.0.1:1: Can't connect to MySQL"),
        ("jdbc:mariadb://nohost.invalid/shop", "", "No connection to jdbc:mariadb://nohost.invalid:3306: "),
        ("jdbc:postgresql://nohost.invalid/shop", "", "could not translate host name"),
    ],
)  # fmt: skip
def test_refusals(url: str, more: str, said: str) -> None:
    assert said in refused(url, more)


@pytest.mark.parametrize(
    ("url", "type_", "said"),
    [
        (POSTGRES, "TIMESTAMP(9)", "out of the TIMESTAMP precision range [1, 6] supported by PostgreSQL dialect."),
        (POSTGRES, "TIMESTAMP(0)", "out of the TIMESTAMP precision range [1, 6] supported by PostgreSQL dialect."),
        ("jdbc:mysql://h/d", "TIMESTAMP(7)", "out of the TIMESTAMP precision range [0, 6] supported by MySQL dialect."),
    ],
)
def test_precisions(url: str, type_: str, said: str) -> None:
    made = session()
    made.execute_sql(f"CREATE TABLE t (x {type_}) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'g')")
    for statement in ("SELECT x FROM t", "INSERT INTO t VALUES (LOCALTIMESTAMP)"):
        with pytest.raises(FlowSqlError) as caught:
            made.execute_sql(statement)
        assert f"The precision of field 'x' is {said}" in caught.value.render()


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_refused_login(kind: str, request: pytest.FixtureRequest) -> None:
    env = request.getfixturevalue(f"{kind}_server")
    if kind == "postgres":
        said = refused(f"jdbc:postgresql://{env['PG_HOST']}:{env['PG_PORT']}/flowsql")
        assert "password authentication failed" in said
    else:
        said = refused(f"jdbc:mariadb://{env['MYSQL_HOST']}:{env['MYSQL_PORT']}/flowsql")
        assert "Access denied for user 'ada'" in said


def test_a_password_needs_a_user() -> None:
    made = session()
    made.execute_sql(
        "CREATE TABLE t (id INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = 'g', "
        f"'password' = '{SECRET}')"
    )
    with pytest.raises(FlowSqlError, match="Either all or none of the following options should be provided"):
        answer(made, "SELECT * FROM t")
    with pytest.raises(FlowSqlError, match="Either all or none of the following options should be provided"):
        insert(made, "INSERT INTO t VALUES (1)")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("'base-url' = 'jdbc:postgresql://h'", "Missing required options are: default-database"),
        ("'base-url' = 'jdbc:postgresql://h', 'default-database' = 'd'", "Missing required options are: password, use"),
        ("'base-url' = 'jdbc:x', 'default-database' = 'd', 'colour' = 'red'", "Unsupported options: colour"),
        ("'base-url' = 'jdbc:derby://h', 'default-database' = 'd'", "FlowSQL's own runtime has no driver for"),
        (
            "'base-url' = 'jdbc:postgresql://127.0.0.1:1', 'default-database' = 'd', 'username' = 'ada'",
            "No connection to jdbc:postgresql://127.0.0.1:1",
        ),
    ],
)
def test_catalogs_that_cannot_be(options: str, said: str) -> None:
    secret = "" if "password" in said else f", 'password' = '{SECRET}'"
    with pytest.raises(FlowSqlError) as caught:
        session().execute_sql(f"CREATE CATALOG c WITH ('type' = 'jdbc', {options}{secret})")
    assert said in caught.value.message
    assert SECRET not in caught.value.message


@pytest.mark.parametrize(
    ("url", "columns", "more", "said"),
    [
        ("jdbc:sqlite:{folder}/shop.db", "id INT", "", "jdbc:sqlite has no prepared transactions here"),
        (POSTGRES, "id INT", "", "needs 'sink.transactional-id-prefix'."),
        (POSTGRES, "id INT", f", 'sink.transactional-id-prefix' = '{'x' * 170}'", "has 1 to 169 bytes, not 170."),
        (
            "jdbc:mariadb://127.0.0.1:1/shop",
            "id INT",
            f", 'sink.transactional-id-prefix' = '{'x' * 65}'",
            "has 1 to 64 bytes, not 65.",
        ),
        (POSTGRES, "id INT PRIMARY KEY NOT ENFORCED", "", "what is written by a primary key is there once"),
        (POSTGRES, "a ARRAY<INT>", "", "column 'a' is an ARRAY"),
    ],
)
def test_exactly_once_that_cannot_be(url: str, columns: str, more: str, said: str, tmp_path: Path) -> None:
    Sqlite(tmp_path)
    made = session()
    made.execute_sql(
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'jdbc', 'url' = '{url.format(folder=tmp_path)}', "
        f"'table-name' = 'g', 'sink.delivery-guarantee' = 'exactly-once'{more})"
    )
    with pytest.raises(FlowSqlError) as caught:
        insert(made, f"INSERT INTO t VALUES ({'ARRAY[1]' if 'ARRAY' in columns else '1'})")
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("10.5.0-MariaDB", None),
        ("11.4.2-MariaDB-ubu2404-log", None),
        ("8.0.29", None),
        ("9.1.0-commercial", None),
        ("10.4.34-MariaDB-log", "h is MariaDB 10.4.34-MariaDB-log, whose prepared .* needs MariaDB 10.5.0 or newer."),
        ("8.0.28", "h is MySQL 8.0.28, whose prepared transactions end .* needs MySQL 8.0.29 or newer."),
        ("5.7.44-log", "needs MySQL 8.0.29 or newer."),
    ],
)
def test_servers_whose_prepared_transactions_end_with_connections(version: str, said: str | None) -> None:
    if said is None:
        check_version(version, "h")
        return
    with pytest.raises(ConnectorError, match=said):
        check_version(version, "h")


def test_names_of_xa_transactions() -> None:
    name = f"{'x' * 63}:2147483647:{'f' * 16}"
    xid = Xid.of(name, "a database")
    assert (len(xid.gtrid), len(xid.bqual) <= 64) == (63, True)
    assert xid.name("a database") == name
    assert xid.name("another one") is None
    rows = [
        ("1", str(len(xid.gtrid)), str(len(xid.bqual)), (xid.gtrid + xid.bqual).decode("latin1")),
        ("1", "3", "2", b"\xff\x00\xfe:1"),
        ("1", "1", str(len(xid.bqual)), b"\xff" + xid.bqual),
    ]
    assert names_of(rows, "a database") == [name]


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    shop = Sqlite(tmp_path)
    shop.execute("CREATE TABLE g (id INT)")
    made = session()
    login = f"'username' = 'ada', 'password' = '{SECRET}'"
    made.execute_sql(f"CREATE TABLE g (id INT) {shop.table('g', ', ' + login)}")
    made.execute_sql(
        f"CREATE CATALOG shop WITH ('type' = 'jdbc', 'base-url' = '{shop.base}', 'default-database' = '{shop.name}', "
        f"{login})"
    )
    texts = [
        answer(made, statement)[0][0]
        for statement in (
            "SHOW CREATE TABLE g",
            "SHOW CREATE CATALOG shop",
            f"SHOW CREATE TABLE shop.`{shop.name}`.g",
            "EXPLAIN JSON_EXECUTION_PLAN SELECT * FROM g",
        )
    ]
    assert all("'password' = '******'" in text for text in texts[:3])
    assert SECRET not in "".join(texts)


def test_placeholders_stay_in_the_tables_of_catalogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    shop = Sqlite(tmp_path)
    shop.execute("CREATE TABLE g (id INT)", "INSERT INTO g VALUES (7)")
    made = session()
    made.execute_sql(
        f"CREATE CATALOG shop WITH ('type' = 'jdbc', 'base-url' = '{shop.base}', 'default-database' = '{shop.name}', "
        "'username' = 'ada', 'password' = '${env:SHOP_PASSWORD}')"
    )
    assert answer(made, f"SELECT * FROM shop.`{shop.name}`.g") == [(7,)]
    (shown,) = answer(made, f"SHOW CREATE TABLE shop.`{shop.name}`.g")
    assert "'password' = '${env:SHOP_PASSWORD}'" in shown[0]


def test_the_client_library_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymysql", None)
    monkeypatch.delitem(sys.modules, "flowsql_connectors.jdbc.mysql", raising=False)
    said = refused("jdbc:mysql://127.0.0.1:1/shop")
    assert "Tables at jdbc:mysql need the Python module 'pymysql', which is not installed." in said
    assert "pip install 'flowsql[mysql]'" in said


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("jdbc:postgresql://db/shop", Address("postgresql", "shop", "db", 5432)),
        ("jdbc:mysql://db:33/a%20b?useSSL=true", Address("mysql", "a b", "db", 33, {"useSSL": "true"})),
        ("jdbc:mariadb://[::1]/d", Address("mariadb", "d", "::1", 3306)),
        ("jdbc:sqlite:/tmp/a.db?cache=shared", Address("sqlite", "/tmp/a.db")),
    ],
)
def test_addresses(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize("alchemy", [False, pytest.param(True, marks=pytest.mark.servers)])
def test_a_lock_is_waited_for(tmp_path: Path, alchemy: bool) -> None:
    """Nobody ends it: the write is refused within the timeout, with the reason."""
    import sqlite3

    shop = Sqlite(tmp_path)
    if alchemy:
        by_sqlalchemy(shop)
    shop.execute("CREATE TABLE g (id INT)")
    made = session()
    more = ", 'connection.max-retry-timeout' = '1 s', 'sink.max-retries' = '0'"
    made.execute_sql(f"CREATE TABLE g (id INT) {shop.table('g', more)}")
    with closing(sqlite3.connect(shop.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(FlowSqlError, match=r"Table 'g' (in|at) .*: database is locked"):
            insert(made, "INSERT INTO g VALUES (1)")
        other.execute("COMMIT")
    insert(made, "INSERT INTO g VALUES (1)")
    assert shop.rows("SELECT * FROM g") == [(1,)]
