"""FlowSQL's kernels inside of Spark's plan: what they are given and give, and how their rows fail."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.expr import InputRef
from flowsql_core.graph.spark import KernelFunction
from flowsql_core.span import Span
from flowsql_core.types.logical import STRING
from flowsql_runtime.spark.failures import failure_in
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

ROWS = """(VALUES
(1, 'ab', 12.345, 1.5e0, TIMESTAMP '2020-02-29 10:11:12.123', DATE '2020-02-29', TIME '10:11:12', ARRAY[3, 1, 2],
  MAP['a', 1], CAST(ROW(1, 'x') AS ROW<a INT, b STRING>)),
(2, 'ßÄ', -0.005, -2.5e0, TIMESTAMP '1969-12-31 23:59:59.999', DATE '1969-12-31', TIME '00:00:00', ARRAY[5],
  MAP['b', 2], ROW(2, 'y')),
(3, CAST(NULL AS STRING), CAST(NULL AS DECIMAL(5, 3)), CAST(NULL AS DOUBLE), CAST(NULL AS TIMESTAMP(3)),
  CAST(NULL AS DATE), CAST(NULL AS TIME), CAST(NULL AS ARRAY<INT>), CAST(NULL AS MAP<STRING, INT>),
  CAST(NULL AS ROW<a INT, b STRING>))
) AS t(i, s, d, f, ts, born, clock, a, m, r)"""
#: Arguments and results of every type that travels.
EXPRESSIONS = (
    "UPPER(s)",
    "ROUND(d, 1)",
    "CEIL(f)",
    "CAST(f AS STRING)",
    "TIMESTAMPADD(MONTH, 1, ts)",
    "CAST(ts AS TIMESTAMP_LTZ(3))",
    "DATE_FORMAT(CAST(ts AS TIMESTAMP_LTZ(3)), 'yyyy-MM-dd HH:mm')",
    "TIMESTAMPDIFF(DAY, TIMESTAMP '2019-01-01 00:00:00', ts)",
    "CAST(clock AS STRING)",
    "FLOOR(born TO MONTH)",
    "ARRAY_REVERSE(a)",
    "a[2]",
    "MAP_KEYS(m)",
    "m['a']",
    "r.b || UPPER(s)",
    "ENCODE(s, 'UTF-8')",
    "s LIKE '%b' AND REGEXP(s, 'a.')",
    # Only the row that asks for it is cast.
    "CASE WHEN i = 2 THEN CAST(SUBSTRING('x2', i) AS INT) ELSE 0 END",
)


def session(engine: str) -> TableEnvironment:
    hurry()
    values = {
        "execution.runtime-mode": "batch",
        "execution.batch.engine": engine,
        "table.local-time-zone": "Europe/Berlin",
    }
    return TableEnvironment.of_configuration(Configuration(values=values))


def test_values_of_all_types_pass_between_both_systems() -> None:
    # Below the projection there is a join, so that it stands in Spark's plan.
    items = ", ".join(f"{expression} AS y{place}" for place, expression in enumerate(EXPRESSIONS))
    query = f"SELECT g, {items} FROM (SELECT i AS g, COUNT(*) AS n FROM {ROWS} GROUP BY i) AS c JOIN {ROWS} ON i = g"
    explained = session("spark").explain_sql(query)
    assert explained.count("of which Spark has no exact form") == len(EXPRESSIONS)
    answers = []
    for engine in ("spark", "local"):
        with session(engine).execute_sql(query).collect() as found:
            answers.append(sorted(map(str, found)))
    assert answers[0] == answers[1]
    assert len(answers[0]) == 3


def test_a_failing_row_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hurry()
    script = tmp_path / "script.sql"
    script.write_text(
        "SET 'execution.runtime-mode' = 'batch';\nSET 'execution.batch.engine' = 'spark';\n"
        f"SELECT n + CAST(TRIM(s) AS INT) AS x FROM (SELECT s, COUNT(*) AS n FROM {ROWS} WHERE i < 2 GROUP BY s);\n"
    )
    assert main(["-f", str(script)]) == 1
    told = capfd.readouterr().err
    assert "For input string: 'ab'" in told
    assert "SELECT n + CAST(TRIM(s) AS INT)" in told
    assert "row: s = 'ab'" in told
    assert "Exception" not in told


def test_a_failure_is_data_alone() -> None:
    function = KernelFunction("f", InputRef(0, STRING), (STRING,), ("name",), "STRING")
    told = {
        "function": "f",
        "kind": "execution",
        "code": "c",
        "message": "m",
        "at": [1, 2],
        "hint": None,
        "row": 0,
        "node": 0,
        "names": None,
    }
    text = base64.b64encode(json.dumps(told | {"values": {"0": "'x'"}}).encode()).decode()
    error = failure_in(f"... FLOWSQL-FAILURE {text}\n...", (function,))
    assert error is not None
    assert error.row is not None
    assert (error.code, error.at, error.row.values, error.row.names) == ("c", Span(1, 2), {0: "'x'"}, ("name",))
    assert failure_in("no failure", (function,)) is None
