"""Plans with Python functions: PythonCalc where Flink has it. The file of answers says what differs, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table import DataTypes, TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.errors import FlowSqlError

ANSWERS = Path(__file__).parent / "plans.txt"


async def asked(a: int) -> int:
    return a


def environment() -> TableEnvironment:
    made = TableEnvironment.create()
    whole, truth = DataTypes.INT(), DataTypes.BOOLEAN()
    for name, function in {
        "pyFunc1": udf(lambda a, b: a, result_type=whole),
        "pyFunc2": udf(lambda a, b: a, result_type=whole),
        "pyFunc4": udf(lambda a, b: True, result_type=truth),
        "uno": udf(lambda a: a, result_type=whole),
        "typed": udf(lambda a: a, input_types=[DataTypes.BIGINT()], result_type=whole),
        "rnd": udf(lambda a: a, result_type=whole, deterministic=False),
        "ask1": udf(asked, result_type=whole),
        "ask2": udf(asked, result_type=whole),
        "pd1": udf(lambda a, b: a, result_type=whole, func_type="pandas"),
    }.items():
        made.create_temporary_system_function(name, function)
    made.create_temporary_function("cat1", udf(lambda a: a, result_type=whole))
    made.execute_sql("CREATE TABLE U (a INT, b INT, c INT) WITH ('connector' = 'datagen')")
    made.execute_sql("CREATE TABLE T (a INT, b INT, c INT, d ROW<x INT, y STRING>) WITH ('connector' = 'datagen')")
    return made


def answer(made: TableEnvironment, query: str) -> str:
    try:
        text = made.explain_sql(query)
    except FlowSqlError as error:
        return f"ERROR {error}"
    return text.partition("== Optimized Execution Plan ==\n")[2].strip()


def cases() -> list[tuple[str, str]]:
    found = []
    for block in ANSWERS.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            found.append((lines[0], "\n".join(lines[1:])))
    return found


def test_plans_are_those_of_the_file(request: pytest.FixtureRequest) -> None:
    made = environment()
    blocks = ANSWERS.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    if request.config.getoption("--update"):
        written = []
        for block in blocks:
            lines = [line for line in block.splitlines() if line.startswith("#")]
            query = next((line for line in block.splitlines() if not line.startswith("#")), None)
            written.append("\n".join([*lines, *([] if query is None else [query, answer(made, query)])]))
        ANSWERS.write_text("\n\n".join(written) + "\n", encoding="utf-8")
    wrong = {query: answer(made, query) for query, wanted in cases() if answer(made, query) != wanted}
    assert not wrong


def test_a_function_that_draws_is_called_once_a_row() -> None:
    drawn = iter(range(1000))
    made = TableEnvironment.create()
    made.create_temporary_system_function("draw", udf(lambda x: next(drawn), result_type="INT", deterministic=False))
    query = "SELECT x, x FROM (SELECT draw(a) AS x FROM (VALUES (1), (2), (3)) AS t(a)) WHERE x >= 1"
    with made.execute_sql(query).collect() as rows:
        assert sorted(tuple(row) for row in rows) == [(1, 1), (2, 2)]


def test_built_in_functions_that_draw_are_not_drawn_again_by_a_filter() -> None:
    text = TableEnvironment.create().explain_sql(
        "SELECT x FROM (SELECT RAND() AS x FROM (VALUES (1), (2)) AS t(a)) WHERE x > 0.5"
    )
    assert text.count("RAND()") == 3  # once a section


def test_a_function_reaches_the_plan_once_although_a_query_repeats_it() -> None:
    calls: list[int] = []
    made = TableEnvironment.create()
    made.create_temporary_system_function("note", udf(lambda x: calls.append(x) or x, result_type="INT"))
    query = "SELECT note(a), note(a) + 1 FROM (VALUES (1), (2)) AS t(a) WHERE note(a) > 0"
    with made.execute_sql(query).collect() as rows:
        assert sorted(tuple(row) for row in rows) == [(1, 2), (2, 3)]
    assert calls == [1, 2]
