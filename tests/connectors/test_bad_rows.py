"""``on-error``: rows that cannot be read are left out, counted and kept; all others come as without it."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_connectors.bad_rows import BadRowPolicy, TolerantDecoder
from flowsql_connectors.filesystem.options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE
from flowsql_connectors.formats.csv import CsvFormatFactory
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from flowsql_connectors.formats.rows_in_bytes import rows_before
from flowsql_connectors.spi.counters import ROWS_SKIPPED
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.logical import INT, STRING, Column

CSV = b'1,a\n2,"two\nlines"\nx,bad\n4,d\ny,"never ended\n6,f\n7,g\n'
JSON = b'{"k": 1, "s": "a"}\nnot json\n{"k": "x", "s": "b"}\n{"k": 4, "s": "d"}\n'


def rows(folder: Path, options: str, parallelism: int = 1, format_: str = "csv") -> list[tuple[object, ...]]:
    layer = {"parallelism.default": str(parallelism), "table.local-time-zone": "UTC"}
    environment = TableEnvironment.of_configuration(Configuration().with_layer(layer).with_layer())
    environment.execute_sql(
        f"CREATE TABLE t (k INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{folder}', "
        f"'format' = '{format_}' {options})"
    )
    with environment.execute_sql("SELECT k, s FROM t").collect() as found:
        return sorted(tuple(row) for row in found)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_bad_rows_are_skipped_and_the_others_stay(tmp_path: Path, parallelism: int) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(CSV)
    assert rows(tmp_path / "in", ", 'on-error' = 'skip'", parallelism) == [
        (1, "a"),
        (2, "two\nlines"),
        (4, "d"),
        (6, "f"),
        (7, "g"),
    ]


def test_bad_lines_of_json_become_letters_that_a_table_reads(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_bytes(JSON)
    dead = tmp_path / "dead"
    options = f", 'on-error' = 'dead-letter', '{DEAD_LETTER_PATH.key}' = '{dead}'"
    for _ in range(2):  # reading again replaces the letters
        assert rows(tmp_path / "in", options, format_="json") == [(1, "a"), (4, "d")]
    letters = [json.loads(line) for file in dead.glob("*.jsonl") for line in file.read_text().splitlines()]
    assert [base64.b64decode(letter["row_bytes"]) for letter in letters] == [b"not json\n", b'{"k": "x", "s": "b"}\n']
    assert [letter["file_position"] for letter in letters] == [19, 28]
    assert {letter["file_path"] for letter in letters} == {str(tmp_path / "in" / "a.json")}
    assert all(letter["table_name"].endswith(".t") and letter["error"] for letter in letters)
    environment = TableEnvironment.create()
    environment.execute_sql(
        "CREATE TABLE dead (row_bytes BYTES, error STRING, file_path STRING, file_position BIGINT, table_name STRING) "
        f"WITH ('connector' = 'filesystem', 'path' = '{dead}', 'format' = 'json')"
    )
    with environment.execute_sql("SELECT row_bytes, file_position FROM dead").collect() as found:
        assert sorted(tuple(row)[1] for row in found) == [19, 28]


def test_heads_and_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv.gz").write_bytes(gzip.compress(b"k,s\n1,a\nx,b\n3,c\n"))
    assert rows(tmp_path / "in", ", 'csv.header' = 'true', 'on-error' = 'skip'") == [(1, "a"), (3, "c")]


def test_fail_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"1,a\nx,b\n")
    with pytest.raises(FlowSqlError, match="row 2"):
        rows(tmp_path / "in", "")


@pytest.mark.parametrize(
    ("options", "format_", "message"),
    [
        (", 'on-error' = 'dead-letter'", "csv", "on-error.dead-letter.path"),
        (", 'on-error.dead-letter.path' = '/x'", "csv", "needs 'on-error' = 'dead-letter'"),
        (", 'on-error' = 'skip'", "parquet", "not supported yet"),
        (", 'on-error' = 'maybe'", "csv", "on-error"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: str, format_: str, message: str) -> None:
    with pytest.raises(FlowSqlError, match=message):
        rows(tmp_path, options, format_=format_)


def test_skipped_rows_are_counted_and_ranges_meet_without_gap(tmp_path: Path) -> None:
    columns = (Column("k", INT), Column("s", STRING))
    table = TableSpec(("c", "d", "t"), columns, ())
    factory = CsvFormatFactory()
    format_ = factory.create(factory.options().check(table), table)
    file = tmp_path / "a.csv"
    file.write_bytes(b"".join(b"x,bad\n" if i % 7 == 3 else b"%d,s%d\n" % (i, i) for i in range(1000)))
    counted: list[tuple[str, int, str]] = []
    strict = format_.decoder(DecodeContext(columns, (0,), 100, {}))
    decoder = TolerantDecoder(
        strict, strict, BadRowPolicy("t", None, False), lambda name, by, where: counted.append((name, by, where()))
    )
    size = file.stat().st_size
    view = FileView(str(file), size)
    found = [
        value
        for part in (Range(0, 777), Range(777, 778), Range(778, size))
        for columns_ in decoder.read(view, part)
        for value in columns_.arrays[0].to_pylist()
    ]
    assert found == [i for i in range(1000) if i % 7 != 3]
    assert {name for name, *_ in counted} == {ROWS_SKIPPED}
    assert sum(number for _, number, _ in counted) == len([i for i in range(1000) if i % 7 == 3])
    assert counted[0][2] == "a.csv, byte 15"


LETTERS = "row_bytes BYTES, error STRING, file_path STRING, file_position BIGINT, table_name STRING"


def letters_session(
    folder: Path, name: str, columns: str = LETTERS, more: str = "'format' = 'json'"
) -> TableEnvironment:
    """A table with bad rows that names its dead-letter table, and that table."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_bytes(b"1,a\nx,b\n3,c\n")
    environment = TableEnvironment.create()
    environment.execute_sql(
        f"CREATE TABLE letters ({columns}) WITH ('connector' = 'filesystem', 'path' = '{folder / 'dead'}', {more})"
    )
    environment.execute_sql(
        f"CREATE TABLE t (k INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{folder / 'in'}', "
        f"'format' = 'csv', 'on-error' = 'dead-letter', '{DEAD_LETTER_TABLE.key}' = '{name}')"
    )
    return environment


@pytest.mark.parametrize("name", ["letters", "default_database.letters", "default_catalog.default_database.`letters`"])
def test_a_table_takes_the_letters(tmp_path: Path, name: str) -> None:
    environment = letters_session(tmp_path, name)
    # Before a bad row was met the table is there, and empty.
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "a.csv").write_bytes(b"5,e\n")
    good = f"SELECT k FROM t /*+ OPTIONS('path' = '{tmp_path / 'good'}') */"
    with environment.execute_sql(good).collect() as found:
        assert [row[0] for row in found] == [5]
    with environment.execute_sql("SELECT error FROM letters").collect() as found:
        assert list(found) == []
    with environment.execute_sql("SELECT k FROM t").collect() as found:
        assert sorted(row[0] for row in found) == [1, 3]
    with environment.execute_sql(
        "SELECT DECODE(row_bytes, 'utf-8'), file_position, table_name FROM letters"
    ).collect() as found:
        assert [tuple(row) for row in found] == [("x,b\n", 4, "default_catalog.default_database.t")]


@pytest.mark.parametrize(
    ("name", "columns", "more", "message"),
    [
        ("nowhere", LETTERS, "'format' = 'json'", "Object 'nowhere'"),
        ("1 + 1", LETTERS, "'format' = 'json'", "no name of a table"),
        ("letters", "row_bytes BYTES, other INT", "'format' = 'json'", "Column 'other' INT"),
        ("letters", "row_bytes STRING", "'format' = 'json'", "Column 'row_bytes' STRING"),
        ("letters", LETTERS, "'format' = 'csv'", "not supported yet"),
    ],
)
def test_tables_that_take_no_letters_are_refused(
    tmp_path: Path, name: str, columns: str, more: str, message: str
) -> None:
    environment = letters_session(tmp_path, name, columns, more)
    with pytest.raises(FlowSqlError, match=message):
        environment.execute_sql("SELECT k FROM t").print()


def test_a_path_and_a_table_are_not_both_given(tmp_path: Path) -> None:
    environment = letters_session(tmp_path, "letters")
    with pytest.raises(FlowSqlError, match="not both"):
        environment.execute_sql(f"SELECT k FROM t /*+ OPTIONS('{DEAD_LETTER_PATH.key}' = '/x') */").print()


def letters_of(folder: Path) -> list[tuple[str, int, str]]:
    """File, position and text of every letter."""
    found = []
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            letter = json.loads(line)
            text = base64.b64decode(letter["row_bytes"]).decode()
            found.append((Path(letter["file_path"]).name, letter["file_position"], text))
    return sorted(found)


def dead_letters(folder: Path) -> str:
    return f", 'on-error' = 'dead-letter', '{DEAD_LETTER_PATH.key}' = '{folder}'"


@pytest.mark.parametrize("parallelism", [1, 2])
def test_letters_name_their_file_and_place_among_several(tmp_path: Path, parallelism: int) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b'1,"two\nlines"\nx,bad\n')
    (tmp_path / "in" / "b.csv").write_bytes(b"2,b\n")
    (tmp_path / "in" / "c.csv.gz").write_bytes(gzip.compress(b"3,c\n4,d\nx,zipped\n"))
    dead = tmp_path / "dead"
    assert [k for k, _ in rows(tmp_path / "in", dead_letters(dead), parallelism)] == [1, 2, 3, 4]
    assert letters_of(dead) == [("a.csv", 14, "x,bad\n"), ("c.csv.gz", 8, "x,zipped\n")]
    assert not [file for file in dead.iterdir() if file.name.startswith(".")]


def test_a_row_that_became_good_has_no_letter_any_more(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"1,a\nx,b\n")
    dead = tmp_path / "dead"
    rows(tmp_path / "in", dead_letters(dead))
    assert letters_of(dead) == [("a.csv", 4, "x,b\n")]
    (tmp_path / "in" / "a.csv").write_bytes(b"1,a\n2,b\n")
    assert len(rows(tmp_path / "in", dead_letters(dead))) == 2
    assert letters_of(dead) == []


def test_scans_of_other_columns_and_other_tables_keep_letters_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"1,a\nx,b\n3,y\n")
    dead = tmp_path / "dead"
    environment = TableEnvironment.create()
    for name, columns in (("t", "k INT, s STRING"), ("u", "k STRING, s INT")):
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'in'}', "
            f"'format' = 'csv'{dead_letters(dead)})"
        )
    # Both scans read the range at once.
    with environment.execute_sql("SELECT t.k FROM t JOIN u ON t.s = u.k").collect() as found:
        assert list(found) == []
    assert [text for _, _, text in letters_of(dead)] == ["x,b\n"]
    for query, count in (("SELECT s FROM t", 3), ("SELECT s FROM u", 0), ("SELECT k, s FROM t", 2)):
        with environment.execute_sql(query).collect() as found:
            assert len(list(found)) == count
    bad = {text for _, _, text in letters_of(dead)}
    assert bad == {"1,a\n", "x,b\n", "3,y\n"}


@pytest.mark.parametrize(
    ("format_", "data", "expected", "bad"),
    [
        # A field that cannot be read is NULL, a row that is none of the table is bad.
        ("csv", b"1,a\nx,b\n3,c,d,e\n4,d\n", [(1, "a"), (4, "d"), (None, "b")], "3,c,d,e\n"),
        ("json", b'{"k": 1}\n{"k": "x", "s": "b"}\nnone\n', [(1, None), (None, "b")], "none\n"),
    ],
)
def test_fields_are_ignored_and_rows_are_kept(
    tmp_path: Path, format_: str, data: bytes, expected: list[tuple[object, ...]], bad: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(data)
    options = f", '{format_}.ignore-parse-errors' = 'true'"
    found = set(rows_unsorted(tmp_path / "in", options, format_))
    assert found == set(expected)
    dead = tmp_path / "dead"
    assert set(rows_unsorted(tmp_path / "in", options + dead_letters(dead), format_)) == found
    assert [text for _, _, text in letters_of(dead)] == [bad]


def rows_unsorted(folder: Path, options: str, format_: str) -> list[tuple[object, ...]]:
    environment = TableEnvironment.create()
    environment.execute_sql(
        f"CREATE TABLE t (k INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{folder}', "
        f"'format' = '{format_}' {options})"
    )
    with environment.execute_sql("SELECT k, s FROM t").collect() as found:
        return [tuple(row) for row in found]


@pytest.mark.parametrize("packed", [False, True])
def test_rows_before_a_place_are_counted_by_the_quotes(tmp_path: Path, packed: bool) -> None:
    data = b'1,a\n2,"b\nb\n"\n3,"c""\n"\n4,d\n'
    file = tmp_path / ("a.csv.gz" if packed else "a.csv")
    file.write_bytes(gzip.compress(data) if packed else data)
    view = FileView(str(file), file.stat().st_size, "gzip" if packed else None)
    starts = [0, 4, 13, 22, 26]
    assert [rows_before(view, start, b'"') for start in starts] == [0, 1, 2, 3, 4]
    assert rows_before(view, len(data)) == data.count(b"\n")


def test_a_failure_behind_quoted_newlines_names_the_row(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"1,a\n")
    (tmp_path / "in" / "b.csv.gz").write_bytes(gzip.compress(b'1,"a\na"\n2,b\nx,c\n'))
    with pytest.raises(FlowSqlError, match=r"b\.csv\.gz, row 3"):
        rows(tmp_path / "in", "")
