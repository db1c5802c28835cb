"""A nightly pipeline on Spark: csv through filter, join and aggregate into partitioned parquet.

    python benchmarks/spark_csv.py [--gigabytes 10] [--repeat 1] [--folder FOLDER]

The same pipeline as FlowSQL's INSERT and as it would be written with PySpark's DataFrames, in one session over the same
files, in turn; their tables must be equal. Printed are seconds and what this process holds resident at most, Java's
process beside it not counted. The files stay in FOLDER if it is named, and are made only once.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from flowsql.table.session.environment import TableEnvironment  # noqa: E402
from flowsql_core.config import Configuration  # noqa: E402

CONFIGURATION = Configuration(
    values={"execution.runtime-mode": "batch", "execution.batch.engine": "spark", "table.local-time-zone": "UTC"}
)
CUSTOMERS = 100_000
STATES = ("open", "paid", "sent", "back")
#: Rows of one file, about 90 MB.
FILE_ROWS = 1_000_000
PIPELINE = """
INSERT OVERWRITE totals
SELECT c.country, o.ordered, COUNT(*) AS orders, SUM(o.amount) AS amount, MAX(o.quantity) AS quantity, o.state
FROM orders AS o JOIN customers AS c ON o.customer = c.id
WHERE o.amount > 20 AND o.state <> 'back'
GROUP BY c.country, o.ordered, o.state
"""


def write_inputs(folder: Path, gigabytes: float) -> None:
    """Orders in files of a million rows, customers in one."""
    (folder / "orders").mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO draw(i, salt, n) AS (hash(i * 8 + salt) % n)::BIGINT")
        written = number = 0
        while written < gigabytes * 1e9:
            path = folder / "orders" / f"{number:04}.csv"
            rows = f"range({number * FILE_ROWS}, {(number + 1) * FILE_ROWS}) r(i)"
            write(
                connection,
                f"SELECT i, draw(i, 1, {CUSTOMERS}), (draw(i, 2, 1000000) / 100)::DECIMAL(12, 2), 1 + draw(i, 3, 99), "
                f"DATE '2019-04-14' + draw(i, 4, 365)::INT, {list(STATES)}[1 + draw(i, 5, {len(STATES)})], "
                f"format('note {{:040}}', draw(i, 6, 1000)) FROM {rows}",
                path,
            )
            written += path.stat().st_size
            number += 1
        # Last: a folder with it is complete.
        customers = f"SELECT i, format('country {{:02}}', i % 50) FROM range({CUSTOMERS}) r(i)"
        write(connection, customers, folder / "customers.csv")


def write(connection: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    connection.execute(f"COPY ({query}) TO '{path}' (FORMAT csv, HEADER false)")


def environment(folder: Path) -> TableEnvironment:
    made = TableEnvironment.of_configuration(CONFIGURATION)
    tables = {
        "orders": ("id BIGINT, customer BIGINT, amount DECIMAL(12, 2), quantity INT, ordered DATE, state STRING, "
                   "note STRING", "", f"{folder}/orders", "csv"),
        "customers": ("id BIGINT, country STRING", "", f"{folder}/customers.csv", "csv"),
        "totals": ("country STRING, ordered DATE, orders BIGINT, amount DECIMAL(38, 2), quantity INT, state STRING",
                   "PARTITIONED BY (state)", f"{folder}/flowsql", "parquet"),
    }  # fmt: skip
    for name, (columns, partitions, path, format_) in tables.items():
        made.execute_sql(
            f"CREATE TABLE {name} ({columns}) {partitions} WITH ('connector' = 'filesystem', 'path' = '{path}', "
            f"'format' = '{format_}')"
        )
    return made


def by_hand(spark: Any, folder: Path) -> None:
    """The pipeline as somebody who knows PySpark writes it."""
    f: Any = __import__("pyspark.sql.functions", fromlist=["functions"])
    schema = "id BIGINT, customer BIGINT, amount DECIMAL(12, 2), quantity INT, ordered DATE, state STRING, note STRING"
    orders = spark.read.schema(schema).csv(f"{folder}/orders")
    customers = spark.read.schema("id BIGINT, country STRING").csv(f"{folder}/customers.csv")
    totals = (
        orders.where((orders.amount > 20) & (orders.state != "back"))
        .join(customers, orders.customer == customers.id)
        .groupBy("country", "ordered", "state")
        .agg(
            f.count("*").alias("orders"),
            f.sum("amount").cast("DECIMAL(38, 2)").alias("amount"),
            f.max("quantity").alias("quantity"),
        )
    )
    totals.write.mode("overwrite").partitionBy("state").parquet(f"{folder}/by_hand")


def equal(spark: Any, folder: Path) -> bool:
    """Whether both ways wrote the same rows."""
    names = ["country", "ordered", "orders", "amount", "quantity", "state"]
    own, other = (spark.read.parquet(f"{folder}/{name}").select(*names) for name in ("flowsql", "by_hand"))
    return bool(own.count() == other.count() and not own.exceptAll(other).count())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="flowsql-csv-"))
    try:
        if not (folder / "customers.csv").exists():
            write_inputs(folder, arguments.gigabytes)
        size = sum(path.stat().st_size for path in (folder / "orders").iterdir()) / 1e9
        flowsql = environment(folder)
        flowsql.execute_sql("SELECT COUNT(*) AS n FROM customers").print()
        from flowsql_runtime.spark.sessions.current import spark_host

        spark = spark_host(CONFIGURATION).session
        times: dict[str, list[float]] = {"FlowSQL": [], "PySpark": []}
        for _ in range(arguments.repeat):
            for name, run in (
                ("FlowSQL", lambda: flowsql.execute_sql(PIPELINE).wait()),
                ("PySpark", lambda: by_hand(spark, folder)),
            ):
                started = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - started)
                print(f"{name}: {times[name][-1]:.1f} s", flush=True)
        own, other = (statistics.median(found) for found in times.values())
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{size:.1f} GB of csv: FlowSQL {own:.1f} s, PySpark {other:.1f} s, ratio {own / other:.2f}; "
              f"this process {held:.0f} MB; tables equal: {equal(spark, folder)}")  # fmt: skip
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
