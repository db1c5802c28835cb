"""Table functions: any number of rows a row, from SQL and from the Table API, in threads and worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Row
from flowsql.table import DataTypes, Table, TableEnvironment
from flowsql.table.expressions import call, col, lit
from flowsql.table.udf import FunctionContext, TableFunction, udf, udtf
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError

LINES = [(1, "a|bb"), (2, "c"), (3, None)]


@udtf(result_types=[DataTypes.STRING(), "INT"])
def pieces(text: Any) -> Iterator[tuple[str, int]]:
    for word in (text or "").split("|"):
        if word:
            yield word, len(word)


@pytest.fixture(params=["thread", "process"])
def environment(request: pytest.FixtureRequest) -> TableEnvironment:
    made = TableEnvironment.create()
    made.get_config().set("parallelism.default", "1").set("python.execution-mode", request.param)
    made.create_temporary_view("lines", lines(made))
    made.create_temporary_function("pieces", pieces)
    return made


def lines(environment: TableEnvironment) -> Table:
    types = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("text", DataTypes.STRING())])
    return environment.from_elements(LINES, types)


def rows(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as found:
        return [tuple(row) for row in found]


def test_sql_finds_rows_beside_each_row(environment: TableEnvironment) -> None:
    def answer(query: str) -> list[tuple[Any, ...]]:
        return rows(environment.sql_query(query))

    inner = [(1, "a", 1), (1, "bb", 2), (2, "c", 1)]
    assert answer("SELECT id, w, n FROM lines, LATERAL TABLE(pieces(text)) AS t(w, n)") == inner
    assert answer("SELECT id, f0, f1 FROM lines, LATERAL TABLE(pieces(text))") == inner
    assert answer("SELECT id, t.f0, f1 FROM lines CROSS JOIN LATERAL TABLE(pieces(UPPER(text))) AS t") == [
        (1, "A", 1), (1, "BB", 2), (2, "C", 1)
    ]  # fmt: skip
    left = "SELECT id, w FROM lines LEFT JOIN LATERAL TABLE(pieces(text)) AS t(w, n) ON TRUE"
    assert answer(left) == [(1, "a"), (1, "bb"), (2, "c"), (3, None)]
    wide = "SELECT id, w FROM lines JOIN LATERAL TABLE(pieces(text)) AS t(w, n) ON n > 1"
    assert answer(wide) == [(1, "bb")]
    assert answer("SELECT w FROM LATERAL TABLE(pieces('x|yy')) AS t(w, n)") == [("x",), ("yy",)]
    twice = "SELECT a.w, b.w FROM lines, LATERAL TABLE(pieces(text)) AS a(w, n), LATERAL TABLE(pieces(a.w)) AS b(w, n)"
    assert answer(twice) == [("a", "a"), ("bb", "bb"), ("c", "c")]
    counted = "SELECT w, COUNT(*) FROM lines, LATERAL TABLE(pieces(text)) AS t(w, n) GROUP BY w"
    assert sorted(answer(counted)) == [("a", 1), ("bb", 1), ("c", 1)]


def test_methods_of_tables_do_the_same(environment: TableEnvironment) -> None:
    table = environment.from_path("lines")
    wanted = [(1, "a|bb", "a", 1), (1, "a|bb", "bb", 2), (2, "c", "c", 1)]
    joined = table.join_lateral(pieces(col("text")).alias("w", "n"))
    assert joined.get_resolved_schema().get_column_names() == ["id", "text", "w", "n"]
    assert rows(joined) == wanted
    assert rows(table.join_lateral(call("pieces", col("text")).alias("w", "n"))) == wanted
    assert rows(table.join_lateral(pieces(col("text")).alias("w", "n"), col("n") == lit(2))) == wanted[1:2]
    left = table.left_outer_join_lateral(pieces(col("text")).alias("w", "n")).select(col("id"), col("n"))
    assert rows(left) == [(1, 1), (1, 2), (2, 1), (3, None)]
    flat = table.flat_map(pieces(col("text")))
    assert flat.get_resolved_schema().get_column_names() == ["f0", "f1"]
    assert rows(flat) == [row[2:] for row in wanted]
    assert rows(flat.alias("w", "n").where(col("n") > 1)) == [("bb", 2)]


def test_the_whole_row_may_be_the_argument(environment: TableEnvironment) -> None:
    @udtf(result_types="ROW<id BIGINT, w STRING>")
    def words(row: Row) -> list[Row]:
        return [Row(row.id * 10, word) for word in (row.text or "").split("|")]

    found = environment.from_path("lines").flat_map(words)
    assert found.get_resolved_schema().get_column_names() == ["id", "w"]
    assert rows(found) == [(10, "a"), (10, "bb"), (20, "c"), (30, "")]


def test_only_a_text_names_the_columns(environment: TableEnvironment) -> None:
    row = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("w", DataTypes.STRING())])
    found = environment.from_path("lines").flat_map(udtf(lambda line: (line.id, "x"), result_types=row))
    assert found.get_resolved_schema().get_column_names() == ["f0", "f1"]


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda n: range(n), [0, 0, 1]),
        (lambda n: [n, None], [1, None, 2, None]),
        (lambda n: n, [1, 2]),
        (lambda n: (n,), [1, 2]),
        (lambda n: Row(n), [1, 2]),
        (lambda n: [Row(n), (n,)], [1, 1, 2, 2]),
        (lambda n: None, []),
        (lambda n: [], []),
        (lambda n: (x for x in (n, n)), [1, 1, 2, 2]),
    ],
)
def test_what_a_function_may_give(function: Any, wanted: list[Any]) -> None:
    made = TableEnvironment.create()
    made.get_config().set("parallelism.default", "1")
    table = made.from_elements([(1,), (2,)], ["n"])
    assert [row[0] for row in rows(table.flat_map(udtf(function, result_types="BIGINT")(col("n"))))] == wanted


class Repeat(TableFunction):
    """Opened before it is called; counts what it was called with."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        self.factor = 0

    def open(self, function_context: FunctionContext) -> None:
        self.factor = int(function_context.get_job_parameter("factor", "0"))

    def eval(self, n: int) -> Iterator[int]:
        for _ in range(n):
            yield n * self.factor

    def close(self) -> None:
        with self.notes.open("a") as out:
            out.write("close\n")


@pytest.mark.parametrize(("mode", "parallelism"), [("thread", 1), ("thread", 2), ("process", 1), ("process", 2)])
def test_classes_are_opened_and_closed_once_a_subtask(tmp_path: Path, mode: str, parallelism: int) -> None:
    made = TableEnvironment.create()
    made.get_config().set("parallelism.default", str(parallelism)).set("python.execution-mode", mode)
    made.get_config().set("pipeline.global-job-parameters", "factor:100")
    made.create_temporary_system_function("repeated", udtf(Repeat(tmp_path / "notes"), result_types=["BIGINT"]))
    made.create_temporary_view("n", made.from_elements([(1,), (2,), (0,)], ["n"]))
    found = rows(made.sql_query("SELECT x FROM n, LATERAL TABLE(repeated(n)) AS t(x)"))
    assert sorted(found) == [(100,), (200,), (200,)]
    assert set((tmp_path / "notes").read_text().splitlines()) == {"close"}


def test_rows_that_are_taken_back_take_theirs_back(environment: TableEnvironment) -> None:
    query = """SELECT c, w FROM (SELECT COUNT(*) AS c FROM lines), LATERAL TABLE(pieces(REPEAT('x|', CAST(c AS INT))))
        AS t(w, n)"""
    with environment.execute_sql(query).collect() as found:
        changes = [(str(row.get_row_kind()), *row) for row in found]
    assert changes == [
        ("+I", 1, "x"),
        ("-U", 1, "x"), ("+U", 2, "x"), ("+U", 2, "x"),
        ("-U", 2, "x"), ("-U", 2, "x"), ("+U", 3, "x"), ("+U", 3, "x"), ("+U", 3, "x"),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["thread", "process"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda text: 1 // 0, "ZeroDivisionError: integer division or modulo by zero\nin the Python function 'f'"),
        (lambda text: [5], "which is no"),
        (lambda text: [("a", 1)], "2 fields instead of 1"),
    ],
)
def test_a_failure_is_told_with_the_row(mode: str, function: Any, message: str) -> None:
    made = TableEnvironment.create()
    made.get_config().set("parallelism.default", "1").set("python.execution-mode", mode)
    made.create_temporary_view("lines", lines(made))
    made.create_temporary_function("f", udtf(function, result_types=["STRING"]))
    with pytest.raises(ExecutionError) as caught:
        rows(made.sql_query("SELECT x FROM lines, LATERAL TABLE(f(text)) AS t(x)"))
    report = caught.value.render()
    assert message in report
    assert "'a|bb'" in report


def refusal(program: Any) -> str:
    with pytest.raises((FlowSqlError, TypeError)) as caught:
        program()
    return str(caught.value)


def test_what_is_wrong_is_told() -> None:
    made = TableEnvironment.create()
    made.create_temporary_view("lines", lines(made))
    made.create_temporary_function("pieces", pieces)
    made.create_temporary_function("twice", udf(lambda x: x * 2, result_type="STRING"))
    table = made.from_path("lines")
    assert "'pieces' is a table function: it can be called only in FROM" in refusal(
        lambda: made.sql_query("SELECT pieces(text) FROM lines")
    )
    assert "is a scalar function: it can be called only where a value stands" in refusal(
        lambda: made.sql_query("SELECT * FROM lines, LATERAL TABLE(twice(text)) AS t(x)")
    )
    assert "nosuch" in refusal(lambda: made.sql_query("SELECT * FROM LATERAL TABLE(nosuch(1)) AS t(x)"))
    assert "same degree" in refusal(lambda: made.sql_query("SELECT * FROM lines, LATERAL TABLE(pieces(text)) AS t(x)"))
    assert "Invalid function call:\npieces(INT, INT)" in refusal(
        lambda: made.sql_query("SELECT * FROM LATERAL TABLE(pieces(1, 2)) AS t(x, y)")
    )
    assert "is a table function" in refusal(lambda: table.select(pieces(col("text"))))
    assert "join_lateral() takes a call of a table function" in refusal(lambda: table.join_lateral(col("text")))
    assert "udtf() takes result_types" in refusal(lambda: udtf(lambda x: x))
    assert "Invalid function" in refusal(lambda: udtf(5, result_types="INT"))
    with pytest.raises(BindError, match="ambiguous names"):
        table.join_lateral(pieces(col("text")).alias("id", "n"))


def test_methods_plan_what_sql_plans() -> None:
    made = TableEnvironment.create()
    made.create_temporary_view("lines", lines(made))
    made.create_temporary_function("pieces", pieces)
    table, called = made.from_path("lines"), call("pieces", col("text")).alias("w", "n")

    def optimized(plan: str) -> str:
        return plan[plan.index("== Optimized Physical Plan ==") :]

    for twin, sql in [
        (table.join_lateral(called), "SELECT * FROM lines, LATERAL TABLE(pieces(text)) AS t(w, n)"),
        (
            table.left_outer_join_lateral(called).select(col("id"), col("w")),
            "SELECT id, w FROM lines LEFT JOIN LATERAL TABLE(pieces(text)) AS t(w, n) ON TRUE",
        ),
        (
            table.join_lateral(called, col("n") > 1).where(col("id") > 0),
            "SELECT * FROM lines JOIN LATERAL TABLE(pieces(text)) AS t(w, n) ON n > 1 WHERE id > 0",
        ),
        (table.flat_map(call("pieces", col("text"))), "SELECT t.* FROM lines, LATERAL TABLE(pieces(text)) AS t"),
    ]:
        assert optimized(twin.explain()) == optimized(made.explain_sql(sql))


SCRIPT = """CREATE TEMPORARY SYSTEM FUNCTION parts AS $$
from flowsql.table.udf import udtf

@udtf(result_types=["STRING"])
def parts(text):
    return text.split("-")
$$ LANGUAGE PYTHON"""


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_script_may_hold_the_function(mode: str) -> None:
    made = TableEnvironment.create()
    made.get_config().set("parallelism.default", "1").set("python.execution-mode", mode)
    made.execute_sql(SCRIPT)
    assert rows(made.sql_query("SELECT p FROM LATERAL TABLE(parts('a-b')) AS t(p)")) == [("a",), ("b",)]
