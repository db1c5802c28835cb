"""The index of each row: a text with columns in braces, as Flink's connector reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.java.date_pattern import format_moments
from flowsql_compute.eval.time.calendar import UNITS_PER_SECOND, utc_to_local
from flowsql_connectors.elasticsearch.texts import plain_texts
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError, did_you_mean
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types import logical as t

_PART: Final = re.compile(r"\{([^{}]*)\}")
_NOW: Final = {"now()", "current_timestamp"}
_DATE: Final = "yyyy_MM_dd"
_TIME: Final = "HH_mm_ss"


@record
class IndexPart:
    """A value in braces. ``place``: of a column; None: the present moment. ``pattern``: Java's; None: as it is."""

    place: int | None
    pattern: str | None


@record
class IndexTemplate:
    """``parts``: texts and values, one behind another. ``columns``: of the table. ``zone``: of the session."""

    parts: tuple[str | IndexPart, ...]
    columns: t.Schema
    zone: str

    @property
    def constant(self) -> str | None:
        """The name where it is always the same."""
        return "".join(map(str, self.parts)) if all(isinstance(part, str) for part in self.parts) else None

    def names(self, columns: Sequence[Any], rows: int, now_ms: int) -> Any:
        """A string array: the index of each row.

        Raises:
            ExecutionError: a value that it needs is NULL.
        """
        pieces = [part if isinstance(part, str) else self._texts(part, columns, rows, now_ms) for part in self.parts]
        return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, "")

    def _texts(self, part: IndexPart, columns: Sequence[Any], rows: int, now_ms: int) -> Any:
        if part.place is None:
            assert part.pattern is not None
            now = pa.array([now_ms], pa.timestamp("ms", tz="UTC"))
            text = self._formatted(now, t.TimestampLtzType(precision=3), part.pattern)[0].as_py()
            return pa.repeat(pa.scalar(text, pa.string()), rows)
        column, type_ = columns[part.place], self.columns[part.place].type
        if column.null_count:
            raise ExecutionError(
                "null-index",
                f"Column '{self.columns[part.place].name}' is NULL in a row, and the name of its index needs it.",
            )
        return plain_texts(column, type_) if part.pattern is None else self._formatted(column, type_, part.pattern)

    def _formatted(self, column: Any, type_: t.LogicalType, pattern: str) -> Any:
        if isinstance(type_, t.DateType):
            column = column.cast(pa.timestamp("s"))
        elif isinstance(type_, t.TimeType):
            column = column.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("ms"))
        values, valid = values_and_validity(column)
        per_second = UNITS_PER_SECOND[column.type.unit]
        if isinstance(type_, t.TimestampLtzType):
            values = utc_to_local(np.asarray(values), per_second, self.zone)
        return format_moments(values, valid, per_second, pattern)


def index_template(table: TableSpec, text: str, zone: str) -> IndexTemplate:
    """The index of a table.

    Raises:
        BindError: it names what is no column, or a pattern for what is no time.
    """
    names = [column.name for column in table.columns]
    parts: list[str | IndexPart] = []
    for at, piece in enumerate(_PART.split(text)):
        if at % 2 == 0:
            if piece:
                parts.append(piece)
            continue
        name, bar, pattern = (word.strip() for word in piece.partition("|"))
        if name.lower() in _NOW:
            if table.primary_key:
                raise BindError(
                    "invalid-option-value",
                    f"'index' = '{text}': Dynamic index based on system time only works on append only stream.",
                    hint="a column of the row says where it is; or leave out the primary key",
                )
            parts.append(IndexPart(None, pattern or f"{_DATE}_{_TIME}"))
            continue
        if name not in names:
            raise BindError(
                "column-not-found",
                f"Unknown field '{name}' in index pattern '{text}', please check the field name.",
                hint=did_you_mean(name, names),
            )
        place = names.index(name)
        parts.append(IndexPart(place, _pattern(table.columns[place], pattern, bool(bar), text)))
    return IndexTemplate(tuple(parts), table.columns, zone)


def _pattern(column: t.Column, pattern: str, asked: bool, text: str) -> str | None:
    match column.type:
        case t.DateType():
            default: str | None = _DATE
        case t.TimeType():
            default = _TIME
        case t.TimestampType() | t.TimestampLtzType():
            default = f"{_DATE}_{_TIME}"
        case t.CharacterType() | t.BooleanType() | t.IntegerType() | t.FloatType() | t.DoubleType() | t.DecimalType():
            default = None
        case _:
            raise BindError(
                "invalid-option-value",
                f"'index' = '{text}': column '{column.name}' is {column.type}, which is no part of a name.",
            )
    if not asked:
        return None
    if default is None:
        raise BindError(
            "invalid-option-value",
            f"'index' = '{text}': column '{column.name}' is {column.type.as_nullable()}, and only DATE, TIME and "
            "TIMESTAMP have a pattern.",
            hint=f"{{{column.name}}}",
        )
    return pattern or default
