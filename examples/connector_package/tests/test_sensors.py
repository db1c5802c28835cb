"""The connector under the conformance kit, and in a query."""

import json
from pathlib import Path

from flowsql_sensors.sink import JsonLines
from flowsql_sensors.source import START, Sensors

from flowsql.connectors.testing import check_sink, check_source
from flowsql.table import EnvironmentSettings, TableEnvironment

COLUMNS = {"room": "STRING", "celsius": "DOUBLE", "ts": "TIMESTAMP(3)"}


def test_the_source_keeps_its_promises() -> None:
    check_source(Sensors, COLUMNS, {"rooms": "hall;kitchen", "readings": "5"})
    check_source(Sensors, {"celsius": "DOUBLE"}, {"rooms": "hall", "readings": "1"}, expected=[(20.0,)])


def test_the_sink_keeps_its_promises(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    rows = [("hall", 20.5, START), ("kitchen", None, START), ("hall", 21.0, START)]
    check_sink(
        JsonLines,
        {"room": "STRING", "celsius": "DOUBLE"},
        [row[:2] for row in rows],
        lambda: [tuple(json.loads(line).values()) for line in path.read_text().splitlines()],
        {"path": str(path)},
    )


def test_rooms_are_tables_of_a_catalog() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        "CREATE CATALOG house WITH ('type' = 'sensors', 'rooms' = 'hall;kitchen', 'readings' = '2')"
    )
    environment.execute_sql("USE CATALOG house")
    assert environment.list_tables() == ["hall", "kitchen"]
    rows = environment.sql_query("SELECT room, COUNT(*) AS n FROM kitchen GROUP BY room").to_arrow().to_pylist()
    assert rows == [{"room": "kitchen", "n": 2}]


def test_a_query() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        "CREATE TABLE readings (room STRING, celsius DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'sensors', 'rooms' = 'hall;kitchen', 'readings' = '120')"
    )
    hours = environment.sql_query(
        "SELECT room, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
        "GROUP BY room, window_start, window_end"
    )
    rows = sorted(hours.to_arrow().to_pylist(), key=str)
    assert rows == [{"room": room, "n": 60} for room in ("hall", "hall", "kitchen", "kitchen")]
