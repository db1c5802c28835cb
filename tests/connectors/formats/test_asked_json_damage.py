"""Lines of JSON that are damaged or odd, read under ``ignore-parse-errors`` as Flink 2.3 reads them.

``asked_json_damage.json``: lines (a character a byte), and for each projection the rows that Flink made of each line;
null: none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql_connectors.formats.format import DecodeContext, FileView, Messages, Range
from flowsql_connectors.formats.jackson.tokens import JsonTokens, Token
from flowsql_connectors.formats.json import JsonFormat
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import ExecutionError
from tests.connectors.tables import columns_of, files_table, scan

ASKED = json.loads(Path(__file__).with_name("asked_json_damage.json").read_text(encoding="utf-8"))
LINES = [line.encode("latin-1") for line in ASKED["lines"]]
#: Damage in fields that nobody wants, which FlowSQL passes over: numbers that are none, more than 1,000 levels.
PASSED_OVER = (b"NaN", b"Infinity", b"[" * 1001)


def read(line: bytes, columns: str, names: list[str], ignore: bool) -> list[list[Any]]:
    """Return the rows of a file of one line."""
    schema = columns_of(columns)
    projection = tuple([column.name for column in schema].index(name) for name in names)
    format_ = JsonFormat(False, ignore, TextDialect.JSON_SQL, False, False)
    decoder = format_.decoder(DecodeContext(schema, projection, 65536, {}))
    data = line + b"\n"
    parts = list(decoder.read(FileView("x", len(data), None, data), Range(0, len(data))))
    return [[array[row].as_py() for array in part.arrays] for part in parts for row in range(part.num_rows)]


@pytest.mark.parametrize("asked", ASKED["answers"], ids=lambda asked: asked["select"])
def test_ignored_errors(asked: dict[str, Any]) -> None:
    names = [] if asked["select"] == "1" else asked["select"].split(", ")
    wrong = []
    for line, rows in zip(LINES, asked["rows"], strict=True):
        is_wanted = "b" in names and b'"z"' not in line
        if not is_wanted and any(damage in line for damage in PASSED_OVER):
            continue
        expected = [row if names else [] for row in rows or []]
        if (found := read(line, asked["columns"], names, ignore=True)) != expected:
            wrong.append((line, expected, found))
    assert wrong == []


def test_errors_end_the_job_where_a_field_or_a_row_was_lost() -> None:
    """A field that is NULL under ``ignore-parse-errors`` although it is not NULL in the line is an error without."""
    for line in (b'{"a":1,"b":"caf\xe9","c":2}', rb'{"a":1,"b":"\u12","c":2}', b'{"a":1,"b":"x"', b"[1]"):
        with pytest.raises(ExecutionError, match="deserialize"):
            read(line, "a INT, b STRING, c INT", ["a", "b", "c"], ignore=False)


@pytest.mark.parametrize(
    ("line", "columns", "row"),
    [
        ('{"a":{"x":1},"b":2}', "a BOOLEAN, b INT", [False, None]),
        ('{"b":2,"a":[true]}', "a BOOLEAN, b INT", [False, 2]),
        ('{"n":{"x":1,"x":2},"m":{"k":1,"k":2}}', "n ROW<x INT, y INT>, m MAP<STRING, INT>",
         [{"x": 2, "y": None}, [("k", 2)]]),
        ('{"n":{"x":1,"x":2}}', "n ROW<x INT>", [{"x": 1}]),
        ('{"s":{"a":[1.50,{"b":"\\ud83d"}]}}', "s STRING", ['{"a":[1.5,{"b":"?"}]}']),
        ('{"m":{"\\ud83d":"\\ud83d\\ude00"}}', "m MAP<STRING, STRING>", [[("?", "😀")]]),
    ],
)  # fmt: skip
def test_containers(line: str, columns: str, row: list[Any]) -> None:
    names = [column.name for column in columns_of(columns)]
    assert read(line.encode(), columns, names, ignore=True) == [row]


def test_tokens_go_on_behind_a_text_that_cannot_be_read() -> None:
    tokens = JsonTokens(b'{"a":"caf\xe9","b":[1,-2.50e3,true]}')
    assert [tokens.advance() for _ in range(3)] == [Token.OBJECT, Token.NAME, Token.TEXT]
    with pytest.raises(ValueError, match="Invalid UTF-8 middle byte 0x22"):
        tokens.text()
    assert (tokens.advance(), tokens.text()) == (Token.NAME, "b")
    tokens.advance()
    assert tokens.tree() == ["1", "-2.50e3", True]
    assert tokens.advance() is Token.END_OBJECT
    assert tokens.advance() is None


def test_a_document_is_nested_a_thousand_deep_at_most() -> None:
    def tree(depth: int) -> Any:
        tokens = JsonTokens(b"[" * depth + b"]" * depth)
        tokens.advance()
        return tokens.tree()

    assert len(tree(1000)) == 1
    with pytest.raises(ValueError, match="nesting depth"):
        tree(1001)


def test_a_line_feed_inside_of_a_text_of_a_message() -> None:
    format_ = JsonFormat(False, False, TextDialect.JSON_SQL, False, False)
    decoder = format_.message_decoder(DecodeContext(columns_of("a STRING, b INT"), (0, 1), 65536, {}))
    messages = [b'{"a":"x\ny",\n"b":1}', b'{\n"a":"z",\r\n"b":2}', b'{"a":"\\"\n\\\\",\n"b":3}', b'{"a":"w","b":4}']
    found = decoder.decode(Messages(pa.array(messages, pa.binary()), str))
    assert list(zip(*(array.to_pylist() for array in found.arrays), strict=True)) == [
        ("x\ny", 1), ("z", 2), ('"\n\\', 3), ("w", 4),
    ]  # fmt: skip


def test_changes_are_read_as_whole_objects(tmp_path: Path) -> None:
    """As Flink answered: of a field given twice the last one counts, and a text that cannot be read loses its line."""
    deep = "[" * 700 + "]" * 700

    def event(text: bytes) -> bytes:
        return b'{"before":null,"after":{"i":1,"s":%b},"op":"c"}' % text

    lines = [
        event(b'"x\ty"'), event(rb'"\ud83d"'), event(b'"caf\xe9"'), event(rb'"\u12"'), event(deep.encode()),
        b"\xef\xbb\xbf" + event(b'"bom"'), b'{"z":%b,"before":null,"after":{"i":9,"s":"q"},"op":"c"}' % deep.encode(),
        b'{"before":null,"after":{"i":1,"i":2,"s":"d"},"op":"c","op":"c"}',
    ]  # fmt: skip
    (tmp_path / "x").write_bytes(b"\n".join(lines) + b"\n")
    table = files_table("i INT, s STRING", tmp_path, "debezium-json", debezium_json__ignore_parse_errors="true")
    assert scan(table) == [[1, "x\ty"], [1, "?"], [1, deep], [1, "bom"], [9, "q"], [2, "d"]]


def test_messages_of_csv_have_fractions_without_zeros_at_their_end() -> None:
    """As Flink writes them, by Arrow and by kernels."""
    moments = pa.array([0, 100, 120, 123, 1_000, None], pa.timestamp("ms"))
    table = files_table("t TIMESTAMP(3), z TIMESTAMP_LTZ(3)", "x", "csv")
    format_ = format_factory("csv").create(OptionValues({}), table)
    expected = ["00", "00.1", "00.12", "00.123", "01"]
    lines = [f'"1970-01-01 00:00:{text}","1970-01-01 00:00:{text}Z"' for text in expected] + [","]
    for times in (1, 20_000):
        encoder = format_.message_encoder(table.columns)
        plain = pa.concat_arrays([moments] * times)
        columns = (plain, plain.cast(pa.timestamp("ms", "UTC")))
        made = encoder.encode(columns, len(columns[0]))
        assert [value.decode() for value in made[:6].to_pylist()] == lines
        assert made[-6:].equals(made[:6])
