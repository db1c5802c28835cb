"""CAST and TRY_CAST over columns: the pairs of types that Flink casts, with its wrap-arounds, formats, roundings."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval import decimal as exact
from flowsql_compute.eval.columns import Bools, as_type, make_array, validity, values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.text.format import text_of
from flowsql_compute.eval.text.java_numbers import java_double
from flowsql_compute.eval.text.parse import parse_text_column
from flowsql_compute.eval.time.calendar import DAY_MS, UNITS_PER_SECOND, local_to_utc, require_range, utc_to_local
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.coerce import length_of

__all__ = ["cast_array", "cast_raises", "parse_text_column"]


def cast_raises(src: t.LogicalType, dst: t.LogicalType) -> bool:
    """Whether casting a value may fail the job (texts that are no such value)."""
    match src, dst:
        case t.CharacterType(), t.CharacterType() | t.BinaryStringType():
            return False
        case t.CharacterType(), _:
            return True
        case t.DateTimeType(), t.TimestampType(precision=finer) | t.TimestampLtzType(precision=finer) if finer > 6:
            # Nanoseconds hold fewer years.
            return getattr(src, "precision", 0) <= 6
        case t.ArrayType(), t.ArrayType():
            return cast_raises(src.element, dst.element)
        case t.MultisetType(), t.MultisetType():
            return cast_raises(src.element, dst.element)
        case t.MapType(), t.MapType():
            return cast_raises(src.key, dst.key) or cast_raises(src.value, dst.value)
        case t.RowType(), t.RowType():
            return any(cast_raises(a.type, b.type) for a, b in zip(src.fields, dst.fields, strict=True))
    return False


def cast_array(array: pa.Array, src: t.LogicalType, dst: t.LogicalType, safe: bool, context: EvalContext) -> pa.Array:
    """A column in another type.

    Args:
        array: the column, physically of ``src``.
        safe: TRY_CAST: NULL where the value has no counterpart.

    Raises:
        ExecutionError: a value has none and ``safe`` is off; names the value.
        NotSupportedYetError: a pair of types that is not cast yet.
    """
    src, dst = t.without_attribute(src), t.without_attribute(dst)
    if src.same(dst):
        return array
    if isinstance(src, t.NullType):
        return pa.nulls(len(array), to_arrow(dst))
    if isinstance(dst, t.CharacterType):
        return _fit_text(text_of(array, src, context), src, dst)
    if isinstance(src, t.CharacterType):
        made = _parsed(array, dst, safe, context)
    else:
        made = _converted(array, src, dst, safe, context)
    return _fit_bytes(made, src, dst) if isinstance(dst, t.BinaryStringType) else made


def _parsed(array: pa.Array, dst: t.LogicalType, safe: bool, context: EvalContext) -> pa.Array:
    made, wrong = parse_text_column(array, dst, context)
    if isinstance(dst, t.DecimalType) and made.null_count > array.null_count:
        # A number that does not fit fails a cast, as text that is none does.
        wrong = _nulls(made) & ~_nulls(array)
    if not safe and wrong.any():
        word = array[int(np.argmax(wrong))].as_py()
        raise ExecutionError("bad-cast", _complaint(word, dst))
    return made


def _nulls(array: pa.Array) -> Bools:
    valid = validity(array)
    return np.zeros(len(array), dtype=np.bool_) if valid is None else ~valid


def _complaint(word: str, dst: t.LogicalType) -> str:
    # Loaded after a failure only.
    from flowsql_compute.eval.text.complaint import decimal_complaint, float_complaint, timestamp_complaint

    match dst:
        case t.IntegerType():
            if not word.strip(" "):
                return f"For input string: '{word}'. Input is empty."
            if word.strip(" ").lstrip("+-").replace(".", "", 1).isdigit():
                return f"For input string: '{word}'. Overflow."
            return f"For input string: '{word}'. Invalid character found."
        case t.BooleanType():
            return f"Cannot parse '{word}' as BOOLEAN."
        case t.TimeType():
            return (
                f"Invalid time format: '{word}'. Expected format: HH:mm:ss[.fff] where HH is 00-23, mm is 00-59, "
                "ss is 00-59"
            )
        case t.TimestampType() | t.TimestampLtzType():
            return f"Text '{word}' could not be parsed{timestamp_complaint(word)}"
        case t.ApproximateType():
            return float_complaint(word)
        case t.DecimalType():
            return decimal_complaint(word, dst)
    return f"For input string: '{word}'."


def _fit_text(text: pa.Array, src: t.LogicalType, dst: t.CharacterType) -> pa.Array:
    """CHAR pads with blanks and cuts, VARCHAR cuts."""
    length = length_of(dst)
    if length == t.MAX_LENGTH or not len(text):
        return text
    # A file may hold longer texts than its column declares: only VARCHAR takes the declaration's word.
    if isinstance(dst, t.CharType) or not (isinstance(src, t.CharacterType) and length_of(src) <= length):
        text = pc.utf8_slice_codeunits(text, 0, length)
    return pc.utf8_rpad(text, length, " ") if isinstance(dst, t.CharType) else text


def _fit_bytes(array: pa.Array, src: t.LogicalType, dst: t.BinaryStringType) -> pa.Array:
    length = length_of(dst)
    if length == t.MAX_LENGTH or not len(array):
        return array
    if isinstance(dst, t.BinaryType) or not (isinstance(src, t.BinaryStringType) and length_of(src) <= length):
        array = pc.binary_slice(array, 0, length)
    if isinstance(dst, t.BinaryType):
        # Shorter ones get zero bytes: as many as are missing, by one join.
        missing = pc.subtract(pa.scalar(length, pa.int32()), pc.binary_length(array))
        array = pc.binary_join_element_wise(array, pc.binary_repeat(pa.scalar(b"\0"), missing), b"")
    return array


def _converted(array: pa.Array, src: t.LogicalType, dst: t.LogicalType, safe: bool, context: EvalContext) -> pa.Array:
    target = to_arrow(dst) if not isinstance(dst, t.RawType) else array.type
    match src, dst:
        case t.BinaryStringType(), t.BinaryStringType():
            return array
        case t.BooleanType(), t.DecimalType():
            return _integers_to_decimal(pc.cast(array, pa.int32()), target)
        case t.BooleanType(), t.NumericType():
            return pc.cast(array, target)
        case t.DecimalType(), t.BooleanType():
            values, valid = exact.unscaled(array)
            return make_array(np.asarray(values != 0, dtype=np.bool_), valid, target)
        case t.NumericType(), t.BooleanType():
            return pc.not_equal(array, pa.scalar(0, array.type))
        case t.DecimalType(), t.DecimalType():
            return _decimal_to_decimal(array, src, dst)
        case t.DecimalType(), t.YearMonthIntervalType() | t.DayTimeIntervalType():
            return _decimal_to_number(array, src, t.BIGINT, target)
        case t.DecimalType(), t.NumericType():
            return _decimal_to_number(array, src, dst, target)
        case t.IntegerType(), t.DecimalType():
            return _integers_to_decimal(array, target)
        case t.ApproximateType(), t.DecimalType():
            return _doubles_to_decimal(array, target)
        case t.ApproximateType(), t.IntegerType():
            return _doubles_to_integers(array, dst, target)
        case t.NumericType(), t.NumericType():
            return pc.cast(array, target, safe=False)
        case t.DateTimeType(), t.DateTimeType():
            return _moments(array, src, dst, context)
        case (
            (t.YearMonthIntervalType() | t.DayTimeIntervalType(), t.IntegerType())
            | (t.IntegerType(), t.YearMonthIntervalType() | t.DayTimeIntervalType())
            | (t.YearMonthIntervalType(), t.YearMonthIntervalType())
            | (t.DayTimeIntervalType(), t.DayTimeIntervalType())
        ):
            return pc.cast(array, target, safe=False)
    return _nested(array, src, dst, safe, context)


# Numbers


def _integers_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    values, valid = exact.unscaled(array)
    return exact.decimal_column(exact.rescale(values, 0, target.scale), valid, target, len(array))


def _decimal_to_decimal(array: pa.Array, src: t.DecimalType, dst: t.DecimalType) -> pa.Array:
    if src.scale == dst.scale and src.precision <= dst.precision:
        return as_type(array, to_arrow(dst))
    values, valid = exact.unscaled(array)
    return exact.decimal_column(exact.rescale(values, src.scale, dst.scale), valid, to_arrow(dst), len(array))


def _decimal_to_number(array: pa.Array, src: t.DecimalType, dst: t.LogicalType, target: pa.DataType) -> pa.Array:
    values, valid = exact.unscaled(array)
    if isinstance(dst, t.ApproximateType):
        doubles = exact.to_double(values, src.scale)
        return make_array(doubles.astype(np.float32 if isinstance(dst, t.FloatType) else np.float64), valid, target)
    whole = exact.truncate_divide(values, exact.power_of_ten(src.scale))
    if whole.dtype == object:
        whole = (whole & (2**64 - 1)).astype(np.uint64).view(np.int64)
    return pc.cast(make_array(whole, valid, pa.int64()), target, safe=False)


def _doubles_to_integers(array: pa.Array, dst: t.IntegerType, target: pa.DataType) -> pa.Array:
    """Saturating at INT or BIGINT, NaN as 0; TINYINT and SMALLINT wrap around an INT, as Java's narrowing does."""
    values, valid = values_and_validity(array)
    wide = np.int64 if dst.bits == 64 else np.int32
    info = np.iinfo(wide)
    doubles = np.nan_to_num(values.astype(np.float64), nan=0.0)
    with np.errstate(invalid="ignore"):
        made = np.clip(doubles, float(info.min), float(info.max)).astype(wide)
    made = np.where(doubles >= float(info.max), info.max, np.where(doubles <= float(info.min), info.min, made))
    return pc.cast(make_array(made.astype(wide), valid, pa.from_numpy_dtype(wide)), target, safe=False)


def _doubles_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return DECIMALs by the texts of DOUBLEs, as ``BigDecimal.valueOf``; NaN and infinities are NULL."""
    values, valid = values_and_validity(array)
    finite = np.isfinite(values)
    valid = finite if valid is None else valid & finite
    doubles = np.where(valid, values, 0).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = doubles * 10.0**target.scale
        rest = np.abs(scaled - np.trunc(scaled))
        easy = (np.abs(scaled) < 2**50) & (np.abs(rest - 0.5) > np.abs(scaled) * 2.0**-50 + 1e-9)
        made: npt.NDArray[Any] = np.where(easy, np.rint(scaled), 0).astype(np.int64)
    hard = np.flatnonzero(~easy)
    if len(hard):
        # Ties and large numbers need the decimal text; distinct ones are few.
        distinct, inverse = np.unique(doubles[hard], return_inverse=True)
        unit = Decimal(1).scaleb(-target.scale)
        texts = [Decimal(java_double(number)) for number in distinct.tolist()]
        wide = [int(text.quantize(unit, ROUND_HALF_UP, _WIDE).scaleb(target.scale, _WIDE)) for text in texts]
        made = made.astype(object)
        made[hard] = np.array(wide, dtype=object)[inverse]
    return exact.decimal_column(made, valid, target, len(array))


_WIDE = exact.wide_context()


# Dates and times


def _moments(array: pa.Array, src: t.LogicalType, dst: t.LogicalType, context: EvalContext) -> pa.Array:
    values, valid = values_and_validity(array)
    target = to_arrow(dst)
    if isinstance(src, t.TimeType):
        if isinstance(dst, t.TimeType):
            step = 10 ** max(0, 3 - dst.precision)
            return make_array(values // step * step, valid, target)
        # A time alone is a time of the first day.
        array, src = make_array(values.astype(np.int64), valid, pa.timestamp("ms")), t.TimestampType(precision=3)
        return _moments(array, src, dst, context)
    # Everything else goes through wall clock in the finer of both units.
    wall, per_second = _wall_clock(values.astype(np.int64), src, dst, context)
    per_day = 86_400 * per_second
    match dst:
        case t.DateType() if isinstance(src, t.TimestampType):
            # Flink divides as Java does: before 1970 a moment within a day counts to the next one.
            millis = wall // (per_second // 1000)
            days = (millis + np.where(millis < 0, DAY_MS - 1, 0)) // DAY_MS
            return make_array(days.astype(np.int32), valid, target)
        case t.DateType():
            return make_array((wall // per_day).astype(np.int32), valid, target)
        case t.TimeType(precision=precision):
            millis = wall % per_day * 1000 // per_second
            step = 10 ** max(0, 3 - precision)
            return make_array((millis // step * step).astype(np.int32), valid, target)
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            wanted = UNITS_PER_SECOND[target.unit]
            if wanted > per_second:
                require_range(wall // per_second if valid is None else np.where(valid, wall // per_second, 0), target)
            wall = wall * (wanted // per_second) if wanted >= per_second else wall // (per_second // wanted)
            if isinstance(dst, t.TimestampLtzType) and not isinstance(src, t.TimestampLtzType):
                wall = local_to_utc(wall, wanted, context.zone)
            digits = {"ms": 3, "us": 6, "ns": 9}[target.unit]
            if precision < digits:
                step = 10 ** (digits - precision)
                # Below milliseconds Flink cuts, of milliseconds it cuts towards 1970.
                wall = wall // step * step if precision >= 3 else wall // 10 ** (digits - 3)
            if precision < 3:
                wall = (wall - np.fmod(wall, 10 ** (3 - precision))) * 10 ** (digits - 3)
            return make_array(wall, valid, target)
    raise NotSupportedYetError(f"casting {src.as_nullable()} to {dst.as_nullable()}")


def _wall_clock(
    values: npt.NDArray[np.int64], src: t.LogicalType, dst: t.LogicalType, context: EvalContext
) -> tuple[npt.NDArray[np.int64], int]:
    if isinstance(src, t.DateType):
        return values * DAY_MS, 1000
    per_second = UNITS_PER_SECOND[to_arrow(src).unit]
    if isinstance(src, t.TimestampLtzType) and not isinstance(dst, t.TimestampLtzType):
        return utc_to_local(values, per_second, context.zone), per_second
    return values, per_second


# Collections and rows


def _nested(array: pa.Array, src: t.LogicalType, dst: t.LogicalType, safe: bool, context: EvalContext) -> pa.Array:
    children: tuple[Checked, ...]
    if not isinstance(src, t.RowType):
        array = _compact(array)
    match src, dst:
        case t.ArrayType(), t.ArrayType():
            children = (cast_checked(array.values, src.element, dst.element, safe, context),)
        case t.MapType(), t.MapType():
            children = (
                cast_checked(array.keys, src.key, dst.key, safe, context),
                cast_checked(array.items, src.value, dst.value, safe, context),
            )
            from flowsql_compute.eval.nested.map_order import as_hashed

            made = _rebuilt(array, to_arrow(dst), children)
            # Where the representation changes, Flink fills a new map.
            return made if made.type == array.type else as_hashed(made)
        case t.MultisetType(), t.MultisetType():
            children = (cast_checked(array.keys, src.element, dst.element, safe, context), (array.items, None))
        case t.RowType(), t.RowType():
            children = tuple(
                cast_checked(pc.struct_field(array, [index]), a.type, b.type, safe, context)
                for index, (a, b) in enumerate(zip(src.fields, dst.fields, strict=True))
            )
        case _:
            raise NotSupportedYetError(f"casting {src.as_nullable()} to {dst.as_nullable()}")
    return _rebuilt(array, to_arrow(dst), children)


def _compact(array: pa.Array) -> pa.Array:
    """The lists with no element but those of their rows: what a slice left out and what NULL hides must not be cast."""
    n = len(array)
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32, count=array.offset + n + 1)[array.offset :]
    valid = validity(array)
    sizes = np.diff(offsets)
    elements = int(sizes.sum() if valid is None else sizes[valid].sum())
    whole = len(array.keys if pa.types.is_map(array.type) else array.values)
    return array if elements == whole else pc.take(array, pa.array(np.arange(n)), boundscheck=False)


Checked = tuple[pa.Array, Bools | None]


def cast_checked(array: pa.Array, src: t.LogicalType, dst: t.LogicalType, safe: bool, context: EvalContext) -> Checked:
    """A cast child column, and where a safe cast failed (the whole collection becomes NULL there).

    A number that does not fit its DECIMAL is NULL and no failure. A NULL in a child that becomes NOT NULL stays, as in
    Flink.
    """
    if src.same(dst):
        return array, None
    made = cast_array(array, src, dst, safe, context)
    if not safe or made is array or not cast_raises(src, dst):
        return made, None
    before, after = validity(array), validity(made)
    if after is None:
        return made, None
    return made, ~after if before is None else before & ~after


def _rebuilt(array: pa.Array, target: pa.DataType, children: tuple[Checked, ...]) -> pa.Array:
    n = len(array)
    valid = validity(array)
    failed = np.zeros(n, dtype=np.bool_)
    columns = [column for column, _ in children]
    wrong = [mask for _, mask in children if mask is not None]
    if pa.types.is_struct(target):
        for mask in wrong:
            failed |= mask
        kept = ~failed if valid is None else valid & ~failed
        made = pa.StructArray.from_arrays(columns, fields=list(target), mask=pa.array(~kept))
        return made
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32, count=array.offset + n + 1)[array.offset :]
    for mask in wrong:
        total = np.zeros(len(mask) + 1, dtype=np.int64)
        np.cumsum(mask, out=total[1:])
        failed |= np.greater(total[offsets[1:]], total[offsets[:-1]])
    kept = ~failed if valid is None else valid & ~failed
    bitmap = None if kept.all() else pa.py_buffer(np.packbits(kept, bitorder="little"))
    child = columns[0]
    if pa.types.is_map(target):
        if columns[0].null_count:
            return _rebuilt_map(columns, offsets, kept, target)
        entry = pa.struct([target.key_field, target.item_field])
        child = pa.StructArray.from_arrays(columns, fields=list(entry))
    return pa.Array.from_buffers(target, n, [bitmap, pa.py_buffer(np.ascontiguousarray(offsets))], children=[child])


def _rebuilt_map(
    columns: list[pa.Array], offsets: npt.NDArray[np.int32], kept: npt.NDArray[np.bool_], target: pa.DataType
) -> pa.Array:
    """A map column where a key is NULL, as those of rows are that cannot be cast: entries of the kept rows alone.

    Raises:
        NotSupportedYetError: a key of a kept row is NULL.
    """
    # Casts of maps are rare; what cuts lists takes time to load.
    from flowsql_compute.eval.nested.lists import Ranges, list_of_entries

    starts = offsets[:-1].astype(np.int64)
    rows = Ranges(starts, np.where(kept, offsets[1:] - starts, 0), kept)
    keys, values = (pc.take(column, pa.array(rows.positions()), boundscheck=False) for column in columns)
    if keys.null_count:
        # Arrow has no such maps; making one would end the process.
        raise NotSupportedYetError("a map with a NULL key")
    return list_of_entries(keys, values, rows, target)
