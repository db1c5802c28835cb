"""Values as text, column by column: the JSON encoding of answers, Java's ``toString`` of printed rows, tableau cells.

A row's text is the element-wise join of its columns' texts, so that no row is touched by itself. Casts to STRING stand
in ``cast``; the three notations here differ from them (and from each other) in NULLs, fractions, bytes and nesting.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from flowsql_compute.eval.text.java_numbers import java_double, java_float
from flowsql_compute.eval.time.calendar import UNITS_PER_SECOND, date_text, time_text
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import (
    INT,
    ArrayType,
    BinaryStringType,
    BitmapType,
    BooleanType,
    CharacterType,
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
    NullType,
    RowType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    VariantType,
    YearMonthIntervalType,
)


class Notation(enum.Enum):
    """How values are written.

    JSON: the answer encoding of ``--format jsonl``. ROW: ``toString`` of Flink's external ``Row``, which ``print``
    writes. TABLEAU: the cells of a result table, Flink's cast to a string with fixed fractions.
    """

    JSON = "json"
    ROW = "row"
    TABLEAU = "tableau"


#: JSON string escapes that Arrow has to make; the back-slash comes first.
_ESCAPES: Final = (
    ("\\", "\\\\"),
    ('"', '\\"'),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
    ("\b", "\\b"),
    ("\f", "\\f"),
    *((chr(code), f"\\u{code:04X}") for code in range(32) if chr(code) not in "\n\r\t\b\f"),
)


def render_column(column: Any, type_: LogicalType, notation: Notation) -> pa.StringArray:
    """The texts of a column, as long as the column, never NULL (``null``/``NULL`` is written out)."""
    if isinstance(column, PyObjectColumn):
        return _render_objects(column, notation)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    texts = _render_valid(column, type_, notation)
    if column.null_count or pa.types.is_null(column.type):
        texts = pc.fill_null(texts, "null" if notation in (Notation.JSON, Notation.ROW) else "NULL")
    return texts


def json_rows(batch: ChangelogBatch, schema: Sequence[Column], sink: str | None = None) -> str:
    """``{"op": "+I", "row": [...]}`` lines, each with its newline; ``sink`` adds the table that printed them."""
    head = "" if sink is None else f'"sink": {orjson.dumps(sink).decode()}, '
    ops = [f'{{{head}"op": "{text}", "row": [' for text in SHORT_STRINGS]
    return _lines(batch, _row_texts(batch, schema, Notation.JSON), ops, "]}\n")


def print_rows(batch: ChangelogBatch, schema: Sequence[Column], prefix: str) -> str:
    """``prefix+I[1, a]`` lines as Flink's ``print`` sink writes them, each with its newline."""
    return _lines(batch, _row_texts(batch, schema, Notation.ROW), [f"{prefix}{text}[" for text in SHORT_STRINGS], "]\n")


def _row_texts(batch: ChangelogBatch, schema: Sequence[Column], notation: Notation) -> pa.StringArray:
    texts = [render_column(column, field.type, notation) for column, field in zip(batch.columns, schema, strict=True)]
    return _join(texts, ", ", batch.num_rows)


def _lines(batch: ChangelogBatch, rows: pa.StringArray, heads: list[str], tail: str) -> str:
    if not batch.num_rows:
        return ""
    if batch.kinds is None:
        head: Any = heads[0]
    else:
        head = pc.take(pa.array(heads), pa.array(batch.kinds))
    lines = pc.binary_join_element_wise(head, rows, tail, "")
    return _joined_text(lines)


def _joined_text(lines: pa.StringArray) -> str:
    """All texts in one, straight from the value buffer: they already end in newlines."""
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return bytes(memoryview(lines.buffers()[2])[int(offsets[0]) : int(offsets[-1])]).decode()


def _join(texts: list[pa.StringArray], separator: str, num_rows: int) -> pa.StringArray:
    if not texts:
        return pc.cast(pa.nulls(num_rows), pa.string()).fill_null("")
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, separator)


def _wrap(before: str, texts: pa.StringArray, after: str) -> pa.StringArray:
    return pc.binary_join_element_wise(before, texts, after, "")


def _render_objects(column: PyObjectColumn, notation: Notation) -> pa.StringArray:
    """Python objects know their own text; there is no column of them in any kernel."""
    if notation is Notation.JSON:
        return pa.array([orjson.dumps(v, default=str).decode() for v in column.values], pa.string())
    null = "null" if notation is Notation.ROW else "NULL"
    return pa.array([null if v is None else str(v) for v in column.values], pa.string())


def _render_valid(array: Any, type_: LogicalType, notation: Notation) -> pa.StringArray:
    match type_:
        case NullType():
            return pa.nulls(len(array), pa.string())
        case BooleanType():
            texts = pc.cast(array, pa.string())
            return pc.utf8_upper(texts) if notation is Notation.TABLEAU else texts
        case IntegerType():
            return pc.cast(array, pa.string())
        case FloatType() | DoubleType():
            return _floats(array, notation)
        case DecimalType():
            # Java's BigDecimal and Arrow agree on when to write 1E-10; the others want all digits.
            texts = pc.cast(array, pa.string()) if notation is Notation.ROW else _decimals(array)
            return _wrap('"', texts, '"') if notation is Notation.JSON else texts
        case CharacterType():
            return json_strings(array) if notation is Notation.JSON else pc.cast(array, pa.string())
        case BinaryStringType():
            return _binaries(array, notation)
        case DateType():
            texts = date_text(array, whole=True)
            return _wrap('"', texts, '"') if notation is Notation.JSON else texts
        case TimeType() | TimestampType() | TimestampLtzType():
            return _times(array, type_, notation)
        case YearMonthIntervalType() | DayTimeIntervalType():
            return _intervals(array, type_, notation)
        case ArrayType(element=element):
            return _lists(array, render_column(array.flatten(), element, notation))
        case MapType(key=key, value=value):
            return _maps(array, key, value, notation)
        case MultisetType(element=element):
            return _maps(array, element, INT, notation)
        case RowType():
            return _structs(array, type_, notation)
        case VariantType():
            # Imported here: most answers have no such column.
            from flowsql_compute.eval.json.variant import variant_text

            return json_strings(variant_text(array)) if notation is Notation.JSON else variant_text(array)
        case BitmapType():
            from flowsql_compute.eval.nested.bitmaps import bitmap_text

            return json_strings(bitmap_text(array)) if notation is Notation.JSON else bitmap_text(array)
    return pc.cast(array, pa.string())


def json_strings(array: Any) -> pa.StringArray:
    """JSON string literals of texts; NULL stays NULL."""
    return _wrap('"', json_texts(array), '"')


def json_texts(array: Any) -> pa.StringArray:
    """Texts between the quotes of JSON string literals; NULL stays NULL. Only what occurs is escaped: most columns need
    nothing."""
    texts = pc.cast(array, pa.string())
    if _any_escape(texts):
        for raw, escaped in _ESCAPES:
            if pc.any(pc.match_substring(texts, raw)).as_py():
                texts = pc.replace_substring(texts, raw, escaped)
    return texts


def _any_escape(texts: pa.StringArray) -> bool:
    """Whether any byte of any text has to be escaped; the bytes of NULL texts may count, which does no harm."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    ends = np.frombuffer(offsets, dtype=np.int32)
    used = np.frombuffer(data, dtype=np.uint8)[ends[texts.offset] : ends[texts.offset + len(texts)]]
    return bool((used < 32).any() or (used == ord('"')).any() or (used == ord("\\")).any())


def over_distinct(array: Any, text: Callable[[Any], str | None]) -> pa.StringArray:
    """``text`` of each distinct value, put back in place; NULL stays NULL. For notations that no kernel knows."""
    encoded = pc.dictionary_encode(array)
    values = encoded.dictionary
    made = pa.array([text(value.as_py()) for value in values], pa.string())
    return pc.take(made, encoded.indices)


def _floats(array: Any, notation: Notation) -> pa.StringArray:
    texts = float_texts(array)
    if notation is not Notation.JSON:
        return texts
    special = pc.match_substring(texts, "N") if len(texts) else None
    if special is not None and pc.any(pc.or_(special, pc.match_substring(texts, "I"))).as_py():
        texts = pc.if_else(pc.or_(special, pc.match_substring(texts, "I")), _wrap('"', texts, '"'), texts)
    return texts


def float_texts(array: Any) -> pa.StringArray:
    """Java's text of FLOAT or DOUBLE values; NULL stays NULL."""
    return over_distinct(array, java_float if pa.types.is_float32(array.type) else java_double)


def _decimals(array: Any) -> pa.StringArray:
    texts = pc.cast(array, pa.string())
    # Arrow writes 1E-10 for small values of a large scale.
    if pc.any(pc.match_substring(texts, "E")).as_py():
        return over_distinct(array, lambda value: format(value, "f"))
    return texts


def _binaries(array: Any, notation: Notation) -> pa.StringArray:
    match notation:
        case Notation.JSON:
            return over_distinct(array, lambda value: f'"x{value.hex()}"')
        case Notation.ROW:
            return over_distinct(
                array, lambda value: "[" + ", ".join(str(b - 256 if b > 127 else b) for b in value) + "]"
            )
    return over_distinct(array, lambda value: f"x'{value.hex()}'")


def plain_timestamps(array: Any) -> pa.StringArray:
    """``yyyy-MM-dd HH:mm:ss`` with as many fraction digits as the unit holds; LTZ in UTC; NULL stays NULL."""
    if array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit))
    return pc.cast(array, pa.string())


def _times(array: Any, type_: LogicalType, notation: Notation) -> pa.StringArray:
    texts = pc.cast(array, pa.string()) if isinstance(type_, TimeType) else plain_timestamps(array)
    zone = "Z" if isinstance(type_, TimestampLtzType) else ""
    if notation is not Notation.TABLEAU and not isinstance(type_, TimeType):
        texts = _signed_years(texts, array)
    match notation:
        case Notation.JSON:
            return _wrap('"', _grouped_fraction(texts), f'{zone}"')
        case Notation.ROW:
            # LocalTime, LocalDateTime and Instant: 'T' between, seconds left out where they are zero (not by Instant).
            texts = _grouped_fraction(texts)
            if not zone:
                texts = pc.replace_substring_regex(texts, r"^(.*\d\d:\d\d):00$", r"\1")
            return _wrap("", pc.replace_substring(texts, " ", "T"), zone)
    return time_text(array, type_.precision) if isinstance(type_, TimeType) else _fixed_fraction(texts, type_)


def _signed_years(texts: pa.StringArray, moments: Any) -> pa.StringArray:
    """Years of five digits behind a plus sign, as Java's classes write them."""
    latest = pc.max(moments.cast(pa.int64())).as_py()
    if latest is None or latest < _FIVE_DIGITS * UNITS_PER_SECOND[moments.type.unit]:
        return texts
    return pc.replace_substring_regex(texts, r"^(\d{5})", r"+\1")


#: Seconds from the epoch to the year 10000.
_FIVE_DIGITS = 253_402_300_800


def _grouped_fraction(texts: pa.StringArray) -> pa.StringArray:
    """Fractions in groups of 3, 6 or 9 digits, none when zero."""
    if not pc.any(pc.match_substring(texts, ".")).as_py():
        return texts
    texts = pc.replace_substring_regex(texts, r"\.0+$", "")
    # Twice: a fraction of nine digits may lose two groups.
    texts = pc.replace_substring_regex(texts, r"(\.\d{3}(?:\d{3})?)000$", r"\1")
    return pc.replace_substring_regex(texts, r"(\.\d{3})000$", r"\1")


def _fixed_fraction(texts: pa.StringArray, type_: LogicalType) -> pa.StringArray:
    """Exactly as many fraction digits as the type's precision."""
    assert isinstance(type_, TimestampType | TimestampLtzType)
    plain = pc.utf8_slice_codeunits(texts, 0, 19)
    if type_.precision == 0:
        return plain
    fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(texts, 20, 20 + type_.precision), type_.precision, "0")
    return pc.binary_join_element_wise(plain, fraction, ".")


def _intervals(array: Any, type_: LogicalType, notation: Notation) -> pa.StringArray:
    numbers = array.cast(pa.int64())
    months = type_ if isinstance(type_, YearMonthIntervalType) else None

    def iso(n: int) -> str:
        return duration(n) if months is None else period(n, months.resolution)

    match notation:
        case Notation.JSON:
            return over_distinct(numbers, lambda n: f'"{iso(n)}"')
        case Notation.ROW:
            return over_distinct(numbers, iso)
    return over_distinct(numbers, _day_time if months is None else _year_month)


def period(months: int, resolution: str) -> str:
    """``java.time.Period`` of months as Flink hands it out: in the units of the interval type; ``P0D`` for none.

    >>> period(14, "YEAR TO MONTH"), period(14, "MONTH"), period(-24, "YEAR"), period(0, "MONTH")
    ('P1Y2M', 'P14M', 'P-2Y', 'P0D')
    """
    years, rest = (0, abs(months)) if resolution == "MONTH" else divmod(abs(months), 12)
    if resolution == "YEAR":
        rest = 0
    sign = "-" if months < 0 else ""
    return "P" + ((f"{sign}{years}Y" if years else "") + (f"{sign}{rest}M" if rest else "") or "0D")


def duration(millis: int) -> str:
    """``java.time.Duration`` of milliseconds: ``PT120H``, ``PT0S`` for none.

    >>> duration(432_000_000), duration(61_500), duration(-1500)
    ('PT120H', 'PT1M1.5S', 'PT-1.5S')
    """
    if millis == 0:
        return "PT0S"
    sign, rest = ("-" if millis < 0 else ""), abs(millis)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    text = "PT" + (f"{sign}{hours}H" if hours else "") + (f"{sign}{minutes}M" if minutes else "")
    if rest:
        seconds = f"{rest // 1000}.{rest % 1000:03d}".rstrip("0").rstrip(".")
        text += f"{sign}{seconds}S"
    return text


def _year_month(months: int) -> str:
    return f"{'-' if months < 0 else '+'}{abs(months) // 12}-{abs(months) % 12:02d}"


def _day_time(millis: int) -> str:
    days, rest = divmod(abs(millis), 86_400_000)
    seconds = rest // 1000
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest % 1000:03d}"
    return f"{'-' if millis < 0 else '+'}{days} {clock}"


def _lists(array: Any, texts: pa.StringArray) -> pa.StringArray:
    return _wrap("[", pc.binary_join(regrouped(array, texts), ", "), "]")


def regrouped(array: Any, values: Any) -> Any:
    """The list array with other elements: as many as ``array.flatten()`` gave (none of NULL lists)."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = np.zeros(len(array) + 1, dtype=np.int32)
    np.cumsum(np.frombuffer(lengths.buffers()[1], dtype=np.int32)[lengths.offset :][: len(array)], out=offsets[1:])
    mask = pc.is_null(array) if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)


def _maps(array: Any, key: LogicalType, value: LogicalType, notation: Notation) -> pa.StringArray:
    entries = pa.ListArray.from_arrays(array.offsets, pa.StructArray.from_arrays([array.keys, array.items], ["k", "v"]))
    no_entries = pa.scalar(None, entries.type)
    lists = pc.if_else(pc.is_valid(array), entries, no_entries) if array.null_count else entries
    pairs = lists.flatten()
    keys = render_column(pairs.field(0), key, notation)
    values = render_column(pairs.field(1), value, notation)
    if notation is not Notation.JSON:
        joined = pc.binary_join_element_wise(keys, values, "=")
        return _wrap("{", pc.binary_join(regrouped(lists, joined), ", "), "}")
    joined = _wrap("[", pc.binary_join_element_wise(keys, values, ", "), "]")
    # The encoding sorts a map's pairs by their JSON text: order by (row, text) keeps the rows' lengths.
    rows = pc.list_parent_indices(lists)
    order = pc.sort_indices(
        pa.table({"row": rows, "text": joined}), sort_keys=[("row", "ascending"), ("text", "ascending")]
    )
    return _wrap("[", pc.binary_join(regrouped(lists, pc.take(joined, order)), ", "), "]")


def _structs(array: Any, type_: RowType, notation: Notation) -> pa.StringArray:
    texts = [
        render_column(child, field.type, notation) for child, field in zip(_fields(array), type_.fields, strict=True)
    ]
    joined = _join(texts, ", ", len(array))
    match notation:
        case Notation.JSON:
            wrapped = _wrap("[", joined, "]")
        case Notation.ROW:
            wrapped = _wrap("+I[", joined, "]")
        case Notation.TABLEAU:
            wrapped = _wrap("(", joined, ")")
    return pc.if_else(pc.is_valid(array), wrapped, pa.scalar(None, pa.string())) if array.null_count else wrapped


def _fields(array: Any) -> list[Any]:
    return [pc.struct_field(array, [index]) for index in range(array.type.num_fields)]


@functools.cache
def notation_of(name: str) -> Notation:
    """The notation behind ``flowsql.print.format``: ``jsonl`` or ``text``."""
    return Notation.JSON if name == "jsonl" else Notation.ROW
