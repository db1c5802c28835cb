"""Csv files as a ``CsvSchema`` describes them: rows read and files written as PyFlink 2.3 does (asked_csv_files.json).

The texts of the cases are bytes of files; each is read into rows, and these are written with the same schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from flowsql.common import Types, WatermarkStrategy
from flowsql.datastream import DataStream, StreamExecutionEnvironment
from flowsql.datastream.connectors.file_system import (
    BucketAssigner,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSplitAssignerProvider,
)
from flowsql.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema, CsvSchemaBuilder
from flowsql.table import DataTypes as D
from flowsql_core.errors import FlowSqlError

ASKED: Final = json.loads(Path(__file__).with_name("asked_csv_files.json").read_text(encoding="utf-8"))
NO_WATERMARKS = WatermarkStrategy.no_watermarks()
#: PyFlink gives a ``datetime`` in its own class of zones.
_SHOWN_OTHERWISE: Final = {"ltz"}


def S(*columns: tuple[str, Any]) -> CsvSchemaBuilder:  # noqa: N802
    """Columns: s text, n number, b boolean; a tuple: an array, with its separator and type of elements."""
    builder = CsvSchema.builder()
    for name, kind in columns:
        match kind:
            case "s":
                builder.add_string_column(name)
            case "n":
                builder.add_number_column(name)
            case "b":
                builder.add_boolean_column(name)
            case tuple():
                builder.add_array_column(name, *kind)
            case _:
                builder.add_number_column(name, kind)
    return builder


CASES: Final[dict[str, tuple[CsvSchemaBuilder, str | bytes]]] = {
    "plain": (S(("a", "s"), ("n", "n")), "x,1\ny,2\n"),
    "no final newline": (S(("a", "s"), ("n", "n")), "x,1\ny,2"),
    "crlf": (S(("a", "s"), ("n", "n")), "x,1\r\ny,2\r\n"),
    "cr": (S(("a", "s"), ("n", "n")), "x,1\ry,2\r"),
    "blank line": (S(("a", "s"), ("n", "n")), "x,1\n\ny,2\n"),
    "blank line one column": (S(("a", "s")), "x\n\ny\n"),
    "empty fields": (S(("a", "s"), ("n", "n"), ("b", "b")), ",,\nx,1,true\n"),
    "short row": (S(("a", "s"), ("n", "n")), "x\n"),
    "long row": (S(("a", "s"), ("n", "n")), "x,1,2\n"),
    "long row empty": (S(("a", "s"), ("n", "n")), "x,1,\n"),
    "any property": (S(("a", "s"), ("n", "n")).set_any_property_name("rest"), "x,1,2,3\ny,2\n"),
    "bad number": (S(("a", "s"), ("n", "n")), "x,one\n"),
    "fraction": (S(("n", "n")), "1.5\n"),
    "blank number": (S(("n", "n"), ("s", "s")), " 1 , x \n"),
    "bool words": (S(("b", "b")), "TRUE\nyes\n1\nfalse\n"),
    "number types": (
        S(
            ("a", D.TINYINT()),
            ("b", D.SMALLINT()),
            ("c", D.INT()),
            ("d", D.FLOAT()),
            ("e", D.DOUBLE()),
            ("f", D.DECIMAL(5, 2)),
        ),
        "1,2,3,1.5,2.5,3.145\n-128,-32768,-2147483648,1e10,NaN,999.99\n",
    ),
    "overflow": (S(("a", D.TINYINT())), "128\n"),
    "decimal overflow": (S(("a", D.DECIMAL(3, 1))), "1234.5\n"),
    "null value": (S(("a", "s"), ("n", "n")).set_null_value("NA"), 'NA,1\nx,NA\n,3\n"NA",4\n'),
    "null value arrays": (S(("a", (";", D.INT())), ("s", "s")).set_null_value("NA"), "1;NA;3,NA\nNA,x\n"),
    "arrays": (
        S(("a", (";", D.INT())), ("b", (":", D.BOOLEAN())), ("c", (",", D.STRING())))
        .set_column_separator("|")
        .disable_quote_char(),
        "1;2;3|true:false|a,b,c\n||\n4|true|z\n",
    ),
    "arrays quoted": (S(("a", (";", D.STRING())), ("b", (",", D.STRING()))), '"a;b","c,d"\nx,"y"\n"",\n'),
    "array default sep": (S(("a", ()), ("b", "s")), "x;y,z\n"),
    "array long sep": (S(("a", ("--", D.INT())), ("b", "s")), "1--2--3,z\n"),
    "array blanks": (S(("a", (";", D.INT())), ("b", (";", D.STRING()))), " 1 ; 2 , x ; y \n"),
    "array trailing": (S(("a", (";", D.STRING()))), "a;b;\n;a\n;\n"),
    "array no sep": (S(("a", ("", D.STRING())), ("b", "s")), "a;b,c\n"),
    "disable array sep": (S(("a", (";", D.STRING())), ("b", "s")).disable_array_element_separator(), "a;b,c\n"),
    "remove array sep": (S(("a", ("|", D.STRING())), ("b", "s")).remove_array_element_separator(0), "a;b|d,c\n"),
    "set array sep": (S(("a", ("|", D.STRING())), ("b", ())).set_array_element_separator(":"), "a;b|d:e,c;d:e\n"),
    "set array sep before": (
        CsvSchema.builder().set_array_element_separator(":").add_array_column("a").add_array_column("b", ""),
        "a;b:c,c;d:e\n",
    ),
    "remove sep then global": (
        CsvSchema.builder()
        .add_array_column("a", "|")
        .remove_array_element_separator(0)
        .set_array_element_separator(":"),
        "a;b:c|d\n",
    ),
    "comments": (S(("a", "s"), ("b", "s")).set_allow_comments(), "x,1\n# c\n  # d\n\n  y,2\nz,#3\n"),
    "comments off": (S(("a", "s")), "x\n# c\n"),
    "comments off again": (S(("a", "s")).set_allow_comments().set_allow_comments(False), "x\n# c\n"),
    "header": (S(("a", "s"), ("n", "n")).set_use_header(), "h1,h2\nx,1\n"),
    "header short": (S(("a", "s"), ("n", "n")).set_use_header(), "h1\nx,1\n"),
    "header empty": (S(("a", "s"), ("n", "n")).set_use_header(), ""),
    "header only": (S(("a", "s"), ("n", "n")).set_use_header(), "a,n\n"),
    "header blank first": (S(("a", "s"), ("n", "n")).set_use_header(), "\na,n\nx,1\n"),
    "header comments": (S(("a", "s"), ("n", "n")).set_use_header().set_allow_comments(), "# c\na,n\nx,1\n"),
    "strict": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), "a,n\nx,1\n"),
    "strict bad": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), "a,m\nx,1\n"),
    "strict order": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), "n,a\nx,1\n"),
    "strict short": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), "a\nx,1\n"),
    "strict long": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), "a,n,z\nx,1\n"),
    "strict blanks": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), " a , n \nx,1\n"),
    "strict quotes": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), '"a","n"\nx,1\n'),
    "strict case": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), "A,N\nx,1\n"),
    "strict alone": (S(("a", "s"), ("n", "n")).set_strict_headers(), "a,n\nx,1\n"),
    "strict comments": (
        S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers().set_allow_comments(),
        "# c\na,n\nx,1\n",
    ),
    "strict bom": (S(("a", "s"), ("n", "n")).set_use_header().set_strict_headers(), "\ufeffa,n\nx,1\n"),
    "skip first": (S(("a", "s"), ("n", "n")).set_skip_first_data_row(), "h,h\nx,1\n"),
    "skip first with header": (S(("a", "s"), ("n", "n")).set_use_header().set_skip_first_data_row(), "a,n\nh,h\nx,1\n"),
    "skip first quoted": (S(("a", "s"), ("n", "n")).set_skip_first_data_row(), '"h\nh",2\nx,1\n'),
    "skip first alone": (S(("a", "s"), ("n", "n")).set_skip_first_data_row(), "x,1"),
    "skip first off": (S(("a", "s"), ("n", "n")).set_skip_first_data_row().set_skip_first_data_row(False), "x,1"),
    "quote": (S(("a", "s"), ("b", "s")).set_column_separator("|"), '"st|ring"|"str""ing2"\n'),
    "quote custom": (
        S(("a", "s"), ("b", "s")).set_column_separator("|").set_quote_char("`"),
        '`string`|`a``b`\n"x"|y\n',
    ),
    "quote off": (S(("a", "s"), ("b", "s")).disable_quote_char(), '"a",b"\n'),
    "quote off on": (S(("a", "s"), ("b", "s")).disable_quote_char().set_quote_char("'"), "'a,b',c\n"),
    "escape": (S(("a", "s"), ("b", "s")).set_column_separator("|").set_escape_char("\\"), 'a\\|b|c\\"d\\n\\\\\n'),
    "escape off": (S(("a", "s"), ("b", "s")).set_escape_char("\\").disable_escape_char(), "a\\b,c\n"),
    "escape array": (S(("a", (";", D.STRING()))).set_escape_char("\\"), "a\\;b;c\n"),
    "tab": (S(("a", "s"), ("b", "s")).set_column_separator("\t"), "a b\tc\n"),
    "line separator": (S(("a", "s"), ("b", "n")).set_line_separator(";\n"), "a,1\nb,2\n"),
    "line separator crlf": (S(("a", "s"), ("b", "n")).set_line_separator("\r\n"), "a,1\nb,2\n"),
    "line separator odd": (S(("a", "s"), ("b", "n")).set_line_separator("|"), "a,1\nb,2\n"),
    "columns from": (
        CsvSchema.builder()
        .add_columns_from(S(("a", "s"), ("l", ("|", D.INT()))).set_column_separator(";").build())
        .add_number_column("z"),
        "a,1|2,3\n",
    ),
    "cleared": (S(("a", "s"), ("b", "s")).clear_columns().add_string_column("c"), "q\n"),
    "unicode": (S(("ä", "s")), "ü€😀\n"),
    "types row": (S(("a", "s"), ("n", "n")), "x,1\n"),
    "write quoting": (
        S(("a", "s"), ("b", "s"), ("n", D.DOUBLE()), ("d", D.DECIMAL(20, 5))),
        'a b,"q""q",1e20,100000\n"","long text of more than 24 chars",3,1.50000\n,#x,,\n',
    ),
    "write null": (S(("a", "s"), ("l", (";", D.INT())), ("n", "n")).set_null_value("NA"), "NA,1;2,NA\nx,NA,1\n"),
    "write header": (S(("a", "s"), ("n n", "n")).set_use_header(), "a,n\nx,1\n"),
    "date number": (
        S(("d", D.DATE()), ("t", D.TIMESTAMP(3)), ("u", D.TIME())),
        "2020-01-02,2020-01-02 03:04:05.2,03:04:05\n",
    ),
    "ltz": (S(("t", D.TIMESTAMP_LTZ(3)), ("b", D.BYTES())), "2020-01-02 03:04:05.200Z,AQI=\n"),
    "bytes out": (S(("b", D.VARCHAR(2)), ("c", D.CHAR(3))), "abcdef,a\n"),
    "utf8 broken": (S(("a", "s")), b"\xff\xfe\n"),
    "unclosed": (S(("a", "s")), '"abc\n'),
    "text behind quote": (S(("a", "s")), '"abc"x\n'),
}


def rows_of(env: StreamExecutionEnvironment, schema: CsvSchema, *paths: Path) -> DataStream:
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), *map(str, paths)).build()
    return env.from_source(source, NO_WATERMARKS, "csv")


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as values:
        return list(values)


def written(folder: Path, env: StreamExecutionEnvironment, rows: DataStream, schema: CsvSchema) -> list[str]:
    sink = FileSink.for_bulk_format(str(folder), CsvBulkWriters.for_schema(schema))
    rows.sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    env.execute()
    return [file.read_bytes().decode() for file in sorted(folder.glob("part-*"))]


@pytest.mark.parametrize("name", CASES)
def test_rows_are_read_and_written_as_by_flink(env: StreamExecutionEnvironment, tmp_path: Path, name: str) -> None:
    builder, text = CASES[name]
    schema, asked = builder.build(), ASKED[name]
    file = tmp_path / "in.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    rows = rows_of(env, schema, file)
    if "error" in asked:
        with pytest.raises(FlowSqlError):
            collected(rows)
        with pytest.raises(FlowSqlError):
            written(tmp_path / "out", env, rows, schema)
        return
    found = collected(rows)
    if name not in _SHOWN_OTHERWISE:
        assert [repr(row) for row in found] == asked["rows"]
    assert written(tmp_path / "out", env, rows, schema) == asked["written"]


def test_every_case_was_asked() -> None:
    assert set(CASES) == set(ASKED) - {"duplicate names"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("strict bad", 'Mismatched header column #2: expected "n", actual "m"\nin file .*in.csv, row 1'),
        ("strict short", 'Missing header column #2, expecting "n"'),
        ("strict long", 'Extra header column "z"'),
        ("bad number", r'Fail to deserialize at field: n. For input string: "one"\nin file .*in.csv, row 1'),
        ("short row", "Row length mismatch. 2 fields expected but was 1"),
        ("long row", "Too many entries: expected at most 2"),
    ],
)
def test_an_error_tells_where(env: StreamExecutionEnvironment, tmp_path: Path, name: str, message: str) -> None:
    builder, text = CASES[name]
    assert isinstance(text, str)
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(FlowSqlError, match=message):
        collected(rows_of(env, builder.build(), tmp_path / "in.csv"))


def test_rows_behind_a_skipped_line_are_counted_with_it(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,n\nh,h\nx,1\ny,two\n")
    schema = S(("a", "s"), ("n", "n")).set_use_header().set_skip_first_data_row().build()
    with pytest.raises(FlowSqlError, match=r"in\.csv, row 4"):
        collected(rows_of(env, schema, tmp_path / "in.csv"))


def test_names_of_columns_are_different() -> None:
    with pytest.raises(ValueError, match=r"Field names must be unique. Found duplicates: \[a\]"):
        S(("a", "s"), ("a", "n")).build()
    with pytest.raises(ValueError, match="separator"):
        S(("a", ("",))).disable_array_element_separator().build()


def test_a_moment_is_shown_by_the_machines_clock(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("2020-01-02 03:04:05.200Z\n")
    ((moment,),) = collected(rows_of(env, S(("t", D.TIMESTAMP_LTZ(3))).build(), tmp_path / "in.csv"))
    assert moment.isoformat() == "2020-01-02T03:04:05.200000+00:00"


def large(folder: Path, files: int, rows: int) -> None:
    folder.mkdir()
    for number in range(files):
        lines = "".join(f"{number},{row},{'x' * 50}\n" for row in range(rows))
        (folder / f"{number}.csv").write_text(lines)


@pytest.mark.parametrize("splittable", [False, True])
def test_readers_share_a_file_only_if_told_so(
    env: StreamExecutionEnvironment, tmp_path: Path, splittable: bool
) -> None:
    large(tmp_path / "in", 1, 20_000)
    env.set_parallelism(2)
    enumerator = (
        FileEnumeratorProvider.default_splittable_file_enumerator()
        if splittable
        else FileEnumeratorProvider.default_non_splittable_file_enumerator()
    )
    schema = S(("f", "n"), ("r", "n"), ("t", "s")).build()
    source = (
        FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path / "in"))
        .set_file_enumerator(enumerator)
        .set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
        .build()
    )
    rows = env.from_source(source, NO_WATERMARKS, "csv")
    sink = FileSink.for_bulk_format(str(tmp_path / "out"), CsvBulkWriters.for_schema(schema))
    rows.sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    env.execute()
    parts = [file.read_text().splitlines() for file in (tmp_path / "out").glob("part-*")]
    assert len(parts) == (2 if splittable else 1)
    assert sorted(int(line.split(",")[1]) for part in parts for line in part) == list(range(20_000))
    if not splittable:
        assert [int(line.split(",")[1]) for line in parts[0]] == list(range(20_000))


def test_files_of_several_paths_and_what_compressed_them(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    import gzip

    large(tmp_path / "a", 2, 3)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"7,7,z\n"))
    (tmp_path / "a" / "_hidden.csv").write_text("no,row\n")
    rows = collected(rows_of(env, S(("f", "n"), ("r", "n"), ("t", "s")).build(), tmp_path / "a", tmp_path / "b.csv.gz"))
    assert sorted((row.f, row.r) for row in rows) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (7, 7)]
    assert Types.LONG() == rows_of(env, S(("n", "n")).build(), tmp_path).get_type().type_info.get_field_types()[0]
