"""Count the clicks of each user, and report a user who was silent for a minute of event time.

A ``KeyedProcessFunction`` with two values of state and a timer: each click moves the timer to 60 seconds behind it;
when the watermark reaches the timer, the count is reported and forgotten. The clicks are rows of a table with a
WATERMARK: their row time is the timestamp of the stream's elements, and its watermarks are the stream's.

    python examples/stream_user_activity.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flowsql.common import Types
from flowsql.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flowsql.datastream.state import ValueStateDescriptor
from flowsql.table import StreamTableEnvironment

MINUTE_MS = 60_000
CLICKS = """\
ann,/home,2020-01-01 00:00:00.000
bob,/home,2020-01-01 00:00:05.000
ann,/cart,2020-01-01 00:00:30.000
ann,/pay,2020-01-01 00:01:25.000
bob,/help,2020-01-01 00:01:30.000
cid,/home,2020-01-01 00:03:20.000
ann,/home,2020-01-01 00:05:00.000
"""

#: Users whose first click (since a report) this is.
NEW_USERS = OutputTag("new users", Types.STRING())


class CountUntilSilence(KeyedProcessFunction):
    """Clicks of a user until a minute without any."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """State of the current user."""
        self.clicks = runtime_context.get_state(ValueStateDescriptor("clicks", Types.LONG()))
        self.deadline = runtime_context.get_state(ValueStateDescriptor("deadline", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Count, and move the timer."""
        count = self.clicks.value()
        if count is None:
            yield NEW_USERS, value.customer
        self.clicks.update((count or 0) + 1)
        timers = ctx.timer_service()
        if self.deadline.value() is not None:
            timers.delete_event_time_timer(self.deadline.value())
        self.deadline.update(ctx.timestamp() + MINUTE_MS)
        timers.register_event_time_timer(ctx.timestamp() + MINUTE_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        """A minute of silence: the user, the clicks, and the second of the day."""
        yield ctx.get_current_key(), self.clicks.value(), timestamp // 1000 % 86_400
        self.clicks.clear()
        self.deadline.clear()


def read_clicks(env: StreamExecutionEnvironment, path: Path) -> DataStream:
    """The rows of a csv file, with their times and watermarks."""
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(f"""
        CREATE TABLE clicks (
            customer STRING,
            page STRING,
            clicked_at TIMESTAMP(3),
            WATERMARK FOR clicked_at AS clicked_at - INTERVAL '1' SECOND
        ) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
    """)
    return tables.to_data_stream(tables.from_path("clicks"))


def main() -> None:
    """Run the job; its lines are on standard output."""
    env = StreamExecutionEnvironment.get_execution_environment()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.csv"
        path.write_text(CLICKS)
        reports = (
            read_clicks(env, path)
            .key_by(lambda click: click.customer, Types.STRING())
            .process(CountUntilSilence(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))
        )
        reports.print("silent")
        reports.get_side_output(NEW_USERS).print("new")
        env.execute("user activity")


if __name__ == "__main__":
    main()
