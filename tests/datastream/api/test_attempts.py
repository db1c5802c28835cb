"""What functions are told of their task and its attempt after restarts, and what an environment keeps of a failed job.

Numbers, and where they stand in names, are those that Flink 2.3 gave to the same programs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Configuration, Types
from flowsql.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flowsql.datastream.functions import MapFunction, RuntimeContext
from flowsql.table import DataTypes, StreamTableEnvironment
from flowsql.table.udf import FunctionContext, ScalarFunction, udf
from flowsql_core.errors import FlowSqlError


def restarting(**options: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    told = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "2",
        "restart-strategy.fixed-delay.delay": "10 ms",
        "execution.runtime-mode": "STREAMING",
        "parallelism.default": "1",
    }
    for key, value in {**told, **options}.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


class Fails(MapFunction):
    """Until its third attempt."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def __deepcopy__(self, memo: object) -> Fails:
        return Fails(self.told)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = runtime_context.get_attempt_number()
        self.told.append(runtime_context.get_task_name_with_subtasks())
        assert self.told[-1].startswith(runtime_context.get_task_name())

    def map(self, value: Any) -> Any:
        if self.attempt < 2:
            raise ValueError("boom")
        return value


def test_attempts_of_a_stream_are_counted_over_restarts() -> None:
    env, told = restarting(), []  # type: ignore[var-annotated]
    stream = env.from_collection([1, 2], type_info=Types.INT()).map(Fails(told), output_type=Types.INT())
    stream.name("my map").print()
    env.execute("j")
    assert [name.rpartition(" (")[2] for name in told] == ["1/1)#0", "1/1)#1", "1/1)#2"]
    assert all(" -> my map -> " in name for name in told)


def test_a_part_that_starts_again_counts_alone(tmp_path: Path) -> None:
    """Two subtasks without an exchange: one of them fails once."""
    env = restarting(**{"parallelism.default": "2"})
    told: list[tuple[int, int]] = []

    class FailsInOne(MapFunction):
        def __deepcopy__(self, memo: object) -> FailsInOne:
            return FailsInOne()

        def open(self, runtime_context: RuntimeContext) -> None:
            self.place = runtime_context.get_index_of_this_subtask(), runtime_context.get_attempt_number()
            told.append(self.place)

        def map(self, value: Any) -> Any:
            if self.place == (1, 0):
                raise ValueError("boom")
            return value

    for number in (1, 2):
        (tmp_path / f"{number}.csv").write_text("1\n2\n")
    table_env = StreamTableEnvironment.create(env)
    table_env.execute_sql(
        f"CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path}')"
    )
    stream = table_env.to_data_stream(table_env.from_path("t"))
    stream.map(lambda row: row[0], output_type=Types.INT()).map(FailsInOne(), output_type=Types.INT()).print()
    env.execute("j")
    assert sorted(told) == [(0, 0), (1, 0), (1, 1)]


class Tells(ScalarFunction):
    """Its context, on the way; fails in its first attempt."""

    def open(self, function_context: FunctionContext) -> None:
        self.attempt = function_context.get_attempt_number()
        self.name = function_context.get_task_name_with_subtasks()

    def eval(self, value: int) -> str:
        if self.attempt == 0:
            raise ValueError("boom")
        return f"{self.attempt} {self.name}"


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_attempts_of_a_function_in_sql(mode: str) -> None:
    env = StreamTableEnvironment.create(restarting(**{"python.execution-mode": mode}))
    env.create_temporary_system_function("tells", udf(Tells(), result_type=DataTypes.STRING()))
    (row,) = env.execute_sql("SELECT tells(a) FROM (VALUES (1)) AS t(a)").collect()
    attempt, _, name = row[0].partition(" ")
    assert attempt == "1"
    assert name.endswith(" (1/1)#1")
    assert " -> PythonCalc -> " in name


def test_a_refused_job_is_not_refused_again(capsys: pytest.CaptureFixture[str]) -> None:
    """As PyFlink clears the transformations when execute() is called, whatever becomes of the job."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = env.from_collection([1, 2], type_info=Types.INT())
    first = numbers.map(_same, output_type=Types.INT()).uid("x").disable_chaining()
    first.map(_same, output_type=Types.INT()).uid("x").disable_chaining().print()
    with pytest.raises(FlowSqlError):
        env.execute("j1")
    with pytest.raises(FlowSqlError, match=r"No operators defined in streaming topology\. Cannot execute\."):
        env.execute("j1")
    env.from_collection([5], type_info=Types.INT()).print()
    env.execute("j2")
    assert capsys.readouterr().out.split() == ["5"]


def test_a_failed_plan_leaves_nothing_either() -> None:
    """Options that exclude each other are found when the job starts."""
    env = restarting()
    env.configuration.set("execution.checkpointing.storage", "filesystem")
    env.from_collection([1], type_info=Types.INT()).print()
    with pytest.raises(FlowSqlError, match="is 'filesystem' and"):
        env.execute_async()
    with pytest.raises(FlowSqlError, match="No operators defined"):
        env.execute_async()


def test_a_statement_set_that_fails_is_empty() -> None:
    env = StreamTableEnvironment.create(restarting())
    env.execute_sql("CREATE TABLE o (a INT) WITH ('connector' = 'blackhole')")
    env.execute_sql("CREATE TABLE s (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    statements = env.create_statement_set()
    statements.add_insert_sql("INSERT INTO o SELECT a FROM s")
    env.execute_sql("DROP TABLE o")
    with pytest.raises(FlowSqlError):
        statements.execute()
    with pytest.raises(FlowSqlError, match="NO statements in the statement set"):
        statements.execute()


def _same(value: Any) -> Any:
    return value
