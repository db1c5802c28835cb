"""Row groups that a query can want nothing of are not read, and never one that it wants something of."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql_compute.eval.compile import compile_condition
from flowsql_compute.eval.context import EvalContext
from flowsql_connectors.formats.format import DecodeContext, Decoder, FileView, Range
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_core.expr import Call, Expr, InputRef, Literal
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BOOLEAN
from tests.connectors.tables import columns_of, files_table, insert, scan, source_of

DDL = (
    "i INT, s STRING, d DATE, de DECIMAL(10, 2), t TIMESTAMP(3), z TIMESTAMP_LTZ(6), b BOOLEAN, f DOUBLE, "
    "n INT, r ROW<x INT>, lacking INT"
)
COLUMNS = columns_of(DDL)
NAMES = [column.name for column in COLUMNS]
ROWS, GROUP = 60, 5
START = datetime.datetime(2024, 1, 1)


def _columns() -> list[Any]:
    moments = [START + datetime.timedelta(hours=n, microseconds=999 + n) for n in range(ROWS)]
    values: dict[str, list[Any]] = {
        "i": [None if n % 7 == 0 else n // 2 for n in range(ROWS)],
        "s": [None if n >= 50 else f"é{n // 9}" for n in range(ROWS)],
        "d": [START.date() + datetime.timedelta(days=n - 30) for n in range(ROWS)],
        "de": [Decimal(n - 20) / 4 for n in range(ROWS)],
        "t": moments,
        "z": moments,
        "b": [n >= 40 for n in range(ROWS)],
        "f": [float("nan") if n == 33 else float(n) for n in range(ROWS)],
        "n": [None if n < 20 else 1 for n in range(ROWS)],
        "r": [{"x": n} for n in range(ROWS)],
    }
    stored = {"t": pa.timestamp("us"), "z": pa.timestamp("us", "UTC")}
    types = {column.name: stored.get(column.name, to_arrow(column.type)) for column in COLUMNS}
    return [pa.array(values[name], types[name]) for name in NAMES if name in values]


@pytest.fixture
def file(tmp_path: Path) -> FileView:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(_columns(), NAMES[:-1]), path, row_group_size=GROUP)
    return FileView(str(path), path.stat().st_size)


def _decoder(*filters: Expr) -> Decoder:
    table = files_table(DDL, "/nowhere", "parquet", parquet__utc_timezone="true")
    format_ = format_factory("parquet").create(OptionValues(dict(table.options)), table)
    return format_.decoder(DecodeContext(COLUMNS, tuple(range(len(COLUMNS))), 1000, {}, filters=filters))


def _call(function: str, name: str, *values: Any) -> Expr:
    type_ = COLUMNS[NAMES.index(name)].type
    literals = tuple(Literal(value, type_.as_nullable(False)) for value in values)
    return Call(function, (InputRef(NAMES.index(name), type_), *literals), BOOLEAN)


DAY = 19723
NANOS = int(START.replace(tzinfo=datetime.UTC).timestamp()) * 10**9
HOUR = 3600 * 10**9
VALUES: dict[str, list[Any]] = {
    "i": [-1, 0, 7, 29, 30],
    "s": ["", "é0", "é3", "é5", "ê"],
    "d": [DAY - 30, DAY - 31, DAY, DAY + 29, DAY + 30],
    "de": [Decimal("-5.00"), Decimal("-5.01"), Decimal("0.25"), Decimal("9.75"), Decimal("9.76")],
    "t": [NANOS, NANOS - HOUR, NANOS + 10 * HOUR + 1_000_000, NANOS + 59 * HOUR + 1_000_000, NANOS + 90 * HOUR],
    "z": [NANOS + 999_000, NANOS, NANOS + 10 * HOUR + 1_009_000, NANOS + 90 * HOUR],
    "b": [True, False],
    "f": [33.0, 1000.0],
    "n": [0, 1, 2],
    "lacking": [1],
}
COMPARISONS = ("=", "<", "<=", ">", ">=", "<>")
FILTERS = [
    *[_call(op, name, value) for op in COMPARISONS for name, values in VALUES.items() for value in values],
    *[_call(op, name) for name in VALUES for op in ("IS NULL", "IS NOT NULL")],
    *[_call("IN", name, *values[:2]) for name, values in VALUES.items()],
    Call("AND", (_call(">", "i", 20), _call("<", "i", 5)), BOOLEAN),
    Call("OR", (_call(">", "i", 27), _call("<", "i", 2)), BOOLEAN),
    Call(">", (Literal(3, COLUMNS[0].type), InputRef(0, COLUMNS[0].type)), BOOLEAN),
    Call("NOT", (_call(">", "i", 3),), BOOLEAN),
]  # fmt: skip


def _rows(decoder: Decoder, file: FileView) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for group in range(ROWS // GROUP):
        for piece in decoder.read(file, Range(group, group + 1)):
            found.extend(zip(*(array.to_pylist() for array in piece.arrays), strict=True))
    return found


def test_no_wanted_row_is_left_out(file: FileView) -> None:
    everything = [piece for group in range(ROWS // GROUP) for piece in _decoder().read(file, Range(group, group + 1))]
    columns = [pa.concat_arrays(arrays) for arrays in zip(*(piece.arrays for piece in everything), strict=True)]
    rows = list(zip(*(array.to_pylist() for array in columns), strict=True))
    for condition in FILTERS:
        wanted = np.asarray(compile_condition(condition, EvalContext(zone="UTC"))(columns, ROWS))
        kept = set(map(str, _rows(_decoder(condition), file)))
        assert {str(row) for row, is_wanted in zip(rows, wanted, strict=True) if is_wanted} <= kept, condition


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (_call("=", "i", 29), 5),
        (_call(">", "i", 100), 0),
        (_call("IN", "i", 0, 29), 10),
        (_call("=", "s", "é5"), 5),
        (_call("IS NULL", "s"), 10),
        (_call("IS NOT NULL", "n"), 40),
        (_call("=", "n", 1), 40),
        (_call("<", "d", DAY - 25), 5),
        (_call(">=", "de", Decimal("9.75")), 5),
        (_call("<", "t", NANOS + HOUR), 5),
        (_call(">", "z", NANOS + 58 * HOUR), 5),
        (_call("=", "b", True), 20),
        (_call(">", "f", 1000.0), 60),
    ],
)
def test_groups_that_are_left_out(file: FileView, condition: Expr, rows: int) -> None:
    decoder = _decoder(condition)
    assert len(_rows(decoder, file)) == rows
    read = sum(decoder.range_bytes(file, Range(group, group + 1)) for group in range(ROWS // GROUP))
    every = sum(_decoder().range_bytes(file, Range(group, group + 1)) for group in range(ROWS // GROUP))
    assert read == every if rows == ROWS else read < every


def test_filters_of_a_partitioned_table(tmp_path: Path) -> None:
    table = files_table("p STRING, i INT", tmp_path, "parquet", ("p",))
    insert(table, [["a", 1], ["b", 2]])
    source, _ = source_of(table)
    type_ = table.columns[1].type
    own = Call(">", (InputRef(1, type_), Literal(1, type_)), BOOLEAN)
    scanned = source._scan  # type: ignore[attr-defined]
    filtered = type(source)(replace(scanned, filters=(own,)), source._values, source._format, {})  # type: ignore[attr-defined, call-arg]
    assert filtered._file_filters == (Call(">", (InputRef(0, type_), Literal(1, type_)), BOOLEAN),)  # type: ignore[attr-defined]


@pytest.mark.parametrize("unit", ["millis", "micros", "nanos"])
@pytest.mark.parametrize("utc", ["true", "false"])
def test_units_of_timestamps(tmp_path: Path, unit: str, utc: str) -> None:
    options = {
        "parquet__write__int64__timestamp": "true",
        "parquet__timestamp__time__unit": unit,
        "parquet__utc_timezone": utc,
    }
    table = files_table("a TIMESTAMP(9), b TIMESTAMP_LTZ(3), c TIMESTAMP(3)", tmp_path, "parquet", **options)
    insert(table, [[pa.scalar(NANOS + 123_456_789, pa.timestamp("ns")), START, START]])
    (path,) = tmp_path.iterdir()
    stored = str(pq.ParquetFile(path).schema.column(0).logical_type)
    assert f"timeUnit={ {'millis': 'milliseconds', 'micros': 'microseconds', 'nanos': 'nanoseconds'}[unit] }" in stored
    digits = {"millis": ".123", "micros": ".123456", "nanos": ".123456789"}[unit]
    assert scan(table) == [[f"2024-01-01 00:00:00{digits}", "2024-01-01 00:00:00Z", "2024-01-01 00:00:00"]]
