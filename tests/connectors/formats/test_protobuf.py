"""Protocol Buffers against Google's own library: every kind of field, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsql_connectors.formats.columnar.binary_messages import BadMessageError
from flowsql_connectors.formats.format import DecodeContext, EncodeContext, FileFormat
from flowsql_connectors.formats.protobuf.descriptors import message_type
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import FlowSqlError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import ArrayType, LogicalType, MapType, RowType
from tests.connectors.tables import columns_of, files_table, scan, table_of

KEY = "protobuf.descriptor-files"
#: Name, type and label of the fields of message Every, from number 1 on; the last ones far behind.
FIELDS = {
    "i32": "int32", "i64": "int64", "u32": "uint32", "u64": "uint64", "s32": "sint32", "s64": "sint64",
    "f32": "fixed32", "f64": "fixed64", "sf32": "sfixed32", "sf64": "sfixed64", "fl": "float", "db": "double",
    "bo": "bool", "st": "string", "by": "bytes", "en": "enum Colour", "em": "enum Colour", "me": "message Line",
    "ri": "repeated int32", "rz": "repeated sint64", "rd": "repeated double", "rs": "repeated string",
    "re": "repeated enum Colour", "rm": "repeated message Line", "ms": "map string int64", "mm": "map int32 Line",
}  # fmt: skip
LINE = {"sku": "string", "quantity": "int32", "tags": "repeated string"}
DDL = (
    "i32 INT, i64 BIGINT, u32 INT, u64 BIGINT, s32 INT, s64 BIGINT, f32 INT, f64 BIGINT, sf32 INT, sf64 BIGINT, "
    "fl FLOAT, db DOUBLE, bo BOOLEAN, st STRING, `by` BYTES, en STRING, em INT, "
    "me ROW<sku STRING, quantity INT, tags ARRAY<STRING>>, ri ARRAY<INT>, rz ARRAY<BIGINT>, rd ARRAY<DOUBLE>, "
    "rs ARRAY<STRING>, re ARRAY<STRING>, rm ARRAY<ROW<sku STRING, quantity INT, tags ARRAY<STRING>>>, "
    "ms MAP<STRING, BIGINT>, mm MAP<INT, ROW<sku STRING, quantity INT, tags ARRAY<STRING>>>"
)
COLUMNS = columns_of(DDL)
NAMES = [column.name for column in COLUMNS]


def _add(message: Any, fields: dict[str, str], optional: bool = False) -> None:
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, text) in enumerate(fields.items(), 1):
        words = text.split()
        own = message.field.add(name=name, number=number if number < 20 else number * 1000)
        own.label = kinds.LABEL_REPEATED if words[0] in ("repeated", "map") else kinds.LABEL_OPTIONAL
        if words[0] == "map":
            entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
            entry.options.map_entry = True
            _add(entry, {"key": words[1], "value": words[2] if words[2].islower() else f"message {words[2]}"})
            words = ["message", f"{message.name}.{entry.name}"]
        words = words[1:] if words[0] == "repeated" else words
        own.type = getattr(kinds, f"TYPE_{words[0].upper()}")
        if len(words) > 1:
            own.type_name = f".t.{words[1]}"
        elif optional and own.label == kinds.LABEL_OPTIONAL:
            own.proto3_optional = True
            message.oneof_decl.add(name=f"_{name}")
            own.oneof_index = len(message.oneof_decl) - 1


def _file(syntax: str, name: str = "every_type.proto") -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=name, package="t", syntax=syntax)
    colour = file.enum_type.add(name="Colour")
    for number, word in enumerate(("UNKNOWN", "RED", "GREEN")):
        colour.value.add(name=word, number=number)
    _add(file.message_type.add(name="Line"), LINE)
    _add(file.message_type.add(name="Every"), FIELDS)
    if syntax == "proto3":
        _add(file.message_type.add(name="Optional"), {"a": "int32", "b": "string", "c": "int32"}, optional=True)
        one = file.message_type.add(name="One")
        _add(one, {"t": "string", "l": "message Line", "n": "int32", "beside": "int32"})
        one.oneof_decl.add(name="one")
        for own in one.field[:3]:
            own.oneof_index = 0
    else:
        must = file.message_type.add(name="Must")
        _add(must, {"id": "int64", "line": "message Line", "more": "string"})
        for own in must.field[:2]:
            own.label = descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED
        old = file.message_type.add(name="Old")
        _add(old, {"id": "int64", "name": "string", "level": "int32", "colour": "enum Colour"})
        old.field[1].default_value, old.field[2].default_value, old.field[3].default_value = "nobody", "7", "GREEN"
    return file


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("descriptors")
    made = {}
    for syntax in ("proto2", "proto3"):
        made[syntax] = str(folder / f"{syntax}.desc")
        Path(made[syntax]).write_bytes(descriptor_pb2.FileDescriptorSet(file=[_file(syntax)]).SerializeToString())
    return made


def _format(message: str, ddl: str, **options: str) -> FileFormat:
    given = {f"protobuf.{key.replace('_', '-')}": value for key, value in options.items()}
    table = table_of(ddl, {"protobuf.message-class-name": message, **given})
    return format_factory("protobuf").create(OptionValues(dict(table.options)), table)


def _decoded(format_: FileFormat, ddl: str, messages: list[bytes | None], files: str, *names: str) -> Any:
    columns = columns_of(ddl)
    known = [column.name for column in columns]
    context = DecodeContext(columns, tuple(known.index(name) for name in names or known), 65536, {KEY: files})
    return format_.message_decoder(context).rows(pa.array(messages, pa.binary()))


def _encoded(format_: FileFormat, ddl: str, rows: list[list[Any]], files: str) -> list[bytes]:
    columns = columns_of(ddl)
    arrays = tuple(pa.array([row[at] for row in rows], to_arrow(column.type)) for at, column in enumerate(columns))
    found: list[bytes] = (
        format_.message_encoder(columns, EncodeContext({KEY: files})).encode(arrays, len(rows), None).to_pylist()
    )
    return found


def _int(bits: int, signed: bool = True, /) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


FLOATS = {"fl": st.floats(width=32, allow_nan=False), "db": st.floats(allow_nan=False)}
COLOURS = st.integers(0, 2)
TEXTS = st.text(max_size=3)
TAGS = st.lists(TEXTS, max_size=2)
LINES = st.fixed_dictionaries({}, optional={"sku": TEXTS, "quantity": _int(32), "tags": TAGS})
INT, LONG, UINT, ULONG = _int(32), _int(64), _int(32, False), _int(64, False)
EVERY = st.fixed_dictionaries({}, optional={
    "i32": INT, "i64": LONG, "u32": UINT, "u64": ULONG, "s32": INT, "s64": LONG, "f32": UINT, "f64": ULONG,
    "sf32": INT, "sf64": LONG, **FLOATS, "bo": st.booleans(), "st": st.text(max_size=300), "by": st.binary(max_size=4),
    "en": COLOURS, "em": COLOURS, "me": LINES, "ri": st.lists(INT, max_size=3), "rz": st.lists(LONG, max_size=3),
    "rd": st.lists(FLOATS["db"], max_size=3), "rs": st.lists(TEXTS, max_size=3), "re": st.lists(COLOURS, max_size=3),
    "rm": st.lists(LINES, max_size=3), "ms": st.dictionaries(TEXTS, LONG, max_size=3),
    "mm": st.dictionaries(INT, LINES, max_size=3),
})  # fmt: skip


def _shown(value: Any, type_: LogicalType) -> Any:
    """What a field holds as the value of a column; of proto3, where scalars have no NULL."""
    match type_:
        case RowType(fields=fields):
            return {one.name: _field(value, one.name, one.type) for one in fields}
        case ArrayType(element=element):
            return [_shown(item, element) for item in value] or None
        case MapType(value=items):
            return {key: _shown(item, items) for key, item in value.items()} or None
    return value


def _field(message: Any, name: str, type_: LogicalType) -> Any:
    if isinstance(type_, RowType) and not message.HasField(name):
        return None
    value = getattr(message, name)
    if name in ("u32", "f32"):
        return int(np.uint32(value).astype(np.int32))
    if name in ("u64", "f64"):
        return int(np.uint64(value).astype(np.int64))
    words = ["UNKNOWN", "RED", "GREEN"]
    if name == "en":
        return words[value]
    if name == "re":
        return [words[number] for number in value] or None
    return _shown(value, type_)


def _plain(value: Any, type_: LogicalType) -> Any:
    if isinstance(type_, MapType) and value is not None:
        return dict(value)
    return value


@settings(max_examples=25)
@given(rows=st.lists(EVERY, min_size=1, max_size=3))
def test_every_kind_of_field(files: dict[str, str], rows: list[dict[str, Any]]) -> None:
    kind = message_factory.GetMessageClass(message_type("t.Every", files["proto3"]))
    messages = [kind(**row) for row in rows]
    format_ = _format("t.Every", DDL)
    decoded = _decoded(format_, DDL, [message.SerializeToString() for message in messages], files["proto3"])
    table = []
    for array, column in zip(decoded.columns.arrays, COLUMNS, strict=True):
        array.validate(full=True)
        assert array.type == to_arrow(column.type)
        found = [_plain(value, column.type) for value in array.to_pylist()]
        assert found == [_field(message, column.name, column.type) for message in messages], column.name
        table.append(array.to_pylist())
    back = _encoded(format_, DDL, [list(row) for row in zip(*table, strict=True)], files["proto3"])
    assert [kind.FromString(data) for data in back] == messages
    # A map's entries may stand in any order.
    for data, message in zip(back, messages, strict=True):
        if all(len(getattr(message, name)) < 2 for name in ("ms", "mm")):
            assert data == message.SerializeToString(deterministic=True)


def test_what_was_written_otherwise(files: dict[str, str]) -> None:
    kind = message_factory.GetMessageClass(message_type("t.Every", files["proto2"]))
    # Packed and one by one, a field twice, a message in two parts, fields that nobody knows, lists in between.
    one = kind(ri=[1], me={"sku": "x", "tags": ["a"]}, i32=1).SerializeToString()
    two = kind(ri=[2, 3], me={"quantity": 5, "tags": ["b"]}, i32=2, st="s").SerializeToString()
    packed = b"\x9a\x01\x02\x04\x05"
    strange = b"\xfa\xff\xff\xff\x0f\x01x" + b"\x98\xff\xff\xff\x0f\x07" + b"\x0d\0\0\0\0"
    messages = [one + strange + packed + two, packed + one, b""]
    expected = [kind.FromString(message) for message in messages]
    found = _decoded(_format("t.Every", DDL), DDL, messages, files["proto2"], "ri", "i32", "me", "st")
    assert [array.to_pylist() for array in found.columns.arrays] == [
        [list(message.ri) or None for message in expected],
        [2, 1, None],
        [{"sku": "x", "quantity": 5, "tags": ["a", "b"]}, {"sku": "x", "quantity": None, "tags": ["a"]}, None],
        ["s", None, None],
    ]


def test_presence_and_defaults(files: dict[str, str]) -> None:
    ddl = "id BIGINT, name STRING, level INT, colour STRING"
    messages = [b"\x08\x05", b"\x08\x06\x12\x02ab\x18\x00\x20\x01", b"\x20\x63"]
    plain = _decoded(_format("t.Old", ddl), ddl, messages, files["proto2"])
    assert [array.to_pylist() for array in plain.columns.arrays] == [
        [5, 6, None], [None, "ab", None], [None, 0, None], [None, "RED", None]
    ]  # fmt: skip
    filled = _decoded(_format("t.Old", ddl, read_default_values="true"), ddl, messages, files["proto2"])
    assert [array.to_pylist() for array in filled.columns.arrays] == [
        [5, 6, 0], ["nobody", "ab", "nobody"], [7, 0, 7], ["GREEN", "RED", "GREEN"]
    ]  # fmt: skip
    three = _format("t.Optional", "a INT, b STRING, c INT")
    rows = [[0, "", None], [None, None, 3]]
    written = _encoded(three, "a INT, b STRING, c INT", rows, files["proto3"])
    assert written == [b"\x08\x00\x12\x00", b"\x18\x03"]
    found = _decoded(three, "a INT, b STRING, c INT", written, files["proto3"])
    assert [array.to_pylist() for array in found.columns.arrays] == [[0, 0], ["", ""], [0, 3]]
    every = "me ROW<sku STRING>, ri ARRAY<INT>, ms MAP<STRING, BIGINT>"
    filled = _decoded(_format("t.Every", every, read_default_values="true"), every, [b""], files["proto3"])
    assert [array.to_pylist() for array in filled.columns.arrays] == [[{"sku": ""}], [[]], [[]]]


def test_null_in_lists(files: dict[str, str]) -> None:
    ddl = "ri ARRAY<INT>, rs ARRAY<STRING>, rm ARRAY<ROW<sku STRING>>, ms MAP<STRING, BIGINT>"
    rows = [[[1, None], ["x", None], [{"sku": "a"}, None], {"k": None}.items()], [None] * 4]
    for literal, expected in (("", ""), ("NULL", "NULL")):
        format_ = _format("t.Every", ddl, write_null_string_literal=literal)
        written = _encoded(
            format_, ddl, [[list(v) if v is not None else None for v in row] for row in rows], files["proto3"]
        )
        assert written[1] == b""
        found = _decoded(format_, ddl, written, files["proto3"])
        assert [array.to_pylist()[0] for array in found.columns.arrays] == [
            [1, 0], ["x", expected], [{"sku": "a"}, {"sku": ""}], [("k", 0)]
        ]  # fmt: skip


BAD = [b"\x08", b"\x0a\x7fx", b"\x72\x03ab", b"\x07", b"\0", b"\x9a\x01\x02\x04\x85"]


def test_bad_messages(files: dict[str, str]) -> None:
    good = b"\x08\x05"
    for bad in BAD:
        with pytest.raises(match="Failed to deserialize PB object") as raised:
            _decoded(_format("t.Every", DDL), DDL, [None, good, bad], files["proto3"])
        assert raised.value.message_number == 2
    ignoring = _format("t.Every", "i32 INT, ri ARRAY<INT>", ignore_parse_errors="true")
    found = _decoded(ignoring, "i32 INT, ri ARRAY<INT>", [*BAD, good, None, b"", *BAD, good], files["proto3"])
    assert [array.to_pylist() for array in found.columns.arrays] == [[5, 0, 5], [None] * 3]
    assert found.message.tolist() == [6, 8, 15]


@pytest.mark.parametrize(
    ("message", "ddl", "said"),
    [
        ("t.Nothing", "a INT", "get t.Nothing descriptors error! There is no type"),
        ("t.Every", "nope INT", "Column nope does not exists in definition of proto class"),
        ("t.Every", "me ROW<nope INT>", "Column me.nope does not exists"),
        ("t.Every", "i32 BIGINT", r"does not match column type, INT\(field name: i32\) and BIGINT"),
        ("t.Every", "ri INT", r"repeated INT\(field name: ri\) and INT"),
        ("t.Every", "ms ARRAY<INT>", r"mapMESSAGE\(field name: ms\) and ARRAY"),
        ("t.Every", "en BOOLEAN", r"ENUM\(field name: en\) and BOOLEAN"),
    ],
)
def test_what_does_not_fit(files: dict[str, str], message: str, ddl: str, said: str) -> None:
    for use in (
        lambda: _decoded(_format(message, ddl), ddl, [], files["proto3"]),
        lambda: _encoded(_format(message, ddl), ddl, [], files["proto3"]),
    ):
        with pytest.raises(FlowSqlError, match=said):
            use()


def test_names_that_an_enum_does_not_have(files: dict[str, str]) -> None:
    with pytest.raises(FlowSqlError, match=r"'BLUE' is no value of enum t\.Colour"):
        _encoded(_format("t.Every", "en STRING"), "en STRING", [["RED"], [None], ["BLUE"]], files["proto3"])
    found = _decoded(_format("t.Every", "en STRING"), "en STRING", [b"\x80\x01\x63", b""], files["proto3"])
    assert found.columns.arrays[0].to_pylist() == ["UNRECOGNIZED", "UNKNOWN"]


@pytest.fixture
def described(tmp_path: Path) -> Path:
    inner = _file("proto3", "folder/in-ner.proto")
    inner.options.java_package = "org.x"
    nested = inner.message_type.add(name="Outer").nested_type.add(name="Inner")
    _add(nested, {"a": "int32"})
    importing = descriptor_pb2.FileDescriptorProto(name="b.proto", package="u", syntax="proto3")
    importing.dependency.extend(["folder/in-ner.proto", "google/protobuf/timestamp.proto"])
    importing.options.java_multiple_files = True
    importing.message_type.add(name="Uses").field.add(
        name="at", number=1, type=11, label=1, type_name=".google.protobuf.Timestamp"
    )
    path = tmp_path / "x.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[importing, inner]).SerializeToString())
    return path


def test_names_of_types(described: Path) -> None:
    for name in ("t.Outer.Inner", "org.x.InNer$Outer$Inner"):
        assert message_type(name, str(described)).full_name == "t.Outer.Inner"
    assert message_type("u.Uses", str(described)).full_name == "u.Uses"
    assert message_type("google.protobuf.timestamp_pb2.Timestamp", "").full_name == "google.protobuf.Timestamp"
    ddl = "at ROW<seconds BIGINT, nanos INT>"
    found = _decoded(_format("u.Uses", ddl, descriptor_files=str(described)), ddl, [b"\x0a\x02\x08\x07"], "")
    assert found.columns.arrays[0].to_pylist() == [{"seconds": 7, "nanos": 0}]


def test_descriptor_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FlowSqlError, match=r"File /nowhere\.desc of 'protobuf\.descriptor-files' does not exist"):
        message_type("x", "/nowhere.desc")
    (tmp_path / "x.desc").write_bytes(b"\xff\xff\xff")
    with pytest.raises(FlowSqlError, match="holds no descriptors"):
        message_type("x", str(tmp_path / "x.desc"))
    lonely = descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["b.proto"])
    (tmp_path / "y.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[lonely]).SerializeToString())
    with pytest.raises(FlowSqlError, match=r"import b\.proto, which is in none of them"):
        message_type("x", str(tmp_path / "y.desc"))


def test_not_for_files(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0")
    with pytest.raises(FlowSqlError, match=r"Format 'protobuf' is for messages \(Kafka\), not for files"):
        scan(files_table("a INT", tmp_path, "protobuf", **{"protobuf.message-class-name": "x"}))


@pytest.mark.parametrize("wanted", [("t", "l", "n", "beside"), ("t", "beside"), ("l",), ("n",)])
@given(parts=st.lists(st.sampled_from(["t", "l", "n", "beside"]), max_size=4))
def test_the_last_field_of_a_oneof_counts(files: dict[str, str], wanted: tuple[str, ...], parts: list[str]) -> None:
    """Also where it displaces a message, and where nobody asks for it."""
    kind = message_factory.GetMessageClass(message_type("t.One", files["proto3"]))
    values = {"t": "x", "l": {"sku": "s", "tags": ["a"]}, "n": 7, "beside": 8}
    data = b"".join(kind(**{part: values[part]}).SerializeToString() for part in parts)
    ddl = "t STRING, l ROW<sku STRING, tags ARRAY<STRING>>, n INT, beside INT"
    format_ = _format("t.One", ddl)
    (row,) = zip(
        *(array.to_pylist() for array in _decoded(format_, ddl, [data], files["proto3"], *wanted).columns.arrays),
        strict=True,
    )
    read = kind.FromString(data)
    line = {"sku": read.l.sku, "tags": list(read.l.tags) or None} if read.HasField("l") else None
    assert dict(zip(wanted, row, strict=True)) == {
        name: line if name == "l" else getattr(read, name) for name in wanted
    }


def test_required_fields(files: dict[str, str]) -> None:
    """A message without one is damaged, whether or not a query asks for the field; none is written."""
    kind = message_factory.GetMessageClass(message_type("t.Must", files["proto2"]))
    whole = kind(id=1, line={"sku": "s"}, more="m").SerializeToString()
    lacking = kind(more="x").SerializePartialToString()
    ddl = "more STRING"
    with pytest.raises(BadMessageError, match="Message missing required fields: id, line"):
        _decoded(_format("t.Must", ddl), ddl, [whole, lacking], files["proto2"])
    half = kind(id=1, more="x").SerializePartialToString()
    skipping = _format("t.Must", ddl, ignore_parse_errors="true")
    found = _decoded(skipping, ddl, [half, whole, b"\xff", lacking, whole], files["proto2"])
    assert found.columns.arrays[0].to_pylist() == ["m", "m"]
    assert found.message.tolist() == [1, 4]
    with pytest.raises(FlowSqlError, match="Message missing required fields: id, line"):
        _encoded(_format("t.Must", ddl), ddl, [["x"]], files["proto2"])
    both = "id BIGINT, line ROW<sku STRING>"
    with pytest.raises(FlowSqlError, match=r"Message missing required fields: id$"):
        _encoded(_format("t.Must", both), both, [[1, {"sku": "s"}], [None, {"sku": "s"}]], files["proto2"])
