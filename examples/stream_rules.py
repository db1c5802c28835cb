"""Hold the payments of each customer against limits that another stream brings: broadcast state.

Every subtask hears every limit and keeps it in broadcast state; payments are keyed by customer and summed in keyed
state. Which of both comes first is nobody's promise, so the sums are judged when the day is over, by an event-time
timer: then all limits of the day are known.

    python examples/stream_rules.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowsql.common import Row, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from flowsql.datastream.state import MapStateDescriptor, ValueStateDescriptor

DAY_MS = 86_400_000
PAYMENT = Types.ROW_NAMED(
    ["at", "customer", "kind", "amount"], [Types.LONG(), Types.STRING(), Types.STRING(), Types.INT()]
)
LIMIT = Types.ROW_NAMED(["at", "kind", "amount"], [Types.LONG(), Types.STRING(), Types.INT()])

PAYMENTS = [
    Row(1_000, "ann", "card", 120),
    Row(2_000, "bob", "transfer", 900),
    Row(3_000, "ann", "card", 150),
    Row(4_000, "cid", "card", 40),
    Row(5_000, "bob", "transfer", 300),
]
LIMITS = [Row(500, "card", 500), Row(600, "transfer", 1_000), Row(2_500, "card", 200)]

#: The limit of each kind of payment; a later one takes the place of the one before.
KNOWN_LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())


class AtOfRow(TimestampAssigner):
    """The field ``at``."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Epoch milliseconds."""
        return int(value.at)


class OverLimit(KeyedBroadcastProcessFunction[str, Row, Row, str]):
    """Tells customers whose payments of a kind are above its limit at the end of the day."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """What the current customer paid."""
        self.paid = runtime_context.get_state(ValueStateDescriptor("paid", Types.INT()))

    def process_element(self, value: Row, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        """Add a payment up, and wait for the end of its day."""
        self.paid.update((self.paid.value() or 0) + value.amount)
        ctx.timer_service().register_event_time_timer((ctx.timestamp() // DAY_MS + 1) * DAY_MS - 1)

    def process_broadcast_element(self, value: Row, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        """A new limit."""
        ctx.get_broadcast_state(KNOWN_LIMITS).put(value.kind, value.amount)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[str]:
        """The end of the day."""
        customer, kind = ctx.get_current_key()
        paid, limit = self.paid.value(), ctx.get_broadcast_state(KNOWN_LIMITS).get(kind)
        if limit is not None and paid > limit:
            yield f"{customer} paid {paid} by {kind}, the limit is {limit}"
        self.paid.clear()


def main() -> None:
    """Run the job and print what it tells."""
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AtOfRow())
    limits = env.from_collection(LIMITS, LIMIT).assign_timestamps_and_watermarks(strategy)
    payments = env.from_collection(PAYMENTS, PAYMENT).assign_timestamps_and_watermarks(strategy)
    (
        payments.key_by(lambda row: (row.customer, row.kind), Types.TUPLE([Types.STRING(), Types.STRING()]))
        .connect(limits.broadcast(KNOWN_LIMITS))
        .process(OverLimit(), Types.STRING())
        .print()
    )
    env.execute("payments over their limits")


if __name__ == "__main__":
    main()
