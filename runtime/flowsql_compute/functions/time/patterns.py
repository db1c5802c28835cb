"""Text and numbers to moments and back: DATE_FORMAT, TO_DATE, TO_TIMESTAMP, UNIX_TIMESTAMP, CONVERT_TZ and kin."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, spread, validity, values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.java.date_pattern import format_moments, pattern_tokens
from flowsql_compute.eval.java.lenient_moments import parse_leniently, reads_zone
from flowsql_compute.eval.java.simple_date_format import format_seconds
from flowsql_compute.eval.java.strict_moments import check_pattern, parse_strictly
from flowsql_compute.eval.text.columns import KERNEL_ROWS
from flowsql_compute.eval.text.parse import parse_text_column
from flowsql_compute.eval.time.calendar import (
    UNITS_PER_SECOND,
    java_zone,
    local_to_utc,
    old_calendar_utc,
    utc_to_local,
    zone_of,
)
from flowsql_compute.eval.time.civil import civil_days, historic_days, month_length
from flowsql_compute.eval.time.fixed_moments import read_fixed
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.expr import Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

Int64s = npt.NDArray[np.int64]

_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_LOWEST = -(2**63)
#: What Flink's TO_DATE with a pattern gives for text that does not fit: the smallest BIGINT of milliseconds as days.
_NO_DATE = 622_191_233
_PLAIN = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$"
#: Texts that strict and lenient readers, old and new calendar read alike.
_SAFE = r"^(?:1[6-9]|[2-9]\d)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8]) (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d$"


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


def _constant(datum: Any, default: str) -> str | None:
    """The text of a constant pattern; None when it is a column or NULL."""
    if datum is None:
        return default
    return datum.as_py() if isinstance(datum, pa.Scalar) else None


@scalar("DATE_FORMAT(TIMESTAMP, STRING) -> STRING", nulls=NULLABLE, spark=None)
def date_format(call: Invocation, moment: Any, pattern: Any) -> Any:
    """A moment as text of a Java date pattern, in the session's zone."""
    values, valid = values_and_validity(_column(moment, call.n))
    per_second = UNITS_PER_SECOND[moment.type.unit]
    if isinstance(call.arg_types[0], t.TimestampLtzType):
        values = utc_to_local(values, per_second, call.context.zone)
    return _by_pattern(call, pattern, lambda java: format_moments(values, valid, per_second, java))


def _by_pattern(call: Invocation, pattern: Any, function: Callable[[str], pa.Array]) -> pa.Array:
    """A whole-column function of a constant pattern; of a column of patterns, one pass for each distinct one."""
    if isinstance(pattern, pa.Scalar):
        return function(pattern.as_py()) if pattern.is_valid else pa.nulls(call.n, to_arrow(call.type))
    made = pa.nulls(call.n, to_arrow(call.type))
    for one in pc.unique(pattern):
        if one.is_valid:
            made = pc.if_else(pc.fill_null(pc.equal(pattern, one), False), function(one.as_py()), made)
    return made


@scalar("DATE_FORMAT(STRING, STRING) -> STRING", nulls=NULLABLE, spark=None)
def date_format_text(call: Invocation, text: Any, pattern: Any) -> Any:
    """The text of a moment (``yyyy-MM-dd HH:mm:ss``, what follows is ignored) in another pattern; NULL for others."""
    values, valid = values_and_validity(_wall_seconds(_column(text, call.n)))
    return _by_pattern(call, pattern, lambda java: format_seconds(values, valid, "UTC", java))


def _wall_seconds(text: pa.Array) -> pa.Array:
    """Seconds of texts that begin with ``yyyy-MM-dd HH:mm:ss``, read leniently; NULL for others."""

    def parse(word: str) -> int | None:
        nanos = parse_leniently(word, _DEFAULT)
        return None if nanos is None else nanos // 1_000_000_000

    found = read_fixed(text, _DEFAULT, 1, lenient=True)
    if found is not None:
        return _with_odd(text, *found, parse, pa.int64())
    if pc.all(pc.match_substring_regex(text, _SAFE)).as_py() in (True, None):
        moments = parse_text_column(text, t.TimestampType(precision=3), EvalContext())[0]
        values, valid = values_and_validity(moments)
        return make_array(values // 1000, valid, pa.int64())
    return map_distinct(text, parse, pa.int64())


def _with_odd(
    text: pa.Array, values: Int64s, odd: Bools, function: Callable[[str], int | None], type_: pa.DataType
) -> pa.Array:
    """The values of a text column; those of its odd rows by a function of their distinct texts."""
    made = make_array(values.astype(type_.to_pandas_dtype(), copy=False), validity(text), type_)
    if not odd.any():
        return made
    mask = pa.array(odd)
    return pc.replace_with_mask(made, mask, map_distinct(pc.filter(text, mask), function, type_))


@scalar("TO_DATE(STRING) -> DATE", nulls=NULLABLE, spark=None)
def to_date(call: Invocation, text: Any) -> Any:
    """The date of a text; NULL when it is none."""
    return parse_text_column(text, t.DATE, call.context)[0]


@scalar("TO_DATE(STRING, STRING) -> DATE", nulls=NULLABLE, spark=None)
def to_date_pattern(call: Invocation, text: Any, pattern: Any) -> Any:
    """The date of a text in a pattern, read leniently (February 30th is March 1st).

    Text that does not fit gives a date far in the future, as in Flink.
    """

    def parse(word: str, java: str) -> int | None:
        nanos = parse_leniently(word, java)
        # Days wrap around an INT.
        return _NO_DATE if nanos is None else (nanos // 86_400_000_000_000 + 2**31) % 2**32 - 2**31

    return pc.cast(_parse(call, text, pattern, parse, pa.int32(), (1, 86_400), lenient=True), pa.date32())


def _parse(
    call: Invocation,
    text: Any,
    pattern: Any,
    function: Callable[[str, str], int | None],
    type_: pa.DataType,
    units: tuple[int, int],
    lenient: bool,
) -> pa.Array:
    """Texts by a pattern, in ``units``: the first is how many make a second, the second how many of those make one."""
    java = _constant(pattern, _DEFAULT)
    if java is not None:
        column, (per_second, each) = _column(text, call.n), units
        try:
            found = read_fixed(column, java, per_second, lenient)
        except ExecutionError:
            # A malformed pattern: what that means is the function's to say, of each text that there is.
            found = None
        if found is not None:
            return _with_odd(column, found[0] // each, found[1], lambda word: function(word, java), type_)
        return map_distinct(column, lambda word: function(word, java), type_)
    if isinstance(pattern, pa.Scalar):
        return pa.nulls(call.n, type_)
    return map_rows([_column(text, call.n), pattern], function, type_)


@scalar("TO_TIMESTAMP(STRING) -> TIMESTAMP(3)", nulls=NULLABLE, spark=None)
def to_timestamp(call: Invocation, text: Any) -> Any:
    """The moment of a text; NULL when it is none."""
    return parse_text_column(text, t.TimestampType(precision=3), call.context)[0]


@scalar("TO_TIMESTAMP(STRING, STRING) -> TIMESTAMP(3)", nulls=NULLABLE, spark=None)
def to_timestamp_pattern(call: Invocation, text: Any, pattern: Any) -> Any:
    """The moment of a text in a Java date pattern; NULL when it does not fit or the pattern is none."""
    return _moments(call, text, pattern, pa.timestamp("ms"))


def _moments(call: Invocation, text: Any, pattern: Any, type_: pa.DataType) -> pa.Array:
    if _constant(pattern, _DEFAULT) == _DEFAULT and call.n < KERNEL_ROWS:
        column = _column(text, call.n)
        plain = pc.all(pc.match_substring_regex(column, _PLAIN)).as_py()
        if plain in (True, None):
            return pc.cast(parse_text_column(column, t.TimestampType(precision=3), call.context)[0], type_)

    per_second = UNITS_PER_SECOND[type_.unit]
    grain = 1_000_000_000 // per_second

    def parse(word: str, java: str) -> int | None:
        try:
            nanos = parse_strictly(word, java)
        except ExecutionError:
            return None
        if nanos is None:
            nanos = _plain_nanos(word)
        return None if nanos is None else nanos // grain

    return pc.cast(_parse(call, text, pattern, parse, pa.int64(), (per_second, 1), lenient=False), type_)


_PLAIN_MOMENT = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?: +(\d{1,9}):(\d{1,9}):(\d{1,9})(?:\.(\d{1,9}))?)?\s*")


def _plain_nanos(word: str) -> int | None:
    """What text that does not fit its pattern is tried as: ``java.sql.Timestamp`` and ``java.sql.Date``.

    Both take February 30th for March 1st, and the clock may run over.
    """
    found = _PLAIN_MOMENT.fullmatch(word)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    days = civil_days(year, month, day) if day <= month_length(year, month) else historic_days(year, month, day)
    seconds = days * 86_400 + (hour * 60 + minute) * 60 + second
    return seconds * 1_000_000_000 + int((found[7] or "").ljust(9, "0"))


def _ltz_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    precision = 3
    if len(args) == 2:
        if not isinstance(args[1], Literal) or args[1].value is None:
            return t.TimestampLtzType(precision=3)
        precision = args[1].value
        if not 0 <= precision <= 9:
            raise BindError(
                "bad-precision",
                f"Precision for TO_TIMESTAMP_LTZ must be between 0 and 9 but was {precision}.",
                args[1].span,
            )
    return t.TimestampLtzType(precision=max(3, precision))


@scalar(
    "TO_TIMESTAMP_LTZ(NUMERIC, [INTEGER]) -> TIMESTAMP_LTZ(3)", nulls=NULLABLE, raises=True, returns=_ltz_type,
    spark=None,
)  # fmt: skip
def to_timestamp_ltz(call: Invocation, number: Any, precision: Any = None) -> Any:
    """The point in time of epoch seconds (precision 0), milliseconds (3, if not given) or finer units."""
    column = _column(number, call.n)
    if precision is None:
        return _points(column, 3, to_arrow(call.type))
    if isinstance(precision, pa.Scalar):
        made = pa.nulls(call.n, to_arrow(call.type))
        return _points(column, precision.as_py(), made.type) if precision.is_valid else made
    made = pa.nulls(call.n, to_arrow(call.type))
    for digits in pc.unique(precision).drop_null():
        made = pc.if_else(
            pc.fill_null(pc.equal(precision, digits), False), _points(column, digits.as_py(), made.type), made
        )
    return made


def _points(column: pa.Array, digits: int, type_: pa.DataType) -> pa.Array:
    """Points in time of numbers that count so many digits of a second."""
    if digits > 9:
        # A written precision is refused before; one of a row divides on, down to the epoch.
        column, digits = pc.multiply(column, pa.scalar(0, column.type)), 3
    if digits < 0:
        raise ExecutionError(
            "bad-precision", f"Precision for TO_TIMESTAMP_LTZ must be between 0 and 9 but was {digits}."
        )
    if not pa.types.is_integer(column.type):
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), 0.0, column)
            if digits < 3:
                # Seconds keep their milliseconds.
                column, digits = pc.multiply(column, 10.0 ** (3 - digits)), 3
            column = pc.if_else(pc.less(pc.abs(column), 2.0**63), column, pa.scalar(None, column.type))
        elif pa.types.is_decimal(column.type):
            # Where all digits are those of a fraction there is no place for a whole number.
            column = pc.cast(column, pa.decimal256(76, column.type.scale))
        column = pc.cast(pc.trunc(column), pa.int64(), safe=False)
    values, valid = values_and_validity(column)
    wanted, given = UNITS_PER_SECOND[type_.unit], 10**digits
    values = values.astype(np.int64)
    # Years 0 to 9999 only.
    if digits < 9:
        fits = (values >= _FIRST_SECOND * given) & (values < _LAST_SECOND * given)
        values = np.where(fits, values, 0)
        valid = fits if valid is None else valid & fits
    return make_array(values * (wanted // given) if wanted >= given else values // (given // wanted), valid, type_)


_FIRST_SECOND, _LAST_SECOND = -62_167_219_200, 253_402_300_800


def _text_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """As many fractional digits as the last run of the letter S in a written pattern, three at least."""
    pattern = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else None
    try:
        runs = [token.count for token in pattern_tokens(pattern) if token.letter == "S"] if pattern else []
    except ExecutionError:
        # ``_check_written`` says more of it.
        runs = []
    return t.TimestampLtzType(precision=min(max([*runs[-1:], 3]), 9))


def _check_written(args: Sequence[Expr], span: Span | None) -> None:
    """A written pattern must be one of Java's, a written zone a known one, even if they are never asked."""
    zone = args[2] if len(args) > 2 else None
    if isinstance(zone, Literal) and zone.value is not None and not _is_zone(zone.value):
        message = f"Invalid timezone for parsing TIMESTAMP_LTZ: Unknown time-zone ID: {zone.value}"
        raise BindError("unknown-time-zone", message, zone.span or span)
    pattern = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else None
    if pattern is None:
        return
    try:
        check_pattern(pattern)
    except ExecutionError as error:
        message = f"Invalid pattern for parsing TIMESTAMP_LTZ: {error.message}"
        raise BindError(error.code, message, args[1].span or span) from error


@scalar(
    "TO_TIMESTAMP_LTZ(STRING) -> TIMESTAMP_LTZ(3)",
    "TO_TIMESTAMP_LTZ(STRING, STRING) -> TIMESTAMP_LTZ(3)",
    "TO_TIMESTAMP_LTZ(STRING, STRING, STRING) -> TIMESTAMP_LTZ(3)",
    nulls=NULLABLE,
    raises=True,
    returns=_text_type,
    check=_check_written,
    spark=None,
)
def to_timestamp_ltz_text(call: Invocation, text: Any, pattern: Any = None, zone: Any = None) -> Any:
    """The point in time of a text, in the given zone (UTC if none).

    Text that is no moment fails, text that does not fit a given pattern is NULL, as are patterns and zones of rows that
    are none.
    """
    column = _column(text, call.n)
    if pattern is None:
        wall = parse_text_column(column, t.TimestampType(precision=3), call.context)[0]
    else:
        wall = _moments(call, column, pattern, pa.timestamp(to_arrow(call.type).unit))
    if pattern is None and wall.null_count > column.null_count:
        wrong = pc.and_(pc.is_null(wall), pc.is_valid(column))
        word = pc.filter(column, wrong)[0].as_py() if pc.any(wrong).as_py() else ""
        raise ExecutionError("bad-timestamp", f"Text '{word}' could not be parsed at index 0")
    values, valid = values_and_validity(wall)
    per_second = UNITS_PER_SECOND[wall.type.unit]
    if zone is None or isinstance(zone, pa.Scalar):
        name = "UTC" if zone is None else zone.as_py()
        if name is None or not _is_zone(name):
            return pa.nulls(call.n, to_arrow(call.type))
        return make_array(local_to_utc(values, per_second, name), valid, to_arrow(call.type))
    made = pa.nulls(call.n, to_arrow(call.type))
    for one in pc.unique(zone):
        if one.is_valid and _is_zone(one.as_py()):
            here = pc.fill_null(pc.equal(zone, one), False)
            made = pc.if_else(here, make_array(local_to_utc(values, per_second, one.as_py()), valid, made.type), made)
    return made


def _is_zone(zone: str) -> bool:
    """True for the name of a zone, or an offset."""
    try:
        zone_of(zone)
    except BindError:
        return False
    return True


@scalar("FROM_UNIXTIME(INTEGER, [STRING]) -> STRING", nulls=NULLABLE, spark=None)
def from_unixtime(call: Invocation, seconds: Any, pattern: Any = None) -> Any:
    """Epoch seconds as text of a pattern, in the session's zone."""
    values, valid = values_and_validity(_column(seconds, call.n))
    # Java's milliseconds wrap around.
    points, zone = values.astype(np.int64) * 1000 // 1000, call.context.zone
    given = pa.scalar(_DEFAULT) if pattern is None else pattern
    return _by_pattern(call, given, lambda java: format_seconds(points, valid, zone, java))


@scalar("UNIX_TIMESTAMP(STRING, [STRING]) -> BIGINT", spark=None)
def unix_timestamp(call: Invocation, text: Any, pattern: Any = None) -> Any:
    """Epoch seconds of a text in a pattern, read in the session's zone; the smallest BIGINT when it does not fit."""

    column = _column(text, call.n)
    given = pa.scalar(_DEFAULT) if pattern is None else pattern
    return _by_pattern(call, given, lambda java: _seconds_of(call, column, java))


def _seconds_of(call: Invocation, column: pa.Array, java: str) -> pa.Array:
    def parse(word: str, java: str) -> int:
        nanos = parse_leniently(word, java)
        return _LOWEST if nanos is None else nanos // 1_000_000_000

    if java == _DEFAULT:
        seconds = pc.if_else(
            pc.is_valid(column), pc.fill_null(_wall_seconds(column), _LOWEST), pa.scalar(None, pa.int64())
        )
    else:
        seconds = _parse(call, column, pa.scalar(java), parse, pa.int64(), (1, 1), lenient=True)
    if reads_zone(java):
        return seconds
    values, valid = values_and_validity(seconds)
    bad = values == _LOWEST
    moved = old_calendar_utc(np.where(bad, 0, values), call.context.zone)
    return make_array(np.where(bad, _LOWEST, moved), valid, pa.int64())


@scalar("CONVERT_TZ(STRING, STRING, STRING) -> STRING", nulls=NULLABLE, spark=None)
def convert_tz(call: Invocation, text: Any, source: Any, target: Any) -> Any:
    """A text ``yyyy-MM-dd HH:mm:ss`` moved from one zone's wall clock to another's; NULL when it is none."""
    walls = _wall_seconds(_column(text, call.n))

    def between(from_zone: str, to_zone: str) -> pa.Array:
        values, valid = values_and_validity(walls)
        points = old_calendar_utc(values, java_zone(from_zone))
        return format_seconds(points, valid, java_zone(to_zone), _DEFAULT)

    if isinstance(source, pa.Scalar) and isinstance(target, pa.Scalar):
        known = source.is_valid and target.is_valid
        return between(source.as_py(), target.as_py()) if known else pa.nulls(call.n, pa.string())
    made = pa.nulls(call.n, pa.string())
    sources, targets = _column(source, call.n), _column(target, call.n)
    for first in pc.unique(sources).drop_null():
        from_here = pc.equal(sources, first)
        for second in pc.unique(pc.filter(targets, from_here)).drop_null():
            here = pc.fill_null(pc.and_(from_here, pc.equal(targets, second)), False)
            made = pc.if_else(here, between(first.as_py(), second.as_py()), made)
    return made
