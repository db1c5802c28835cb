"""Change formats: in bulk they read what the exact rules read by lines; what is wrong is told with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flowsql_connectors.filesystem.options import FILESYSTEM_OPTIONS
from flowsql_connectors.formats import json_decode
from flowsql_connectors.formats.change.decode import ChangeDecoder
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from flowsql_connectors.formats.registry import format_factory
from flowsql_core.errors import FlowSqlError
from flowsql_core.row import SHORT_STRINGS
from tests.connectors.tables import columns_of, scan, table_of

DDL = "id INT, v STRING, d DECIMAL(6, 2), n ROW<v STRING>, m MAP<STRING, INT>, l ARRAY<INT>"
COLUMNS = columns_of(DDL)
VALUES = {
    "id": ["1", "-7", "null", '"8"', '"x"', "1.5", "{}"],
    "v": ['"a"', '""', "null", '"é\\n"', "1", "1.50", "true", '{"v":[1.0]}'],
    "d": ['"1.50"', "2", "null", '"1.555"', "[]"],
    "n": ['{"v":"z"}', "null", "{}", '{"v":1}', "[]"],
    "m": ['{"v":1}', "null", '{"id":2,"id":3}', "[]"],
    "l": ["[1,null]", "null", "[]", '["2"]', "{}"],
}
#: By format: name of the row before, of the new row, and of the operation; the words of it.
STYLES = {
    "debezium-json": ("before", "after", "op", ["c", "r", "u", "d", "x"]),
    "ogg-json": ("before", "after", "op_type", ["I", "U", "D", "T", "i"]),
    "maxwell-json": ("old", "data", "type", ["insert", "update", "delete", "INSERT"]),
    "canal-json": ("old", "data", "type", ["INSERT", "UPDATE", "DELETE", "CREATE", "QUERY"]),
}
METADATA = {"debezium-json": ("source.timestamp", "source.table"), "canal-json": ("database", "sql-type"),
            "maxwell-json": ("table",), "ogg-json": ("event-timestamp", "primary-keys")}  # fmt: skip
EXTRA = ['"source":{"ts_ms":7,"table":"t"}', '"source":{"ts_ms":"x"}', '"source":null', '"database":"d1"',
         '"database":null', '"database":1', '"table":"t"', '"sqlType":{"id":4}', '"op_ts":"2024-03-01 10:00:00.000001"',
         '"op_ts":"2024-02-30 10:00:00.000000"', '"op_ts":5', '"primary_keys":["id"]', '"ts":1']  # fmt: skip
LINES = ["", " ", "null", "{}", "[]", "1", "{", '{"old":[{}],"old":[{"v":1}]}', "[{}]"]


@st.composite
def _row(draw: st.DrawFn, oddness: int) -> str:
    if draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from(["null", "{}", "[]", '"x"'] if oddness else ["null", "{}"]))
    members = [
        f'"{name}":{draw(st.sampled_from(VALUES[name] if oddness else VALUES[name][:3]))}'
        for name in draw(st.permutations(list(VALUES)))
        if draw(st.integers(0, 2))
    ]
    return "{" + ",".join(members) + "}"


@st.composite
def _line(draw: st.DrawFn, format_: str, oddness: int) -> str:
    if draw(st.integers(0, 19)) < oddness:
        return draw(st.sampled_from(LINES))
    before, after, op, words = STYLES[format_]
    members = []
    for name in (before, after):
        if draw(st.integers(0, 9)):
            if format_ == "canal-json":
                rows = draw(st.lists(_row(oddness), min_size=1, max_size=3))
                members.append(
                    f'"{name}":' + ("null" if name == before and draw(st.booleans()) else f"[{','.join(rows)}]")
                )
            else:
                members.append(f'"{name}":{draw(_row(oddness))}')
    if draw(st.integers(0, 19)):
        members.append(f'"{op}":"{draw(st.sampled_from(words if oddness else words[:-1]))}"')
    members += draw(st.lists(st.sampled_from(EXTRA), max_size=2, unique_by=lambda text: text[:5]))
    return "{" + ",".join(draw(st.permutations(members))) + "}"


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, str]:
    format_ = draw(st.sampled_from(list(STYLES)))
    lines = draw(st.lists(_line(format_, draw(st.integers(0, 3))), min_size=1, max_size=6))
    return format_, "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


def _read(path: Path, format_: str, options: dict[str, str], wanted: tuple[int, ...], exact: bool) -> Any:
    given = {f"{format_}.{key}": value for key, value in options.items()}
    table = table_of(DDL, {"connector": "filesystem", "path": str(path), "format": format_, **given})
    factory = format_factory(format_)
    values = factory.options().merged(FILESYSTEM_OPTIONS).check(table)
    decoder = factory.create(values, table).decoder(
        DecodeContext(COLUMNS, wanted, 65536, {}, metadata=METADATA[format_] if len(wanted) != 2 else ())
    )
    assert isinstance(decoder, ChangeDecoder)
    if exact:
        decoder.read_one_by_one()
    size = path.stat().st_size
    try:
        parts = list(decoder.read(FileView(str(path), size), Range(0, size)))
    except FlowSqlError as error:
        return error.message
    rows = []
    for part in parts:
        for array in part.arrays:
            array.validate(full=True)
            assert len(array) == part.num_rows
        kinds = [0] * part.num_rows if part.kinds is None else part.kinds.tolist()
        columns = [array.to_pylist() for array in part.arrays]
        rows += [(SHORT_STRINGS[kind], *values) for kind, *values in zip(kinds, *columns, strict=True)]
    return rows


@settings(max_examples=max(100, settings().max_examples), deadline=None)
@example(
    text=("canal-json", '{"data":[{"id":"1"},{"id":"2"}],"old":[{"v":"w"},{"id":"9"}],"type":"UPDATE"}'),
    seed=0, lenient=False,
)  # fmt: skip
@example(text=("maxwell-json", '{"data":{"id":1},"old":{"n":{"v":"x"}},"type":"update"}'), seed=0, lenient=False)
@given(text=_files(), seed=st.integers(0, 6), lenient=st.booleans())
def test_bulk_reads_what_the_exact_rules_read(
    tmp_path_factory: pytest.TempPathFactory, text: tuple[str, str], seed: int, lenient: bool
) -> None:
    format_, lines = text
    wanted = tuple(range(len(COLUMNS))) if seed < 3 else ((), (1,), (3, 0), (4, 1, 5))[seed - 3]
    options = {"ignore-parse-errors": "true"} if lenient else {}
    if format_ == "canal-json" and seed % 2:
        options["database.include"] = "d."
    path = tmp_path_factory.mktemp("changes") / "t.json"
    path.write_bytes(lines.encode())
    with pytest.MonkeyPatch.context() as patch:
        # Halved down to single lines.
        patch.setattr(json_decode, "_SMALL_BYTES", 1)
        found = _read(path, format_, options, wanted, exact=False)
    assert found == _read(path, format_, options, wanted, exact=True)


@pytest.mark.parametrize(
    ("format_", "line", "reasons"),
    [
        ("debezium-json", '{"before":null,"after":{"id":1},"op":"x"}', ['Unknown "op" value "x"', "one of c, r, u, d"]),
        ("debezium-json", '{"before":null,"after":{"id":1}}', ['The field "op" is missing or NULL']),
        (
            "debezium-json",
            '{"before":null,"after":{"id":1},"op":"u"}',
            ["REPLICA IDENTITY", 'The "before" field of UPDATE'],
        ),
        ("debezium-json", '{"before":{"id":1},"after":null,"op":"u"}', ['The field "after" is missing or NULL']),
        ("debezium-json", '{"before":null,"after":{"id":"zz"},"op":"c"}', ["field: after", "field: id", "zz"]),
        ("debezium-json", "[]", ["holds no object"]),
        ("debezium-json", "{", ["Failed to deserialize JSON"]),
        ("ogg-json", '{"before":null,"op_type":"D"}', ["Ogg Postgres", 'The "before" field of DELETE']),
        ("maxwell-json", '{"data":{"id":1},"type":"update"}', ['The field "old" is missing', '"type" is "update"']),
        ("canal-json", '{"data":null,"type":"INSERT"}', ['The field "data" is missing']),
        ("canal-json", '{"data":[{"id":1},{"id":2}],"old":[{}],"type":"UPDATE"}', ['A row in "data" or "old"']),
        ("canal-json", '{"data":[{"id":1}],"type":"QUERY"}', ["INSERT, UPDATE, DELETE, CREATE"]),
    ],
)
def test_a_corrupt_event_is_told_with_its_place(tmp_path: Path, format_: str, line: str, reasons: list[str]) -> None:
    style = STYLES[format_]
    fine = f'{{"{style[1]}":{"[{}]" if format_ == "canal-json" else "{}"},"{style[2]}":"{style[3][0]}"}}'
    path = tmp_path / "t.json"
    path.write_text(f"{fine}\n\n{fine}\n{line}\n{fine}\n")
    message = _read(path, format_, {}, tuple(range(len(COLUMNS))), exact=False)
    name = format_.removesuffix("-json").capitalize()
    for part in (f"Corrupt {name} JSON message '{line}'", f"in file {path}, line 4", *reasons):
        assert part in message
    rows = _read(path, format_, {"ignore-parse-errors": "true"}, (0,), exact=False)
    assert len([row for row in rows if row[0] == "+I"]) >= 3


@pytest.mark.parametrize(("format_", "line"), [
    ("debezium-json", '{"before":{"id":NUM,"v":"x"},"after":{"id":NUM,"d":"1.5","more":[{}]},"op":"u"}'),
    ("canal-json", '{"data":[{"id":"NUM","v":"é","d":"2.50"}],"old":[{"v":null}],"type":"UPDATE","database":"d1"}'),
    ("maxwell-json", '{"data":{"id":NUM,"v":"x","d":3},"old":{"d":7},"type":"update"}'),
    ("ogg-json", '{"before":{"id":NUM},"op_type":"D","table":"t"}'),
])  # fmt: skip
def test_events_are_read_in_bulk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, line: str) -> None:
    path = tmp_path / "t.json"
    path.write_text("".join(line.replace("NUM", str(number)) + "\n" for number in range(5000)))
    options = {"database.include": "d1", "table.include": "t"} if format_ == "canal-json" else {}
    if format_ == "canal-json":
        path.write_text(path.read_text().replace('"database"', '"table":"t","database"'))

    def refuse(*arguments: Any) -> None:
        raise AssertionError("read line by line")

    monkeypatch.setattr(ChangeDecoder, "_line_by_line", refuse)
    rows = _read(path, format_, options, (0, 1), exact=False)
    assert [row[1] for row in rows if row[0] in ("+U", "-D")] == list(range(5000))


def test_rows_that_cannot_be_read_are_skipped_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"after":{"id":1},"op":"c"}\n{"op":"?"}\n{"after":{"id":2},"op":"c"}\n')
    options = {"connector": "filesystem", "path": str(path), "format": "debezium-json", "on-error": "skip"}
    assert scan(table_of("id INT", options)) == [[1], [2]]
