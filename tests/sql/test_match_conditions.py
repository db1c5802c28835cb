"""Conditions over earlier rows: the stack machine's answers are those of the columnar evaluator, which Python asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_compute.eval.stack import StackPrograms
from flowsql_compute.eval.text.render import json_rows
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.match_specs import PatternVariable
from flowsql_runtime.operators.match import walker

COLUMNS = (
    "k INT, i INT, s SMALLINT, b BIGINT, d DOUBLE, f FLOAT, m DECIMAL(8, 2), o BOOLEAN, w STRING, dt DATE, "
    "t6 TIMESTAMP(6), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
)
#: Each reads rows before the one that is asked for.
CONDITIONS = [
    "B.i > A.i",
    "B.i < COALESCE(LAST(B.i, 1), A.i)",
    "B.i + 2000000000 > A.i * 3",
    "B.s - A.s > 3 OR B.s * CAST(7 AS SMALLINT) < A.s",
    "B.b / 2 >= A.b / 3 AND A.b <> 0",
    "CASE WHEN A.b = 0 THEN B.b > 3 ELSE B.b / A.b < 2 END",
    "CASE WHEN A.i = 0 THEN TRUE WHEN A.i < 5 THEN MOD(B.i, A.i) = 1 ELSE B.i % A.i > 2 END",
    "B.d > A.d OR B.d = A.d / 2",
    "B.d * 2 - 1 <= A.f + A.i",
    "B.d / A.d > 1 OR B.d / A.i < -1",
    "B.f > A.f AND B.f + 1 <> A.f",
    "ABS(B.i - A.i) < 3 AND -B.i < A.i",
    "ABS(B.d - A.d) < 3 OR ABS(B.m - A.m) > 400",
    "B.m > A.m OR B.m + 1 = A.m",
    "B.m - A.i > 0 AND CAST(A.s AS DECIMAL(7, 1)) < B.m",
    "A.o AND B.i > A.i",
    "NOT A.o OR B.o = A.o",
    "A.o IS NULL OR B.i IS NOT NULL AND A.i IS NULL",
    "(B.i > A.i) IS TRUE OR (B.d < A.d) IS NOT FALSE",
    "(B.i > A.i) IS FALSE OR (B.d < A.d) IS NOT TRUE AND A.o",
    "B.i IS DISTINCT FROM A.i",
    "B.d IS NOT DISTINCT FROM A.d OR B.i IS NOT DISTINCT FROM LAST(B.i, 1)",
    "B.i IN (1, 2, A.i)",
    "B.i NOT IN (A.i, COALESCE(LAST(B.i, 2), 3))",
    "B.i BETWEEN A.s AND 2 * A.i",
    "B.ts < A.ts + INTERVAL '8' SECOND AND B.i <> A.i",
    "B.t6 - INTERVAL '2' SECOND > A.t6",
    "B.dt >= A.dt",
    "B.dt > DATE '2024-01-03' AND A.dt < B.dt",
    "NULLIF(B.i, A.i) > 2",
    "CASE WHEN B.i > A.i THEN 1 WHEN B.o THEN NULL ELSE A.i END > 0",
    "FIRST(B.i) < B.i OR FIRST(B.i, 1) IS NULL AND A.i > 0",
    "LAST(i, 1) < i",
    "COUNT(B.i) < 4 AND COUNT(*) > 1",
    "SUM(B.i) < 20",
    "SUM(B.s) + A.b > 4 AND SUM(s) < 20000",
    "AVG(B.i) < 6 OR AVG(A.b) > 2",
    "AVG(i) > B.i",
    "SUM(B.d) < 12 AND AVG(B.d) < 9",
    "SUM(B.f) < 12 AND AVG(f) < 9",
    "MIN(B.i) < A.i OR MAX(B.i) > 12",
    "MAX(d) > 2 * MIN(B.d)",
    "MIN(B.ts) + INTERVAL '4' SECOND >= B.ts AND MAX(B.m) > A.m",
    "CAST(NULL AS BOOLEAN) OR B.i > A.i",
    "SUM(B.i + B.b) > 3",
]
#: What the machine lacks.
LACKING = [
    "B.w > A.w",
    "B.m * CAST(A.m AS DECIMAL(20, 2)) > 3",
    "B.i > CHAR_LENGTH(A.w)",
    "STDDEV_POP(B.d) < 2",
    "SUM(B.m) < 300",
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of four keys; one in six values is NULL."""
    path: Path = tmp_path_factory.mktemp("match") / "rows.csv"
    draw = np.random.default_rng(11)
    lines = []
    for number in range(260):
        at = f"10:{number // 60:02}:{number % 60:02}"
        values = [
            str(draw.integers(-3, 14)),
            str(draw.integers(-30_000, 30_000)),
            str(draw.integers(-4, 9)),
            f"{draw.integers(-20, 40) / 4}",
            f"{draw.integers(-200, 400) / 10}",
            f"{draw.integers(-40_000, 90_000) / 100}",
            str(bool(draw.integers(2))).lower(),
            f"w{draw.integers(30)}",
            f"2024-01-0{draw.integers(1, 9)}",
            f"2024-01-01 {at}.{draw.integers(1_000_000):06}",
        ]
        cut = ["" if draw.integers(6) == 0 else value for value in values]
        lines.append(",".join([str(draw.integers(4)), *cut, f"2024-01-01 {at}"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def matches_of(path: Path, condition: str) -> tuple[list[str], str]:
    """All matches, and what EXPLAIN says."""
    session = TableEnvironment.create()
    session.get_config().set("parallelism.default", "1")
    session.execute_sql(
        f"CREATE TABLE t ({COLUMNS}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', "
        "'csv.ignore-parse-errors' = 'true')"
    )
    query = (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS a, COUNT(B.ts) AS n, C.ts AS c "
        f"AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{{1,4}}? C) DEFINE B AS {condition}, C AS MOD(C.s, 3) = 0)"
    )
    result = session.execute_sql(query)
    lines = [line for batch in result.batches() for line in json_rows(batch, result.schema).splitlines()]
    return lines, session.explain_sql(query)


def no_programs(variables: tuple[PatternVariable, ...]) -> StackPrograms:
    """Python answers every condition."""
    return StackPrograms((), (None,) * len(variables), (), (), 1)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_machine_answers_as_the_evaluator(condition: str, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, plan = matches_of(rows, condition)
    assert "asks Python" not in plan
    monkeypatch.setattr(walker, "stack_programs", no_programs)
    assert matches_of(rows, condition)[0] == found
    assert found


@pytest.mark.parametrize("condition", LACKING)
def test_what_the_machine_lacks_is_asked_of_python(condition: str, rows: Path) -> None:
    found, plan = matches_of(rows, condition)
    assert "asks Python for the conditions of B, once a row and partial match" in plan
    assert found


def test_a_division_by_zero_is_told(rows: Path) -> None:
    with pytest.raises(FlowSqlError, match="/ by zero"):
        matches_of(rows, "B.i / A.b > 1")
    with pytest.raises(FlowSqlError, match="/ by zero"):
        matches_of(rows, "MOD(B.i, A.b) > 1")
