"""State of user functions in snapshots: bytes, unless the query says that its objects may be unpickled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flowsql.datastream.plan import operators
from flowsql.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.testing.cut import Recorder

from .snapshots import write_snapshot

pytestmark = pytest.mark.usefixtures("each_backend")

DATA = [(f"k{number % 4}", number) for number in range(20)]
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Keeper(KeyedProcessFunction):
    """The last number of a key, all of them, how often each last digit came, and a timer far ahead."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
        self.digits = runtime_context.get_map_state(MapStateDescriptor("digits", Types.INT(), Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.last.update(value[1])
        self.all.add(value[1])
        self.digits.put(value[1] % 10, (self.digits.get(value[1] % 10) or 0) + 1)
        ctx.timer_service().register_event_time_timer(1_000_000 + value[1] % 4)
        yield value


class Ruled(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> None:
        pass

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(*value)


def program(parallelism: int) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stream = env.from_collection(DATA, pair).assign_timestamps_and_watermarks(strategy).key_by(lambda row: row[0])
    rules = env.from_collection([("a", 1), ("b", 2)], pair).broadcast(RULES)
    made = stream.process(Keeper()).union(stream.connect(rules).process(Ruled()))
    made._sink("collect", operators.collect_sink(Recorder()), parallelism=1)
    return env.job_graph()


def rows(sql: str) -> list[tuple[Any, ...]]:
    environment = TableEnvironment.create()
    environment.get_config().set("table.local-time-zone", "UTC")
    with environment.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


def operator_of(path: str, state: str) -> str:
    (uid,) = {row[0] for row in rows(f"SHOW OPERATORS IN '{path}'") if row[3] == state}
    return str(uid)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_keyed_state_of_functions(parallelism: int, tmp_path: Path) -> None:
    path = write_snapshot(program(parallelism), len(DATA) - 1, tmp_path / "cut")
    seen = DATA[: len(DATA) - 1]
    uid = operator_of(path, "key.last")
    numbers: dict[str, list[int]] = defaultdict(list)
    for key, number in seen:
        numbers[key].append(number)

    def shown(state: str) -> list[tuple[Any, ...]]:
        return sorted(rows(f"SELECT * FROM state('{path}', '{uid}', '{state}', TRUE)"))

    # Rows of one key may come over several channels: in any order.
    kept = {key: eval(text) for key, text in shown("key.all")}
    assert {key: sorted(found) for key, found in kept.items()} == numbers
    assert shown("key.last") == [(key, repr(kept[key][-1])) for key in sorted(kept)]
    digits = {key: eval(text) for key, text in shown("key.digits")}
    for key, found in numbers.items():
        assert digits[key] == {digit: sum(n % 10 == digit for n in found) for digit in {n % 10 for n in found}}
    timers = [(at.timestamp(), key, window) for at, key, window in shown("timers.event")]
    assert timers == [(1_000 + number / 1_000, f"k{number}", None) for number in range(4)]
    bytes_of = rows(f"SELECT * FROM state('{path}', '{uid}', 'key.last')")
    assert {type(entries) for _, entries in bytes_of} == {bytearray}
    assert len({group for group, _ in bytes_of}) == len(bytes_of) <= 4


def test_unpickling_happens_only_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_snapshot(program(1), len(DATA) - 1, tmp_path / "cut")
    uid = operator_of(path, "key.last")
    broken = write_snapshot(program(1), 3, tmp_path / "three")

    def refuse(*_: object) -> None:
        raise AssertionError("unpickled")

    with monkeypatch.context() as patch:
        patch.setattr("flowsql_runtime.reading.columns.pickle.loads", refuse)
        assert rows(f"SELECT * FROM state('{path}', '{uid}', 'key.all')")
        assert rows(f"SHOW OPERATORS IN '{broken}'")


def test_broadcast_state(tmp_path: Path) -> None:
    path = write_snapshot(program(2), len(DATA) - 1, tmp_path / "cut")
    (state,) = {row[3] for row in rows(f"SHOW OPERATORS IN '{path}'") if row[3] and "rules" in row[3]}
    uid = operator_of(path, state)
    found = rows(f"SELECT mode, subtask, content FROM state('{path}', '{uid}', '{state}', TRUE)")
    assert sorted(found) == [("broadcast", subtask, "{'a': 1, 'b': 2}") for subtask in range(2)]
