"""Tables of files without a file, as Flink 2.3 answers: which are empty, and which are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.errors import FlowSqlError
from flowsql.table import EnvironmentSettings, TableEnvironment


@pytest.mark.parametrize("format_", ["csv", "parquet"])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(("mode", "inserted"), [("streaming", True), ("batch", True), ("batch", False)])
def test_a_table_without_files(tmp_path: Path, mode: str, inserted: bool, partitioned: bool, format_: str) -> None:
    """A partitioned table has no partitions; an INSERT makes the folder in batch mode alone."""
    made = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{mode}_mode")())
    made.get_config().set("execution.batch.engine", "local")
    made.execute_sql(
        f"CREATE TABLE t (id INT, p STRING) {'PARTITIONED BY (p)' if partitioned else ''} WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = '{format_}')"
    )
    if inserted:
        made.execute_sql("INSERT INTO t SELECT * FROM (VALUES (1, 'a')) AS v(a, b) WHERE a > 1").wait()
    query = made.execute_sql("SELECT * FROM t")
    if partitioned or (mode == "batch" and inserted):
        with query.collect() as rows:
            assert list(rows) == []
        return
    with pytest.raises(FlowSqlError, match="does not exist or the user"), query.collect() as rows:
        list(rows)
