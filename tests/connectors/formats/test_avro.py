"""Avro: records and container files against fastavro, schema resolution, and what is said of damaged ones."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsql_connectors.formats.avro import container
from flowsql_connectors.formats.avro.derived import derived_schema
from flowsql_connectors.formats.avro.factory import AvroFormat
from flowsql_connectors.formats.format import DecodeContext, EncodeContext, FileView, Messages, Range
from flowsql_core.errors import FlowSqlError
from flowsql_core.types.arrow import to_arrow
from tests.connectors.tables import columns_of, files_table, insert, scan, table_of

UTC = datetime.UTC
DDL = (
    "b BOOLEAN, i INT, t TINYINT, l BIGINT, f FLOAT, d DOUBLE, de DECIMAL(18, 4), big DECIMAL(38, 3), "
    "s STRING NOT NULL, bi BYTES, dt DATE, tm TIME(3), ts TIMESTAMP(3), ai ARRAY<INT>, "
    "aa ARRAY<ARRAY<STRING>>, m MAP<STRING, INT>, "
    "r ROW<x INT, y ROW<z STRING, w DECIMAL(5, 2)>, l ARRAY<BIGINT>>, ar ARRAY<ROW<p INT NOT NULL, q STRING>>, "
    "mm MAP<STRING, MAP<STRING, DOUBLE>>"
)
COLUMNS = columns_of(DDL)
BINARY = AvroFormat(None, "binary", legacy=True)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda number: Decimal(f"{number}e-{scale}"))


def _maps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.dictionaries(st.text(max_size=3), values, max_size=3)


def _moment(ms: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(milliseconds=ms)


INTS = st.none() | st.integers(-(2**31), 2**31 - 1)
FLOATS = st.none() | st.floats(width=32, allow_nan=False)
TEXTS = st.none() | st.text(max_size=6)
ITEM = st.fixed_dictionaries({"p": st.integers(0, 300), "q": TEXTS})
ROW = st.fixed_dictionaries(
    {
        "b": st.none() | st.booleans(),
        "i": INTS,
        "t": st.none() | st.integers(-128, 127),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": FLOATS,
        "d": st.none() | st.floats(allow_nan=False),
        "de": st.none() | _decimals(18, 4),
        "big": st.none() | _decimals(38, 3),
        "s": st.text(max_size=200),
        "bi": st.none() | st.binary(max_size=5),
        "dt": st.none() | st.dates(),
        "tm": st.none() | st.integers(0, 86_399_999).map(lambda ms: _moment(ms).time()),
        "ts": st.none() | st.integers(-(10**13), 10**13).map(_moment),
        "ai": st.none() | st.lists(INTS, max_size=4),
        "aa": st.none() | st.lists(st.none() | st.lists(TEXTS, max_size=3), max_size=3),
        "m": _maps(INTS),
        "r": st.none() | st.fixed_dictionaries({
            "x": INTS,
            "y": st.none() | st.fixed_dictionaries({"z": TEXTS, "w": st.none() | _decimals(5, 2)}),
            "l": st.none() | st.lists(st.integers(0, 9), max_size=2),
        }),
        "ar": st.none() | st.lists(st.none() | ITEM, max_size=3),
        "mm": _maps(_maps(FLOATS)),
    }
)  # fmt: skip


def _oracle_schema(columns: Any = COLUMNS, legacy: bool = True) -> Any:
    return fastavro.parse_schema(json.loads(orjson.dumps(derived_schema(columns, legacy))))


def _written(schema: Any, rows: list[Any]) -> list[bytes]:
    found = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        found.append(out.getvalue())
    return found


def _arrays(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    def plain(value: Any) -> Any:
        return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value

    return tuple(pa.array([plain(row[c.name]) for row in rows], to_arrow(c.type)) for c in COLUMNS)


def _context(columns: Any = COLUMNS, names: list[str] | None = None) -> DecodeContext:
    known = [column.name for column in columns]
    return DecodeContext(columns, tuple(known.index(name) for name in names or known), 65536, {})


def _unordered(array: Any) -> list[Any]:
    """Maps as sets of entries: their order is Flink's, not that of the writer."""
    return [_entries(value) for value in array.to_pylist()]


def _entries(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: _entries(item) for key, item in value}
    return value


@settings(max_examples=15, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=4))
def test_records_are_those_of_the_specification(rows: list[dict[str, Any]]) -> None:
    schema = _oracle_schema()
    messages = pa.array(_written(schema, rows), pa.binary())
    decoded = BINARY.message_decoder(_context()).rows(messages)
    assert decoded.message is None
    for made, wanted, column in zip(decoded.columns.arrays, _arrays(rows), COLUMNS, strict=True):
        made.validate(full=True)
        assert made.type == wanted.type
        assert _unordered(made) == _unordered(wanted), column.name
    encoded = BINARY.message_encoder(COLUMNS, EncodeContext({})).encode(_arrays(rows), len(rows), None)
    if all(len(row[name] or ()) < 2 for row in rows for name in ("m", "mm")):
        assert encoded.to_pylist() == messages.to_pylist()
    back = [fastavro.schemaless_reader(io.BytesIO(data), schema) for data in encoded.to_pylist()]
    assert back == rows


def test_some_columns_of_sliced_arrays() -> None:
    rows = [dict.fromkeys((c.name for c in COLUMNS), None) | {"s": str(n), "ai": [n], "l": n} for n in range(9)]
    sliced = tuple(array.slice(2, 5) for array in _arrays(rows))
    messages = BINARY.message_encoder(COLUMNS, EncodeContext({})).encode(sliced, 5, None)
    assert messages.to_pylist() == _written(_oracle_schema(), rows[2:7])
    found = BINARY.message_decoder(_context(names=["l", "s"])).rows(messages.slice(1, 3))
    assert [array.to_pylist() for array in found.columns.arrays] == [[3, 4, 5], ["3", "4", "5"]]
    nothing = BINARY.message_decoder(_context()).rows(messages.slice(0, 0))
    assert [array.type for array in nothing.columns.arrays] == [to_arrow(c.type) for c in COLUMNS]


def test_null_messages_give_no_row_and_bad_ones_their_number() -> None:
    columns = columns_of("id INT, s STRING")
    good = _written(_oracle_schema(columns), [{"id": 1, "s": "a"}])[0]
    decoder = BINARY.message_decoder(_context(columns))
    found = decoder.rows(pa.array([None, good, None, good], pa.binary()))
    assert found.columns.num_rows == 2
    assert found.message is not None
    assert found.message.tolist() == [1, 3]
    for bad in (b"", good[:-1], b"\x02\x02\x02\x7fa", b"\x04\x02", b"\x02" + b"\xff" * 11):
        with pytest.raises(match=r"Failed to deserialize Avro record: .*field '(id|s)'") as raised:
            decoder.rows(pa.array([None, good, bad], pa.binary()))
        assert raised.value.message_number == 2


@pytest.mark.parametrize("codec", container.CODECS)
def test_files_are_read_by_others_and_theirs_here(tmp_path: Path, codec: str) -> None:
    ddl = "id INT, s STRING, ts TIMESTAMP(3)"
    table = files_table(ddl, tmp_path / "own", "avro", avro__codec=codec)
    rows = [[n, f"{n:050}", None] for n in range(4000)]
    insert(table, rows)
    (path,) = (tmp_path / "own").iterdir()
    if codec in ("null", "deflate", "bzip2", "xz"):
        with path.open("rb") as stream:
            found = fastavro.reader(stream)
            assert found.metadata["avro.codec"] == codec
            assert [list(row.values()) for row in found] == rows
    assert scan(table) == rows
    # Its ranges, whatever their size, hold each row once.
    (tmp_path / "other").mkdir()
    theirs = tmp_path / "other" / "x.avro"
    records = [{"id": row[0], "s": row[1], "ts": None} for row in rows]
    if codec not in ("snappy", "zstandard"):
        with theirs.open("wb") as stream:
            fastavro.writer(stream, _oracle_schema(columns_of(ddl)), records, codec=codec, sync_interval=1000)
        path = theirs
    size = path.stat().st_size
    decoder = AvroFormat(codec, "binary", legacy=True).decoder(_context(columns_of(ddl), ["id"]))
    for step in (97, 1000, size):
        view = FileView(str(path), size)
        parts = [Range(start, min(start + step, size)) for start in range(0, size, step)]
        ids = [piece.arrays[0] for part in parts for piece in decoder.read(view, part)]
        assert pa.concat_arrays(ids).to_pylist() == list(range(4000))


def _decimal(precision: int, scale: int, **fixed: Any) -> str:
    named = {"type": "fixed", "name": "f", **fixed} if fixed else {"type": "bytes"}
    return json.dumps({**named, "logicalType": "decimal", "precision": precision, "scale": scale})


ENUM = '{"type": "enum", "name": "e", "symbols": ["A", "B"]}'
MICROS = '{"type": "long", "logicalType": "timestamp-micros"}'
TIME_MICROS = '{"type": "long", "logicalType": "time-micros"}'
GONE = '{"name": "gone", "type": {"type": "map", "values": "string"}}, {"name": "x", "type": "int"}'
NESTED = '{"type": "array", "items": {"type": "record", "name": "n", "fields": [' + GONE + "]}}"
NOON = datetime.datetime(2026, 1, 2, 12, 0, 0, 678999)
#: What was written, as what it is read, and the values; or what is said.
RESOLUTIONS = [
    ('"int"', "a BIGINT NOT NULL", [1, -1], [1, -1]),
    ('"int"', "a DOUBLE", [1, -1], [1.0, -1.0]),
    ('"long"', "a FLOAT", [2**40], [float(2**40)]),
    ('"float"', "a DOUBLE", [0.1], [float(np.float32(0.1))]),
    ('"bytes"', "a STRING", [b"x"], ["x"]),
    ('"bytes"', "a STRING", [b"x\xff"], ["x\ufffd"]),
    ('"string"', "a BYTES", ["é"], ["é".encode()]),
    (ENUM, "a STRING", ["B", "A"], ["B", "A"]),
    (f'["null", {ENUM}]', "a STRING", [None, "A"], [None, "A"]),
    ('["int", "null"]', "a INT", [7, None], [7, None]),
    ('["null", "int", "long"]', "a BIGINT", [None, 7, 2**40], [None, 7, 2**40]),
    ('["null", "string", "int"]', "a INT", [None, 7], [None, 7]),
    ('["null", "string", "int"]', "a INT", ["x"], "no place in the column's type"),
    ('["null", "int"]', "a INT NOT NULL", [1], [1]),
    ('["null", "int"]', "a INT NOT NULL", [None], "no place in the column's type"),
    ('["null", "float", "long"]', "a DOUBLE", [1.0], "union of float and long as DOUBLE"),
    ('"long"', "a INT", [1], "Found long, expecting INT in field 'a'"),
    ('"string"', "a INT", ["1"], "Found string, expecting INT"),
    ('{"type": "array", "items": "int"}', "a MAP<STRING, INT>", [[1]], "Found array of int, expecting MAP"),
    (MICROS, "a TIMESTAMP(3)", [NOON.replace(tzinfo=UTC)], [NOON.replace(microsecond=678000)]),
    (TIME_MICROS, "a TIME(3)", [NOON.time()], [NOON.replace(microsecond=678000).time()]),
    (_decimal(4, 1), "a DECIMAL(6, 2)", [Decimal("-3.1")], [Decimal("-3.10")]),
    (_decimal(6, 2, size=3), "a DECIMAL(6, 2)", [Decimal("-3.10")], [Decimal("-3.10")]),
    (_decimal(9, 1), "a DECIMAL(3, 1)", [Decimal("1234567.1")], r"does not fit DECIMAL\(3, 1\)"),
    ('{"type": "fixed", "name": "f", "size": 2}', "a BYTES", [b"ab"], [b"ab"]),
    (
        NESTED,
        "a ARRAY<ROW<x BIGINT, lacking ARRAY<INT>, more ROW<y INT>>>",
        [[{"gone": {"k": "v", "l": "w"}, "x": 3}], []],
        [[{"x": 3, "lacking": None, "more": None}], []],
    ),
]


@pytest.mark.parametrize(("written", "ddl", "values", "expected"), RESOLUTIONS)
def test_rows_of_one_schema_are_read_as_those_of_another(
    tmp_path: Path, written: str, ddl: str, values: list[Any], expected: Any
) -> None:
    extra = {"name": "before", "type": {"type": "array", "items": ["null", "string"]}}
    fields = [extra, {"name": "a", "type": json.loads(written)}, {"name": "behind", "type": ["null", "double"]}]
    schema = fastavro.parse_schema({"type": "record", "name": "t", "fields": fields})
    path = tmp_path / "x.avro"
    with path.open("wb") as stream:
        fastavro.writer(stream, schema, [{"before": ["x", None], "a": value, "behind": 1.0} for value in values])
    columns = columns_of(ddl)
    part, view = Range(0, path.stat().st_size), FileView(str(path), path.stat().st_size)
    if isinstance(expected, str):
        with pytest.raises(FlowSqlError, match=expected):
            list(BINARY.decoder(_context(columns)).read(view, part))
        return
    (found,) = BINARY.decoder(_context(columns)).read(view, part)
    assert found.arrays[0].to_pylist() == expected
    assert found.arrays[0].type == to_arrow(columns[0].type)


def test_fields_that_the_file_lacks(tmp_path: Path) -> None:
    insert(files_table("id INT", tmp_path, "avro"), [[1]])
    ddl = "s STRING, id INT, a ARRAY<INT>, r ROW<x INT, y ARRAY<INT>>, m MAP<STRING, INT>"
    assert scan(files_table(ddl, tmp_path, "avro")) == [[None, 1, None, None, None]]
    with pytest.raises(FlowSqlError, match="missing required field s\nin file"):
        scan(files_table("s STRING NOT NULL", tmp_path, "avro"))


@pytest.mark.parametrize(
    ("ddl", "legacy", "said"),
    [
        ("a TIMESTAMP(6)", True, "Avro does not support TIMESTAMP type with precision: 6, it only supports"),
        ("a TIMESTAMP_LTZ(3)", True, "Unsupported to derive Schema for type: TIMESTAMP_LTZ\\(3\\)"),
        ("a TIMESTAMP(9)", False, "Avro does not support LOCAL TIMESTAMP type with precision: 9"),
        ("a TIME(6)", False, "Avro does not support TIME type with precision: 6"),
        ("a MAP<INT, INT>", True, "doesn't support non-string as key type of map. The key type is: INT"),
    ],
)  # fmt: skip
def test_types_that_avro_has_not(ddl: str, legacy: bool, said: str) -> None:
    format_ = AvroFormat(None, "binary", legacy)
    with pytest.raises(FlowSqlError, match=said):
        format_.encoder(columns_of(ddl))
    with pytest.raises(FlowSqlError, match=said):
        format_.decoder(_context(columns_of(ddl)))


FILES = {"connector": "filesystem", "format": "avro"}


def test_local_timestamps(tmp_path: Path) -> None:
    ddl = "a TIMESTAMP(6), b TIMESTAMP_LTZ(3), c TIMESTAMP(2)"
    table = table_of(ddl, {**FILES, "path": str(tmp_path), "avro.timestamp_mapping.legacy": "false"})
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)
    insert(table, [[moment, moment.replace(tzinfo=UTC), moment]])
    (path,) = tmp_path.iterdir()
    with path.open("rb") as stream:
        types = [f["type"][1]["logicalType"] for f in fastavro.reader(stream).writer_schema["fields"]]
    assert types == ["local-timestamp-micros", "timestamp-millis", "local-timestamp-millis"]
    assert scan(table) == [["2026-01-02 03:04:05.678", "2026-01-02 03:04:05.678Z", "2026-01-02 03:04:05.678"]]


def _broken(data: bytes, how: str) -> bytes:
    match how:
        case "magic":
            return b"x" + data[1:]
        case "short":
            return data[:-20]
        case "sync":
            return data[:-1] + bytes([data[-1] ^ 1])
        case "codec":
            return data.replace(b"\x0csnappy", b"\x0csnippy")
    at = data.rfind(b"\xff\xff\xff\xff")
    return data[:-40] + bytes(20) + data[-20:] if at < 0 else data[:at] + b"\0" + data[at + 1 :]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("magic", "is no readable avro file: it does not begin with 'Obj' and 1"),
        ("short", "is no readable avro file"),
        ("sync", "is no readable avro file: no sync marker stands behind the block at byte"),
        ("codec", "not supported yet: Avro's codec 'snippy'"),
        ("data", "a block cannot be decompressed as snappy"),
    ],
)
def test_damaged_files(tmp_path: Path, how: str, said: str) -> None:
    table = files_table("s STRING", tmp_path, "avro")
    insert(table, [[f"text {n}"] for n in range(100)])
    (path,) = tmp_path.iterdir()
    path.write_bytes(_broken(path.read_bytes(), how))
    with pytest.raises(FlowSqlError, match=said):
        scan(table)


def test_options_of_the_other_use_are_refused() -> None:
    columns = columns_of("id INT")
    with pytest.raises(FlowSqlError, match=r"'avro\.codec' is for files"):
        AvroFormat("null", "binary", legacy=True).message_encoder(columns, EncodeContext({}))
    with pytest.raises(FlowSqlError, match=r"'avro\.encoding' = 'json' is for messages"):
        AvroFormat(None, "json", legacy=True).encoder(columns)


def test_recursive_schemas_are_refused(tmp_path: Path) -> None:
    node = {
        "type": "record",
        "name": "n",
        "fields": [{"name": "a", "type": "int"}, {"name": "next", "type": ["null", "n"]}],
    }
    with (tmp_path / "x.avro").open("wb") as stream:
        fastavro.writer(stream, fastavro.parse_schema(node), [{"a": 1, "next": None}])
    with pytest.raises(FlowSqlError, match="record 'n' holds itself, and no column can"):
        scan(files_table("a INT", tmp_path, "avro"))


JSON_DDL = (
    "b BOOLEAN, t TINYINT, l BIGINT NOT NULL, d DOUBLE, s STRING, dt DATE, tm TIME(3), ts TIMESTAMP(3), ai ARRAY<INT>, "
    "m MAP<STRING, INT>, r ROW<x INT, y ROW<z STRING>>, ar ARRAY<ROW<p INT NOT NULL, q STRING>>, bi BYTES, "
    "de DECIMAL(38, 3), ad ARRAY<DECIMAL(4, 2)>"
)


def test_json_encoding() -> None:
    columns = columns_of(JSON_DDL)
    format_ = AvroFormat(None, "json", legacy=True)
    noon = NOON.replace(microsecond=678000)
    nested = [[1, None], [("k", 3)], {"x": 1, "y": {"z": None}}, [{"p": 1, "q": "x"}, None]]
    digits = [bytes(range(256)), Decimal("-99999999999999999999.125"), [Decimal("1.28"), None, Decimal("-0.01")]]
    rows: list[list[Any]] = [
        [True, 1, 2, 1.5, 'é\n"', NOON.date(), noon.time(), noon, *nested, *digits],
        [None, None, 3, *[None] * 12],
    ]
    values = ([None, *(row[at] for row in rows)] for at in range(len(columns)))
    arrays = tuple(pa.array(v, to_arrow(c.type)).slice(1) for v, c in zip(values, columns, strict=True))
    messages = format_.message_encoder(columns, EncodeContext({})).encode(arrays, 2, None)
    first, second = messages.to_pylist()
    rest = b",".join(b'"%s":null' % column.name.encode() for column in columns[3:])
    assert second == b'\n{"b":null,"t":null,"l":3,' + rest + b"}"
    schema = _oracle_schema(columns)
    for data, row in zip((first, second), rows, strict=True):
        (read,) = fastavro.json_reader(io.StringIO(data.decode().strip()), schema)
        expected = dict(zip([c.name for c in columns], row, strict=True))
        if row[9] is not None:
            expected |= {"m": dict(row[9]), "ts": row[7].replace(tzinfo=UTC)}
        assert read == expected
    decoder = format_.message_decoder(_context(columns))
    found = decoder.rows(pa.array([first, None, second], pa.binary()))
    assert [array.to_pylist() for array in found.columns.arrays] == [array.to_pylist() for array in arrays]
    assert [array.type for array in found.columns.arrays] == [array.type for array in arrays]
    assert found.message is not None
    assert found.message.tolist() == [0, 2]
    some = format_.message_decoder(_context(columns, ["s"])).rows(messages)
    assert [array.to_pylist() for array in some.columns.arrays] == [['é\n"', None]]
    assert decoder.rows(messages.slice(0, 0)).columns.num_rows == 0
    for bad in (b"", b" \n", b"{", b'{"b":null}', first.replace(b'"boolean"', b'"int"'), b"[]"):
        with pytest.raises(match="Failed to deserialize Avro record: "):
            decoder.rows(pa.array([second, bad], pa.binary()))


def test_batches_of_a_connector() -> None:
    columns = columns_of("id INT, s STRING")
    good = _written(_oracle_schema(columns), [{"id": 1, "s": "a"}])[0]
    decoder = BINARY.message_decoder(_context(columns))

    def place(number: int) -> str:
        return f"topic t, offset {number + 100}"

    found = decoder.decode(Messages(pa.array([None, good, good], pa.binary()), place))
    assert (found.num_rows, [array.to_pylist() for array in found.arrays]) == (2, [[1, 1], ["a", "a"]])
    assert found.lines is not None
    assert found.lines.tolist() == [1, 2]
    assert found.slice(1, 2).lines.tolist() == [2]  # type: ignore[union-attr]
    nothing = decoder.decode(Messages(pa.array([None], pa.binary()), place))
    assert (nothing.arrays, nothing.num_rows) == ((), 0)
    with pytest.raises(FlowSqlError, match=r"Failed to deserialize Avro record: .*\nin topic t, offset 102"):
        decoder.decode(Messages(pa.array([None, good, b"\x02"], pa.binary()), place))


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("id INT, `my.col` INT", "column 'my.col'"),
        ("`1a` INT", "column '1a'"),
        ("`a-b` INT", "column 'a-b'"),
        ("r ROW<`x.y` INT>", "the field of 'r' 'x.y'"),
        ("a ROW<b ROW<x INT>>, a_b ROW<y INT>", "'record_a_b'"),
    ],
)
def test_names_that_avro_has_not_are_refused(tmp_path: Path, ddl: str, said: str) -> None:
    with pytest.raises(FlowSqlError, match=said):
        insert(files_table(ddl, tmp_path, "avro"), [])


def test_names_that_avro_has(tmp_path: Path) -> None:
    """Two rows of one name whose fields are equal are one record; letters of all scripts are letters in Java."""
    table = files_table("a ROW<b ROW<x INT>>, a_b ROW<x INT>, é INT, _1 INT", tmp_path, "avro")
    insert(table, [[{"b": {"x": 1}}, {"x": 2}, 3, 4]])
    assert scan(table) == [[[[1]], [2], 3, 4]]
