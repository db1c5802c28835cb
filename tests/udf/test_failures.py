"""A failing function: the user's exception first, then function, arguments and frames; the whole report is short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowsql.cli.main import main
from flowsql.table import TableEnvironment
from flowsql.table.udf import ScalarFunction, udf
from flowsql_core.errors import ExecutionError, FlowSqlError

SCRIPT = """CREATE TEMPORARY SYSTEM FUNCTION inverse AS $$
def helper(x):
    return 1 // x

def inverse(x: int, note: str) -> int:
    return helper(x)
$$ LANGUAGE PYTHON;
SELECT id, 1 + inverse(id - 2, 'note') AS i
FROM (VALUES (1), (2), (3)) AS t(id);
"""

REPORT = """ZeroDivisionError: integer division or modulo by zero
in the Python function 'inverse', called with x = 0, note = 'note'
  <function inverse>:5 in inverse: return helper(x)
  <function inverse>:2 in helper: return 1 // x
 --> script.sql:8:16
  |
8 | SELECT id, 1 + inverse(id - 2, 'note') AS i
  |                ^^^^^^^^^^^^^^^^^^^^^^^
row: number 2 that the source read
in operator PythonCalc(select=[EXPR$0, inverse(f0, 'note') AS f0])"""


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_the_report_of_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str) -> None:
    path = tmp_path / "script.sql"
    path.write_text(SCRIPT)
    assert main(["-D", f"python.execution-mode={mode}", "-f", str(path)]) == 1
    report = capsys.readouterr().err.replace(str(tmp_path) + "/", "")
    if mode == "process":
        # The answer comes outside of the call that read the row.
        report = report.replace("row: number 2 that came to the operator", "row: number 2 that the source read")
    assert REPORT in report
    assert len(REPORT.splitlines()) < 15


def failure(made: TableEnvironment, query: str) -> FlowSqlError:
    with pytest.raises(ExecutionError) as caught, made.execute_sql(query).collect() as rows:
        list(rows)
    return caught.value


def environment(mode: str = "thread") -> TableEnvironment:
    made = TableEnvironment.create()
    made.get_config().set("python.execution-mode", mode)
    made.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (1), (2), (3)) AS t(a)")
    return made


class OwnError(Exception):
    """A user's exception."""


def test_the_cause_is_the_users_exception() -> None:
    def fail(x: int) -> int:
        raise OwnError("no\nway") if x == 2 else ValueError

    made = environment()
    made.create_temporary_function("f", udf(fail))
    error = failure(made, "SELECT f(a) FROM v WHERE a > 1")
    assert isinstance(error.__cause__, OwnError)
    assert error.message.startswith(f"{__name__}.OwnError: no\nway\nin the Python function 'f', called with x = 2\n")
    assert "test_failures.py:" in error.message
    assert "flowsql_runtime" not in error.message
    assert error.code == "python-function-failed"
    assert error.at is not None
    assert failure(made, "SELECT f(a) FROM v").message.startswith("ValueError\nin the Python function 'f'")


def test_long_arguments_are_cut() -> None:
    def fail(*values: Any) -> int:
        raise OwnError

    made = environment()
    made.create_temporary_function("f", udf(fail, result_type="INT"))
    message = failure(made, f"SELECT f({', '.join(['a'] * 9)}, REPEAT('x', 100)) FROM v").message
    assert "called with argument 1 = 1, " in message
    assert "argument 6 = 1 and 4 more" in message
    message = failure(made, "SELECT f(REPEAT('x', 100)) FROM v").message
    assert f"values = '{'x' * 56}...\n" in message


def test_an_endless_recursion_shows_few_frames() -> None:
    def deeper(x: int) -> int:
        return deeper(x) + 1

    made = environment()
    made.create_temporary_function("f", udf(deeper))
    message = failure(made, "SELECT f(a) FROM v").message
    assert message.startswith("RecursionError: ")
    assert len(message.splitlines()) == 5


def test_frames_of_libraries_are_left_out() -> None:
    import json

    made = environment()
    made.create_temporary_function("f", udf(lambda x: json.loads("{"), result_type="INT"))
    *_, last = failure(made, "SELECT f(a) FROM v").message.splitlines()
    assert "test_failures.py" in last


def test_stop_iteration_does_not_shorten_a_batch() -> None:
    made = environment()
    made.create_temporary_function("f", udf(lambda x: next(iter([])) if x == 2 else x, result_type="INT"))
    assert "StopIteration" in failure(made, "SELECT f(a) FROM v").message


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_wrong_results(mode: str) -> None:
    made = environment(mode)
    made.create_temporary_function("f", udf(lambda x: x if x < 3 else 1.5, result_type="INT"))
    error = failure(made, "SELECT a, f(a) FROM v")
    assert error.message == (
        "The Python function returned 1.5 (float), which is no INT\nin the Python function 'f', called with x = 3"
    )
    assert error.code == "python-function-result"
    assert error.row is not None
    assert error.row.row == 2


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_failures_of_open_and_close(mode: str) -> None:
    class Fails(ScalarFunction):
        def __init__(self, where: str) -> None:
            self.where = where

        def open(self, function_context: Any) -> None:
            if self.where == "open":
                raise OwnError("no way")

        def eval(self, x: int) -> int:
            return x

        def close(self) -> None:
            if self.where == "close":
                raise OwnError("no way")

    for where in ("open", "close"):
        made = environment(mode)
        made.create_temporary_function("f", udf(Fails(where)))
        message = failure(made, "SELECT f(a) FROM v").message
        assert message.startswith(f"{__name__}.OwnError: no way\nin {where}() of the Python function 'f'\n")


def test_pandas_failures_tell_the_batch() -> None:
    made = environment()
    made.create_temporary_function("f", udf(lambda s: s.nothing, result_type="INT", func_type="pandas"))
    first, second, third = failure(made, "SELECT f(a) FROM v").message.splitlines()
    assert first == "AttributeError: 'Series' object has no attribute 'nothing'"
    assert second == "in the Python function 'f', called with 3 rows"
    assert "test_failures.py" in third


def test_a_function_that_exits_fails_the_job() -> None:
    def leave(x: int) -> int:
        raise SystemExit(3)

    made = environment("process")
    made.create_temporary_function("f", udf(leave))
    assert failure(made, "SELECT f(a) FROM v").message.startswith("SystemExit: 3\n")
