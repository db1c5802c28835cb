"""Process table functions. Answers are those of the same functions in Java on Flink 2.3, where nothing else is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from flowsql.common import Row
from flowsql.table import ListView, MapView, TableEnvironment
from flowsql.table.changelog_mode import ChangelogMode
from flowsql.table.expressions import col, descriptor, lit
from flowsql.table.process_function import (
    ArgumentHint,
    ArgumentTrait,
    Context,
    OnTimerContext,
    ProcessTableFunction,
    StateHint,
    process_table_function,
)
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError
from flowsql_core.graph.process_specs import ProcessCall, ProcessTable, ProcessTableFunctionSpec
from flowsql_core.python_call import PythonFunction
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import INT, STRING, Column
from flowsql_runtime.testing.harness import OperatorHarness

SET = ArgumentTrait.SET_SEMANTIC_TABLE
ROW = ArgumentTrait.ROW_SEMANTIC_TABLE
AnySet = Annotated[Row, ArgumentHint(SET)]

#: Key, what to do, time.
EVENTS = """a,n1=1000,1970-01-01 00:00:00.100
b,u3000,1970-01-01 00:00:00.200
a,n1=4000,1970-01-01 00:00:00.900
a,u2500,1970-01-01 00:00:02.000
a,u3600,1970-01-01 00:00:02.100
a,n9=3900,1970-01-01 00:00:02.100
a,n2=3900,1970-01-01 00:00:02.100
a,n3=4001,1970-01-01 00:00:02.050
a,cn3,1970-01-01 00:00:02.150
b,x3000,1970-01-01 00:00:02.300
b,u100,1970-01-01 00:00:02.400
b,n5=150,1970-01-01 00:00:02.400
b,late,1970-01-01 00:00:00.001
a,state,1970-01-01 00:00:05.500
a,n1=9000,1970-01-01 00:00:05.600
b,u9000,1970-01-01 00:00:05.700
c,all,1970-01-01 00:00:07.600
c,u99000,1970-01-01 00:00:07.800
"""


@dataclass
class Count:
    counter: int = 0


@process_table_function(result_type="STRING")
def counting(state: Annotated[Count, StateHint()], input: AnySet) -> str:
    state.counter += 1
    return f"{list(input)} {state.counter}"


@process_table_function(result_type="STRING")
class Timers(ProcessTableFunction):
    def eval(self, ctx: Context, state: Annotated[Count, StateHint()], input: AnySet) -> Iterator[str]:
        time, does = ctx.time_context(int), input.v
        state.counter += 1
        yield f"{does} t={time.time()} w={time.current_watermark()} tw={time.table_watermark()} c={state.counter}"
        match does[0]:
            case "n":
                time.register_on_time(does[:2], int(does[3:]))
            case "u":
                time.register_on_time(int(does[1:]))
            case "c":
                time.clear_timer(does[1:])
            case "x":
                time.clear_timer(int(does[1:]))
            case "a":
                ctx.clear_all()
            case "s":
                ctx.clear_state("state")

    def on_timer(self, ctx: OnTimerContext, state: Count) -> Iterator[str]:
        time = ctx.time_context(int)
        state.counter += 100
        if ctx.current_timer() == "n9":
            time.register_on_time("n8", time.time() + 1)
            time.register_on_time(time.time() - 5)
        yield (
            f"timer {ctx.current_timer()} t={time.time()} w={time.current_watermark()} tw={time.table_watermark()} "
            f"c={state.counter}"
        )


@process_table_function(result_type="STRING")
def told(ctx: Context, input: Annotated[Row, ArgumentHint(SET, ArgumentTrait.SUPPORT_UPDATES)]) -> str:
    return f"{input.get_row_kind().name} {list(input)} {ctx.table_semantics_for('input').changelog_mode}"


@process_table_function(result_type="STRING")
def told_before(
    input: Annotated[Row, ArgumentHint(SET, ArgumentTrait.SUPPORT_UPDATES, ArgumentTrait.REQUIRE_UPDATE_BEFORE)],
) -> str:
    return f"{input.get_row_kind().name} {list(input)}"


@process_table_function(result_type="STRING")
def through(
    state: Annotated[Count, StateHint()], input: Annotated[Row, ArgumentHint(SET, ArgumentTrait.PASS_COLUMNS_THROUGH)]
) -> str:
    state.counter += 1
    return str(state.counter)


@process_table_function(result_type="ROW<threshold INT, score BIGINT>")
def threshold(
    input: Annotated[Row, ArgumentHint(ROW)], least: Annotated[int, ArgumentHint(type="INT")] = 0
) -> tuple[int, int] | None:
    return (least, input.score) if input.score >= least else None


@process_table_function(result_type="INT")
def plus(a: int, b: int = 5) -> list[int]:
    return [a + b, a]


@process_table_function(result_type="STRING")
def pair(state: Annotated[Count, StateHint()], a: AnySet, b: AnySet) -> str:
    state.counter += 1
    return f"{a and a.score} {b and b.n} {state.counter}"


@process_table_function(result_type="STRING")
def lists(
    numbers: ListView[int],
    pages: MapView[str, int],
    kept: Annotated[Row, StateHint(type="ROW<c BIGINT>")],
    input: AnySet,
) -> str:
    numbers.add(input.score)
    shown = f"{list(numbers)} {pages['x'] if pages.contains('x') else None} {kept.c}"
    pages["x"], kept["c"] = 1, 5
    return shown


@process_table_function(result_type="STRING")
def in_order(ctx: Context, input: AnySet) -> str:
    return f"{input.v} {ctx.table_semantics_for('input').order_by_columns}"


@process_table_function(result_type="ROW<n BIGINT>", changelog_mode=ChangelogMode.all())
def last(state: Annotated[Count, StateHint()], input: AnySet) -> Iterator[Any]:
    from flowsql.common import RowKind

    if state.counter:
        yield Row.of_kind(RowKind.UPDATE_BEFORE, state.counter)
    yield Row.of_kind(RowKind.UPDATE_AFTER if state.counter else RowKind.INSERT, input.score)
    state.counter = input.score


@pytest.fixture
def environment(tmp_path: Path) -> TableEnvironment:
    made = TableEnvironment.create()
    made.get_config().set("parallelism.default", "1")
    for function in (counting, Timers, told, told_before, through, threshold, plus, pair, lists, in_order, last):
        made.create_temporary_system_function(function.name, function)
    (tmp_path / "events.csv").write_text(EVENTS, encoding="utf-8")
    made.execute_sql(
        "CREATE TABLE e (k STRING, v STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path / 'events.csv'}')"
    )
    made.execute_sql("CREATE VIEW n AS SELECT * FROM (VALUES ('Bob', 1), ('Alice', 2), ('Bob', 3)) AS t(name, score)")
    made.execute_sql("CREATE VIEW u AS SELECT name, COUNT(*) AS c FROM n GROUP BY name")
    return made


def rows(environment: TableEnvironment, sql: str) -> list[list[Any]]:
    with environment.execute_sql(sql).collect() as found:
        return [list(row) for row in found]


def physical(environment: TableEnvironment, sql: str) -> str:
    plan = environment.explain_sql(sql)
    return plan[plan.index("== Optimized Physical Plan ==") :].split("\n\n")[0].partition("\n")[2]


def test_timers_fire_in_flinks_order(environment: TableEnvironment) -> None:
    found = rows(environment, "SELECT * FROM Timers(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts))")
    assert [f"{k} {text}" for k, text, _ in found] == [
        "a n1=1000 t=100 w=None tw=None c=1",
        "b u3000 t=200 w=None tw=None c=1",
        "a n1=4000 t=900 w=None tw=None c=2",
        "a u2500 t=2000 w=900 tw=900 c=3",
        "a u3600 t=2100 w=2000 tw=2000 c=4",
        "a n9=3900 t=2100 w=2000 tw=2000 c=5",
        "a n2=3900 t=2100 w=2000 tw=2000 c=6",
        "a n3=4001 t=2050 w=2000 tw=2000 c=7",
        "a cn3 t=2150 w=2000 tw=2000 c=8",
        "b x3000 t=2300 w=2000 tw=2000 c=2",
        "b u100 t=2400 w=2300 tw=2300 c=3",
        "b n5=150 t=2400 w=2300 tw=2300 c=4",
        "b late t=1 w=2300 tw=2300 c=5",
        "a state t=5500 w=2300 tw=2300 c=9",
        "b timer None t=100 w=5500 tw=None c=105",
        "a timer None t=2500 w=5500 tw=None c=100",
        "a timer None t=3600 w=5500 tw=None c=200",
        "b timer n5 t=150 w=5500 tw=None c=205",
        "a timer n9 t=3900 w=5500 tw=None c=300",
        "a timer n2 t=3900 w=5500 tw=None c=400",
        "a timer n8 t=3901 w=5500 tw=None c=500",
        "a timer n1 t=4000 w=5500 tw=None c=600",
        "a n1=9000 t=5600 w=5500 tw=5500 c=601",
        "b u9000 t=5700 w=5500 tw=5500 c=206",
        "c all t=7600 w=5500 tw=5500 c=1",
        "a timer None t=3895 w=7600 tw=None c=701",
        "c u99000 t=7800 w=7600 tw=7600 c=1",
        "b timer None t=9000 w=9223372036854775807 tw=None c=306",
        "c timer None t=99000 w=9223372036854775807 tw=None c=101",
        "a timer n1 t=9000 w=9223372036854775807 tw=None c=801",
    ]
    times = [str(time)[17:] for _, text, time in found if text.startswith("timer")]
    assert times[:4] == ["00.100000", "02.500000", "03.600000", "00.150000"]


def test_a_window_counts_what_a_function_makes(environment: TableEnvironment) -> None:
    found = rows(
        environment,
        "SELECT window_start, COUNT(*) FROM TUMBLE((SELECT * FROM in_order(input => TABLE e PARTITION BY k, "
        "on_time => DESCRIPTOR(ts))), DESCRIPTOR(rowtime), INTERVAL '1' SECOND) GROUP BY window_start, window_end",
    )
    assert [(str(start)[17:], count) for start, count in found] == [("00", 3), ("02", 9), ("05", 3), ("07", 2)]


def test_rows_in_order_stand_together_by_partition(environment: TableEnvironment) -> None:
    found = rows(environment, "SELECT * FROM in_order(input => TABLE e PARTITION BY k ORDER BY (ts, v))")
    assert [f"{k} {text}" for k, text in found][:8] == [
        "a n1=1000 (2, 1)",
        "a n1=4000 (2, 1)",
        "b u3000 (2, 1)",
        "a u2500 (2, 1)",
        "a n3=4001 (2, 1)",
        "a n2=3900 (2, 1)",
        "a n9=3900 (2, 1)",
        "a u3600 (2, 1)",
    ]
    assert len(found) == 17  # the late row is dropped


def test_plans_are_flinks(environment: TableEnvironment) -> None:
    values = (
        "Values(type=[RecordType(VARCHAR(5) name, INTEGER score)], tuples=[[{ _UTF-16LE'Bob', 1 }, { "
        "_UTF-16LE'Alice', 2 }, { _UTF-16LE'Bob', 3 }]])"
    )
    assert physical(environment, "SELECT * FROM counting(input => TABLE n PARTITION BY name)") == (
        "ProcessTableFunction(invocation=[counting(TABLE(#0) PARTITION BY($0), DEFAULT(), DEFAULT())], uid=[counting], "
        "select=[name,EXPR$0], rowType=[RecordType(VARCHAR(5) name, VARCHAR(2147483647) EXPR$0)])\n"
        f"+- Exchange(distribution=[hash[name]])\n   +- {values}"
    )
    assert physical(environment, "SELECT * FROM threshold(input => TABLE n, least => 3)") == (
        "ProcessTableFunction(invocation=[threshold(TABLE(#0), 3, DEFAULT(), DEFAULT())], uid=[null], "
        f"select=[threshold,score], rowType=[RecordType(INTEGER threshold, BIGINT score)])\n+- {values}"
    )
    order = physical(
        environment,
        "SELECT * FROM in_order(input => TABLE e PARTITION BY k ORDER BY (ts, v), on_time => DESCRIPTOR(ts), "
        "uid => 'x')",
    )
    assert order.partition("\n")[0] == (
        "ProcessTableFunction(invocation=[in_order(TABLE(#0) PARTITION BY($0) ORDER BY($2 ASC_NULLS_LAST, $1 "
        "ASC_NULLS_LAST), DESCRIPTOR(_UTF-16LE'ts'), _UTF-16LE'x')], uid=[x], select=[k,EXPR$0,rowtime], "
        "rowType=[RecordType(VARCHAR(2147483647) k, VARCHAR(2147483647) EXPR$0, TIMESTAMP(3) *ROWTIME* rowtime)])"
    )


ANSWERS = {
    "counting(input => TABLE n PARTITION BY name)": [
        ["Bob", "['Bob', 1] 1"],
        ["Alice", "['Alice', 2] 1"],
        ["Bob", "['Bob', 3] 2"],
    ],
    "counting((SELECT name, score + 1 AS s FROM n) PARTITION BY (s, name), DEFAULT, 'u')": [
        [2, "Bob", "['Bob', 2] 1"],
        [3, "Alice", "['Alice', 3] 1"],
        [4, "Bob", "['Bob', 4] 1"],
    ],
    "threshold(TABLE n, 2)": [[2, 2], [2, 3]],
    "plus(1)": [[6], [1]],
    "plus(a => 1, b => 1 + 2, uid => 'x')": [[4], [1]],
    "through(TABLE n PARTITION BY name)": [["Bob", 1, "1"], ["Alice", 2, "1"], ["Bob", 3, "2"]],
    "lists(TABLE n PARTITION BY name)": [
        ["Bob", "[1] None None"],
        ["Alice", "[2] None None"],
        ["Bob", "[1, 3] 1 5"],
    ],
    "told(TABLE u PARTITION BY name)": [
        ["Bob", "INSERT ['Bob', 1] [I,UA]"],
        ["Alice", "INSERT ['Alice', 1] [I,UA]"],
        ["Bob", "UPDATE_AFTER ['Bob', 2] [I,UA]"],
    ],
    "told(TABLE u PARTITION BY c)": [
        [1, "INSERT ['Bob', 1] [I,UB,UA]"],
        [1, "INSERT ['Alice', 1] [I,UB,UA]"],
        [1, "UPDATE_BEFORE ['Bob', 1] [I,UB,UA]"],
        [2, "UPDATE_AFTER ['Bob', 2] [I,UB,UA]"],
    ],
    "told_before(TABLE u PARTITION BY name)": [
        ["Bob", "INSERT ['Bob', 1]"],
        ["Alice", "INSERT ['Alice', 1]"],
        ["Bob", "UPDATE_BEFORE ['Bob', 1]"],
        ["Bob", "UPDATE_AFTER ['Bob', 2]"],
    ],
}


@pytest.mark.parametrize("call", ANSWERS)
def test_answers(environment: TableEnvironment, call: str) -> None:
    assert rows(environment, f"SELECT * FROM {call}") == ANSWERS[call]


def test_two_tables_share_their_partitions(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE VIEW m AS SELECT name AS who, score * 10 AS n FROM n")
    found = rows(environment, "SELECT * FROM pair(a => TABLE n PARTITION BY name, b => TABLE m PARTITION BY who)")
    assert {(name, who) for name, who, _ in found} == {("Bob", "Bob"), ("Alice", "Alice")}
    assert sorted(int(text.split()[-1]) for name, _, text in found if name == "Bob") == [1, 2, 3, 4]
    assert [column.name for column in environment.sql_query(
        "SELECT * FROM pair(a => TABLE n PARTITION BY name, b => TABLE n PARTITION BY name)"
    )._schema] == ["name", "name0", "EXPR$0"]  # fmt: skip


def test_a_function_that_updates(environment: TableEnvironment) -> None:
    found = rows(environment, "SELECT name, SUM(n) AS s FROM last(TABLE n PARTITION BY name) GROUP BY name")
    assert found[-1] == ["Bob", 3]


def test_methods_plan_what_sql_plans(environment: TableEnvironment) -> None:
    n, e = environment.from_path("n"), environment.from_path("e")
    twins = [
        (n.partition_by(col("name")).process("counting"), "counting(TABLE n PARTITION BY name)"),
        (n.process("threshold", 3), "threshold(TABLE n, 3)"),
        (n.process("threshold", None, None, "u"), "threshold(TABLE n, DEFAULT, DEFAULT, 'u')"),
        (
            e.partition_by(col("k"))
            .order_by(col("ts"), col("v"))
            .process("in_order", descriptor("ts").as_argument("on_time")),
            "in_order(TABLE e PARTITION BY k ORDER BY (ts, v), on_time => DESCRIPTOR(ts))",
        ),
        (
            environment.from_call(
                "pair",
                n.partition_by(col("name")).as_argument("a"),
                n.partition_by(col("name")).as_argument("b"),
                lit("u").as_argument("uid"),
            ),
            "pair(a => TABLE n PARTITION BY name, b => TABLE n PARTITION BY name, uid => 'u')",
        ),
        (environment.from_call("threshold", n.as_argument("input")), "threshold(input => TABLE n)"),
        (environment.from_call("plus", 1, 2), "plus(1, 2)"),
    ]
    for table, sql in twins:
        plan = table.explain()
        assert (
            plan[plan.index("== Optimized") :]
            == (whole := environment.explain_sql(f"SELECT * FROM {sql}"))[whole.index("== Optimized") :]
        )


def test_function_objects_need_no_name(environment: TableEnvironment) -> None:
    table = environment.from_path("n").where(col("score") > 1)
    assert [list(row) for row in table.partition_by(col("name")).process(counting).execute().collect()] == [
        ["Alice", "['Alice', 2] 1"],
        ["Bob", "['Bob', 3] 1"],
    ]


def test_the_text_of_a_function_in_sql(environment: TableEnvironment) -> None:
    environment.execute_sql(
        "CREATE TEMPORARY FUNCTION inline AS $$\n"
        "from typing import Annotated\nfrom flowsql.common import Row\nfrom flowsql.table.process_function import *\n\n"
        "class inline(ProcessTableFunction):\n"
        "    def eval(self, t: Annotated[Row, ArgumentHint(ArgumentTrait.ROW_SEMANTIC_TABLE)]):\n"
        "        yield t.name.upper()\n\n"
        "    def get_result_type(self):\n        return 'STRING'\n$$ LANGUAGE PYTHON"
    )
    assert rows(environment, "SELECT * FROM inline(TABLE n)") == [["BOB"], ["ALICE"], ["BOB"]]


#: Call, code, a part of the message.
REFUSED = {
    "counting(TABLE n)": ("partition-by", "requires a PARTITION BY clause"),
    "counting(TABLE n PARTITION BY nam)": ("column-not-found", "Available columns are: [name, score]"),
    "counting(input => TABLE n PARTITION BY name, nope => 1)": ("unknown-parameter", "no argument 'nope'"),
    "counting(1)": ("bad-table-argument", "expects a table to be passed"),
    "counting()": ("argument-count", "needs the argument 'input'"),
    "counting(TABLE u PARTITION BY name)": ("unsupported-changelog", "doesn't support consuming update changes"),
    "counting(TABLE n PARTITION BY name, DEFAULT, DEFAULT, 1)": ("argument-count", "at most 3 arguments"),
    "counting(input => TABLE n PARTITION BY name, uid => '!x')": ("bad-uid", "But found: !x"),
    "counting(input => TABLE n PARTITION BY name, on_time => DESCRIPTOR(name))": (
        "not-a-time-attribute",
        "has data type 'VARCHAR(5) NOT NULL'",
    ),
    "counting(input => TABLE n PARTITION BY name, on_time => DESCRIPTOR(x))": (
        "column-not-found",
        "Unknown references: [x]",
    ),
    "counting(input => TABLE n PARTITION BY name ORDER BY score)": ("order-by", "The first ORDER BY column must be a"),
    "threshold(TABLE n PARTITION BY name)": ("table-semantics", "Only tables with set semantics may be partitioned"),
    "pair(a => TABLE n PARTITION BY name, b => TABLE n PARTITION BY score)": (
        "partition-by",
        "Given partition key sets: [VARCHAR(5) NOT NULL], [INT NOT NULL]",
    ),
    "pair(a => TABLE n PARTITION BY name, b => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts))": (
        "on-time",
        "Missing time attributes for: [a]",
    ),
    "told(input => (SELECT k, MAX(v) AS v, ts FROM e GROUP BY k, ts) PARTITION BY k, on_time => DESCRIPTOR(ts))": (
        "on-time",
        "not supported for PTFs that consume or produce updates",
    ),
    "plus('a')": ("argument-types", "is BIGINT, not CHAR(1)"),
    "n, LATERAL TABLE(plus(score))": ("function-kind", "not the row in front of it"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_calls_that_are_refused(environment: TableEnvironment, call: str) -> None:
    code, message = REFUSED[call]
    with pytest.raises(FlowSqlError) as caught:
        environment.explain_sql(f"SELECT * FROM {call}")
    assert caught.value.code == code
    assert message in caught.value.message


def test_two_calls_need_uids_of_their_own(environment: TableEnvironment) -> None:
    calls = (
        "SELECT * FROM counting(TABLE n PARTITION BY name{}) UNION ALL SELECT * FROM counting({} PARTITION BY name{})"
    )
    with pytest.raises(FlowSqlError, match="Duplicate unique identifier 'counting' detected"):
        rows(environment, calls.format("", "(SELECT name, 1 AS x FROM n)", ""))
    assert len(rows(environment, calls.format("", "(SELECT name, 1 AS x FROM n)", ", DEFAULT, 'b'"))) == 6
    # Equal calls are one.
    assert len(rows(environment, calls.format("", "TABLE n", ""))) == 6


def test_a_scalar_place_is_refused(environment: TableEnvironment) -> None:
    with pytest.raises(BindError, match="is a process table function"):
        environment.sql_query("SELECT plus(1)")


def test_declarations_that_are_refused() -> None:
    def keeps_text(state: Annotated[str, StateHint()], input: AnySet) -> None: ...

    def late_state(input: AnySet, state: Annotated[Count, StateHint()]) -> None: ...

    def no_table(state: Annotated[Count, StateHint()], n: int) -> None: ...

    def two_kinds(input: Annotated[Row, ArgumentHint(SET, ROW)]) -> None: ...

    def keyless(pages: MapView[Any, int], input: AnySet) -> None: ...

    for function, message in [
        (keeps_text, "no dataclass, ListView or MapView"),
        (late_state, "behind its arguments"),
        (no_table, "belong to the partitions of a table"),
        (two_kinds, "of several kinds"),
        (keyless, "keys are not of a type"),
    ]:
        with pytest.raises(BindError, match=message):
            process_table_function(function, result_type="STRING")
    with pytest.raises(TypeError, match="a type is a DataType or its SQL text"):
        process_table_function(counting.function)


def test_failures_name_the_call(environment: TableEnvironment) -> None:
    @process_table_function(result_type="INT")
    def fails(input: Annotated[Row, ArgumentHint(ROW)]) -> Any:
        return "x" if input.score == 2 else 1 // (input.score - 3)

    environment.create_temporary_system_function("fails", fails)
    with pytest.raises(
        FlowSqlError, match=r"returned 'x' \(str\), which is no INT\nin the column 'EXPR\$0' of 'fails'"
    ):
        rows(environment, "SELECT * FROM fails((SELECT * FROM n WHERE score < 3))")
    with pytest.raises(FlowSqlError, match=r"ZeroDivisionError.*\nin the Python function 'fails', called with input"):
        rows(environment, "SELECT * FROM fails((SELECT * FROM n WHERE score = 3))")


def test_batch_mode_is_refused(environment: TableEnvironment) -> None:
    environment.get_config().set("execution.runtime-mode", "batch")
    with pytest.raises(NotSupportedYetError, match="the process table function counting in batch mode"):
        environment.explain_sql("SELECT * FROM counting(TABLE n PARTITION BY name)")


# Time-to-live


@process_table_function(result_type="STRING")
def remembers(
    short: Annotated[Count, StateHint(ttl="1 s")],
    numbers: Annotated[ListView[int], StateHint(ttl="2 s")],
    pages: Annotated[MapView[int, int], StateHint(ttl="3 s")],
    input: AnySet,
) -> str:
    short.counter += 1
    numbers.add(input.n)
    shown = f"{short.counter} {list(numbers)} {sorted(pages.items())}"
    pages[input.n] = input.n
    return shown


@pytest.mark.usefixtures("each_backend")
def test_state_expires_entry_by_entry() -> None:
    schema = (Column("k", STRING), Column("n", INT))
    call = ProcessCall(
        PythonFunction("remembers", "remembers", "general"),
        remembers.parameters,
        (ProcessTable("input", ("k", "n"), (0,)),),
        (),
        remembers.states,
        False,
        (Column("EXPR$0", STRING),),
    )
    ttls = tuple(entry.ttl_ms or 0 for entry in remembers.states)
    assert ttls == (1000, 2000, 3000)
    spec = ProcessTableFunctionSpec(call, (schema,), (INSERT_ONLY,), (schema[0], Column("EXPR$0", STRING)), ttls)
    harness = OperatorHarness(spec, keys=((0,),), clock=ManualClock(0), resources={"remembers": remembers})

    def put(key: str, n: int) -> str:
        import pyarrow as pa

        harness.batch(ChangelogBatch((pa.array([key]), pa.array([n], pa.int32())), 1))
        return str(harness.rows[-1][-1])

    assert put("a", 1) == "1 [1] []"
    assert put("a", 2) == "2 [1, 2] [(1, 1)]"
    harness.advance(1_500)
    assert put("a", 3) == "1 [1, 2, 3] [(1, 1), (2, 2)]"
    harness.advance(1_000)
    assert put("a", 4) == "1 [3, 4] [(1, 1), (2, 2), (3, 3)]"
    harness.advance(1_000)
    assert put("a", 5) == "1 [4, 5] [(3, 3), (4, 4)]"
    assert put("b", 1) == "1 [1] []"
    harness.advance(10_000)
    assert put("b", 2) == "1 [2] []"
    partitions = harness.operators[0]._partitions  # type: ignore[attr-defined]
    assert len(partitions.index) == 1  # nothing is left of "a", which never came again
    harness.close()
