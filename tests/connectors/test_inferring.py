"""Files that nobody declared: the same table in all forms of files, and what is said of files that are none."""

from __future__ import annotations

import bz2
import datetime
import gzip
import lzma
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.formats.inferring.csv_dialect import find_dialect
from flowsql_connectors.formats.inferring.texts import type_of_texts
from flowsql_core.errors import FlowSqlError

CSV = (
    "id,name,born,seen,score,paid\n"
    '1,"a, ""b""\nc",1990-01-31,2024-05-01 10:00:00.5,1.5,true\n'
    "2,NA,NA,NA,NA,NA\n"
    "3,ü,2000-02-29,2024-05-01 10:00:01,2,false\n"
)
ROWS: list[tuple[Any, ...]] = [
    (1, 'a, "b"\nc', datetime.date(1990, 1, 31), datetime.datetime(2024, 5, 1, 10, 0, 0, 500_000), 1.5, True),
    (2, None, None, None, None, None),
    (3, "ü", datetime.date(2000, 2, 29), datetime.datetime(2024, 5, 1, 10, 0, 1), 2.0, False),
]
JSON = (
    '{"id": 1, "name": "a, \\"b\\"\\nc", "born": "1990-01-31", "seen": "2024-05-01 10:00:00.5", '
    '"score": 1.5, "paid": true}\n'
    '{"id": 2}\n'
    '{"id": 3, "name": "ü", "born": "2000-02-29", "seen": "2024-05-01 10:00:01", "score": 2, "paid": false}\n'
)
TYPES = ["BIGINT", "STRING", "DATE", "TIMESTAMP(3)", "DOUBLE", "BOOLEAN"]


def plain(data: bytes) -> bytes:
    return data


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


FORMS: list[tuple[str, str, Callable[[bytes], bytes]]] = [
    ("t.csv", CSV, plain),
    ("t.CSV", CSV, plain),
    ("t.csv.gz", CSV, gzip.compress),
    ("t.csv.bz2", CSV, bz2.compress),
    ("t.csv.xz", CSV, lzma.compress),
    ("t.csv.zst", CSV, zstd),
    ("t.csv", "\ufeff" + CSV, plain),
    ("t.csv", CSV.replace("\n", "\r\n").replace('""\r\nc', '""\nc'), plain),
    ("t.csv", CSV.removesuffix("\n"), plain),
    ("t.csv", CSV.replace("\n2,", "\n\n2,") + "\n\n", plain),
    ("t.csv", CSV.replace(",", ";").replace("a; ", "a, "), plain),
    ("t.csv", CSV.replace(",", "|").replace("a| ", "a, "), plain),
    ("t.tsv", CSV.replace(",", "\t").replace("a\t ", "a, "), plain),
    ("t.csv", CSV.replace("NA", ""), plain),
    ("t.csv", CSV.replace("NA", "\\N"), plain),
    ("t.csv", CSV.replace("NA", "NULL"), plain),
    ("t.csv", CSV.replace("NA", "N/A", 2).replace("NA", "null"), plain),
    ("t.csv", CSV.replace("2024-05-01 ", "2024-05-01T"), plain),
    ("t.json", JSON, plain),
    ("t.jsonl", JSON, plain),
    ("t.ndjson.gz", JSON, gzip.compress),
    ("t.jsonl", JSON.replace("2024-05-01 ", "2024-05-01T"), plain),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["streaming", "batch"])
def environment(request: pytest.FixtureRequest) -> TableEnvironment:
    return session(request.param)


def session(mode: str = "batch") -> TableEnvironment:
    in_mode = EnvironmentSettings.in_streaming_mode if mode == "streaming" else EnvironmentSettings.in_batch_mode
    environment = TableEnvironment.create(in_mode())
    environment.get_config().set("table.local-time-zone", "UTC")
    return environment


def rows(environment: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with environment.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


def types(environment: TableEnvironment, name: str) -> list[str]:
    return [row[1] for row in rows(environment, f"DESCRIBE '{name}'")]


@pytest.mark.parametrize(("name", "text", "packed"), FORMS)
def test_one_table_in_many_forms(
    name: str, text: str, packed: Callable[[bytes], bytes], environment: TableEnvironment
) -> None:
    Path(name).write_bytes(packed(text.encode()))
    assert types(environment, name) == TYPES
    assert rows(environment, f"SELECT * FROM '{name}'") == ROWS


def test_parquet_has_its_own_types(environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    moment = datetime.datetime(2024, 5, 1, 10)
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "t": pa.array([moment, None], pa.timestamp("us")),
            "z": pa.array([moment, None], pa.timestamp("ms", "UTC")),
            "l": pa.array([[1.5], None], pa.list_(pa.float64())),
            "n": pa.array([None, None], pa.null()),
        }
    )
    pq.write_table(table, "t.parquet")
    assert types(environment, "t.parquet") == [
        "INT", "DECIMAL(5, 2)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "ARRAY<DOUBLE>", "STRING",
    ]  # fmt: skip
    found = rows(environment, "SELECT i, d, CAST(t AS STRING), CAST(z AS STRING), l, n FROM 't.parquet'")
    stamp = "2024-05-01 10:00:00.000"
    assert found == [(1, Decimal("1.50"), stamp + "000", stamp, [1.5], None), (None,) * 6]


def test_columns_of_several_parquet_files_are_put_together(environment: TableEnvironment) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), "1.parquet")
    pq.write_table(pa.table({"b": ["x"], "a": pa.array([2**40], pa.int64())}), "2.parquet")
    assert sorted(rows(environment, "SELECT a, b FROM '*.parquet'")) == [(1, None), (2**40, "x")]


def test_home_and_file_uris(environment: TableEnvironment, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    Path("t.csv").write_text("n\n1\n")
    assert rows(environment, "SELECT n FROM '~/t.csv'") == [(1,)]
    assert rows(environment, f"SELECT n FROM '{(folder / 't.csv').as_uri()}'") == [(1,)]


def test_a_file_that_changed_is_looked_at_again(environment: TableEnvironment) -> None:
    Path("t.csv").write_text("n\n1\n")
    assert types(environment, "t.csv") == ["BIGINT"]
    Path("t.csv").write_text("n,m\n1,x\n")
    assert types(environment, "t.csv") == ["BIGINT", "STRING"]


def test_a_view_stays_where_it_was_made(environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("n\n1\n")
    environment.execute_sql("CREATE VIEW v AS SELECT t.n + 1 AS m FROM 't.csv'")
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert rows(environment, "SELECT m FROM v") == [(2,)]


def test_show_create_table_prints_what_makes_the_same_table(environment: TableEnvironment) -> None:
    Path("a b.csv").write_text("n|t\n1|2024-05-01T10:00:00Z\n||\n".replace("||", "NA|"))
    [(ddl,)] = rows(environment, "SHOW CREATE TABLE 'a b.csv'")
    assert ddl == (
        "CREATE TABLE `a b` (\n  `n` BIGINT,\n  `t` TIMESTAMP(3) WITH LOCAL TIME ZONE\n)\nWITH (\n"
        "  'columns.inferred' = 'true',\n  'connector' = 'filesystem',\n  'csv.field-delimiter' = '|',\n"
        "  'csv.header' = 'true',\n  'csv.null-literals' = ';NA',\n  'csv.timestamp-format.standard' = 'ISO-8601',\n"
        "  'format' = 'csv',\n  'path' = 'a b.csv'\n)\n"
    )
    environment.execute_sql(ddl)
    assert rows(environment, "SELECT n, t FROM `a b`") == rows(environment, "SELECT n, t FROM 'a b.csv'")


def test_later_values_of_another_type_are_errors_that_tell_what_to_do() -> None:
    environment = session()
    for number in range(20):
        Path(f"{number:02}.csv").write_text(
            "n,ok\n1,true\n" + ("2.5,true\n" if number == 10 else "2,yes\n" if number == 12 else "")
        )
    with pytest.raises(FlowSqlError) as caught:
        rows(environment, "SELECT n FROM '*.csv'")
    assert 'field: n. For input string: "2.5"' in caught.value.message
    assert "in file 10.csv, row 3" in caught.value.message
    assert "CREATE TABLE t (`n` STRING) LIKE FILE '*.csv'" in caught.value.render()
    with pytest.raises(FlowSqlError, match=r"field: ok\. 'yes' is neither true nor false\nin file 12\.csv, row 3"):
        rows(environment, "SELECT ok FROM '*.csv'")
    environment.execute_sql("CREATE TABLE t (n STRING, ok STRING) LIKE FILE '*.csv'")
    assert rows(environment, "SELECT COUNT(*), MAX(n), MAX(ok) FROM t") == [(22, "2.5", "yes")]


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ('{"n": 1.5}', 'field: n. For input string: "1.5"'),
        ('{"ok": "maybe"}', "field: ok. maybe is neither true nor false"),
        ('{"n": {"x": 1}}', 'field: n. {"x":1} is no BIGINT'),
    ],
)
def test_later_values_of_json(late: str, said: str) -> None:
    for number in range(20):
        Path(f"{number:02}.jsonl").write_text('{"n": 1, "ok": true}\n' + (f"{late}\n" if number == 10 else ""))
    with pytest.raises(FlowSqlError) as caught:
        rows(session(), "SELECT * FROM '*.jsonl'")
    assert said in caught.value.message
    assert "in file 10.jsonl, line 2" in caught.value.message
    assert "LIKE FILE '*.jsonl'" in caught.value.render()


ERRORS = [
    ("SELECT * FROM 'flihgts.csv'", "File flihgts.csv does not exist.", "did you mean 'flights.csv'?"),
    ("SELECT * FROM 'dta/x.csv'", "File dta/x.csv does not exist.", "did you mean 'data'?"),
    ("SELECT * FROM 'flights.cvs'", "File flights.cvs does not exist.", "did you mean 'flights.csv'?"),
    ("SELECT * FROM 'data/*.json'", "No file matches data/*.json.", "the folder data holds a.csv"),
    ("SELECT * FROM 'hollow'", "There is no file in hollow.", "names that start with . or _ do not count"),
    ("SELECT * FROM 'empty.csv'", "File empty.csv is empty: columns cannot be inferred.", "CREATE TABLE with columns"),
    ("SELECT * FROM 'blank.jsonl'", "File blank.jsonl is empty: columns cannot be inferred.", "CREATE TABLE with"),
    ("SELECT * FROM 'notes.txt'", "No format goes by the suffix '.txt' of file notes.txt.", ".csv, .tsv, .json"),
    ("SELECT * FROM 'plain'", "No format goes by the name of file plain.", "/*+ OPTIONS('format' = 'csv') */"),
    ("SELECT * FROM 'x.parquet.gz'", "File x.parquet.gz is compressed as a whole, which parquet files are not.", ""),
    ("SELECT * FROM 'x.parquet'", "File x.parquet is no readable parquet file", ""),
    ("SELECT * FROM 'array.json'", "File array.json holds an array, but json files are read", "jq -c '.[]'"),
    ("SELECT * FROM 'long.json'", "File long.json holds an object over several lines", "jq -c '.'"),
    ("SELECT * FROM 'bare.jsonl'", "The objects of file bare.jsonl have no fields.", ""),
    ("SELECT * FROM 'words.jsonl'", "Line 1 of file words.jsonl holds no JSON object", ""),
    ("SELECT * FROM 'broken.csv.gz'", "File broken.csv.gz cannot be decompressed as gzip", ""),
    ("SELECT * FROM 'latin.csv'", "Invalid UTF-8 in file latin.csv", ""),
    ("SELECT * FROM 'mixed'", "mixed holds files of several formats: mixed/a.csv is csv, mixed/b.json is json.",
     "name those of one format, e.g. 'mixed/*.csv'"),
    ("SELECT * FROM 'widths/*.csv'", "File widths/b.csv has 2 fields in a row, not 1 as widths/a.csv", "name files of"),
    ("SELECT * FROM 'heads/*.csv'", "File heads/b.csv does not begin with the header of heads/a.csv", "name files of"),
    ("SELECT * FROM 'nowhere://bucket/x.csv'", "Could not find a file system implementation", ""),
    ("SELECT * FROM ''", "Path should not be null or empty.", ""),
    ("DESCRIBE 'flihgts.csv'", "File flihgts.csv does not exist.", "did you mean 'flights.csv'?"),
    ("SHOW CREATE TABLE 'flihgts.csv'", "File flihgts.csv does not exist.", "did you mean 'flights.csv'?"),
    ("CREATE TABLE t LIKE FILE 'flihgts.csv'", "File flihgts.csv does not exist.", "did you mean 'flights.csv'?"),
    ("SELECT * FROM 'flights.csv' f, 'flights.csv' f", "Duplicate relation name 'f' in FROM clause", "an alias"),
    ("SELECT * FROM flights.csv", "Object 'flights' not found", "a file stands in quotes: 'flights.csv'"),
    ("INSERT INTO 'flights.csv' SELECT 1", "SQL parse failed. Encountered", "files are written through a table"),
    ("SELECT x FROM 'flights.csv'", "Column 'x' not found in any table", ""),
    ("SELECT data.n FROM 'data/*.csv'", "Table 'data' not found", ""),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "message", "hint"), ERRORS, ids=[sql for sql, *_ in ERRORS])
def test_what_is_wrong_stands_in_a_sentence_at_its_place(sql: str, message: str, hint: str, folder: Path) -> None:
    files = {
        "flights.csv": b"n\n1\n",
        "data/a.csv": b"n\n1\n",
        "hollow/_x.csv": b"n\n1\n",
        "empty.csv": b"",
        "plain": b"1\n",
        "notes.txt": b"x\n",
        "x.parquet.gz": b"x",
        "x.parquet": b"x",
        "array.json": b'[{"a": 1}]\n',
        "blank.jsonl": b"\n\n",
        "long.json": b'{\n "a": 1\n}\n',
        "words.jsonl": b"word\n",
        "bare.jsonl": b"{}\n",
        "broken.csv.gz": b"x",
        "latin.csv": b"n\n\xff\n",
        "mixed/a.csv": b"n\n1\n",
        "mixed/b.json": b'{"n": 1}\n',
        "widths/a.csv": b"n\n1\n",
        "widths/b.csv": b"n,m\n1,2\n",
        "heads/a.csv": b"n,m\n1,2\n",
        "heads/b.csv": b"n,o\n1,2\n",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    with pytest.raises(FlowSqlError) as caught:
        rows(session(), sql)
    assert caught.value.message.startswith(message)
    assert hint in (caught.value.hint or "")
    assert "^" in caught.value.render()


def test_an_unreadable_folder_is_said(folder: Path) -> None:
    Path("a.csv").symlink_to("nowhere.csv")
    with pytest.raises(FlowSqlError, match="does not exist"):
        rows(session(), "SELECT * FROM 'a.csv'")


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1", "-2", "0"], "BIGINT"),
        (["1", "2.5", "-.5", "1e3", "NaN", "-Infinity"], "DOUBLE"),
        (["007"], "STRING"),
        (["+1"], "STRING"),
        (["9223372036854775808"], "STRING"),
        (["0x1F"], "STRING"),
        (["-"], "STRING"),
        (["1", "x"], "STRING"),
        (["true", "FALSE", "True"], "BOOLEAN"),
        (["true", "yes"], "STRING"),
        (["2024-02-29"], "DATE"),
        (["2023-02-29"], "STRING"),
        (["2024-1-1"], "STRING"),
        (["2024-01-01 00:00:00"], "TIMESTAMP(3)"),
        (["2024-01-01 00:00:00.1234"], "TIMESTAMP(6)"),
        (["2024-01-01T00:00:00.123456789", "2024-01-01T00:00"], "TIMESTAMP(9)"),
        (["2024-01-01T25:00:00"], "STRING"),
        (["2024-01-01T00:00:00Z", "2024-01-01 00:00:00.5+05:30"], "TIMESTAMP_LTZ(3)"),
        (["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"], "STRING"),
        (["2024-01-01", "2024-01-01 00:00:00"], "STRING"),
        ([], "STRING"),
        ([""], "STRING"),
    ],
)
def test_types_of_texts(texts: list[str], type_: str) -> None:
    assert str(type_of_texts(pa.array(texts, pa.string())).type) == type_


@pytest.mark.parametrize(
    ("text", "delimiter", "quote", "width"),
    [
        ("a,b\n1,2\n", ",", '"', 2),
        ("a;b\n1,5;2,5\n", ";", '"', 2),
        ("a\tb,c\n1\t2,3\n", "\t", '"', 2),
        ('"a,b";c\n"d,e";f\n', ";", '"', 2),
        ("one\ntwo\n", ",", '"', 1),
        ("a, it's,b\n1,2,3\n", ",", '"', 3),
        ("'a,b','c'\n'd,e','f'\n", ",", "'", 2),
        ("a,b\n\n1,2\n", ",", '"', 2),
        ('a,b\n1,"x\ny"\n2,"z', ",", '"', 2),
    ],
)
def test_dialects(text: str, delimiter: str, quote: str, width: int) -> None:
    found = find_dialect(text, None, None, None)
    assert (found.dialect.delimiter, found.dialect.quote, found.width) == (delimiter, quote, width)
