"""Csv files of tables with Flink 1's keys: what stays after failures, and mistakes in rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from flowsql.table import TableEnvironment
from flowsql_connectors.filesystem.flink1.writer import OldFileWriter
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.types.logical import INT, Column

COLUMNS = (Column("a", INT),)


def rows(*values: int) -> ChangelogBatch:
    return ChangelogBatch.of((pa.array(values, pa.int32()),))


def writer(path: Path, replaces: bool = False) -> OldFileWriter:
    return OldFileWriter(str(path), COLUMNS, ",", replaces)


def test_a_job_that_goes_on_cuts_off_what_its_checkpoint_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows"
    first = writer(path)
    first.write(rows(1, 2))
    state = first.snapshot()
    first.write(rows(3))
    first.close()
    assert path.read_text() == "1\n2\n"
    with path.open("a") as file:  # a process that was killed closed nothing
        file.write("3\n")
    second = writer(path)
    second.restore([state])
    second.write(rows(4))
    second.flush(True)
    second.close()
    assert path.read_text() == "1\n2\n4\n"


def test_a_failed_job_without_a_checkpoint_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    failed = writer(path)
    failed.write(rows(1))
    failed.close()
    assert not path.exists()
    again = writer(path)
    again.flush(True)
    again.close()
    assert path.read_text() == ""


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text("7\n")
    blocked = writer(path)
    with pytest.raises(ConnectorError, match="already exists"):
        blocked.write(rows(1))
    blocked.close()
    assert path.read_text() == "7\n"
    replacing = writer(path, replaces=True)
    replacing.write(rows(1))
    replacing.flush(True)
    replacing.close()
    assert path.read_text() == "1\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1,x\n2\n", "", "Row too short\nin file .*rows, line 2: '2'"),
        ("1,x\nz,y\n", "", r"Parsing error for column 1 \(a\): .*\nin file .*rows, line 2: 'z,y'"),
        ("a\n1,x\n#\nz,y\n", ", 'format.ignore-first-line' = 'true', 'format.comment-prefix' = '#'", "line 4: 'z,y'"),
        ('1,"a"b\n', ", 'format.quote-character' = '\"'", "goes on after its closing quote\nin file .*line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, options: str, message: str) -> None:
    path = tmp_path / "rows"
    path.write_text(text)
    environment = TableEnvironment.create()
    environment.execute_sql(
        "CREATE TABLE t (a INT, b STRING) WITH ('connector.type' = 'filesystem', 'format.type' = 'csv', "
        f"'connector.path' = '{path}'{options})"
    )
    with pytest.raises(ExecutionError, match=message):
        list(environment.execute_sql("SELECT * FROM t").collect())


def test_other_connectors_of_flink_1_are_named() -> None:
    environment = TableEnvironment.create()
    environment.execute_sql("CREATE TABLE k (a INT) WITH ('connector.type' = 'kafka', 'format.type' = 'json')")
    with pytest.raises(BindError, match=r"'connector\.type' = 'kafka', 'format\.type' = 'json' are keys of Flink 1"):
        environment.execute_sql("SELECT * FROM k")
