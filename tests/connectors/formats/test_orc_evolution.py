"""Columns of orc files that are read as other types, beside Flink 2.3's reader (``asked_orc_evolution.txt``).

A line: the file's column, the type that it is read as, Flink's values or error. ``!`` in front: FlowSQL refuses it, as
Flink makes NULL of a value, cuts digits of a whole number off, or reads a number as another kind of value.
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from flowsql_core.errors import FlowSqlError
from tests.connectors.tables import files_table, scan

CASES = Path(__file__).with_name("asked_orc_evolution.txt").read_text(encoding="utf-8").splitlines()
COLUMNS = {
    "bo": pa.array([True, False, None], pa.bool_()),
    "i1": pa.array([1, -128, None], pa.int8()),
    "i2": pa.array([300, -32768, None], pa.int16()),
    "i4": pa.array([123456, -2147483648, None], pa.int32()),
    "i8": pa.array([12345678901, -5, None], pa.int64()),
    "f4": pa.array([1.25, -0.1, None], pa.float32()),
    "f8": pa.array([1.25, 1e20, None], pa.float64()),
    "g8": pa.array([2.5, -1234.567, None], pa.float64()),
    "d1": pa.array([Decimal("1.2500"), Decimal("-99999.9951"), None], pa.decimal128(10, 4)),
    "d2": pa.array([Decimal("1.1500000000"), Decimal("12345678901234567890.1234567891"), None], pa.decimal128(38, 10)),
    "d3": pa.array([Decimal("12.00"), Decimal("-7.10"), None], pa.decimal128(5, 2)),
    "st": pa.array(["abcdef", "12.5", None]),
    "s2": pa.array(["1", "true", None]),
    "s4": pa.array(["  ab  ", "äöüß", None]),
    "da": pa.array([datetime.date(2024, 1, 2), datetime.date(1969, 12, 31), None]),
}


@pytest.mark.parametrize("case", CASES)
def test_read_as_by_flink(tmp_path: Path, case: str) -> None:
    name, type_, answer = case.lstrip("!").split(" ", 2)
    orc.write_table(pa.table({name: COLUMNS[name]}), tmp_path / "x")
    table = files_table(f"{name} {type_}", tmp_path, "orc")
    if case.startswith("!") or answer.startswith('"ERROR'):
        with pytest.raises(FlowSqlError, match=f"Column '{name}' of file .* does not fit|Unsupported type"):
            scan(table)
        return
    assert scan(table) == [[value] for value in json.loads(answer)]
