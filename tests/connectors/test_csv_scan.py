"""Blocks that the csv kernels read and blocks that Arrow and the exact rules read give the same columns and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsql_compute.kernels.delimited import gather_texts, text_offsets
from flowsql_connectors.formats import csv_decode, csv_scan
from flowsql_connectors.formats.csv import CsvFormat
from flowsql_connectors.formats.csv_tokens import CsvDialect, CsvTokenizer
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from flowsql_core.errors import FlowSqlError
from flowsql_core.types.logical import Schema
from tests.connectors.tables import columns_of

_COLUMNS = columns_of(
    "a INT, b STRING, c BIGINT, d TIMESTAMP(3), e DOUBLE, f DATE, g DECIMAL(10, 2), h TINYINT, i BOOLEAN,"
    " j TIMESTAMP(6), k ARRAY<INT>, l DECIMAL(18, 0), m TIMESTAMP_LTZ(3), n FLOAT, o TIMESTAMP(0), p SMALLINT"
)

_INTEGERS = ["0", "7", "-7", "007", "-0", "12345678", "123456789", "99", "127", "-128"]
_STAMPS = [
    "2026-01-01 00:00:00.000",
    "2026-01-01 00:00:59.999",
    "2024-02-29 23:59:01.12",
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.5",
    "1969-12-31 23:59:59.001",
]
_PLAIN: dict[str, list[str]] = {
    "INT": [*_INTEGERS, "2147483647", "-2147483648"],
    "STRING": ["", "a", "plain text", "x" * 40, " y "],
    "BIGINT": [*_INTEGERS, "123456789012345678", "-99999999999"],
    "TIMESTAMP": _STAMPS,
    "DOUBLE": ["0", "1.5", "-2.25", "0.1", "123456.789", "-0.0", "9007199254740993", "1e3"],
    "DATE": ["2026-01-01", "1970-01-01", "0001-03-01", "2000-02-29", "1969-12-31"],
    "DECIMAL": ["0", "1.5", "-2.25", "0.10", "12345678.99", "-0.01", "-0"],
    "SMALL": ["0", "7", "-7", "127", "-128"],
    "BOOLEAN": ["true", "false", "TRUE"],
    "ARRAY": ["1;2", "3", "", "1;;2"],
    "LTZ": [stamp + "Z" for stamp in _STAMPS],
}
_ODD: dict[str, list[str]] = {
    "INT": ["+5", " 5", "5 ", "-", "2147483648", "1.0", "1_0", "٣", "99999999999999999999", "", "0x1F", " 0X1f", "1e3"],
    "STRING": ["é", "ß\u2028", "\x00", "#", "\\"],
    "BIGINT": ["+5", "\t5", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "--5", "5-", "5:",
        "-0x1F", "0x"],
    "TIMESTAMP": [
        "2026-01-01", "2026-01-01T00:00:00", "2026-02-30 00:00:00", "2026-01-01 24:00:00", "2026-13-01 00:00:00",
        "2026-01-01 00:60:00", "2026-01-01 00:00:60", "2026-1-01 00:00:00.0", "0000-01-01 00:00:00",
        "2026-01-01 00:00:00.", "2026-01-01 00:00:00.1234", "2026-01-01 00:00:00.1234567", "2026-01-01 00:00:0a",
        "2026-01-01 00:00:00,123", " 2026-01-01 00:00:00",
    ],
    "DOUBLE": ["inf", "NaN", "1.7976931348623157e308", "0.30000000000000004", ".5", "5.", "1.5f", "-.5", "1.-5", "--1",
        " 1.5", "0x1F", "0x1p3", "+1", "1e+3", " 1e3 "],
    "DATE": ["2026-02-30", "2026-1-1", "2026-01-01 ", "0000-01-01", "2026/01/01", "2100-02-29", " 2026-01-01", "0x1F"],
    "DECIMAL": ["1.005", "123456789.00", "1e2", "+1", ".5", "5.", "-.5", "1.2.3", "1.-5", "12345678901234567890",
        " 1.5", "1.5 ", "\t1",
        "0x1F", "1e-1", "1e9", "٣"],
    "SMALL": ["128", "-129", "300", "40000", "0x1F", " 1", "+1"],
    "BOOLEAN": ["yes", " true", "1", "", "tRuE", "0x1F", "+1"],
    "ARRAY": ["x", "1; 2"],
    "LTZ": ["2026-01-01 00:00:00"],
}  # fmt: skip
_KINDS = (
    "INT STRING BIGINT TIMESTAMP DOUBLE DATE DECIMAL SMALL BOOLEAN TIMESTAMP ARRAY DECIMAL LTZ DOUBLE TIMESTAMP SMALL"
)
_LINES = ["", "a", "1,2", '"1",2', " ", ",", "# no row", " # no row", '"two\nlines",x', "a\\,b", '"open', "\t#\r"]
_DIALECTS = [CsvDialect(), CsvDialect(), CsvDialect(comments=True), CsvDialect(escape="\\"), CsvDialect(quote=None)]


def _read(
    path: Path, dialect: CsvDialect, null: str | None, lenient: bool, wanted: tuple[int, ...], scanned: bool,
    few_bad: int = 16, few_odd: int = 64, columns: Schema = _COLUMNS,
) -> Any:  # fmt: skip
    format_ = CsvFormat(dialect, () if null is None else (null,), ";", lenient, False, True)
    before = csv_decode.SCANNED_BYTES, csv_scan._FEW_BAD, csv_scan._FEW_ODD
    csv_decode.SCANNED_BYTES = 0 if scanned else 1 << 60
    csv_scan._FEW_BAD, csv_scan._FEW_ODD = few_bad, few_odd
    try:
        decoder = format_.decoder(DecodeContext(columns, wanted, 65536, {}))
        size = path.stat().st_size
        parts = list(decoder.read(FileView(str(path), size), Range(0, size)))
        return [(str(array.type), repr(_plain_values(array))) for part in parts for array in part.arrays]
    except FlowSqlError as error:
        return str(error)
    finally:
        csv_decode.SCANNED_BYTES, csv_scan._FEW_BAD, csv_scan._FEW_ODD = before


def _plain_values(array: Any) -> list[Any]:
    """Python has no days of the year 0."""
    array.validate(full=True)
    days = pa.types.is_date(array.type)
    numbers = array.view(pa.int64()) if pa.types.is_timestamp(array.type) else array.view(pa.int32()) if days else array
    return list(numbers.to_pylist())


@settings(max_examples=max(60, settings().max_examples), deadline=None)
@given(data=st.data())
def test_kernels_read_what_the_exact_rules_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    null = data.draw(st.sampled_from([None, "", "NULL", "n/a"]))
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    oddness = data.draw(st.sampled_from([0, 0, 1, 2]))
    kinds = _KINDS.split()
    rows = []
    odd_column = data.draw(st.integers(0, len(kinds) - 1))
    for _ in range(data.draw(st.integers(1, 12))):
        cells = []
        for at, kind in enumerate(kinds):
            pool = _PLAIN[kind] + ([null] * 3 if null is not None else [])
            if oddness == 2 or (oddness == 1 and at == odd_column):
                pool = pool + _ODD[kind]
            cells.append(data.draw(st.sampled_from(pool)))
        rows.append(",".join(cells))
    for _ in range(data.draw(st.sampled_from([0, 0, 0, 1, 2, 5]))):
        rows.insert(data.draw(st.integers(0, len(rows))), data.draw(st.sampled_from(_LINES)))
    dialect = data.draw(st.sampled_from(_DIALECTS))
    text = ending.join(rows) + data.draw(st.sampled_from(["", ending]))
    if data.draw(st.integers(0, 9)) == 0:
        text = text.replace("plain", data.draw(st.sampled_from(['"', "\r", "a\rb", '"a" ', "ä", "\\n"])), 1)
    path = tmp_path_factory.mktemp("scan") / "t.csv"
    path.write_bytes(text.encode())
    wanted = tuple(data.draw(st.permutations(range(len(kinds))))[: data.draw(st.integers(1, len(kinds)))])
    lenient = data.draw(st.booleans())
    exact = _read(path, dialect, null, lenient, wanted, scanned=False)
    few_bad, few_odd = data.draw(st.sampled_from([(16, 64), (0, 64), (1, 64), (1, -30)]))
    assert _read(path, dialect, null, lenient, wanted, True, few_bad, few_odd) == exact


@pytest.mark.parametrize("delimiter", ["|", "\t", ";"])
def test_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "t.csv"
    row = delimiter.join(_PLAIN[kind][1] for kind in _KINDS.split()).replace("1;2", "1")
    path.write_text(f"{row}\n" * 9)
    dialect = CsvDialect(delimiter=delimiter)
    wanted = tuple(at for at in range(16) if at != 10)
    exact = _read(path, dialect, None, False, wanted, scanned=False)
    assert _read(path, dialect, None, False, wanted, scanned=True) == exact
    assert not isinstance(exact, str)


def test_bytes_that_are_no_utf8_stop_the_job(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"1,\xff" + b"," * 14 + b"\n")
    for scanned in (False, True):
        assert "Invalid UTF-8" in _read(path, CsvDialect(), "", False, (0, 1), scanned=scanned)


def test_plain_blocks_do_go_through_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",".join(_PLAIN[kind][0] for kind in _KINDS.split()) + "\n")
    monkeypatch.setattr(csv_decode.CsvDecoder, "_decode", None)
    found = _read(path, CsvDialect(), "NULL", False, tuple(range(16)), scanned=True)
    assert found[0] == ("int32", "[0]")


def test_texts_are_gathered_in_any_order() -> None:
    data = np.frombuffer(b"abcdefghijklmnopqrst" + bytes(32), np.uint8).copy()
    bounds = np.array([10 << 32 | 9, 0, 0 << 32 | 1, 3 << 32 | 17], np.int64)
    offsets = np.zeros(5, np.int32)
    size = text_offsets(bounds, 4, offsets)
    out = np.zeros(size + 32, np.uint8)
    gather_texts(data, bounds, 4, offsets, out)
    assert (size, offsets.tolist()) == (27, [0, 9, 9, 10, 27])
    assert bytes(out[:size]) == b"klmnopqrsadefghijklmnopqrst"


#: Texts and what Flink 2.3 reads of them with 'csv.ignore-parse-errors' (NULL: it stops without).
_FLINK: dict[str, dict[str, object]] = {
    "a INT": {" 1": 1, "1 ": 1, "\t1": 1, "0x1F": None, "0X1f": None, "-0x1F": None, "+1": 1, "1e3": None, "1.0": None},
    "a BIGINT": {" 1": 1, "0x1F": None, "0x": None, "+1": 1, "1e3": None, "1L": None},
    "a TINYINT": {" 1": 1, "0x1F": None, "+1": 1},
    "a DOUBLE": {" 1.5": 1.5, "0x1F": None, "0x1p3": 8.0, "+1": 1.0, "1e3": 1000.0, "1e+3": 1000.0, "inf": None},
    "a FLOAT": {" 1.5": 1.5, "0x1F": None, "+1": 1.0, "1e3": 1000.0, "inf": None},
    "a DECIMAL(10, 2)": {
        " 1.5": None, "1.5 ": None, "\t1": None, "0x1F": None, "+1": "1.00", "1e3": "1000.00", "1e-1": "0.10",
        "1e9": None, ".5": "0.50", "5.": "5.00",
    },
    "a BOOLEAN": {" true": True, "tRuE": True, "1": False, "0x1F": False, "+1": False, " false": False},
    "a DATE": {" 2020-01-02": None, "2020-01-02 ": None, "2020-1-2": "2020-01-02", "2020-02-30": "2020-03-01"},
    "a TIMESTAMP(3)": {
        " 2020-01-02 03:04:05": "2020-01-02 03:04:05", "2020-01-02 03:04:05 ": "2020-01-02 03:04:05",
        "2020-01-02T03:04:05": None, "2020-01-02 03:04": None,
        "2020-01-02 03:04:05.123456": "2020-01-02 03:04:05.123000",
    },
}  # fmt: skip


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("column", _FLINK)
def test_odd_texts_are_read_as_flink_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, scanned: bool
) -> None:
    monkeypatch.setattr(csv_decode, "SCANNED_BYTES", 0 if scanned else 1 << 60)
    columns = columns_of(f"{column}, b INT")
    path = tmp_path / "t.csv"
    for text, expected in _FLINK[column].items():
        # In the middle of a block and at its ends.
        for plain_before in (0, 1):
            path.write_text("".join(["," + "1\n"] * plain_before) + f"{text},1\n")
            format_ = CsvFormat(CsvDialect(), ("",), ";", True, False, True)
            decoder = format_.decoder(DecodeContext(columns, (0, 1), 65536, {}))
            size = path.stat().st_size
            (part,) = decoder.read(FileView(str(path), size), Range(0, size))
            value = part.arrays[0][plain_before].as_py()
            assert (str(value) if isinstance(expected, str) else value) == expected, text


def test_only_odd_rows_leave_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever makes them odd; order, values, and the numbers of rows in errors are those of the whole file."""
    monkeypatch.setattr(csv_decode.CsvDecoder, "_decode", None)
    monkeypatch.setattr(csv_decode, "SCANNED_BYTES", 0)
    tokenized: list[int] = []
    next_row = CsvTokenizer.next_row

    def counted(tokenizer: CsvTokenizer, text: str, at: int) -> Any:
        tokenized.append(at)
        return next_row(tokenizer, text, at)

    monkeypatch.setattr(CsvTokenizer, "next_row", counted)
    columns = columns_of("k INT, s STRING, d DATE")
    lines = [f"{i},text {i},2020-01-01" for i in range(5000)]
    odd = {
        0: '0,"first",2020-01-02', 10: "# a comment", 200: '7,stray " quote,2020-01-02', 500: "8,a\\,b,",
        900: "9,short", 901: '10,"two\nlines ä",2020-01-02', 902: "+11,x,2020-01-02", 3000: "12,y,2020-1-2",
        4999: "13,last",
    }  # fmt: skip
    for place, line in odd.items():
        lines[place] = line
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    format_ = CsvFormat(CsvDialect(escape="\\", comments=True), (), ";", True, False, True)
    size = path.stat().st_size
    (part,) = format_.decoder(DecodeContext(columns, (0, 1, 2), 65536, {})).read(
        FileView(str(path), size), Range(0, size)
    )
    # A comment is looked at with the row behind it.
    assert len(tokenized) == len(odd)
    numbers = [*range(5000)]
    for place, number in [(200, 7), (500, 8), (900, 9), (901, 10), (902, 11), (3000, 12), (4999, 13)]:
        numbers[place] = number
    del numbers[10]
    assert part.arrays[0].to_pylist() == numbers
    assert part.arrays[1].to_pylist()[899:901] == ["short", "two\nlines ä"]
    assert part.arrays[2].null_count == 3
    strict = CsvFormat(format_.dialect, (), ";", False, False, True)
    with pytest.raises(FlowSqlError, match=r"Row length mismatch. 3 fields expected but was 2.\nin file .*, row 900: "):
        list(
            strict.decoder(DecodeContext(columns, (0, 1, 2), 65536, {})).read(FileView(str(path), size), Range(0, size))
        )


def test_a_block_of_odd_rows_goes_to_the_bulk_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_decode, "SCANNED_BYTES", 0)
    cut: list[int] = []
    cut_plain = csv_scan.CsvScan._cut_plain

    def counted(scan: csv_scan.CsvScan, block: Any, size: int) -> bool:
        cut.append(size)
        return cut_plain(scan, block, size)

    monkeypatch.setattr(csv_scan.CsvScan, "_cut_plain", counted)
    path = tmp_path / "t.csv"
    path.write_text('1,"a"\n' * 5000)
    format_ = CsvFormat(CsvDialect(), (), ";", False, False, True)
    size = path.stat().st_size
    (part,) = format_.decoder(DecodeContext(columns_of("k INT, s STRING"), (0, 1), 65536, {})).read(
        FileView(str(path), size), Range(0, size)
    )
    assert part.num_rows == 5000
    assert 1 < len(cut) < 200


@pytest.mark.parametrize("rows", ["1,2,3\n4\n5\n", "1,2,3\n4,5,6,\n7,8,9,x\n10,11,12,\n", '"1",2,3\n4\n5\n'])
def test_errors_about_the_width_of_most_rows_show_the_row(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(rows)
    columns = columns_of("a INT, b INT, c INT")
    exact = _read(path, CsvDialect(), None, False, (0, 1, 2), scanned=False, columns=columns)
    assert exact.endswith(": '4'") or exact.endswith(": '7,8,9,x'")
    assert _read(path, CsvDialect(), None, False, (0, 1, 2), scanned=True, columns=columns) == exact
