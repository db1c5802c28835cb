"""Statistics of purchases for each product over windows of five minutes: how many, how much, the mean price.

``filter``, ``key_by``, ``window``, ``aggregate`` with a window function, and late purchases in a side output.

    python examples/stream_purchases.py
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from flowsql.common import Duration, Row, Time, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from flowsql.datastream.window import TimeWindow, TumblingEventTimeWindows

MINUTE_MS = 60_000
START_MS = 1_577_836_800_000  # 2020-01-01 00:00:00
PURCHASE = Types.ROW_NAMED(
    ["product", "price", "quantity", "at"], [Types.STRING(), Types.BIG_DEC(), Types.INT(), Types.LONG()]
)
PURCHASES = [
    Row("tea", Decimal("3.20"), 2, START_MS),
    Row("cup", Decimal("9.00"), 1, START_MS + MINUTE_MS),
    Row("tea", Decimal("3.40"), 1, START_MS + 4 * MINUTE_MS),
    Row("tea", Decimal("0.00"), 1, START_MS + 4 * MINUTE_MS),
    Row("cup", Decimal("8.50"), 2, START_MS + 6 * MINUTE_MS),
    Row("tea", Decimal("3.30"), 5, START_MS + 7 * MINUTE_MS),
]
STATISTICS = Types.ROW_NAMED(
    ["product", "window_start", "purchases", "revenue", "mean_price"],
    [Types.STRING(), Types.STRING(), Types.LONG(), Types.BIG_DEC(), Types.DOUBLE()],
)


class PurchaseTime(TimestampAssigner):
    """The time of a purchase."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Epoch milliseconds."""
        return int(value.at)


class Sums(AggregateFunction):
    """Number, revenue and quantity, folded as purchases come."""

    def create_accumulator(self) -> tuple[int, Decimal, int]:
        """Of no purchases."""
        return 0, Decimal(0), 0

    def add(self, value: Any, accumulator: Any) -> tuple[int, Decimal, int]:
        """One more purchase."""
        count, revenue, quantity = accumulator
        return count + 1, revenue + value.price * value.quantity, quantity + value.quantity

    def get_result(self, accumulator: Any) -> Any:
        """The sums as they are: the window function makes the row."""
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> tuple[int, Decimal, int]:
        """Two partial sums."""
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1], acc_a[2] + acc_b[2]


class Statistics(ProcessWindowFunction[Any, Row, str, TimeWindow]):
    """The row of a product and window."""

    def process(self, key: str, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]) -> Iterable[Row]:
        """One row of the one aggregate."""
        ((count, revenue, quantity),) = elements
        start = datetime.fromtimestamp(context.window().start / 1000, UTC)
        yield Row(key, f"{start:%H:%M}", count, revenue, round(float(revenue) / quantity, 2))


def main() -> None:
    """Run the job; its lines are on standard output."""
    env = StreamExecutionEnvironment.get_execution_environment()
    purchases = env.from_collection(PURCHASES, PURCHASE).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10)).with_timestamp_assigner(PurchaseTime())
    )
    statistics = (
        purchases.filter(lambda purchase: purchase.price > 0)
        .key_by(lambda purchase: purchase.product, Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .aggregate(Sums(), window_function=Statistics(), output_type=STATISTICS)
    )
    statistics.print()
    env.execute("purchase statistics")


if __name__ == "__main__":
    main()
