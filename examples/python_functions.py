"""Python functions in SQL and in the Table API: row by row, over pandas, with state, and with their text in SQL.

python examples/python_functions.py
"""

from __future__ import annotations

import decimal

from flowsql.table import DataTypes, TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import FunctionContext, ScalarFunction, udf


@udf
def initials(name: str) -> str:
    """``Ann Lee`` -> ``AL``."""
    return "".join(word[0] for word in name.split())


@udf(result_type=DataTypes.DECIMAL(10, 2))
def with_tax(price: decimal.Decimal, percent: int) -> decimal.Decimal:
    """The price with a tax on top."""
    return price * (100 + percent) / 100


@udf(result_type="DOUBLE", func_type="pandas")
def share(part, whole):  # type: ignore[no-untyped-def]
    """A Series divided by another one."""
    return part.astype("float64") / whole.astype("float64")


class Numbered(ScalarFunction):
    """Numbers the rows of its subtask; counts them for the job's metrics, too."""

    def open(self, function_context: FunctionContext) -> None:
        """Once, before the first row."""
        self.prefix = function_context.get_job_parameter("prefix", "row")
        self.counter = function_context.get_metric_group().counter("numbered")

    def eval(self, customer: str) -> str:
        """Once a row."""
        self.counter.inc()
        return f"{self.prefix} {self.counter.get_count()}: {customer}"

    def is_deterministic(self) -> bool:
        """Equal customers get different numbers."""
        return False


def main() -> None:
    """Run each kind once."""
    environment = TableEnvironment.create()
    environment.get_config().set("pipeline.global-job-parameters", "prefix:order")
    environment.execute_sql(
        "CREATE TEMPORARY VIEW orders AS SELECT * FROM (VALUES ('Ann Lee', 20.00, 40.00), ('Bob Ray', 5.00, 40.00), "
        "('Ann Lee', 15.00, 40.00)) AS t(customer, price, total)"
    )
    for name, function in {
        "initials": initials, "with_tax": with_tax, "share": share, "numbered": udf(Numbered())
    }.items():  # fmt: skip
        environment.create_temporary_system_function(name, function)

    environment.execute_sql(
        "SELECT numbered(customer) AS label, initials(customer) AS who, with_tax(price, 19) AS gross, "
        "share(price, total) AS part FROM orders"
    ).print()

    # The text of a function may stand in SQL.
    environment.execute_sql(
        """CREATE TEMPORARY FUNCTION size_of AS $$
            def size_of(price: float) -> str:
                return 'small' if price < 10 else 'large'
        $$ LANGUAGE PYTHON"""
    )
    environment.execute_sql("SELECT size_of(price) AS size_, COUNT(*) AS n FROM orders GROUP BY size_of(price)").print()

    # In the Table API a function is called like a function.
    table = environment.from_path("orders").where(initials(col("customer")) == "AL")
    table.select(initials(col("customer")).alias("who"), with_tax(col("price"), 7).alias("gross")).execute().print()


if __name__ == "__main__":
    main()
