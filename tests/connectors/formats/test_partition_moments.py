"""Folders of partitions that are called after moments: named, read and refused as by Flink 2.3."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from tests.connectors.tables import files_table, insert, scan

NEW_YEAR = datetime.datetime(2024, 1, 2, 3, 4, 5)


def _utc(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)


#: Answers of Flink: type, value, folder.
NAMES: list[tuple[str, Any, str]] = [
    ("TIMESTAMP(0)", NEW_YEAR, "2024-01-02T03%3A04%3A05"),
    ("TIMESTAMP(3)", NEW_YEAR, "2024-01-02T03%3A04%3A05"),
    ("TIMESTAMP(3)", NEW_YEAR.replace(second=0), "2024-01-02T03%3A04"),
    ("TIMESTAMP(3)", NEW_YEAR.replace(microsecond=100_000), "2024-01-02T03%3A04%3A05.100"),
    ("TIMESTAMP(6)", NEW_YEAR.replace(microsecond=123_400), "2024-01-02T03%3A04%3A05.123400"),
    ("TIMESTAMP(3)", datetime.datetime(1, 1, 1), "0001-01-01T00%3A00"),
    ("TIMESTAMP(3)", datetime.datetime(9999, 12, 31, 23, 59, 59, 999_000), "9999-12-31T23%3A59%3A59.999"),
    ("TIMESTAMP_LTZ(3)", _utc(1_700_000_000_123), "2023-11-14T22%3A13%3A20.123"),
    ("TIMESTAMP_LTZ(0)", _utc(1_700_000_000_000), "2023-11-14T22%3A13%3A20"),
    ("TIMESTAMP_LTZ(3)", _utc(1_700_000_040_000), "2023-11-14T22%3A14"),
    ("TIME(0)", datetime.time(10, 20, 30), "37230000"),
    ("TIME(3)", datetime.time(10, 20, 30, 120_000), "37230120"),
]


@pytest.mark.parametrize(("type_", "value", "folder"), NAMES)
def test_names_of_folders(tmp_path: Path, type_: str, value: Any, folder: str) -> None:
    table = files_table(f"x INT, p {type_}", tmp_path, "json", ("p",))
    insert(table, [[1, value]])
    assert [path.name for path in tmp_path.iterdir()] == [f"p={folder}"]
    if type_.startswith("TIMESTAMP("):
        ((one, shown),) = scan(table)
        assert (one, shown[:16]) == (1, f"{value.isoformat(' ')[:16]}")
    else:
        with pytest.raises(FlowSqlError, match="declare the column as STRING"):
            scan(table)


def test_conditions_on_moments_are_refused_when_a_query_is_planned(tmp_path: Path) -> None:
    (tmp_path / "p=2024-01-02T03%3A04%3A05").mkdir()
    (tmp_path / "p=2024-01-02T03%3A04%3A05" / "x").write_text('{"x": 1}\n')
    made = TableEnvironment.of_configuration(Configuration(values={"table.local-time-zone": "UTC"}))
    made.execute_sql(
        "CREATE TABLE t (x INT, p TIMESTAMP(3)) PARTITIONED BY (p) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')"
    )
    with made.execute_sql("SELECT * FROM t WHERE x = 1").collect() as rows:
        assert [tuple(row) for row in rows] == [(1, NEW_YEAR)]
    with pytest.raises(FlowSqlError, match=r"partition column 'p' of type TIMESTAMP\(3\) cannot be compared"):
        made.execute_sql("SELECT * FROM t WHERE p IS NOT NULL")
