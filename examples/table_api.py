"""The Table API in one program: ``python examples/table_api.py``.

Purchases are given as Python rows, counted over windows of five minutes, and joined with where their buyers live; the
same query is written twice, with methods and as SQL, and both plans are the same.
"""

from __future__ import annotations

import datetime
import tempfile
from decimal import Decimal
from pathlib import Path

from flowsql.table import DataTypes, EnvironmentSettings, Schema, TableDescriptor, TableEnvironment
from flowsql.table.expressions import col, concat, if_then_else, lit
from flowsql.table.window import Tumble

PURCHASES = """\
ann,12.50,2024-05-01 10:00:10
bob,3.20,2024-05-01 10:01:00
ann,7.00,2024-05-01 10:04:59
bob,80.00,2024-05-01 10:06:30
ann,1.10,2024-05-01 10:11:00
"""


def columns_and_rows(environment: TableEnvironment) -> None:
    """Rows of Python in, columns computed, printed."""
    people = environment.from_elements(
        [("ann", datetime.date(1990, 4, 1), Decimal("1.75")), ("bob", datetime.date(1985, 1, 9), None)],
        DataTypes.ROW(
            [
                DataTypes.FIELD("name", DataTypes.STRING()),
                DataTypes.FIELD("born", DataTypes.DATE()),
                DataTypes.FIELD("height", DataTypes.DECIMAL(3, 2)),
            ]
        ),
    )
    people.select(
        concat("Ms or Mr ", col("name").init_cap).alias("who"),
        if_then_else(col("height").is_null, "unknown", col("height").cast(DataTypes.STRING())).alias("height"),
    ).execute().print()


def windows(environment: TableEnvironment, folder: Path) -> None:
    """A file with event times, five-minute windows, a join, and the SQL that means the same."""
    (folder / "purchases.csv").write_text(PURCHASES)
    environment.create_temporary_table(
        "purchases",
        TableDescriptor.for_connector("filesystem")
        .schema(
            Schema.new_builder()
            .column("buyer", DataTypes.STRING())
            .column("amount", DataTypes.DECIMAL(10, 2))
            .column("ts", DataTypes.TIMESTAMP(3))
            .watermark("ts", col("ts") - lit(5).seconds)
            .build()
        )
        .option("path", str(folder / "purchases.csv"))
        .format("csv")
        .build(),
    )
    cities = environment.from_elements([("ann", "Ulm"), ("bob", "Bonn")], ["name", "city"])
    environment.create_temporary_view("cities", cities)
    statistics = (
        environment.from_path("purchases")
        .window(Tumble.over(lit(5).minutes).on(col("ts")).alias("w"))
        .group_by(col("w"), col("buyer"))
        .select(
            col("buyer"),
            col("w").start.alias("start"),
            col("amount").sum.alias("total"),
            lit(1).count.alias("purchases"),
        )
    )
    result = statistics.join(cities, col("buyer") == col("name")).select(
        col("city"), col("start"), col("total"), col("purchases")
    )
    result.execute().print()
    twin = environment.sql_query(
        """SELECT city, `start`, total, purchases
           FROM (SELECT buyer, TUMBLE_START(ts, INTERVAL '5' MINUTE) AS `start`, SUM(amount) AS total,
                        COUNT(1) AS purchases
                 FROM purchases
                 GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE), buyer)
           JOIN cities ON buyer = name"""
    )
    print("the plans are the same:", result.explain() == twin.explain())


def main() -> None:
    """Run all parts."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set_local_timezone("UTC").set("parallelism.default", "1")
    columns_and_rows(environment)
    with tempfile.TemporaryDirectory() as folder:
        windows(environment, Path(folder))


if __name__ == "__main__":
    main()
