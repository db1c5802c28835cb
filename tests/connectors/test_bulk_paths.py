"""No type and no option sends plain rows of csv and json files to the rules that read one value after another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowsql_connectors.formats import csv_decode, text_values
from flowsql_connectors.formats.csv import CsvFormat
from flowsql_connectors.formats.csv_tokens import CsvDialect, CsvTokenizer
from flowsql_connectors.formats.format import DecodeContext, FileFormat, FileView, Range
from flowsql_connectors.formats.json import JsonFormat
from flowsql_connectors.formats.json_decode import JsonDecoder
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_core.types import logical
from tests.connectors.tables import columns_of

ROWS = 2000
#: Types and a plain value of each as JSON; NUMBER becomes different numbers of two digits.
PLAIN: dict[str, Any] = {
    "BOOLEAN": True, "TINYINT": "NUMBER", "SMALLINT": "NUMBER", "INT": "NUMBER", "BIGINT": "NUMBER",
    "FLOAT": 0.5, "DOUBLE": 1.25, "DECIMAL(10, 2)": 1.25, "DECIMAL(38, 10)": 1.5, "CHAR(2)": "ab", "VARCHAR(9)": "abc",
    "STRING": "tNUMBER", "BYTES": "YWJj", "BINARY(3)": "YWJj", "VARBINARY(9)": "YWJj", "DATE": "2020-01-NUMBER",
    "TIME": "10:11:12", "TIME(3)": "10:11:12.123", "TIME(1)": "10:11:12.1", "TIME(6)": "10:11:12.123",
    "TIMESTAMP(0)": "2020-01-NUMBER 10:11:12", "TIMESTAMP(3)": "2020-01-NUMBER 10:11:12.123",
    "TIMESTAMP(6)": "2020-01-NUMBER 10:11:12.123456", "TIMESTAMP(9)": "2020-01-NUMBER 10:11:12.123456789",
    "TIMESTAMP_LTZ(3)": "2020-01-NUMBER 10:11:12.123Z", "TIMESTAMP_LTZ(6)": "2020-01-NUMBER 10:11:12Z",
    "ARRAY<INT>": ["NUMBER", "NUMBER"], "ARRAY<STRING>": ["a", "b"], "ROW<x INT, y STRING>": {"x": "NUMBER", "y": "z"},
    "MAP<STRING, INT>": {"a": "NUMBER"}, "MAP<STRING, TIMESTAMP(3)>": {"a": "2020-01-NUMBER 10:11:12.123"},
    "MULTISET<STRING>": {"a": "NUMBER"}, "ARRAY<ROW<m MAP<STRING, BYTES>>>": [{"m": {"a": "YWJj"}}],
}  # fmt: skip
CSV_TYPES = [name for name in PLAIN if "MAP" not in name and "MULTISET" not in name]
#: Have no form in these formats.
OTHERS = {"DayTimeIntervalType", "YearMonthIntervalType", "NullType", "RawType", "StructuredType", "VariantType",
          "BitmapType", "SymbolType", "DescriptorType"}  # fmt: skip


def _number(value: Any, number: int) -> Any:
    match value:
        case "NUMBER":
            return number
        case str():
            return value.replace("NUMBER", str(number))
        case list():
            return [_number(item, number) for item in value]
        case dict():
            return {name: _number(item, number) for name, item in value.items()}
    return value


def _csv_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return ";".join(map(_csv_text, value))
        case dict():
            return ";".join(map(_csv_text, value.values()))
    return str(value)


def _read(path: Path, format_: FileFormat, type_: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"plain values of {type_} are read one by one")

    monkeypatch.setattr(JsonDecoder, "_line_by_line", refuse)
    monkeypatch.setattr(CsvTokenizer, "next_row", refuse)
    monkeypatch.setattr(text_values, "text_value", refuse)
    columns = columns_of(f"v {type_}, k INT")
    size = path.stat().st_size
    decoder = format_.decoder(DecodeContext(columns, (0, 1), 65536, {}))
    (part,) = decoder.read(FileView(str(path), size), Range(0, size))
    assert part.num_rows == ROWS
    assert part.arrays[0].null_count == 0
    assert part.arrays[1].to_pylist() == list(range(ROWS))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("type_", PLAIN)
def test_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_: str, strict: bool) -> None:
    path = tmp_path / "t.json"
    lines = (json.dumps({"k": row, "v": _number(PLAIN[type_], 10 + row % 20)}) for row in range(ROWS))
    path.write_text("\n".join(lines) + "\n")
    _read(path, JsonFormat(strict, not strict, TextDialect.JSON_SQL, False, False), type_, monkeypatch)


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("type_", CSV_TYPES)
def test_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_: str, scanned: bool) -> None:
    monkeypatch.setattr(csv_decode, "SCANNED_BYTES", 0 if scanned else 1 << 60)
    path = tmp_path / "t.csv"
    lines = (f"{_csv_text(_number(PLAIN[type_], 10 + row % 20))},{row}" for row in range(ROWS))
    path.write_text("\n".join(lines) + "\n")
    dialect = CsvDialect(escape="\\", comments=True)
    _read(path, CsvFormat(dialect, ("n/a",), ";", False, False, True), type_, monkeypatch)


def test_every_type_is_looked_at() -> None:
    kinds = {
        name for name, value in vars(logical).items()
        if isinstance(value, type) and issubclass(value, logical.LogicalType) and not value.__subclasses__()
    }  # fmt: skip
    seen: set[str] = set()

    def walk(type_: logical.LogicalType) -> None:
        seen.add(type(type_).__name__)
        match type_:
            case logical.ArrayType(element=element) | logical.MultisetType(element=element):
                walk(element)
            case logical.MapType(key=key, value=value):
                walk(key)
                walk(value)
            case logical.RowType(fields=fields):
                for field in fields:
                    walk(field.type)

    for type_ in PLAIN:
        walk(columns_of(f"v {type_}")[0].type)
    assert kinds - seen <= OTHERS, kinds - seen
