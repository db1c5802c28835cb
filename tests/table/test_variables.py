"""Variables of the program as tables of SQL."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from flowsql.table import EnvironmentSettings, Table, TableEnvironment
from flowsql_core.errors import BindError, FlowSqlError

AT_THE_TOP = pa.table({"n": [7]})
numbers = pa.table({"n": [8]})


@pytest.fixture(params=["streaming", "batch"])
def environment(request: pytest.FixtureRequest) -> TableEnvironment:
    in_mode = (
        EnvironmentSettings.in_streaming_mode if request.param == "streaming" else EnvironmentSettings.in_batch_mode
    )
    return TableEnvironment.create(in_mode())


def rows(table: Any) -> list[tuple[Any, ...]]:
    with (table.execute() if isinstance(table, Table) else table).collect() as found:
        return [tuple(row) for row in found]


def test_frames_and_arrow(environment: TableEnvironment, tmp_path: Path) -> None:
    arrow = pa.table({"n": [1, None], "s": ["a", "b"]})
    frame = pd.DataFrame({"n": [1.0, None], "s": ["a", "b"]})
    batch = arrow.to_batches()[0]
    pq.write_table(arrow, tmp_path / "t.parquet")
    data = pyarrow.dataset.dataset(tmp_path / "t.parquet")
    for name in ("arrow", "batch", "frame", "data"):
        assert rows(environment.execute_sql(f"SELECT {name}.n, s FROM {name} WHERE s <> 'x'")) == [
            (1, "a"),
            (None, "b"),
        ]
    assert (arrow.num_rows, len(frame), batch.num_rows, data.count_rows()) == (2, 2, 2, 2)


def test_a_reader_is_read_once(environment: TableEnvironment) -> None:
    reader = pa.table({"n": [1, 2]}).to_reader()
    assert rows(environment.sql_query("SELECT n FROM reader")) == [(1,), (2,)]
    assert reader.schema.names == ["n"]


def test_polars(environment: TableEnvironment) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"n": [1, 2], "s": ["a", None]})
    lazy = frame.lazy()
    assert rows(environment.execute_sql("SELECT n, s FROM frame")) == [(1, "a"), (2, None)]
    assert rows(environment.execute_sql("SELECT n FROM lazy WHERE n > 1")) == [(2,)]
    assert lazy is not None


def test_tables_are_themselves(environment: TableEnvironment) -> None:
    numbers = environment.from_elements([(1,), (2,)], ["n"])
    doubled = environment.sql_query("SELECT n * 2 AS n FROM numbers")
    assert rows(environment.sql_query("SELECT d.n FROM numbers JOIN doubled AS d ON numbers.n = d.n")) == [(2,)]
    assert doubled is not numbers


def test_the_nearest_name_wins(environment: TableEnvironment) -> None:
    assert rows(environment.execute_sql("SELECT n FROM AT_THE_TOP")) == [(7,)]
    assert rows(environment.execute_sql("SELECT n FROM numbers")) == [(8,)]
    numbers = pa.table({"n": [9]})
    assert rows(environment.execute_sql("SELECT n FROM numbers")) == [(9,)]
    assert rows(environment.execute_sql("WITH numbers AS (SELECT 10 AS n) SELECT n FROM numbers")) == [(10,)]
    environment.create_temporary_view("numbers", environment.from_elements([(11,)], ["n"]))
    assert rows(environment.execute_sql("SELECT n FROM numbers")) == [(11,)]
    assert numbers.num_rows == 1


def test_only_the_caller_is_looked_at(environment: TableEnvironment) -> None:
    hidden = pa.table({"n": [1]})

    def inner() -> None:
        environment.execute_sql("SELECT n FROM hidden")

    with pytest.raises(BindError, match="Object 'hidden' not found"):
        inner()
    assert hidden.num_rows == 1


def test_everywhere_a_table_may_stand(environment: TableEnvironment) -> None:
    frame = pa.table({"n": [1, 2, 3]})
    other = pa.table({"n": [2, 3]})
    sql = "SELECT a.n FROM frame a WHERE n IN (SELECT n FROM other) AND EXISTS (TABLE other)"
    assert sorted(rows(environment.execute_sql(sql))) == [(2,), (3,)]
    assert "TableSourceScan(table=[[*frame$" in environment.explain_sql("SELECT * FROM frame")
    assert "*.n  IDENTITY" in environment.lineage_sql("SELECT n FROM frame")
    environment.execute_sql("CREATE TABLE sunk (n BIGINT) WITH ('connector' = 'blackhole')")
    environment.execute_sql("INSERT INTO sunk SELECT n FROM frame").wait()
    both = environment.create_statement_set()
    both.add_insert_sql("INSERT INTO sunk SELECT n FROM frame").add_insert_sql("INSERT INTO sunk SELECT n FROM other")
    both.execute().wait()
    assert frame.num_rows + other.num_rows == 5


def test_a_view_of_the_session_keeps_the_rows(environment: TableEnvironment) -> None:
    frame = pa.table({"n": [1]})
    environment.execute_sql("CREATE TEMPORARY VIEW v AS SELECT n FROM frame")
    frame = pa.table({"n": [2]})
    assert rows(environment.execute_sql("SELECT v.n, frame.n FROM v, frame")) == [(1, 2)]
    with pytest.raises(BindError, match="The view 'w' would outlive the variable 'frame'"):
        environment.execute_sql("CREATE VIEW w AS SELECT n FROM frame")
    assert frame.num_rows == 1


def test_statements_let_go_of_rows(environment: TableEnvironment) -> None:
    frame = pa.table({"n": [1]})
    for _ in range(3):
        environment.execute_sql("SELECT n FROM frame").wait()
    assert not environment._executor._rows
    kept = environment.sql_query("SELECT n FROM frame")
    frame = pa.table({"n": [2]})
    assert rows(kept) == [(1,)]
    assert frame.num_rows == 1


def test_a_statement_set_of_sql(environment: TableEnvironment) -> None:
    frame = pa.table({"n": [1]})
    environment.execute_sql("CREATE TABLE sunk (n BIGINT) WITH ('connector' = 'blackhole')")
    environment.execute_sql("BEGIN STATEMENT SET")
    environment.execute_sql("INSERT INTO sunk SELECT n FROM frame")
    environment.execute_sql("INSERT INTO sunk SELECT n + 1 FROM frame")
    environment.execute_sql("END").wait()
    assert frame.num_rows == 1


@pytest.mark.parametrize(
    ("value", "kind", "hint"),
    [
        ([(1,)], "a list", "from_elements(...)"),
        (5, "an int", "data frames of pandas or Polars"),
        (pd.Series([1]), "a Series", "data frames of pandas or Polars"),
        (None, "a NoneType", "data frames of pandas or Polars"),
    ],
)
def test_other_values_are_none(environment: TableEnvironment, value: object, kind: str, hint: str) -> None:
    thing = value
    with pytest.raises(FlowSqlError) as caught:
        environment.execute_sql("SELECT * FROM thing")
    assert caught.value.message == (
        f"Object 'thing' not found: no table has this name, and the variable of this name is {kind}"
    )
    assert hint in caught.value.render()
    assert "^^^^^" in caught.value.render()
    assert thing is value


def test_a_column_without_a_type_is_said(environment: TableEnvironment) -> None:
    frame = pd.DataFrame({"n": [1, "x"]})
    with pytest.raises(FlowSqlError, match="A column of the data frame has no one type") as caught:
        environment.execute_sql("SELECT * FROM frame")
    assert "^^^^^" in caught.value.render()
    assert len(frame) == 2


def test_a_table_of_another_environment(environment: TableEnvironment) -> None:
    theirs = TableEnvironment.create(EnvironmentSettings.in_batch_mode()).from_elements([(1,)], ["n"])
    with pytest.raises(BindError, match="different TableEnvironments"):
        environment.execute_sql("SELECT * FROM theirs")
    assert theirs is not None


def test_the_option_turns_it_off(environment: TableEnvironment) -> None:
    frame = pa.table({"n": [1]})
    environment.get_config().set("flowsql.python-variables", "false")
    with pytest.raises(BindError, match=r"^Object 'frame' not found\n"):
        environment.execute_sql("SELECT n FROM frame")
    assert frame.num_rows == 1


def test_nothing_is_imported_to_look() -> None:
    script = """
        import sys
        from flowsql_core.interpreter.without_pandas import keep_pandas_out
        keep_pandas_out()  # Arrow itself would import it
        from pyarrow import csv, py_buffer
        from flowsql.table import EnvironmentSettings, TableEnvironment
        numbers = csv.read_csv(py_buffer(b"n\\n1\\n"))
        environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        environment.execute_sql("SELECT n FROM numbers").print()
        print([name for name in ("pandas", "polars", "pyarrow.dataset") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("[]\n"), done.stderr
