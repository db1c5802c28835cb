"""Jobs of DataStreams for the fault harness; what they commit does not depend on when rows and timers come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from flowsql.common import Encoder, Types
from flowsql.datastream import KeyedBroadcastProcessFunction, KeyedProcessFunction, RuntimeContext
from flowsql.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from flowsql.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flowsql.table import StreamTableEnvironment

#: Behind all rows, before the watermark that ends the input.
THE_END: Final = 2**62
WINDOW_MS: Final = 10_000
#: How long a key waits for its processing-time timer: some fire before a strike, some behind it.
WAKE_MS: Final = 150
RULES: Final = MapStateDescriptor("rules", Types.LONG(), Types.LONG())
#: One rule in so many rows of the other input, for about its first half: rules keep coming, and rows wait for them.
#: In the second half rows reach the operators behind, which can be struck only when they get some.
RULE_STEP: Final = 97
RULE_COUNT: Final = 100
COUNTED: Final = Types.ROW_NAMED(["what", "k", "at", "n"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])
JUDGED: Final = Types.ROW_NAMED(["id", "k", "n"], [Types.LONG(), Types.LONG(), Types.LONG()])


class Windows(KeyedProcessFunction):
    """Sums per key and ten seconds, told by event time; one "woke" per key, told by processing time or at the end.

    When the processing-time timer fires is chance; that it tells exactly once is not: the flag that it did and the
    timer itself are in the same snapshot. Its last row tells how many rows of the key there were.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums", Types.LONG(), Types.LONG()))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.woke = runtime_context.get_state(ValueStateDescriptor("woke", Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        if self.count.value() is None:
            timers.register_processing_time_timer(timers.current_processing_time() + WAKE_MS)
            timers.register_event_time_timer(THE_END)
        self.count.update((self.count.value() or 0) + 1)
        end = ctx.timestamp() // WINDOW_MS * WINDOW_MS + WINDOW_MS
        self.sums.put(end, (self.sums.get(end) or 0) + value.n)
        timers.register_event_time_timer(end)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        key = ctx.get_current_key()
        # The clock is far from event time of 2024 and from the end: the number tells which domain fired.
        if self.sums.contains(timestamp):
            yield "sum", key, timestamp, self.sums.get(timestamp)
            self.sums.remove(timestamp)
            return
        if not self.woke.value():
            self.woke.update(True)
            yield "woke", key, 0, 0
        if timestamp == THE_END:
            yield "count", key, 0, self.count.value()


class Judge(KeyedBroadcastProcessFunction):
    """Each row with the rule of its number; rows wait until all rules are there."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", JUDGED))

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(THE_END)
        self.waiting.add(value)
        yield from self._judged(ctx)

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(RULES)[value.id] = value.n

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield from self._judged(ctx)

    def _judged(self, ctx: Any) -> Iterator[Any]:
        rules = dict(ctx.get_broadcast_state(RULES).items())
        if len(rules) == RULE_COUNT:
            for row in self.waiting.get():
                yield row.id, row.k, row.n * rules[row.id % RULE_COUNT * RULE_STEP]
            self.waiting.clear()


def _sink(environment: StreamTableEnvironment, folder: Path, columns: str) -> None:
    environment.execute_sql(
        f"CREATE TABLE o ({columns}) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/out/o')"
    )


def keyed_process(environment: StreamTableEnvironment, folder: Path) -> None:
    """A KeyedProcessFunction with value state, map state, and timers of both domains."""
    _sink(environment, folder, "what STRING, k BIGINT, `at` BIGINT, n BIGINT")
    rows = environment.sql_query("SELECT CAST(k AS BIGINT) AS k, CAST(n AS BIGINT) AS n, ts FROM left_rows")
    stream = environment.to_data_stream(rows)
    told = stream.key_by(lambda row: row.k, Types.LONG()).process(Windows(), COUNTED)
    environment.from_data_stream(told).execute_insert("o").wait()


def broadcast(environment: StreamTableEnvironment, folder: Path) -> None:
    """Rows meet rules in broadcast state."""
    _sink(environment, folder, "id BIGINT, k BIGINT, n BIGINT")
    columns = "id, CAST(k AS BIGINT) AS k, CAST(n AS BIGINT) AS n"
    rows = environment.to_data_stream(environment.sql_query(f"SELECT {columns}, ts FROM left_rows WHERE id % 4 = 0"))
    plain = rows.map(lambda row: (row.id, row.k, row.n), JUDGED)
    behind = RULE_STEP * RULE_COUNT
    rules = environment.to_data_stream(
        environment.sql_query(f"SELECT {columns} FROM right_rows WHERE MOD(id, {RULE_STEP}) = 0 AND id < {behind}")
    )
    judged = plain.key_by(lambda row: row.k, Types.LONG()).connect(rules.broadcast(RULES)).process(Judge(), JUDGED)
    environment.from_data_stream(judged).execute_insert("o").wait()


def file_sink(environment: StreamTableEnvironment, folder: Path) -> None:
    """Texts through a FileSink: small files, merged at every third checkpoint or when they are enough."""
    rows = environment.to_data_stream(environment.sql_query("SELECT id, k, n FROM left_rows"))
    texts = rows.map(lambda row: f"{row.id},{row.k},{row.n * 2}", Types.STRING())
    merged = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).set_size_threshold(30_000).build()
    sink = (
        FileSink.for_row_format(f"{folder}/out/o", Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4_000))
        .enable_compact(merged, FileCompactor.concat_file_compactor())
    )
    texts.sink_to(sink.build()).uid("files")
    texts.get_execution_environment().execute()


STREAM_JOBS: Final[dict[str, Callable[[StreamTableEnvironment, Path], None]]] = {
    "keyed-process": keyed_process,
    "broadcast": broadcast,
    "file-sink": file_sink,
}
