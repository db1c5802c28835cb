"""json tables with maps, bytes and fields that must be there: in bulk they read what the exact rules read by lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flowsql_connectors import registry
from flowsql_connectors.formats import json_decode
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from flowsql_connectors.formats.json import JsonFormat
from flowsql_connectors.formats.json_decode import JsonDecoder
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.logical import Schema
from tests.connectors.tables import columns_of, table_of

COLUMNS = columns_of(
    "id INT, m MAP<STRING, INT>, n MAP<STRING, MAP<STRING, DOUBLE>>, r ROW<t MAP<STRING, STRING>, z INT>,"
    " l ARRAY<MAP<STRING, DATE>>, s MULTISET<STRING>, b BYTES, g ARRAY<ARRAY<INT>>, w MAP<STRING, ARRAY<ROW<z BYTES>>>"
)
#: Texts of values that the columns take, and of others, by column.
VALUES = {
    "id": ["1", "-7", "null", '"8"', "1.5", "9e1", "true", "{}", "99999999999"],
    "m": ["null", "{}", '{"a":1}', ' { "b" : 2 , "a" : null } ', '{"a":1,"a":2}', '{"\\u0061":1,"a":2,"b":3}',
        '{"":0}', '{"k3":1,"a":2,"b":3,"c":4,"abcdef":5,"dd":6,"é\\"\\n":7}', "[]", "[1]", '"x"', "1", '{"a":"x"}',
        '{"a":1,}', '{"a" 1}', '{"a":[1]}', '{"a":1.9}', '{"a":01}', '{1:2}'],
    "n": ["null", "{}", '{"x":{"p":1.5,"q":null},"y":null}', '{"x":{},"x":{"p":1}}', '{"x":[]}', '{"x":{"p":"1"}}'],
    "r": ["null", "{}", '{"t":{"k":"v"},"z":1}', '{"z":2,"t":{}}', '{"t":{"k":5}}', '{"z":1,"z":2}', '{"t":[]}', "[]",
        '{"t":null,"y":{"t":{"a":"b"},"z":[{}]}}', '{"\\u007a":1}', '{"t":{"k":{"o":1}}}'],
    "l": ["null", "[]", '[{"a":"2020-01-01"},null,{}]', '[{"a":"2020-1-1"}]', '{"a":"2020-01-01"}', '["a"]'],
    "s": ["null", "{}", '{"e":2,"f":1}', '{"e":2,"e":3}', '{"e":"2"}'],
    "b": ["null", '""', '"YWJj"', '"YQ=="', '"YWI="', '"/+8="', '"YQ"', '"*"', '"===="', "1", "[]"],
    "g": ["null", "[]", "[[1],[],null]", "[1]", "[[1,]]"],
    "w": ["null", '{"a":[{"z":"YWJj"},null,{}]}', '{"a":[]}', '{"a":[{"z":"?"}]}', '{"a":{"z":"YQ=="}}'],
}  # fmt: skip
OTHER = ["1", '"{"', '{"m":{"a":[{}]},"l":[]}', "[[],[{}]]", "tru", "{", '"\\u00"', "1 2"]
LINES = ["", " ", "\r", "{}", "null", "[]", '[{"id":1},{"id":2}]', '{"id":1} x', '{"id":1}{"id":2}', "{", "}",
         "[1]", '{"id":1,"id":2}', '{"i\\u0064":3}', '{"m":{"a":1},"m":{"b":2}}', '{"id"}', "{'id':1}",
         '{"id":\t4\t}\r']  # fmt: skip


@st.composite
def _line(draw: st.DrawFn, oddness: int) -> str:
    if draw(st.integers(0, 19)) < oddness:
        return draw(st.sampled_from(LINES))
    members = []
    for name in draw(st.permutations(list(VALUES))):
        if draw(st.integers(0, 5)):
            pool = VALUES[name][: 3 if oddness == 0 else None]
            members.append(f'"{name}":{draw(st.sampled_from(pool))}')
        if oddness and not draw(st.integers(0, 19)):
            members.append(f'"other":{draw(st.sampled_from(OTHER))}')
    blank = draw(st.sampled_from(["", "", " ", "\t"]))
    return "{" + f"{blank},{blank}".join(members) + "}" + blank


@st.composite
def _files(draw: st.DrawFn) -> str:
    oddness = draw(st.integers(0, 4))
    lines = draw(st.lists(_line(oddness), min_size=1, max_size=8))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


def _format(lenient: bool, complete: bool) -> JsonFormat:
    return JsonFormat(complete, lenient, TextDialect.JSON_SQL, False, False)


def _read(path: Path, columns: Schema, format_: JsonFormat, wanted: tuple[int, ...], exact: bool) -> Any:
    decoder = format_.decoder(DecodeContext(columns, wanted, 65536, {}))
    assert isinstance(decoder, JsonDecoder)
    if exact:
        decoder.read_one_by_one()
    size = path.stat().st_size
    try:
        parts = list(decoder.read(FileView(str(path), size), Range(0, size)))
    except FlowSqlError as error:
        return error.message
    for part in parts:
        for array in part.arrays:
            array.validate(full=True)
    return [(part.num_rows, [(str(array.type), array.to_pylist()) for array in part.arrays]) for part in parts]


@settings(max_examples=max(200, settings().max_examples), deadline=None)
@example(text='{"m":{"\\u0061":1,"a":2,"b":3},"r":{"t":{"k":"v"},"y":{"t":1}}}', seed=0, flags=(False, False))
@given(text=_files(), seed=st.integers(0, 7), flags=st.sampled_from([(False, False), (True, False), (False, True)]))
def test_bulk_reads_what_the_exact_rules_read(
    tmp_path_factory: pytest.TempPathFactory, text: str, seed: int, flags: tuple[bool, bool]
) -> None:
    wanted = tuple(range(len(COLUMNS))) if seed < 4 else ((), (1,), (6, 3), (8, 2, 0))[seed - 4]
    path = tmp_path_factory.mktemp("json") / "t.json"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        # Halved down to single lines.
        patch.setattr(json_decode, "_SMALL_BYTES", 1)
        found = _read(path, COLUMNS, _format(*flags), wanted, exact=False)
    assert found == _read(path, COLUMNS, _format(*flags), wanted, exact=True)


@pytest.mark.parametrize(
    ("ddl", "complete", "line"),
    [
        ("id INT, m MAP<STRING, INT>", False, '{"m": {"b": 1, "a": NUMBER}, "id": NUMBER, "more": {"id": [1]}}'),
        ("id INT, n ROW<m MAP<STRING, MAP<STRING, INT>>>", False, '{"id": NUMBER, "n": {"m": {"b": {"c": NUMBER}}}}'),
        ("id INT, s MULTISET<STRING>", False, '{"id": NUMBER, "s": {"aNUMBER": 2}}'),
        ("id INT, b BYTES", False, '{"id": NUMBER, "b": "YWJj"}'),
        ("id INT, r ROW<z INT>", True, '{"id": NUMBER, "r": {"z": NUMBER}}'),
    ],
)
def test_only_lines_about_an_odd_one_are_read_by_the_exact_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ddl: str, complete: bool, line: str
) -> None:
    exact: list[int] = []
    line_by_line = JsonDecoder._line_by_line

    def counted(decoder: JsonDecoder, data: bytes, first_line: int) -> Any:
        exact.append(data.count(b"\n"))
        return line_by_line(decoder, data, first_line)

    monkeypatch.setattr(JsonDecoder, "_line_by_line", counted)
    columns = columns_of(ddl)
    lines = [line.replace("NUMBER", str(number)) for number in range(20_000)]
    path = tmp_path / "t.json"
    path.write_text("\n".join(lines) + "\n")
    wanted = (0, 1)
    ((rows, plain),) = _read(path, columns, _format(False, complete), wanted, exact=False)
    assert (rows, exact) == (20_000, [])
    lines[9_000] = lines[9_000].replace('"id": 9000', '"id": "+7"')
    path.write_text("\n".join(lines) + "\n")
    ((rows, mixed),) = _read(path, columns, _format(False, complete), wanted, exact=False)
    assert rows == 20_000
    assert mixed[0][1][9_000] == 7
    assert mixed[1] == plain[1]
    assert 0 < sum(exact) < 200


@pytest.mark.parametrize("ddl", ["s STRING", "s STRING, m MAP<STRING, STRING>"])
def test_lines_that_are_no_utf8_are_bad(tmp_path: Path, ddl: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'{"s": "a"}\n{"s": "b\xff", "m": {"\xfe": "x"}}\n{"s": "\xc3\xa4"}\n')
    ((rows, arrays),) = _read(path, columns_of(ddl), _format(True, False), (0,), exact=False)
    assert (rows, arrays[0][1]) == (2, ["a", "ä"])
    message = _read(path, columns_of(ddl), _format(False, False), (0,), exact=False)
    assert "Invalid UTF-8 start byte 0xff" in message
    assert "line 2: " in message


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    columns = columns_of("id INT, m MAP<STRING, INT>")
    lines = [json.dumps({"id": number, "m": {"a": number}}) for number in range(30_000)]
    lines[20_000] = '{"id": 1, "m": {"a": "x"}}'
    path = tmp_path / "t.json"
    path.write_text("\n".join(lines) + "\n")
    message = _read(path, columns, _format(False, False), (0, 1), exact=False)
    assert re.search(r'Fail to deserialize at field: m\. .*\nin file .*t\.json, line 20001: \{"id": 1, ', message)


#: What Flink 2.3 reads, NULL where it says so with ``json.ignore-parse-errors``; None: it drops the line.
FLINK: list[tuple[str, list[Any] | None]] = [
    ('{"id": 1, "m": {"b": 1, "a": 2, "b": 3}}', [1, {"a": 2, "b": 3}]),
    ('{"id": 2, "m": {}}', [2, {}]),
    ('{"id": 3, "m": {"k3": 1, "": 7, "\\u00e4\\"": 8}, "x": {"d": [1, {"x": 2}]}}', [3, {"k3": 1, "": 7, 'ä"': 8}]),
    ('{"id": 4, "m": {"a": "x", "b": 2}}', [4, {"a": None, "b": 2}]),
    ('{"id": 5, "m": [1]}', [5, None]),
    ('{"id": 6, "m": "text"}', [6, None]),
    ('{"id": 7, "m": {"a": 1.7, "b": "5", "c": true}}', [7, {"a": 1, "b": 5, "c": None}]),
    ('{"id": 8, "m": []}', [8, None]),
    ('{"id": 9, "m": {"a": 1}} trailing', [9, {"a": 1}]),
    ('{"id": 10, "m": {"a": 1}', None),
    ('{"id": 11, "m": {"a": 3000000000}}', [11, {"a": None}]),
    ('{"i\\u0064": 12, "m": {"a": 1}}', [12, {"a": 1}]),
    ("null", None),
    ('{"id": 13, "m": {"a": 01}}', None),
]


def test_maps_are_flinks(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("\n".join(line for line, _ in FLINK))
    ((rows, ((_, ids), (_, maps))),) = _read(
        path, columns_of("id INT, m MAP<STRING, INT>"), _format(True, False), (0, 1), exact=False
    )
    answers = [answer for _, answer in FLINK if answer is not None]
    found = [[number, None if pairs is None else dict(pairs)] for number, pairs in zip(ids, maps, strict=True)]
    assert rows == len(answers)
    assert found == answers


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ("MAP<INT, INT>", "MAP<INT, INT>"),
        ("MULTISET<INT>", "MULTISET<INT>"),
        ("ARRAY<ROW<x MAP<STRING, MAP<DATE, STRING>>>>", "MAP<DATE, STRING>"),
    ],
)
def test_keys_are_texts(column: str, named: str) -> None:
    table = table_of(f"a INT, m {column}", {"connector": "filesystem", "path": "/t", "format": "json"})
    with pytest.raises(
        BindError, match=f"JSON format doesn't support non-string as key type of map. The type is: {re.escape(named)}"
    ):
        registry.create_source(ScanSpec(table, (0,), table.columns[:1]), {})


def test_entries_stand_in_flinks_order(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"m": {"k3": 1, "a": 2, "b": 3, "c": 4, "abcdef": 5, "dd": 6}}\n' * 3)
    ((_, ((_, maps),)),) = _read(path, columns_of("m MAP<STRING, INT>"), _format(False, False), (0,), exact=False)
    assert [[key for key, _ in entries] for entries in maps] == [["k3", "a", "dd", "c", "b", "abcdef"]] * 3
