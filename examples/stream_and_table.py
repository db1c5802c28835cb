"""One question three ways: the Table API, its SQL twin, and a table's rows as a stream.

Orders stand in a csv table with DECIMAL, TIMESTAMP(3) and a WATERMARK. Both queries give the same rows; a third one
counts orders in windows, becomes a stream with ``to_data_stream``, and is printed from there.

    python examples/stream_and_table.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from flowsql.common import Types
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.table import StreamTableEnvironment, Table
from flowsql.table.expressions import col

ORDERS = """\
1,ann,12.50,2020-01-01 10:00:00.000
2,bob,3.00,2020-01-01 10:01:30.000
3,ann,7.25,2020-01-01 10:03:00.000
4,cid,99.99,2020-01-01 10:06:00.000
5,bob,20.00,2020-01-01 10:11:00.000
"""


def create_orders(tables: StreamTableEnvironment, folder: Path) -> None:
    """The table ``orders`` over a csv file."""
    (folder / "orders.csv").write_text(ORDERS)
    tables.execute_sql(f"""
        CREATE TABLE orders (
            id BIGINT,
            customer STRING,
            amount DECIMAL(10, 2),
            ordered_at TIMESTAMP(3),
            WATERMARK FOR ordered_at AS ordered_at - INTERVAL '5' SECOND
        ) WITH ('connector' = 'filesystem', 'path' = '{folder}/orders.csv', 'format' = 'csv')
    """)


def by_table_api(tables: StreamTableEnvironment) -> Table:
    """Sum and number of the larger orders of each customer."""
    return (
        tables.from_path("orders")
        .where(col("amount") > 5)
        .group_by(col("customer"))
        .select(col("customer"), col("amount").sum.alias("total"), col("id").count.alias("orders"))
    )


def by_sql(tables: StreamTableEnvironment) -> Table:
    """The same."""
    return tables.sql_query(
        "SELECT customer, SUM(amount) AS total, COUNT(id) AS orders FROM orders WHERE amount > 5 GROUP BY customer"
    )


def in_windows(tables: StreamTableEnvironment) -> Table:
    """Orders in windows of five minutes: insert-only, so that it can be a stream of rows."""
    return tables.sql_query("""
        SELECT window_start, COUNT(*) AS orders, SUM(amount) AS total
        FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ordered_at), INTERVAL '5' MINUTE))
        GROUP BY window_start, window_end
    """)


def main() -> None:
    """Run all three; their lines are on standard output."""
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    with tempfile.TemporaryDirectory() as folder:
        create_orders(tables, Path(folder))
        by_table_api(tables).execute().print()
        by_sql(tables).execute().print()
        windows = tables.to_data_stream(in_windows(tables))
        windows.print()
        windows.map(lambda row: row.total / row.orders, Types.BIG_DEC()).print("mean")
        tables.to_changelog_stream(by_sql(tables)).print("changes")
        env.execute("orders as a stream")


if __name__ == "__main__":
    main()
