"""Results of functions that take more bytes than an Arrow array holds: fewer rows at once give the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_compute.eval.array_limits import within_an_array
from flowsql_compute.eval.columns import TooManyBytesError, make_strings, spread
from flowsql_compute.eval.distinct import map_distinct
from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_runtime.operators import evaluation
from flowsql_runtime.python.values_out import one_array

ROWS = 300
DDL = """CREATE TABLE t (a INT, s STRING, l ARRAY<STRING>, ts TIMESTAMP(3)) WITH (
    'connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')"""
QUERIES = [
    "SELECT a, REPEAT(s, 20) FROM t",
    "SELECT a, CONCAT(s, s, s), UPPER(s), a + 1 FROM t WHERE CHAR_LENGTH(REPEAT(s, 30)) > 60",
    "SELECT a, 'a constant that is long enough' FROM t",
    "SELECT a, CASE WHEN a > 7 THEN LPAD(s, 40, '*') ELSE s END, l FROM t",
    "SELECT a, e FROM t CROSS JOIN UNNEST(ARRAY[s, REPEAT(s, 9), 'x']) AS u(e)",
    "SELECT a, REPEAT(e, 20) FROM t LEFT JOIN UNNEST(l) AS u(e) ON REPEAT(e, 200) <> 'z'",
    "SELECT a, RAND_INTEGER(5, 1000), REPEAT(s, 20) FROM t",
    "SELECT CHAR_LENGTH(s), COUNT(*), MAX(REPEAT(s, 12)) FROM t GROUP BY CHAR_LENGTH(s)",
    "SELECT a, HEX(s), TO_BASE64(s), REPLACE(s, 'r', 'rrrrrrrrrrrrrrrrrrrrrrrr'), JSON_OBJECT('k' VALUE s) FROM t",
]


def _rows(environment: TableEnvironment, query: str) -> list[Any]:
    return sorted(map(repr, environment.execute_sql(query).collect()))


@pytest.fixture
def environment(tmp_path: Path) -> TableEnvironment:
    path = tmp_path / "t"
    path.mkdir()
    lines = (
        {
            "a": i,
            "s": None if i % 11 == 0 else f"row {i}",
            "l": [f"{i}", "z"] if i % 3 else [],
            "ts": "2020-01-01 00:00:00",
        }
        for i in range(ROWS)
    )
    (path / "t.json").write_text("\n".join(map(json.dumps, lines)) + "\n")
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set("parallelism.default", "1")
    made.execute_sql(DDL.format(path=path))
    return made


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_the_same_in_parts(environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    whole = _rows(environment, query)
    parts: list[int] = []
    projected = evaluation.projected

    def counted(*args: Any) -> Any:
        for first, part, columns in projected(*args):
            parts.append(part.num_rows)
            yield first, part, columns

    for module in ("calc", "correlate"):
        monkeypatch.setattr(f"flowsql_runtime.operators.{module}.projected", counted)
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 1500)
    assert _rows(environment, query) == whole
    assert len(parts) > 1


def test_a_failing_row_is_told_by_its_place_in_the_file(
    environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT REPEAT(s, 20), 1 / (a - 250) FROM t WHERE a > 3"

    def failure() -> tuple[str, int | None, dict[int, str]]:
        with pytest.raises(ExecutionError) as found:
            list(environment.execute_sql(query).collect())
        row = found.value.row
        assert row is not None
        return found.value.message, row.read_row, dict(row.values)

    assert failure() == ("/ by zero", 250, {0: "250"})
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 1500)
    assert failure() == ("/ by zero", 250, {0: "250"})


def test_one_value_that_is_too_long_is_an_error(environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 1500)
    with pytest.raises(ExecutionError, match="A value takes more than 2 GiB"):
        list(environment.execute_sql("SELECT REPEAT(s, 1000) FROM t").collect())


@pytest.mark.parametrize(
    "make",
    [
        lambda: spread(pa.scalar("x" * 10), 10),
        lambda: make_strings(np.array([0, 50, 99]), np.zeros(99, np.uint8), None, pa.string()),
        lambda: map_distinct(pa.array(["a", "b", "c"]), lambda text: text * 20, pa.string()),
    ],
)
def test_columns_are_not_made_beyond_the_limit(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]) -> None:
    make()
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 40)
    with pytest.raises(TooManyBytesError):
        make()


def test_what_arrow_says_of_too_many_bytes_is_understood() -> None:
    texts = pa.array(["x" * 1000] * 2000)
    calls: list[Callable[[], Any]] = [
        lambda: pc.binary_repeat(texts, 2000),
        lambda: pa.concat_arrays([texts] * 1100),
        lambda: pc.utf8_lpad(texts, 1_100_000),
    ]
    for call in calls:
        with pytest.raises(TooManyBytesError), within_an_array(2000):
            call()
    with pytest.raises(pa.ArrowInvalid), within_an_array(2000):
        pc.cast(texts, pa.int32())


def test_python_functions_hand_on_results_of_any_size(
    environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pandas as pd

    from flowsql.table import DataTypes
    from flowsql.table.udf import udf

    def longer(text: str | None) -> str | None:
        return None if text is None else text * 30

    def longer_all(texts: pd.Series) -> pd.Series:
        return texts.map(longer)

    def longer_columns(texts: pa.Array) -> pa.Array:
        return pc.binary_repeat(texts, 30)

    environment.create_temporary_function("longer", udf(longer, result_type=DataTypes.STRING()))
    for kind, function in (("pandas", longer_all), ("arrow", longer_columns)):
        made = udf(function, result_type=DataTypes.STRING(), func_type=kind)
        environment.create_temporary_function(f"longer_{kind}", made)
    queries = ["SELECT a, longer(s) FROM t", "SELECT a, longer_pandas(s) FROM t", "SELECT a, longer_arrow(s) FROM t"]
    environment.get_config().set("python.fn-execution.arrow.batch.size", "7")
    whole = [_rows(environment, query) for query in queries]
    assert whole[0] == whole[1] == whole[2]
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 1500)
    assert [_rows(environment, query) for query in queries] == whole


def test_texts_that_arrow_cuts_into_chunks_become_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = pa.chunked_array([pa.array(["a" * 9]), pa.array(["b" * 9])])
    assert one_array(chunks).equals(pa.array(["a" * 9, "b" * 9]))
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 10)
    assert one_array(chunks).equals(pa.array(["a" * 9, "b" * 9], pa.large_string()))
