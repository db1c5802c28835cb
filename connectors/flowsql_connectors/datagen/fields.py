"""The values of ``datagen`` columns: one vectorised generator per type and kind."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.datagen.realistic import KINDS
from flowsql_connectors.datagen.rows import Make, RowRange, local_ms
from flowsql_connectors.options import ConnectorOption, OptionValues, optional, parse_boolean, parse_positive
from flowsql_core.arrow import compute as pc
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharacterType,
    CharType,
    Column,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

_HEX: Final = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_DEFAULT_TEXT_LENGTH: Final = 100
_DEFAULT_COLLECTION_SIZE: Final = 3


@record
class ColumnGenerator:
    """Makes an Arrow array for a range of rows; ``length``: rows until a sequence ends, None if it does not."""

    make: Make
    length: int | None = None

    def __call__(self, rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        """The column's values for ``rows``; ``now_ms`` epoch milliseconds."""
        return self.make(rows, rng, now_ms)


def _kind(path: str) -> ConnectorOption[str]:
    def parse(text: str) -> str:
        if text not in ("random", "sequence", *KINDS):
            raise ValueError(f"Unsupported generator kind: {text}. Expected random, sequence, {', '.join(KINDS)}")
        return text

    return ConnectorOption(f"fields.{path}.kind", parse, "random", f"random, sequence, {', '.join(KINDS)}.")


def _bound(path: str, end: str, type_: LogicalType) -> ConnectorOption[Any]:
    parse: Callable[[str], Any] = _parse_decimal if isinstance(type_, DecimalType) else float
    if isinstance(type_, IntegerType):
        parse = int
    return ConnectorOption(f"fields.{path}.{end}", parse, None, f"The {end} of random values.")


def _parse_decimal(text: str) -> decimal.Decimal:
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation as error:
        raise ValueError("expected a number") from error


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 <= rate <= 1:
        raise ValueError("expected a share between 0 and 1")
    return rate


def _length(path: str) -> ConnectorOption[int | None]:
    return ConnectorOption(f"fields.{path}.length", optional(parse_positive), None, "Characters, bytes or elements.")


def _var_len(path: str) -> ConnectorOption[bool]:
    return ConnectorOption(f"fields.{path}.var-len", parse_boolean, False, "Lengths from 1 up to the length.")


def _null_rate(path: str) -> ConnectorOption[float]:
    return ConnectorOption(f"fields.{path}.null-rate", _rate, 0.0, "Share of NULLs.")


def _max_past(path: str) -> ConnectorOption[int]:
    return ConnectorOption(f"fields.{path}.max-past", parse_duration_ms, 0, "How far before now timestamps may lie.")


def _start(path: str) -> ConnectorOption[int | None]:
    return ConnectorOption(f"fields.{path}.start", optional(int), None, "First value of a sequence.")


def _end(path: str) -> ConnectorOption[int | None]:
    return ConnectorOption(f"fields.{path}.end", optional(int), None, "Last value of a sequence.")


def _can_count(type_: LogicalType) -> bool:
    return isinstance(type_, IntegerType | DecimalType | FloatType | DoubleType | CharacterType)


def column_options(column: Column, table: TableSpec) -> tuple[ConnectorOption[Any], ...]:
    """The options that the column's generator reads; a sequence reads others than a random one."""
    kind = _kind(column.name)
    if table.option(kind.key) == "sequence" and _can_count(column.type):
        return (kind, _start(column.name), _end(column.name))
    realistic = KINDS.get(table.option(kind.key) or "")
    if realistic is not None:
        return (kind, *realistic.options(column.name), _null_rate(column.name))
    return (kind, *_random_options(column.name, column.type))


def _random_options(path: str, type_: LogicalType) -> tuple[ConnectorOption[Any], ...]:
    null_rate = _null_rate(path)
    match type_:
        case IntegerType() | DecimalType() | FloatType() | DoubleType():
            return (_bound(path, "min", type_), _bound(path, "max", type_), null_rate)
        case YearMonthIntervalType() | DayTimeIntervalType():
            return (null_rate,)
        case VarCharType() | VarBinaryType():
            return (_length(path), _var_len(path), null_rate)
        case TimestampType() | TimestampLtzType():
            return (_max_past(path), null_rate)
        case ArrayType(element=element) | MultisetType(element=element):
            return (_length(path), null_rate, *_random_options(f"{path}.element", element))
        case MapType(key=key, value=value):
            inner = (*_random_options(f"{path}.key", key), *_random_options(f"{path}.value", value))
            return (_length(path), null_rate, *inner)
        case RowType(fields=fields):
            inner = tuple(o for field in fields for o in _random_options(f"{path}.{field.name}", field.type))
            return (null_rate, *inner)
    return (null_rate,)


def column_generator(column: Column, values: OptionValues) -> ColumnGenerator:
    """The generator of a top-level column."""
    if values.get(_kind(column.name)) == "sequence":
        return _sequence(column, values)
    kind = values.get(_kind(column.name))
    if kind in KINDS:
        return ColumnGenerator(_realistic(column, kind, values))
    return ColumnGenerator(_random(column.name, column.type, values))


def _realistic(column: Column, kind: str, values: OptionValues) -> Make:
    realistic = KINDS[kind]
    if not realistic.fits(column.type):
        raise BindError(
            "unsupported-generator",
            f"Column '{column.name}' of type {column.type} has no {kind} generator: it makes {realistic.types}.",
        )
    return _with_nulls(realistic.make(column.name, column.type, values), values.get(_null_rate(column.name)))


def _sequence(column: Column, values: OptionValues) -> ColumnGenerator:
    if not _can_count(column.type):
        raise BindError(
            "unsupported-generator", f"Column '{column.name}' of type {column.type} has no sequence generator."
        )
    bounds = []
    for option in (_start(column.name), _end(column.name)):
        value = values.get(option)
        if value is None:
            raise BindError(
                "missing-option", f"Could not find required property '{option.key}' for sequence generator."
            )
        bounds.append(value)
    start, end = bounds
    target = to_arrow(column.type)

    def make(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        numbers = pa.array(start + rows.indexes())
        return numbers.cast(target) if not isinstance(column.type, DecimalType) else _to_decimal(numbers, column.type)

    return ColumnGenerator(make, max(0, end - start + 1))


def _to_decimal(numbers: pa.Int64Array, type_: DecimalType) -> Any:
    return numbers.cast(pa.decimal128(19, 0)).cast(pa.decimal256(19 + type_.scale, type_.scale)).cast(to_arrow(type_))


def _random(path: str, type_: LogicalType, values: OptionValues) -> Make:
    return _with_nulls(_random_not_null(path, type_, values), values.get(_null_rate(path)))


def _with_nulls(make: Make, null_rate: float) -> Make:
    if null_rate == 0:
        return make

    def with_nulls(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        keep = pa.array(rng.random(rows.count) >= null_rate)
        whole = make(rows, rng, now_ms)
        return pc.if_else(keep, whole, pa.nulls(rows.count, whole.type))

    return with_nulls


def _random_not_null(path: str, type_: LogicalType, values: OptionValues) -> Make:
    match type_:
        case BooleanType():
            return lambda rows, rng, now_ms: pa.array(rng.random(rows.count) < 0.5)
        case IntegerType():
            return _random_integers(path, type_, values)
        case FloatType() | DoubleType():
            return _random_floats(path, type_, values)
        case DecimalType():
            return _random_decimals(path, type_, values)
        case CharacterType() | BinaryType() | VarBinaryType():
            return _random_texts(path, type_, values)
        case DateType():
            return lambda rows, rng, now_ms: _all(rows, local_ms(now_ms) // 86_400_000, pa.int32()).cast(pa.date32())
        case TimeType():
            return lambda rows, rng, now_ms: _all(rows, local_ms(now_ms) % 86_400_000, pa.int32()).cast(pa.time32("ms"))
        case TimestampType() | TimestampLtzType():
            return _random_timestamps(path, type_, values)
        case YearMonthIntervalType():
            return lambda rows, rng, now_ms: pa.array(rng.integers(0, 120_000, rows.count)).cast(to_arrow(type_))
        case DayTimeIntervalType():
            return lambda rows, rng, now_ms: pa.array(rng.integers(0, 2**40, rows.count)).cast(to_arrow(type_))
        case ArrayType(element=element):
            return _random_lists(path, element, values)
        case MultisetType(element=element):
            return _random_maps(path, _random(f"{path}.element", element, values), _small_counts, values)
        case MapType(key=key, value=value):
            return _random_maps(
                path, _random(f"{path}.key", key, values), _random(f"{path}.value", value, values), values
            )
        case RowType(fields=fields):
            makes = [_random(f"{path}.{field.name}", field.type, values) for field in fields]
            names = [field.name for field in fields]
            return lambda rows, rng, now_ms: pa.StructArray.from_arrays(
                [make(rows, rng, now_ms) for make in makes], names
            )
    raise NotSupportedYetError(f"datagen column '{path}' of type {type_}")


def _all(rows: RowRange, value: int, type_: pa.DataType) -> Any:
    return pa.array(np.full(rows.count, value, dtype=np.int64)).cast(type_)


def _small_counts(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
    return pa.array(rng.integers(0, 10, rows.count, dtype=np.int32))


def _random_integers(path: str, type_: IntegerType, values: OptionValues) -> Make:
    low, high = (values.get(_bound(path, end, type_)) for end in ("min", "max"))
    low = -(2 ** (type_.bits - 1)) if low is None else low
    high = 2 ** (type_.bits - 1) - 1 if high is None else high
    _check_bounds(path, low, high)
    dtype = np.dtype(f"int{type_.bits}")
    return lambda rows, rng, now_ms: pa.array(rng.integers(low, high, rows.count, dtype=dtype, endpoint=True))


def _random_floats(path: str, type_: LogicalType, values: OptionValues) -> Make:
    single = isinstance(type_, FloatType)
    dtype = np.dtype(np.float32 if single else np.float64)
    largest = float(np.finfo(np.float32).max if single else np.finfo(np.float64).max)
    low, high = (values.get(_bound(path, end, type_)) for end in ("min", "max"))
    # Java's MIN_VALUE of a floating type is its least positive value.
    low = 0.0 if low is None else low
    high = largest if high is None else high
    _check_bounds(path, low, high)
    return lambda rows, rng, now_ms: pa.array((low + (high - low) * rng.random(rows.count)).astype(dtype))


def _random_decimals(path: str, type_: DecimalType, values: OptionValues) -> Make:
    unit = decimal.Decimal(1).scaleb(-type_.scale)
    with decimal.localcontext() as context:
        context.prec = 80
        largest = decimal.Decimal(10) ** (type_.precision - type_.scale) - unit
        low, high = (values.get(_bound(path, end, type_)) for end in ("min", "max"))
        low = (decimal.Decimal(0) if low is None else low).quantize(unit, decimal.ROUND_CEILING)
        high = (largest if high is None else high).quantize(unit, decimal.ROUND_FLOOR)
        _check_bounds(path, low, high)
        units = int((high - low) / unit)
        # Past 2^62 values the grid grows coarser: random values need no more than 62 random bits.
        grid = max(1, -(-(units + 1) // 2**62))
        step = pa.scalar(unit * grid, pa.decimal256(39, type_.scale))
        start = pa.scalar(low, pa.decimal256(39, type_.scale))
    steps = units // grid
    target = to_arrow(type_)

    def make(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        count = pa.array(rng.integers(0, steps, rows.count, endpoint=True)).cast(pa.decimal256(19, 0))
        return pc.add(pc.multiply(count, step), start).cast(target)

    return make


def _check_bounds(path: str, low: Any, high: Any) -> None:
    if low > high:
        raise BindError("invalid-option-value", f"'fields.{path}.min' ({low}) is above 'fields.{path}.max' ({high}).")


def _random_texts(path: str, type_: LogicalType, values: OptionValues) -> Make:
    """Hexadecimal digits for characters, bytes for binary; fixed types have their own length."""
    binary = isinstance(type_, BinaryType | VarBinaryType)
    length, varying = _text_length(path, type_, values)
    target = pa.binary() if binary else pa.string()
    final = to_arrow(type_)

    def make(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        n = rows.count
        lengths = rng.integers(1, length, n, endpoint=True) if varying else np.full(n, length, dtype=np.int64)
        offsets = np.zeros(n + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        data = rng.integers(0, 256 if binary else 16, total, dtype=np.uint8)
        buffer = pa.py_buffer(data if binary else _HEX[data])
        made = pa.Array.from_buffers(target, n, [None, pa.py_buffer(offsets), buffer])
        return made if final == target else made.cast(final)

    return make


def _text_length(path: str, type_: LogicalType, values: OptionValues) -> tuple[int, bool]:
    match type_:
        case CharType(length=length) | BinaryType(length=length):
            return length, False
        case VarCharType(length=most) | VarBinaryType(length=most):
            wanted = values.get(_length(path))
            if wanted is not None and wanted > most:
                raise BindError(
                    "invalid-option-value",
                    f"Custom length '{wanted}' for variable-length type (VARCHAR/STRING/VARBINARY/BYTES) field "
                    f"'{path}' should be shorter than '{most}' defined in the schema.",
                )
            return wanted or min(most, _DEFAULT_TEXT_LENGTH), values.get(_var_len(path))
    return 1, False


def _random_timestamps(path: str, type_: TimestampType | TimestampLtzType, values: OptionValues) -> Make:
    max_past_ms = values.get(_max_past(path))
    target = to_arrow(type_)

    def make(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        base = now_ms if isinstance(type_, TimestampLtzType) else local_ms(now_ms)
        past = rng.integers(0, max_past_ms, rows.count) if max_past_ms else np.zeros(rows.count, dtype=np.int64)
        zone = target.tz
        return pa.array(base - past).cast(pa.timestamp("ms", zone)).cast(target)

    return make


def _collection_offsets(path: str, values: OptionValues, rows: RowRange) -> tuple[pa.Int32Array, RowRange]:
    size = values.get(_length(path)) or _DEFAULT_COLLECTION_SIZE
    offsets = np.arange(rows.count + 1, dtype=np.int32) * np.int32(size)
    return pa.array(offsets), RowRange(0, 1, rows.count * size)


def _random_lists(path: str, element: LogicalType, values: OptionValues) -> Make:
    inner = _random(f"{path}.element", element, values)

    def make(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        offsets, elements = _collection_offsets(path, values, rows)
        return pa.ListArray.from_arrays(offsets, inner(elements, rng, now_ms))

    return make


def _random_maps(path: str, keys: Make, items: Make, values: OptionValues) -> Make:
    def make(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        offsets, entries = _collection_offsets(path, values, rows)
        return pa.MapArray.from_arrays(offsets, keys(entries, rng, now_ms), items(entries, rng, now_ms))

    return make
