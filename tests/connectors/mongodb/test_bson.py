"""Columns to BSON and back, over the bytes of documents; ranges of ids."""

from __future__ import annotations

import datetime
import re
import uuid
from decimal import Decimal
from typing import Any

import bson
import pyarrow as pa
import pytest
from bson.codec_options import CodecOptions, DatetimeConversion

from flowsql.errors import FlowSqlError
from flowsql_connectors.mongodb.from_bson import column_of
from flowsql_connectors.mongodb.parts import _ranges, filter_of
from flowsql_connectors.mongodb.to_bson import documents, ids_of
from flowsql_connectors.mongodb.types import check_types
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

OPTIONS: CodecOptions[Any] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 678000)
OBJECT = bson.ObjectId("64a0b0c0d0e0f00112233445")
DECIMAL = t.DecimalType(precision=5, scale=2)
ROW = t.RowType(fields=(t.Field("x", t.INT), t.Field("y", t.STRING)))


def through_bytes(value: Any) -> Any:
    """A value as a server keeps it."""
    return bson.decode(bson.encode({"v": value}), OPTIONS)["v"]


@pytest.mark.parametrize(
    ("type_", "value", "stored"),
    [
        (t.BOOLEAN, True, True),
        (t.TINYINT, -1, -1),
        (t.SMALLINT, 7, 7),
        (t.INT, 7, 7),
        (t.BIGINT, 7, bson.Int64(7)),
        (t.FLOAT, 0.5, 0.5),
        (t.DOUBLE, 1e100, 1e100),
        (DECIMAL, Decimal("1.50"), bson.Decimal128("1.50")),
        (t.STRING, "té", "té"),
        (t.BYTES, b"\0\xff", b"\0\xff"),
        (t.TimestampType(precision=3), MOMENT, 1577934245678),
        (t.TimestampLtzType(precision=3), MOMENT.replace(tzinfo=datetime.UTC), 1577934245678),
        (t.ArrayType(element=t.INT), [1, None], [1, None]),
        (t.ArrayType(element=t.ArrayType(element=t.BIGINT)), [[1], None, []], [[1], None, []]),
        (t.MapType(key=t.STRING, value=DECIMAL), [("k", Decimal("1.50"))], {"k": bson.Decimal128("1.50")}),
        (ROW, {"x": 1, "y": None}, {"x": 1, "y": None}),
        (t.ArrayType(element=ROW), [{"x": 1, "y": "a"}, None], [{"x": 1, "y": "a"}, None]),
    ],
    ids=str,
)
def test_types_are_those_of_flink(type_: t.LogicalType, value: Any, stored: Any) -> None:
    column = t.Column("v", type_)
    array = pa.array([None, value, None, value], to_arrow(type_)).slice(1)
    made = documents([array], (column,))
    assert made[1] == {"v": None}
    bytes_back = through_bytes(made[0]["v"])
    assert (int(bytes_back) if isinstance(type_, t.TimestampType | t.TimestampLtzType) else bytes_back) == stored
    assert isinstance(made[0]["v"], bson.Int64) == (type_ == t.BIGINT)
    read = column_of([through_bytes(document["v"]) for document in made], column, "a document")
    assert read.equals(array)


@pytest.mark.parametrize(
    ("type_", "stored", "read"),
    [
        (t.BOOLEAN, 1, True),
        (t.BOOLEAN, bson.Int64(2), False),
        (t.BOOLEAN, "TRUE", True),
        (t.TINYINT, 300, 44),
        (t.TINYINT, "7", 7),
        (t.SMALLINT, True, 1),
        (t.INT, 7.9, 7),
        (t.INT, 1e100, 2147483647),
        (t.INT, bson.Decimal128("7.9"), 7),
        (t.INT, True, 1),
        (t.INT, MOMENT, 1577934245),
        (t.INT, bson.Timestamp(9, 1), 9),
        (t.INT, "12", 12),
        (t.INT, bson.Int64(2**32 + 1), 1),
        (t.BIGINT, MOMENT, 1577934245678),
        (t.BIGINT, bson.Timestamp(9, 1), 9000),
        (t.BIGINT, bson.Decimal128("-Infinity"), -(2**63)),
        (t.DOUBLE, 7, 7.0),
        (t.DOUBLE, "1.5f", 1.5),
        (t.DOUBLE, bson.Decimal128("2.5"), 2.5),
        (t.DOUBLE, "-Infinity", float("-inf")),
        (t.FLOAT, True, 1.0),
        (t.DOUBLE, bson.Decimal128("NaN"), None),
        (DECIMAL, 1.005, Decimal("1.01")),
        (DECIMAL, "12.3", Decimal("12.30")),
        (DECIMAL, 7, Decimal("7.00")),
        (DECIMAL, 10000, None),
        (t.STRING, OBJECT, "64a0b0c0d0e0f00112233445"),
        (t.STRING, 7, "7"),
        (t.STRING, 1e100, "1.0E100"),
        (t.STRING, True, "true"),
        (t.STRING, bson.Decimal128("1.50"), "1.50"),
        (t.STRING, b"\x0a", "0a"),
        (t.STRING, MOMENT, "2020-01-02T03:04:05.678Z"),
        (t.STRING, bson.Timestamp(9, 1), "1970-01-01T00:00:09Z"),
        (t.STRING, re.compile("^9$", re.I), "/^9$/i"),
        (t.STRING, bson.Code("f()"), "f()"),
        (t.STRING, {"a": [1, OBJECT]}, '{"a": [1, {"$oid": "64a0b0c0d0e0f00112233445"}]}'),
        (t.STRING, [1, "x"], '[1, "x"]'),
        (t.STRING, bson.Binary.from_uuid(uuid.UUID(int=5)), "00000000-0000-0000-0000-000000000005"),
        (t.TimestampType(precision=0), bson.Timestamp(9, 1), datetime.datetime(1970, 1, 1, 0, 0, 9)),
    ],
    ids=str,
)
def test_other_values_are_converted_as_flink_does(type_: t.LogicalType, stored: Any, read: Any) -> None:
    found = column_of([through_bytes(stored), None], t.Column("v", type_), "a document")
    assert found.to_pylist() == [read, None]


@pytest.mark.parametrize(
    ("type_", "stored", "words"),
    [
        (t.INT, "seven", 'For input string: "seven"'),
        (t.INT, {"a": 1}, "Unable to convert to integer from unexpected value '{'a': 1}' of type DOCUMENT"),
        (t.BOOLEAN, 1.5, "Unable to convert to boolean from unexpected value '1.5' of type DOUBLE"),
        (t.BYTES, "x", "Unsupported BYTES value type: STRING"),
        (t.TimestampType(precision=3), "2020-01-01", "Unable to convert to Instant"),
        (t.ArrayType(element=t.INT), 1, "Unable to convert to arrayType"),
        (ROW, [1], "Unable to convert to rowType"),
        (DECIMAL, bson.Decimal128("Infinity"), "Unable to convert infinite bson decimal"),
        (t.INT.as_nullable(False), None, "from nullable value None"),
    ],
    ids=str,
)
def test_values_of_another_type_are_errors(type_: t.LogicalType, stored: Any, words: str) -> None:
    with pytest.raises(FlowSqlError) as error:
        column_of([through_bytes(stored)], t.Column("v", type_), "a document of 'd.c'")
    assert words in error.value.message
    assert error.value.message.endswith("in field 'v' of a document of 'd.c'")


@pytest.mark.parametrize("type_", [t.DATE, t.TimeType(precision=0), t.MapType(key=t.INT, value=t.INT)], ids=str)
def test_types_that_documents_lack(type_: t.LogicalType) -> None:
    with pytest.raises(FlowSqlError, match=r"Unsupported type: .*\nof column 'v'"):
        check_types(TableSpec(("a", "b", "c"), (t.Column("v", type_),), ()))


def test_ids() -> None:
    schema = (t.Column("a", t.STRING), t.Column("b", t.BIGINT))
    columns = [pa.array(["x", str(OBJECT)]), pa.array([1, 2])]
    assert ids_of(columns, schema, (0,)) == ["x", OBJECT]
    assert ids_of(columns, schema, (0, 1)) == [{"a": "x", "b": 1}, {"a": str(OBJECT), "b": 2}]


def test_ranges_hold_each_id_once() -> None:
    ranges = [filter_of(where) for where in _ranges([3, 3, bson.Int64(7), "x", OBJECT])]
    assert ranges == [{"_id": {"$not": {"$gte": 3}}}, {"_id": {"$gte": 3, "$lt": 7}}, {"_id": {"$gte": 7}}]
    assert [filter_of(where) for where in _ranges([])] == [{}]
    assert filter_of(_ranges([OBJECT])[1]) == {"_id": {"$gte": OBJECT}}
