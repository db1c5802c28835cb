"""Types of Iceberg and of SQL, as Flink's connector pairs them.

Source: Iceberg's specification, "Schemas and Data Types"; Flink's connector, "Flink to Iceberg" and back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from pyiceberg import types as i
from pyiceberg.schema import Schema as IcebergSchema

from flowsql_core.errors import BindError
from flowsql_core.types import logical as t

_PLAIN: dict[type[t.LogicalType], i.PrimitiveType] = {
    t.BooleanType: i.BooleanType(),
    t.TinyIntType: i.IntegerType(),
    t.SmallIntType: i.IntegerType(),
    t.IntType: i.IntegerType(),
    t.BigIntType: i.LongType(),
    t.FloatType: i.FloatType(),
    t.DoubleType: i.DoubleType(),
    t.CharType: i.StringType(),
    t.VarCharType: i.StringType(),
    t.VarBinaryType: i.BinaryType(),
    t.DateType: i.DateType(),
    t.TimeType: i.TimeType(),
}
_BACK: dict[type[i.IcebergType], t.LogicalType] = {
    i.BooleanType: t.BOOLEAN,
    i.IntegerType: t.INT,
    i.LongType: t.BIGINT,
    i.FloatType: t.FLOAT,
    i.DoubleType: t.DOUBLE,
    i.StringType: t.STRING,
    i.BinaryType: t.BYTES,
    i.UUIDType: t.BinaryType(length=16),
    i.DateType: t.DATE,
    # Microseconds there; the digits that TIME has here.
    i.TimeType: t.TimeType(precision=3),
    i.TimestampType: t.TimestampType(precision=6),
    i.TimestamptzType: t.TimestampLtzType(precision=6),
}
_MICROSECONDS = 6


def to_iceberg(columns: t.Schema, comments: dict[str, str | None], key: Sequence[str] = ()) -> IcebergSchema:
    """The schema of a new table.

    Args:
        columns: of the table.
        comments: by column.
        key: columns of the primary key, which become its identifier fields.

    Raises:
        BindError: ``lake-type``, a type that Iceberg has no counterpart of.
    """
    ids = itertools.count(1)
    numbers = {column.name: next(ids) for column in columns}
    fields = [
        i.NestedField(
            numbers[column.name],
            column.name,
            _of_type(column.type, column.name, ids),
            required=not column.type.nullable,
            doc=comments.get(column.name),
        )
        for column in columns
    ]
    return IcebergSchema(*fields, identifier_field_ids=[numbers[name] for name in key])


def type_to_iceberg(type_: t.LogicalType, column: str, first_id: int = 1) -> i.IcebergType:
    """The type of a column; raises as :func:`to_iceberg`."""
    return _of_type(type_, column, itertools.count(first_id))


def _of_type(type_: t.LogicalType, column: str, ids: Iterator[int]) -> i.IcebergType:
    plain = _PLAIN.get(type(type_))
    if plain is not None:
        return plain
    match type_:
        case t.DecimalType(precision=precision, scale=scale):
            return i.DecimalType(precision, scale)
        case t.BinaryType(length=length):
            return i.FixedType(length)
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            if precision > _MICROSECONDS:
                raise BindError(
                    "lake-type",
                    f"Column '{column}' is {type_.as_nullable()}: Iceberg's timestamps hold 6 digits of a second.",
                    hint=f"declare it with ({_MICROSECONDS})",
                )
            return i.TimestampType() if isinstance(type_, t.TimestampType) else i.TimestamptzType()
        case t.ArrayType(element=element):
            return i.ListType(next(ids), _of_type(element, column, ids), element_required=not element.nullable)
        case t.MapType(key=key, value=value):
            return _map(key, value, column, ids)
        case t.MultisetType(element=element):
            return _map(element, t.INT.as_nullable(False), column, ids)
        case t.RowType(fields=fields):
            return i.StructType(
                *(
                    i.NestedField(
                        next(ids),
                        field.name,
                        _of_type(field.type, column, ids),
                        required=not field.type.nullable,
                        doc=field.description,
                    )
                    for field in fields
                )
            )
    raise BindError("lake-type", f"Column '{column}' is {type_.as_nullable()}, of which Iceberg has no counterpart.")


def _map(key: t.LogicalType, value: t.LogicalType, column: str, ids: Iterator[int]) -> i.MapType:
    key_id, value_id = next(ids), next(ids)
    return i.MapType(
        key_id, _of_type(key, column, ids), value_id, _of_type(value, column, ids), value_required=not value.nullable
    )


def to_columns(schema: IcebergSchema, table: str) -> t.Schema:
    """The columns of a table.

    Raises:
        BindError: ``lake-type``, a type that SQL has no counterpart of.
    """
    return tuple(t.Column(field.name, _to_logical(field, table)) for field in schema.fields)


def _to_logical(field: i.NestedField, table: str) -> t.LogicalType:
    return _back(field.field_type, f"Column '{field.name}' of table '{table}'").as_nullable(not field.required)


def _back(type_: i.IcebergType, where: str) -> t.LogicalType:
    plain = _BACK.get(type(type_))
    if plain is not None:
        return plain
    match type_:
        case i.DecimalType():
            return t.DecimalType(precision=type_.precision, scale=type_.scale)
        case i.FixedType():
            return t.BinaryType(length=len(type_))
        case i.ListType():
            return t.ArrayType(element=_back(type_.element_type, where).as_nullable(not type_.element_required))
        case i.MapType():
            return t.MapType(
                key=_back(type_.key_type, where).as_nullable(False),
                value=_back(type_.value_type, where).as_nullable(not type_.value_required),
            )
        case i.StructType():
            return t.RowType(
                fields=tuple(
                    t.Field(field.name, _back(field.field_type, where).as_nullable(not field.required), field.doc)
                    for field in type_.fields
                )
            )
        case i.TimestampNanoType() | i.TimestamptzNanoType():
            raise BindError("lake-type", f"{where} is {type_}: timestamps of nanoseconds are not read or written.")
    raise BindError("lake-type", f"{where} is {type_}, of which SQL has no counterpart.")
