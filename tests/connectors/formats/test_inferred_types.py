"""Columns of orc and avro files that nobody declared."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from pyarrow import orc

from flowsql.errors import FlowSqlError
from flowsql.table import TableEnvironment
from flowsql_connectors.formats.avro.container import block_bytes, header_bytes, number
from flowsql_core.config import Configuration

COLUMNS = (
    "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(10, 2), s STRING, x BYTES, born DATE, t TIMESTAMP(3), "
    "z TIMESTAMP_LTZ(3), a ARRAY<INT>, m MAP<STRING, BIGINT>, r ROW<p INT, q STRING>"
)
VALUES = (
    "TRUE, 1, CAST(2 AS BIGINT), CAST(1.5 AS FLOAT), 2.5E0, 3.25, 'x', x'6869', DATE '2024-02-29', "
    "TIMESTAMP '2024-02-29 12:34:56.789', CAST(TIMESTAMP '2024-02-29 12:34:56.789' AS TIMESTAMP_LTZ(3)), "
    "ARRAY[1, 2], MAP['k', CAST(7 AS BIGINT)], ROW(4, 'y')"
)


def session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    monkeypatch.chdir(folder)
    layer = {"table.local-time-zone": "America/New_York", "execution.runtime-mode": "batch"}
    layer["execution.batch.engine"] = "local"
    return TableEnvironment.of_configuration(Configuration().with_layer(layer).with_layer())


def described(made: TableEnvironment, name: str) -> dict[str, str]:
    with made.execute_sql(f"DESCRIBE {name}").collect() as found:
        return {row[0]: row[1] for row in found}


@pytest.mark.parametrize("format_", ["orc", "avro"])
def test_what_is_written_is_found_again(format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instants, wall clocks and all other values, in a time zone that is not UTC."""
    made = session(tmp_path, monkeypatch)
    more = ", 'avro.timestamp_mapping.legacy' = 'false'" if format_ == "avro" else ""
    made.execute_sql(
        f"CREATE TABLE written ({COLUMNS}) WITH ('connector' = 'filesystem', 'path' = 'w.{format_}', "
        f"'format' = '{format_}'{more})"
    )
    made.execute_sql(f"INSERT INTO written VALUES ({VALUES})").wait()
    types = described(made, f"'w.{format_}'")
    declared = described(made, "written")
    # Orc keeps nanoseconds, and instants as such.
    wanted = {"t": "TIMESTAMP(9)", "z": "TIMESTAMP_LTZ(9)"} if format_ == "orc" else {}
    assert types == {**declared, "m": "MAP<STRING NOT NULL, BIGINT>", **wanted}
    query = (
        "SELECT b, i, l, f, d, n, s, x, born, CAST(t AS TIMESTAMP(3)) AS t, CAST(z AS TIMESTAMP_LTZ(3)) AS z, a, m, r"
    )
    with made.execute_sql(f"{query} FROM written").collect() as rows:
        expected = [str(row) for row in rows]
    with made.execute_sql(f"{query} FROM 'w.{format_}'").collect() as rows:
        assert [str(row) for row in rows] == expected
    made.execute_sql(
        f"CREATE TABLE kept WITH ('connector' = 'filesystem', 'path' = 'w.{format_}', 'format' = '{format_}')"
    )
    assert described(made, "kept") == types


def test_orc_files_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session(tmp_path, monkeypatch)
    orc.write_table(pa.table({"a": pa.array([1], pa.int8())}), "1.orc")
    orc.write_table(pa.table({"a": pa.array([2**40], pa.int64()), "b": ["x"]}), "2.orc")
    with made.execute_sql("SELECT a, b FROM '*.orc' ORDER BY a").collect() as rows:
        assert [tuple(row) for row in rows] == [(1, None), (2**40, "x")]


SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["up", "down"]}},
        {"name": "u", "type": ["null", {"type": "string", "logicalType": "uuid"}]},
        {"name": "x", "type": {"type": "fixed", "name": "x", "size": 2}},
        {"name": "n", "type": {"type": "fixed", "name": "n", "size": 2, "logicalType": "decimal", "precision": 4,
                               "scale": 2}},
        {"name": "i", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "w", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "t", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "z", "type": "null"},
    ],
}  # fmt: skip


def container(schema: object, record: bytes) -> bytes:
    sync = b"s" * 16
    return header_bytes(orjson.dumps(schema), "null", sync) + block_bytes(1, record, sync)


def test_types_of_avro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session(tmp_path, monkeypatch)
    record = number(1) + number(0) + b"hi" + b"\x00\xff" + number(1_500_000) + number(1500) + number(45_296_000)
    Path("r.avro").write_bytes(container(SCHEMA, record))
    assert described(made, "'r.avro'") == {
        "e": "STRING", "u": "STRING", "x": "BYTES", "n": "DECIMAL(4, 2)", "i": "TIMESTAMP_LTZ(6)", "w": "TIMESTAMP(3)",
        "t": "TIME(3)", "z": "STRING",
    }  # fmt: skip
    with made.execute_sql("SELECT e, u, x, n, CAST(i AS STRING), w, t, z FROM 'r.avro'").collect() as rows:
        assert [tuple(row) for row in rows] == [
            (
                "down", None, b"hi", Decimal("2.55"), "1969-12-31 19:00:01.500000",
                datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000), datetime.time(12, 34, 56), None,
            )
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "record", "name": "r", "fields": [{"name": "a", "type": ["int", "string"]}]},
         "Column 'a' of r.avro is union of int, string, which SQL has no type for."),
        ("int", "File r.avro is no readable avro file: its rows are int, not records"),
    ],
)  # fmt: skip
def test_what_has_no_columns(schema: object, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session(tmp_path, monkeypatch)
    Path("r.avro").write_bytes(container(schema, number(0)))
    with pytest.raises(FlowSqlError) as caught:
        made.execute_sql("SELECT * FROM 'r.avro'")
    assert said in caught.value.message


@pytest.mark.parametrize("name", ["x.orc", "x.avro"])
def test_damaged_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session(tmp_path, monkeypatch)
    Path(name).write_bytes(b"no")
    with pytest.raises(FlowSqlError, match=f"File {name} is no readable {name[2:]} file"):
        made.execute_sql(f"SELECT * FROM '{name}'")
