"""What one odd row costs the 65,536 around it: decoding a csv or json block with it over decoding one without.

Only the odd row may go through Python; the others stay with the bulk readers, those of large csv files (``scan``) with
the kernels. What the bulk readers are worth is shown beside it: json lines read one by one over the same in bulk. Run
it as ``python benchmarks/micro/odd_rows.py``; it prints one ratio a case and fails where one is beyond its limit.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from flowsql_connectors.formats import csv_decode
from flowsql_connectors.formats.csv import CsvFormat
from flowsql_connectors.formats.csv_tokens import CsvDialect
from flowsql_connectors.formats.format import DecodeContext, FileFormat, FileView, Range
from flowsql_connectors.formats.json import JsonFormat
from flowsql_connectors.formats.json_decode import JsonDecoder
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_core.types.logical import Column, Schema
from flowsql_core.types.text import parse_type

ROWS: Final = 65_536
ROUNDS: Final = 9
LIMIT: Final = 1.5
COLUMNS: Final[Schema] = tuple(
    Column(name, parse_type(type_))
    for name, type_ in [
        ("id", "BIGINT"), ("name", "STRING"), ("price", "DOUBLE"), ("amount", "DECIMAL(10, 2)"), ("day", "DATE"),
        ("at", "TIMESTAMP(3)"),
    ]
)  # fmt: skip
MAP: Final[Schema] = (*COLUMNS, Column("tags", parse_type("MAP<STRING, INT>")))
BYTES: Final[Schema] = (*COLUMNS, Column("raw", parse_type("BYTES")))
#: Lines one by one take at least so many times as long as in bulk.
WORTH: Final = 3.0

CSV_LINE: Final = "{0},name {0},{0}.5,{0}.25,2020-01-01,2020-01-01 00:00:00.123"
JSON_LINE: Final = (
    '{{"id": {0}, "name": "name {0}", "price": {0}.5, "amount": {0}.25, "day": "2020-01-01", '
    '"at": "2020-01-01 00:00:00.123"}}'
)
MAP_LINE: Final = JSON_LINE.removesuffix("}}") + ', "tags": {{"a": {0}, "b": 2}}}}'
BYTES_LINE: Final = JSON_LINE.removesuffix("}}") + ', "raw": "YWJjZGVm"}}'

#: Name, dialect, the odd row.
CSV_CASES: Final = [
    ("comment", CsvDialect(comments=True), "# a comment"),
    ("escape", CsvDialect(escape="\\"), "1,a\\,b,1.5,1.25,2020-01-01,2020-01-01 00:00:00.123"),
    ("stray quote", CsvDialect(), '1,5" disk,1.5,1.25,2020-01-01,2020-01-01 00:00:00.123'),
    ("blank line", CsvDialect(), ""),
    ("short row", CsvDialect(), "1,a,1.5"),
    ("odd number", CsvDialect(), "+1,a,1.5f,1.25,2020-01-01,2020-01-01 00:00:00.123"),
    ("odd date", CsvDialect(), "1,a,1.5,1.25,2020-1-1,2020-01-01 00:00:00"),
]
JSON_CASES: Final = [
    ("no json", COLUMNS, JSON_LINE, "not json"),
    ("text for a number", COLUMNS, JSON_LINE, '{"id": "7", "name": "a"}'),
    ("object for a text", COLUMNS, JSON_LINE, '{"id": 7, "name": {"a": 1}}'),
    ("odd timestamp", COLUMNS, JSON_LINE, '{"id": 7, "at": "2020-01-01 00:00:00"}'),
    ("map with a text", MAP, MAP_LINE, '{"id": 7, "tags": {"a": "1"}}'),
    ("bytes without end", BYTES, BYTES_LINE, '{"id": 7, "raw": "YQ"}'),
]
#: Title, columns, line, whether all fields must be there.
JSON_SHAPES: Final = [
    ("map", MAP, MAP_LINE, False),
    ("bytes", BYTES, BYTES_LINE, False),
    ("fail on missing", COLUMNS, JSON_LINE, True),
]


def seconds(format_: FileFormat, columns: Schema, path: Path, rounds: int, exact: bool = False) -> float:
    """The least of some decodings; ``exact``: json lines one by one."""
    size = path.stat().st_size
    context = DecodeContext(columns, tuple(range(len(columns))), ROWS, {})
    best = float("inf")
    for _ in range(rounds):
        decoder = format_.decoder(context)
        if exact:
            assert isinstance(decoder, JsonDecoder)
            decoder.read_one_by_one()
        began = time.perf_counter()
        for _part in decoder.read(FileView(str(path), size), Range(0, size)):
            pass
        best = min(best, time.perf_counter() - began)
    return best


def ratio(folder: Path, format_: FileFormat, columns: Schema, line: str, odd: str, rounds: int = ROUNDS) -> float:
    """Time with the odd row in the middle, over the time without."""
    lines = [line.format(number) for number in range(ROWS)]
    plain, mixed = folder / "plain", folder / "mixed"
    plain.write_text("\n".join(lines) + "\n")
    lines[ROWS // 2] = odd
    mixed.write_text("\n".join(lines) + "\n")
    seconds(format_, columns, mixed, 1)
    # Both sides in turn: a busy machine is busy for both.
    pairs = [(seconds(format_, columns, plain, 1), seconds(format_, columns, mixed, 1)) for _ in range(rounds)]
    return min(mixed for _, mixed in pairs) / min(plain for plain, _ in pairs)


def one_by_one(folder: Path, columns: Schema, line: str, complete: bool, rounds: int = 3) -> float:
    """Time of json lines by the exact rules, over the time in bulk."""
    path = folder / "lines"
    path.write_text("\n".join(line.format(number) for number in range(ROWS)) + "\n")
    bulk = JsonFormat(complete, False, TextDialect.JSON_SQL, False, False)
    seconds(bulk, columns, path, 1)
    pairs = [(seconds(bulk, columns, path, 1), seconds(bulk, columns, path, 1, exact=True)) for _ in range(rounds)]
    return min(exact for _, exact in pairs) / min(plain for plain, _ in pairs)


def main(tell: Callable[[str], object] = print) -> int:
    """One line a case."""
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, dialect, odd in CSV_CASES:
            found = ratio(folder, CsvFormat(dialect, (), ";", True, False, True), COLUMNS, CSV_LINE, odd)
            worst = max(worst, found)
            tell(f"csv   {title:20} {found:5.2f}")
        csv_decode.SCANNED_BYTES = 0
        for title, dialect, odd in CSV_CASES:
            found = ratio(folder, CsvFormat(dialect, (), ";", True, False, True), COLUMNS, CSV_LINE, odd)
            worst = max(worst, found)
            tell(f"scan  {title:20} {found:5.2f}")
        for title, columns, line, odd in JSON_CASES:
            format_ = JsonFormat(False, True, TextDialect.JSON_SQL, False, False)
            found = ratio(folder, format_, columns, line, odd)
            worst = max(worst, found)
            tell(f"json  {title:20} {found:5.2f}")
        least = WORTH
        for title, columns, line, complete in JSON_SHAPES:
            found = one_by_one(folder, columns, line, complete)
            least = min(least, found)
            tell(f"lines {title:20} {found:5.2f}")
    return 0 if worst <= LIMIT and least >= WORTH else 1


if __name__ == "__main__":
    sys.exit(main())
