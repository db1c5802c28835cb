"""Generic records of Avro, which programs see as dicts: their values into columns and back, checked by a schema.

The rules are those of Avro's own library for Python, which PyFlink asks: of several branches of a union that a value
fits, the last one is written.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from flowsql_connectors.formats.avro.generic import NULL, branches_of, is_decimal, kept_fields
from flowsql_connectors.formats.avro.schema import (
    ArrayOf,
    AvroType,
    Enumeration,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
)
from flowsql_core.errors import ExecutionError

Convert = Callable[[Any], Any]

_BITS: Final = {"int": 31, "long": 63}
_LOWEST: Final = datetime.time(0)


class UnfitError(Exception):
    """A value that is none of its schema; ``path``: of the field."""

    def __init__(self, value: Any, schema: AvroType, path: str) -> None:
        super().__init__()
        self.value, self.schema, self.path = value, schema, path


def record_reader(schema: Record) -> Convert:
    """Makes what a column takes of a record, a dict.

    Raises (when called):
        ExecutionError: a value is none of its schema.
    """
    convert = _into(schema, "")

    def checked(value: Any) -> Any:
        try:
            return convert(value)
        except UnfitError as unfit:
            where = f" of field '{unfit.path}'" if unfit.path else ""
            raise ExecutionError(
                "avro-value", f"The value {unfit.value!r}{where} is no {unfit.schema.shown} of the Avro schema."
            ) from None

    return checked


def normalised(schema: Record) -> Convert:
    """Makes a record as readers see it of one that a program wrote: with all fields, of the schema's types."""
    into, out = record_reader(schema), record_maker(schema)
    return lambda value: out(into(value))


def record_maker(schema: Record) -> Convert:
    """Makes a record, a dict, of what a column gives."""
    made = _out(schema)
    assert made is not None
    return made


def _into(schema: AvroType, path: str) -> Convert:
    match schema:
        case Union():
            return _into_union(schema, path)
        case Record():
            return _into_record(schema, path)
        case ArrayOf(items=items):
            item = _into(items, path)

            def array(value: Any) -> Any:
                if isinstance(value, str | bytes) or not isinstance(value, Sequence):
                    raise UnfitError(value, schema, path)
                return [item(one) for one in value]

            return array
        case MapOf(values=values):
            entry = _into(values, path)

            def entries(value: Any) -> Any:
                if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                    raise UnfitError(value, schema, path)
                return [(key, entry(one)) for key, one in value.items()]

            return entries
        case Enumeration(symbols=symbols):
            words = frozenset(symbols)
            return _checked(schema, path, lambda value: isinstance(value, str) and value in words)
        case Fixed(size=size) if not is_decimal(schema):
            return _checked(schema, path, lambda value: isinstance(value, bytes) and len(value) == size)
        case Primitive() | Fixed():
            return _into_scalar(schema, path)
    raise AssertionError(schema)


def _checked(schema: AvroType, path: str, fits: Callable[[Any], bool], convert: Convert | None = None) -> Convert:
    def check(value: Any) -> Any:
        if not fits(value):
            raise UnfitError(value, schema, path)
        return value if convert is None else convert(value)

    return check


def _into_union(schema: Union, path: str) -> Convert:
    nullable = schema.null is not None
    readers = [_into(branch, path) for branch in branches_of(schema)]
    if len(readers) == 1:
        only = readers[0]
        return lambda value: None if value is None and nullable else only(value)
    members = [(f"member{number}", reader) for number, reader in enumerate(readers)]
    members.reverse()

    def union(value: Any) -> Any:
        if value is None and nullable:
            return None
        for name, reader in members:
            try:
                return {name: reader(value)}
            except UnfitError:
                continue
        raise UnfitError(value, schema, path)

    return union


def _into_record(schema: Record, path: str) -> Convert:
    inner = f"{path}." if path else ""
    names = frozenset(field.name for field in schema.fields)
    readers = [(field.name, _into(field.type, inner + field.name)) for field in kept_fields(schema)]
    nulls = [field.name for field in schema.fields if field.type == NULL]

    def fields(value: Any) -> Any:
        if not isinstance(value, Mapping) or not value.keys() <= names:
            raise UnfitError(value, schema, path)
        for name in nulls:
            if value.get(name) is not None:
                raise UnfitError(value[name], NULL, inner + name)
        return {name: reader(value.get(name)) for name, reader in readers}

    return fields


def _into_scalar(schema: Primitive | Fixed, path: str) -> Convert:
    if is_decimal(schema):
        unit = decimal.Decimal(1).scaleb(-schema.scale)
        limit = decimal.Decimal(10) ** (schema.precision - schema.scale)
        context = decimal.Context(prec=76)

        def digits(value: Any) -> Any:
            if not isinstance(value, decimal.Decimal) or not value.is_finite() or abs(value) >= limit:
                raise UnfitError(value, schema, path)
            kept = value.quantize(unit, context=context)
            if kept != value:
                raise UnfitError(value, schema, path)
            return kept

        return digits
    assert isinstance(schema, Primitive)
    match schema.name, schema.logical:
        case "int", "date":
            return _checked(schema, path, lambda value: type(value) is datetime.date)
        case "int", "time-millis":
            return _checked(schema, path, _is_time, lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))
        case "long", "time-micros":
            return _checked(schema, path, _is_time, _micros_of_day)
        case "long", "timestamp-millis":
            return _checked(schema, path, _is_moment, lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))
        case "long", "timestamp-micros":
            return _checked(schema, path, _is_moment)
        case "int" | "long", _:
            most = 1 << _BITS[schema.name]
            return _checked(schema, path, lambda value: isinstance(value, int) and -most <= value < most, int)
        case "float" | "double", _:
            return _checked(schema, path, lambda value: isinstance(value, int | float), float)
        case "boolean", _:
            return _checked(schema, path, lambda value: isinstance(value, bool))
        case "bytes", _:
            return _checked(schema, path, lambda value: isinstance(value, bytes))
    return _checked(schema, path, lambda value: isinstance(value, str))


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime.time) and value.tzinfo is None


def _is_moment(value: Any) -> bool:
    return isinstance(value, datetime.datetime) and value.tzinfo is not None


def _micros_of_day(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _time_of_micros(micros: int) -> datetime.time:
    seconds, rest = divmod(micros, 1_000_000)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest)


def _out(schema: AvroType) -> Convert | None:
    """What turns a column's Python value into a program's; None where they are the same."""
    match schema:
        case Union():
            return _out_union(schema)
        case Record():
            makers = [
                (field.name, None if field.type == NULL else _optional(_out(field.type))) for field in schema.fields
            ]
            return lambda value: {
                name: None if make is None else make(value[name]) if make is not _same else value[name]
                for name, make in makers
            }
        case ArrayOf(items=items):
            item = _out(items)
            return None if item is None else lambda value: [item(one) for one in value]
        case MapOf(values=values):
            entry = _out(values)
            return dict if entry is None else lambda value: {key: entry(one) for key, one in value}
        case Primitive(name="long", logical="time-micros"):
            return _time_of_micros
        case Primitive(name="long", logical="timestamp-millis" | "timestamp-micros"):
            return lambda value: value.astimezone(datetime.UTC)
    return None


def _same(value: Any) -> Any:
    return value


def _optional(convert: Convert | None) -> Convert:
    return _same if convert is None else convert


def _out_union(schema: Union) -> Convert | None:
    branches = branches_of(schema)
    if len(branches) == 1:
        only = _out(branches[0])
        return None if only is None else lambda value: None if value is None else only(value)
    makers = [(f"member{number}", _optional(_out(branch))) for number, branch in enumerate(branches)]

    def union(value: Any) -> Any:
        if value is None:
            return None
        for name, make in makers:
            found = value.get(name)
            if found is not None:
                return make(found)
        return None

    return union
