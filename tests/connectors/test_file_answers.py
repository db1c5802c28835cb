"""Files and what Flink 2.3 reads from them: each entry of ``data/*_answers.json`` is an answer of Flink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.formats import json_decode
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from tests.connectors.tables import scan, source_of, table_of

_DATA = Path(__file__).parent / "data"
_ANSWERS: list[dict[str, Any]] = [
    answer
    for format_ in ("csv", "json")
    for answer in json.loads((_DATA / f"{format_}_answers.json").read_text("utf-8"))
]


@pytest.mark.parametrize("answer", _ANSWERS, ids=[f"{a['format']}-{a['name']}" for a in _ANSWERS])
@pytest.mark.parametrize("max_rows", [65536, 1])
def test_file_reads_as_in_flink(answer: dict[str, Any], max_rows: int, tmp_path: Path) -> None:
    path = tmp_path / f"t.{answer['format']}"
    path.write_bytes(answer["file"].encode())
    options = {"connector": "filesystem", "path": str(path), "format": answer["format"], **answer["options"]}
    table = table_of(answer["columns"], options) if "error" not in answer else None
    select = None if answer["select"] == "*" else [answer["select"]]
    if "error" in answer:
        with pytest.raises(FlowSqlError) as caught:
            scan(table_of(answer["columns"], options), max_rows=max_rows, select=select)
        if "invalid-option" not in caught.value.code and "unsupported-type" not in caught.value.code:
            assert str(path) in caught.value.message
        return
    assert table is not None
    assert scan(table, max_rows=max_rows, select=select) == answer["rows"]


def test_invalid_utf8_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\xff,x\n")
    options = {"connector": "filesystem", "path": str(path), "format": "csv"}
    with pytest.raises(FlowSqlError, match="UTF-8"):
        scan(table_of("a STRING, b STRING", options))


def test_error_names_row_and_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1,a\n2,b\nx,c\n")
    options = {"connector": "filesystem", "path": str(path), "format": "csv"}
    with pytest.raises(FlowSqlError) as caught:
        scan(table_of("a INT, b STRING", options))
    assert 'For input string: "x"' in caught.value.message
    assert "row 3" in caught.value.message
    assert "field: a" in caught.value.message


def test_timestamps_outside_nanoseconds_are_refused_not_nulled(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0001-01-02 03:04:05.1\n")
    options = {"connector": "filesystem", "path": str(path), "format": "csv", "csv.ignore-parse-errors": "true"}
    with pytest.raises(FlowSqlError, match="outside the range"):
        scan(table_of("a TIMESTAMP(9)", options))


def test_header_option_skips_the_first_row_of_each_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,x\n")
    (tmp_path / "b.csv").write_text('id,"na\nme"\n2,NA\n')
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}
    table = table_of("id INT, name STRING", {**options, "csv.header": "true", "csv.null-literal": "NA"})
    assert scan(table) == [[1, "x"], [2, None]]


def test_rows_with_a_final_delimiter_throughout(tmp_path: Path) -> None:
    path = tmp_path / "t.tbl"
    path.write_text("".join(f"{n}|x{n}|\n" for n in range(2000)))
    options = {"connector": "filesystem", "path": str(path), "format": "csv", "csv.field-delimiter": "|"}
    assert scan(table_of("a INT, b STRING", options)) == [[n, f"x{n}"] for n in range(2000)]


def test_mixed_odd_rows_keep_file_order(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1,a\n2\n3,c,\n4,d,e\n5,e\n")
    options = {"connector": "filesystem", "path": str(path), "format": "csv", "csv.ignore-parse-errors": "true"}
    assert scan(table_of("a INT, b STRING", options)) == [[1, "a"], [2, None], [3, "c"], [5, "e"]]


@pytest.mark.parametrize("piece_bytes", [1, 40, 1 << 20])
def test_pieces_of_a_json_block_keep_order_and_line_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    monkeypatch.setattr(json_decode, "_PIECE_BYTES", piece_bytes)
    lines = [f'{{"a": {number}}}' for number in range(50)]
    lines[20], lines[40] = "", '{"a": "40"}'
    path = tmp_path / "t.json"
    path.write_text("\n".join(lines))
    table = table_of("a INT", {"connector": "filesystem", "path": str(path), "format": "json"})
    assert [row[0] for row in scan(table)] == [*range(20), *range(21, 50)]
    lines[45] = "no json"
    path.write_text("\n".join(lines))
    with pytest.raises(FlowSqlError, match="line 46: no json"):
        scan(table)


def test_one_bad_json_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    lines = [f'{{"a": {n}, "b": "{n}", "t": "2024-01-01 00:00:{n % 60:02d}"}}' for n in range(5000)]
    lines[3456] = '{"a": "3456", "b": 3.50, "t": "2024-01-01 00:00:36"}'
    path.write_text("\n".join(lines))
    options = {"connector": "filesystem", "path": str(path), "format": "json"}
    rows = scan(table_of("a INT, b STRING, t TIMESTAMP(3)", options))
    assert [row[0] for row in rows] == list(range(5000))
    assert rows[3456] == [3456, "3.50", "2024-01-01 00:00:36"]
    assert scan(table_of("a INT, b STRING, t TIMESTAMP(3)", options), select=[]) == [[]] * 5000


@pytest.mark.parametrize(
    ("key", "value"), [("json.decode.json-parser.enabled", "false"), ("source.report-statistics", "NONE")]
)
def test_options_that_would_have_no_effect_are_refused(tmp_path: Path, key: str, value: str) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "json", key: value}
    with pytest.raises(NotSupportedYetError, match=key):
        source_of(table_of("a INT", options))


def test_utf8_outside_ascii_is_checked_with_and_without_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    options = {"connector": "filesystem", "path": str(path), "format": "csv"}
    path.write_text('\u00e9,x\n"a\nb",y\n')
    assert scan(table_of("a STRING, b STRING", options)) == [["\u00e9", "x"], ["a\nb", "y"]]


@pytest.mark.parametrize("format_", ["csv", "parquet"])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(("mode", "inserted"), [("streaming", True), ("batch", True), ("batch", False)])
def test_a_table_without_files(tmp_path: Path, mode: str, inserted: bool, partitioned: bool, format_: str) -> None:
    """A partitioned table has no partitions; an INSERT makes the folder in batch mode alone."""
    made = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{mode}_mode")())
    made.get_config().set("execution.batch.engine", "local")
    made.execute_sql(
        f"CREATE TABLE t (id INT, p STRING) {'PARTITIONED BY (p)' if partitioned else ''} WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = '{format_}')"
    )
    if inserted:
        made.execute_sql("INSERT INTO t SELECT * FROM (VALUES (1, 'a')) AS v(a, b) WHERE a > 1").wait()
    query = made.execute_sql("SELECT * FROM t")
    if partitioned or (mode == "batch" and inserted):
        with query.collect() as rows:
            assert list(rows) == []
        return
    with pytest.raises(FlowSqlError, match="does not exist or the user"), query.collect() as rows:
        list(rows)
