"""Streams without keys: functions, types, unions, side outputs, partitionings, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flowsql.common import Duration, Row, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flowsql.datastream.connectors.file_system import FileSource, StreamFormat
from flowsql.datastream.connectors.number_seq import NumberSequenceSource
from flowsql_core.errors import FlowSqlError

Env = StreamExecutionEnvironment


class Opened(MapFunction):
    """Maps with what ``open`` made, so that a function that was not opened fails."""

    def __init__(self) -> None:
        self.offset: int | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        assert runtime_context.get_number_of_parallel_subtasks() == 1
        self.offset = 10

    def map(self, value: int) -> int:
        assert self.offset is not None
        return value + self.offset


class Even(FilterFunction):
    def filter(self, value: int) -> bool:
        return value % 2 == 0


class Twice(FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[Any]:
        yield value
        yield value


def collected(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as values:
        return list(values)


def test_functions_and_lambdas(env: Env) -> None:
    stream = env.from_collection([1, 2, 3]).map(lambda n: n * 10).filter(lambda n: n > 10)
    assert collected(stream.flat_map(lambda n: range(2))) == [0, 1, 0, 1]
    assert collected(stream.map(Opened())) == [30, 40]
    assert collected(stream.flat_map(Twice()).filter(Even())) == [20, 20, 30, 30]


def test_a_function_without_results_emits_nothing(env: Env) -> None:
    assert collected(env.from_collection([1, 2]).flat_map(lambda n: None)) == []


@pytest.mark.parametrize("wrong", [None, 5, Even, Even()])
def test_what_is_no_map_function_is_refused(env: Env, wrong: Any) -> None:
    with pytest.raises(TypeError, match="MapFunction"):
        env.from_collection([1]).map(wrong)


def test_output_types_convert_at_every_border(env: Env) -> None:
    source = env.from_collection([(1, "a")], Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]))
    assert collected(source.map(lambda row: row.id + 1)) == [2]
    named = source.map(lambda row: (row.name, row.id), Types.ROW_NAMED(["n", "i"], [Types.STRING(), Types.FLOAT()]))
    (row,) = collected(named.filter(lambda row: row.i == 1.0))
    assert isinstance(row, Row)
    assert row.as_dict() == {"n": "a", "i": 1.0}
    assert collected(source.flat_map(lambda row: [[1, 2]], Types.TUPLE([Types.INT(), Types.INT()]))) == [(1, 2)]
    assert named.get_type() == Types.ROW([Types.STRING(), Types.FLOAT()])


def test_a_value_of_another_type_fails_where_it_is_made(env: Env) -> None:
    with pytest.raises(TypeError, match=r"'x' of type str is not a value of Integer"):
        env.from_collection([1, "x"], Types.INT())
    with pytest.raises(FlowSqlError) as failed:
        collected(env.from_collection([1]).map(str, Types.INT()))
    assert "'1' of type str is not a value of Integer" in failed.value.render()


def test_user_exceptions_come_first(env: Env) -> None:
    with pytest.raises(FlowSqlError) as failed:
        collected(env.from_collection([1, 0]).map(lambda n: 1 // n))
    assert "ZeroDivisionError" in failed.value.render().splitlines()[0]


def test_union_of_different_parallelism_keeps_all(env: Env) -> None:
    env.set_parallelism(2)
    one = env.from_collection(range(5))
    two = one.map(lambda n: n + 100)
    assert sorted(collected(one.union(two, two.filter(lambda n: n > 102)))) == [
        *range(5), 100, 101, 102, 103, 103, 104, 104,
    ]  # fmt: skip
    assert sorted(collected(one.union(two).key_by(lambda n: n % 2).sum())) != []
    assert one.union() is one


def test_side_outputs(env: Env) -> None:
    odd = OutputTag("odd", Types.ROW([Types.INT()]))

    class Split(ProcessFunction):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
            if value % 2:
                yield odd, (value,)
            else:
                yield value

    main = env.from_collection([1, 2, 3, 4]).process(Split(), Types.INT())
    side = main.get_side_output(odd)
    assert collected(main) == [2, 4]
    assert [row[0] for row in collected(side)] == [1, 3]
    both = main.map(lambda n: ("even", n)).union(side.map(lambda row: ("odd", row[0])))
    assert sorted(collected(both)) == [("even", 2), ("even", 4), ("odd", 1), ("odd", 3)]


def test_timestamps_reach_process_functions(env: Env) -> None:
    class Second(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[1])

    class Times(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
            yield value[0], ctx.timestamp()

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(Second())
    stream = env.from_collection([("a", 5), ("b", 3)]).assign_timestamps_and_watermarks(strategy)
    assert collected(stream.process(Times())) == [("a", 5), ("b", 3)]


def test_project(env: Env) -> None:
    stream = env.from_collection([(1, "a", 2.5)], Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()]))
    projected = stream.project(2, 0)
    assert collected(projected) == [(2.5, 1)]
    assert projected.get_type() == Types.TUPLE([Types.DOUBLE(), Types.INT()])
    with pytest.raises(TypeError, match="Tuple"):
        env.from_collection([(1,)]).project(0)


@pytest.mark.parametrize("how", ["shuffle", "rebalance", "rescale", "broadcast", "global_", "forward"])
def test_partitionings_deliver(env: Env, how: str) -> None:
    env.set_parallelism(2)
    stream = env.from_collection(range(10)).map(lambda n: n).name("before")
    partitioned = getattr(stream, how)().map(lambda n: n).name("behind")
    assert sorted(collected(partitioned)) == sorted([*range(10)] * (2 if how == "broadcast" else 1))


def test_custom_partitions(env: Env) -> None:
    env.set_parallelism(3)

    class Subtask(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.index = runtime_context.get_index_of_this_subtask()

        def map(self, value: int) -> tuple[int, int]:
            return value, self.index

    stream = env.from_collection(range(9)).partition_custom(lambda key, n: key % n, lambda value: value + 1)
    assert {(value + 1) % 3 == index for value, index in collected(stream.map(Subtask()))} == {True}
    wrong = env.from_collection([1]).partition_custom(lambda key, n: n, lambda value: value)
    with pytest.raises(FlowSqlError, match="not one of 3 subtasks"):
        collected(wrong.map(lambda n: n))


def test_print_has_prefixes(env: Env, capsys: pytest.CaptureFixture[str]) -> None:
    stream = env.from_collection([("a", 1.0)], Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    stream.print()
    stream.print("id")
    stream.print_to_err("err")
    stream.map(lambda value: value).print().set_parallelism(2)
    env.execute()
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert sorted(lines)[:1] == ["(a,1.0)"]
    assert "id> (a,1.0)" in lines
    assert {"1> ('a', 1.0)", "2> ('a', 1.0)"} & set(lines)
    assert printed.err == "err> (a,1.0)\n"


def test_limit_ends_the_job(env: Env) -> None:
    assert env.from_collection(range(100_000)).execute_and_collect(limit=3) == [0, 1, 2]
    assert env.from_collection([1]).execute_and_collect("named", 5) == [1]


def test_an_iterator_can_be_left(env: Env) -> None:
    with env.from_collection(range(1_000_000)).map(lambda n: n).execute_and_collect() as values:
        assert next(values) == 0
        assert values.next() == 1


def test_sequences_and_lines(env: Env, tmp_path: Any) -> None:
    strategy = WatermarkStrategy.no_watermarks()
    numbers = env.from_source(NumberSequenceSource(3, 6), strategy, "numbers")
    assert collected(numbers) == [3, 4, 5, 6]
    assert numbers.get_type() == Types.LONG()
    (tmp_path / "b.txt").write_text("three\n")
    (tmp_path / "a.txt").write_text("one\r\ntwö")
    (tmp_path / ".hidden").write_text("no\n")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    assert collected(env.from_source(source, strategy, "lines")) == ["one", "twö", "three"]


def test_objects_are_copied_between_functions_unless_reused() -> None:
    def changed(reuse: bool) -> list[Any]:
        env = StreamExecutionEnvironment.get_execution_environment()
        if reuse:
            env.get_config().enable_object_reuse()

        class Append(MapFunction):
            def map(self, value: list[int]) -> list[int]:
                value.append(0)
                return value

        source = env.from_collection([[1]]).map(list)
        seen: list[Any] = []
        kept = source.map(lambda value: seen.append(value) or value)
        values = collected(kept.map(Append()).map(lambda value: len(value)))
        return [values, seen]

    assert changed(reuse=False) == [[2], [[1]]]
    assert changed(reuse=True) == [[2], [[1, 0]]]


def test_a_union_is_of_one_type(env: Env) -> None:
    numbers = env.from_collection([1], Types.INT())
    with pytest.raises(ValueError, match="Cannot union streams of different types: Integer and String"):
        numbers.union(env.from_collection(["a"], Types.STRING()))
    with pytest.raises(ValueError, match="Cannot union streams of different types"):
        numbers.union(numbers.map(str))
    with pytest.raises(ValueError, match="Limit must be greater than 0"):
        numbers.execute_and_collect(limit=0)
