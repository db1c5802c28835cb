"""Tables of PostgreSQL: a scan beside ADBC alone, upserts, appends and lookups.

    python benchmarks/jdbc.py [--rows N] [--repeat N] [--url postgresql://user:password@host:port/database]

The server is the one of ``--url`` or of the variable ``PG_URL``. The tables ``flowsql_bids`` and ``flowsql_out`` are
made there, and dropped at the end. Scans end in ``blackhole``; both sides read all columns, in turns, and the medians
are compared. A job's time has its planning and its start in it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
for folder in (".", "grammar", "planner", "runtime", "connectors"):
    sys.path.insert(0, str(ROOT / folder))

import adbc_driver_postgresql.dbapi as adbc  # noqa: E402

from flowsql.table import EnvironmentSettings, TableEnvironment  # noqa: E402

COLUMNS = "auction BIGINT, bidder BIGINT, price {price}, channel STRING, ts TIMESTAMP(3)"
MAKE = (
    "CREATE TABLE flowsql_bids AS SELECT i::bigint AS auction, (i % 10007)::bigint AS bidder, {price} AS price, "
    "'channel-' || (i % 50) AS channel, timestamp(3) '2026-01-01' + i * interval '1 ms' AS ts "
    "FROM generate_series(1, {rows}) i"
)
#: Types of the price: a number as Nexmark has it, and one whose digits travel as a text.
PRICES = {"bigint": ("BIGINT", "(i * 7 % 100000)::bigint"), "numeric": ("DECIMAL(12, 2)", "(i * 7)::numeric(12, 2)")}


def seconds(work: Callable[[], None]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def execute(uri: str, *statements: str) -> None:
    """Statements without answers."""
    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def drain(uri: str) -> None:
    """Read the table by ADBC alone."""
    with adbc.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM flowsql_bids")
        for _ in cursor.fetch_record_batch():
            pass


def session(uri: str, price: str) -> TableEnvironment:
    """With the tables of all jobs."""
    parts = urlsplit(uri)
    login = f"'username' = '{parts.username}', 'password' = '{parts.password}'"
    place = f"'connector' = 'jdbc', 'url' = 'jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}', {login}"
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    columns = COLUMNS.format(price=price)
    made.execute_sql(f"CREATE TABLE bids ({columns}) WITH ({place}, 'table-name' = 'flowsql_bids')")
    made.execute_sql(f"CREATE TABLE nothing ({columns}) WITH ('connector' = 'blackhole')")
    many = "'sink.buffer-flush.max-rows' = '10000', 'table-name' = 'flowsql_out'"
    made.execute_sql(f"CREATE TABLE appended (k BIGINT, v STRING) WITH ({place}, {many})")
    key = "PRIMARY KEY (k) NOT ENFORCED"
    made.execute_sql(f"CREATE TABLE upserted (k BIGINT, v STRING, {key}) WITH ({place}, {many})")
    made.execute_sql(f"CREATE TABLE dim (k BIGINT, v STRING) WITH ({place}, 'table-name' = 'flowsql_out')")
    return made


def generated(made: TableEnvironment, rows: int) -> None:
    """Numbers from 1 on."""
    made.execute_sql(
        "CREATE TABLE numbers (k BIGINT, pt AS PROCTIME()) WITH ('connector' = 'datagen', 'rows-per-second' = "
        f"'100000000', 'number-of-rows' = '{rows}', 'fields.k.kind' = 'sequence', 'fields.k.start' = '1', "
        f"'fields.k.end' = '{rows}')"
    )
    made.execute_sql("CREATE TABLE found (k BIGINT, v STRING) WITH ('connector' = 'blackhole')")


def scans(uri: str, rows: int, repeat: int) -> None:
    """The scan beside ADBC alone."""
    for name, (type_, expression) in PRICES.items():
        execute(uri, "DROP TABLE IF EXISTS flowsql_bids", MAKE.format(price=expression, rows=rows))
        made = session(uri, type_)

        def scan(made: TableEnvironment = made) -> None:
            made.execute_sql("INSERT INTO nothing SELECT * FROM bids").wait()

        drain(uri)
        scan()
        alone, ours = [], []
        for _ in range(repeat):
            alone.append(seconds(lambda: drain(uri)))
            ours.append(seconds(scan))
        first, second = statistics.median(alone), statistics.median(ours)
        print(f"scan, price {name:8} ADBC {first:6.2f} s  FlowSQL {second:6.2f} s  ratio {second / first:.2f}")


def writes_and_lookups(uri: str, rows: int) -> None:
    """Rows a second into the table, and found in it."""
    execute(uri, "DROP TABLE IF EXISTS flowsql_out", "CREATE TABLE flowsql_out (k bigint PRIMARY KEY, v text)")
    made = session(uri, "BIGINT")
    generated(made, rows)
    value = "'value ' || CAST(MOD(k, 100) AS STRING)"
    upsert = f"INSERT INTO upserted SELECT k, MAX({value}) FROM numbers GROUP BY k"
    jobs = {
        "append": f"INSERT INTO appended SELECT k, {value} FROM numbers",
        "upsert": upsert,
        "lookup": "INSERT INTO found SELECT n.k, d.v FROM numbers AS n "
        "JOIN dim FOR SYSTEM_TIME AS OF n.pt AS d ON n.k = d.k",
    }
    for name, statement in jobs.items():
        took = seconds(lambda statement=statement: made.execute_sql(statement).wait())  # type: ignore[misc]
        print(f"{name:20} {rows:,} rows in {took:6.2f} s, {rows / took:,.0f} a second")


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--url", default=os.environ.get("PG_URL"))
    arguments = parser.parse_args()
    if arguments.url is None:
        raise SystemExit("name a PostgreSQL: --url postgresql://user:password@host:port/database")
    try:
        scans(arguments.url, arguments.rows, arguments.repeat)
        writes_and_lookups(arguments.url, arguments.rows // 10)
    finally:
        execute(arguments.url, "DROP TABLE IF EXISTS flowsql_bids", "DROP TABLE IF EXISTS flowsql_out")


if __name__ == "__main__":
    main()
