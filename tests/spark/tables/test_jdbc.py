"""Tables of a database that Spark reads: Derby, which pyspark brings along, inside of its Java."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_runtime.spark.sessions.current import spark_host
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
CREATE = (
    "CREATE TABLE items (id INT, name VARCHAR(20), price DECIMAL(9, 3), big BIGINT, small SMALLINT, r REAL, d DOUBLE, "
    "born DATE, ts TIMESTAMP, b BOOLEAN, x VARCHAR(4) FOR BIT DATA)"
)
ROWS = (
    "INSERT INTO items VALUES (1, 'ink', 1.256, 5000000000, 7, 1.5, 2.5, '1500-02-03', '2020-01-01 10:20:30.123456', "
    "TRUE, X'00ff'), (2, 'pen', 2.5, 1, -7, -1.5, 0.1, '2020-02-29', '1969-12-31 23:59:59', FALSE, X''), "
    "(3, 'cap', 9.999, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
    "(NULL, NULL, NULL, 2, 3, 4, 5, NULL, NULL, NULL, NULL)"
)
COLUMNS = (
    "id BIGINT, name STRING, price DECIMAL(9, 2), big BIGINT, small INT, r DOUBLE, d DOUBLE, born DATE, "
    "ts TIMESTAMP(6), b BOOLEAN, x BYTES"
)
numbers = itertools.count()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a database with a table of four rows."""
    hurry()
    java: Any = spark_host(Configuration(values={"table.local-time-zone": "UTC"})).session._jvm
    url = f"jdbc:derby:memory:flowsql{next(numbers)}"
    # Where the program stands Derby would write a file of its own.
    java.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path_factory.mktemp("derby") / "derby.log"))
    java.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry.register(DRIVER)
    connection = java.java.sql.DriverManager.getConnection(f"{url};create=true")
    for statement in (CREATE, ROWS):
        connection.createStatement().execute(statement)
    connection.close()
    return url


def environment(mode: str = "batch", engine: str = "spark") -> TableEnvironment:
    values = {
        "execution.runtime-mode": mode,
        "execution.batch.engine": engine,
        "table.local-time-zone": "America/New_York",
    }
    return TableEnvironment.of_configuration(Configuration(values=values))


def with_table(
    address: str, columns: str = COLUMNS, more: str = "", mode: str = "batch", engine: str = "spark"
) -> TableEnvironment:
    made = environment(mode, engine)
    made.execute_sql(
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'jdbc', 'url' = '{address}', 'table-name' = 'items', "
        f"'driver' = '{DRIVER}'{more})"
    )
    return made


def rows(session: TableEnvironment, sql: str) -> list[tuple[object, ...]]:
    with session.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


def shown(session: TableEnvironment, sql: str) -> list[str]:
    return [" ".join(map(str, row)) for row in rows(session, sql)]


def test_all_types(address: str) -> None:
    found = shown(with_table(address), "SELECT * FROM t ORDER BY id NULLS LAST")
    assert found == [
        "1 ink 1.26 5000000000 7 1.5 2.5 1500-02-03 2020-01-01 10:20:30.123456 True bytearray(b'\\x00\\xff')",
        "2 pen 2.50 1 -7 -1.5 0.1 2020-02-29 1969-12-31 23:59:59 False bytearray(b'')",
        "3 cap 10.00 None None None None None None None None",
        "None None None 2 3 4.0 5.0 None None None None",
    ]


@pytest.mark.parametrize("engine", ["spark", pytest.param("auto", marks=pytest.mark.nightly)])
def test_beside_other_tables(address: str, engine: str, tmp_path: Path) -> None:
    session = with_table(address, engine=engine)
    (tmp_path / "sold.csv").write_text("1,3\n1,4\n2,5\n9,1\n")
    session.execute_sql(
        f"CREATE TABLE sold (id INT, n INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'sold.csv'}', "
        "'format' = 'csv')"
    )
    joined = "SELECT UPPER(t.name) AS name, SUM(n) AS n FROM sold JOIN t ON sold.id = t.id GROUP BY t.name ORDER BY 1"
    assert rows(session, joined) == [("INK", 7), ("PEN", 5)]
    # Rounded here: the database itself has no row with this price.
    assert rows(session, "SELECT id FROM t WHERE price = 1.26") == [(1,)]
    assert rows(session, "SELECT name FROM t WHERE id > 1 AND name <> 'pen'") == [("cap",)]


def test_conditions_go_to_the_database(address: str) -> None:
    session = with_table(address)
    plan = session.explain_sql("SELECT id FROM t WHERE name = 'pen' AND big > 0", "JSON_EXECUTION_PLAN")
    assert "PushedFilters: [*IsNotNull(NAME), *IsNotNull(BIG), *EqualTo(NAME,pen), *GreaterThan(BIG,0)]" in plan
    assert "PRICE" not in plan
    result = session.execute_sql("SELECT id FROM t WHERE name = 'pen'")
    assert sum(batch.num_rows for batch in result.batches()) == 1
    job = result.get_job_client()
    assert job is not None
    assert job.get_volumes().rows_read == 1


def test_parts(address: str) -> None:
    more = (
        ", 'scan.partition.column' = 'ID', 'scan.partition.num' = '3', 'scan.partition.lower-bound' = '0', "
        "'scan.partition.upper-bound' = '3', 'scan.fetch-size' = '2'"
    )
    session = with_table(address, more=more)
    # The one without a value is beyond the bounds, as in Flink.
    assert rows(session, "SELECT COUNT(*) AS n, COUNT(id) AS ids FROM t") == [(3, 3)]
    frame = session.sql_query("SELECT id FROM t").to_spark()
    assert frame.rdd.getNumPartitions() == 3


@pytest.mark.parametrize(
    ("columns", "more", "said"),
    [
        ("id BIGINT, colour STRING", "", "'items' has no column 'colour'"),
        ("big INT", "", "Column 'BIG' of 'items' is BIGINT there, which does not fit INT"),
        ("name INT", "", "Column 'NAME' of 'items' is STRING there, which does not fit INT"),
        ("id INT", ", 'scan.partition.num' = '3'", "Either all or none of the following options"),
        ("id INT", ", 'scan.partition.num' = '0'", "scan.partition.num"),
        ("id INT", ", 'lookup.cash' = 'NONE'", "Unsupported options found for 'jdbc'"),
    ],
)
def test_what_does_not_fit(address: str, columns: str, more: str, said: str) -> None:
    with pytest.raises(FlowSqlError) as caught:
        rows(with_table(address, columns, more), "SELECT * FROM t")
    assert said in caught.value.render()


@pytest.mark.parametrize(
    ("url", "driver", "said"),
    [
        ("jdbc:derby:memory:none", DRIVER, "Table 'items' cannot be read: "),
        (
            "jdbc:mysql://127.0.0.1:1/x",
            None,
            "Table 'items' cannot be read: the driver com.mysql.cj.jdbc.Driver is not",
        ),
        ("jdbc:nothing:x", None, "Table 'items' cannot be read: no driver knows its address."),
        ("jdbc:nothing:x", "org.example.Driver", "Table 'items' cannot be read: the driver org.example.Driver is not"),
    ],
)
@pytest.mark.usefixtures("address")
def test_what_is_not_there(url: str, driver: str | None, said: str) -> None:
    session = environment()
    named = f", 'driver' = '{driver}'" if driver else ""
    session.execute_sql(
        f"CREATE TABLE t (id INT) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'items', "
        f"'username' = 'ada', 'password' = 'enigma'{named})"
    )
    with pytest.raises(FlowSqlError) as caught:
        rows(session, "SELECT * FROM t")
    assert said in caught.value.render()
    assert "enigma" not in caught.value.render()
    assert "\tat " not in caught.value.render()


def test_no_such_table(address: str) -> None:
    session = environment()
    session.execute_sql(
        f"CREATE TABLE t (id INT) WITH ('connector' = 'jdbc', 'url' = '{address}', 'table-name' = 'nothing')"
    )
    with pytest.raises(FlowSqlError, match=r"(?i)table 'nothing' cannot be read: .*NOTHING"):
        rows(session, "SELECT * FROM t")


@pytest.mark.parametrize(("mode", "engine"), [("streaming", "auto"), ("batch", "local")])
def test_only_spark_reads_it(mode: str, engine: str) -> None:
    session = with_table("jdbc:x", mode=mode, engine=engine)
    with pytest.raises(FlowSqlError) as caught:
        rows(session, "SELECT id\nFROM t")
    assert "a table of the connector 'jdbc' outside of batch mode on Spark" in caught.value.render()
    assert ":2:6" in caught.value.render()


def test_nobody_writes_it() -> None:
    with pytest.raises(FlowSqlError, match="FlowSQL's own runtime has no driver for 'jdbc:x'"):
        with_table("jdbc:x", "id INT").execute_sql("INSERT INTO t VALUES (1)")


@pytest.fixture
def postgres() -> Iterator[dict[str, str]]:
    """What leads to a PostgreSQL of its own."""
    script = Path(__file__).resolve().parents[4] / "shared" / "servers" / "postgres.sh"
    if not script.is_file():
        pytest.skip("no script starts a PostgreSQL here")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The server may run as a user of its own.
        Path(folder).chmod(0o755)
        place = f"{folder}/pg"
        began = subprocess.run([str(script), "start", place], capture_output=True, text=True, timeout=300, check=False)
        if began.returncode == 3:
            pytest.skip(began.stderr.strip().rpartition("\n")[2])
        assert began.returncode == 0, began.stderr
        try:
            yield dict(line.split("=", 1) for line in began.stdout.splitlines())
        finally:
            subprocess.run([str(script), "stop", place], capture_output=True, timeout=60, check=False)


@pytest.mark.nightly
def test_postgresql_in_a_program_of_its_own(postgres: dict[str, str], tmp_path: Path) -> None:
    """The driver comes from Maven when Spark starts."""
    made = "(SELECT i AS id, i * 1.5 AS amount, TIMESTAMP ''2020-01-01'' + i * INTERVAL ''1 second'' AS ts FROM "
    columns = "id BIGINT, amount DECIMAL(20, 2), ts TIMESTAMP(6)"
    where = f"'connector' = 'jdbc', 'url' = '{postgres['PG_JDBC']}', 'username' = '{postgres['PG_USER']}'"
    parts = (
        "'scan.partition.column' = 'id', 'scan.partition.num' = '4', 'scan.partition.lower-bound' = '1', "
        "'scan.partition.upper-bound' = '100000'"
    )
    (tmp_path / "job.sql").write_text(f"""
SET 'execution.runtime-mode' = 'batch';
SET 'execution.batch.engine' = 'spark';
SET 'spark.jars.packages' = 'org.postgresql:postgresql:42.7.4';
SET 'sql-client.display.print-volumes' = 'true';
CREATE TABLE t ({columns}) WITH ({where}, 'password' = '{postgres["PG_PASSWORD"]}', {parts},
  'table-name' = '{made} generate_series(1, 100000) AS i) AS s');
SELECT MOD(id, 3) AS k, COUNT(*) AS n, SUM(amount) AS a, MAX(ts) AS ts FROM t GROUP BY MOD(id, 3) ORDER BY 1;
CREATE TABLE w (id BIGINT) WITH ({where}, 'password' = 'enigma', 'table-name' = 'pg_class');
SELECT COUNT(*) FROM w;
""")
    done = subprocess.run(
        [sys.executable, "-m", "flowsql.cli", "--format", "csv", "-f", str(tmp_path / "job.sql")],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip
    assert done.returncode == 1
    answers = [line.split(",") for line in done.stdout.splitlines() if line[:2] in ("0,", "1,", "2,")]
    sums = [sum(n * 3 for n in range(1, 100_001) if n % 3 == k) for k in range(3)]
    assert [(k, int(n), float(a)) for k, n, a, _ in answers] == [
        (str(k), 33333 + (k == 1), sums[k] / 2) for k in range(3)
    ]
    assert "[INFO] 100,000 rows" in done.stderr
    assert "Table 'pg_class' cannot be read: FATAL: password authentication failed" in done.stderr
    assert "enigma" not in done.stderr.partition("[ERROR]")[2]
