"""Records of any Avro schema as columns: what programs of DataStreams read and write as dicts.

A union of several types is a row with a member for each, of which one has the value: ``member0``, ``member1``, as
Avro's own writer of parquet stores it. Fields of type null are no columns.
"""

from __future__ import annotations

from typing import Final

from flowsql_connectors.formats.avro.schema import (
    ArrayOf,
    AvroField,
    AvroType,
    Enumeration,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
)
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record
from flowsql_core.types.logical import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    ArrayType,
    BinaryType,
    Column,
    DecimalType,
    Field,
    LogicalType,
    MapType,
    RowType,
    Schema,
    TimestampLtzType,
    TimeType,
)

NULL: Final = Primitive("null")
_PRIMITIVES: Final = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BYTES,
    "string": STRING,
}
_LOGICAL: Final[dict[tuple[str, str], LogicalType]] = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TimeType(precision=3),
    ("long", "timestamp-millis"): TimestampLtzType(precision=3),
    ("long", "timestamp-micros"): TimestampLtzType(precision=6),
}
_MOST_DIGITS: Final = 38
_MOST_BYTES: Final = 16


@record(kw_only=True)
class UnionType(RowType):
    """A union of several types besides null: a member for each, one of which has the value."""


def columns_of_schema(schema: AvroType) -> Schema:
    """The fields of a record as columns.

    Raises:
        NotSupportedYetError: it is no record, or holds what no column does.
    """
    if not isinstance(schema, Record):
        raise NotSupportedYetError(
            f"files of an Avro schema that is {schema.shown}", hint="a record is what files hold"
        )
    return tuple(Column(field.name, type_of_schema(field.type)) for field in kept_fields(schema))


def kept_fields(schema: Record) -> list[AvroField]:
    """The fields that are columns."""
    return [field for field in schema.fields if field.type != NULL]


def branches_of(schema: Union) -> list[AvroType]:
    """The branches but null."""
    return [branch for branch in schema.branches if branch != NULL]


def type_of_schema(schema: AvroType) -> LogicalType:
    """The type of a column whose values have a schema.

    Raises:
        NotSupportedYetError: there is none.
    """
    match schema:
        case Union():
            branches = branches_of(schema)
            nullable = schema.null is not None
            if len(branches) == 1:
                return type_of_schema(branches[0]).as_nullable(nullable)
            members = tuple(
                Field(f"member{number}", type_of_schema(branch).as_nullable()) for number, branch in enumerate(branches)
            )
            return UnionType(fields=members, nullable=nullable)
        case Record():
            fields = tuple(Field(field.name, type_of_schema(field.type)) for field in kept_fields(schema))
            return RowType(fields=fields, nullable=False)
        case ArrayOf(items=items):
            return ArrayType(element=type_of_schema(items), nullable=False)
        case MapOf(values=values):
            return MapType(key=STRING.as_nullable(False), value=type_of_schema(values), nullable=False)
        case Enumeration():
            return STRING.as_nullable(False)
        case Primitive() | Fixed():
            return _scalar(schema).as_nullable(False)
    raise NotSupportedYetError(f"values of Avro's {schema.shown} in files of DataStreams")


def _scalar(schema: Primitive | Fixed) -> LogicalType:
    if is_decimal(schema):
        return DecimalType(precision=schema.precision, scale=schema.scale)
    if isinstance(schema, Fixed):
        return BinaryType(length=schema.size)
    if schema == NULL:
        raise NotSupportedYetError("null within arrays and maps of an Avro schema")
    return _LOGICAL.get((schema.name, schema.logical or ""), _PRIMITIVES[schema.name])


def is_decimal(schema: Primitive | Fixed) -> bool:
    """Whether values are decimals that a column holds; longer ones are bytes."""
    short = isinstance(schema, Primitive) or schema.size <= _MOST_BYTES
    return short and schema.logical == "decimal" and schema.precision <= _MOST_DIGITS
