"""Tables, columns and conditions of scans as expressions of SQLAlchemy."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.types import NullType

from flowsql_connectors.conditions import condition
from flowsql_connectors.jdbc.alchemy.kinds import ANY_TYPE, BINARY_COLLATIONS, MOMENTS, STORED_ORDER
from flowsql_connectors.jdbc.database import Selection
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.parts import Part
from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_core.types import logical as t

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_DATE_OR_TIMESTAMP: Final = t.DateType | t.TimestampType
#: Nanoseconds.
_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
#: A column of the table by its place, as its declared type; and that type.
Columns = Callable[[int], tuple[Any, t.LogicalType]]


def table_of(name: str, columns: Iterable[str]) -> Any:
    """A table, maybe behind its schema and a dot. Columns have no types: values come and go as drivers have them."""
    schema, _, bare = name.rpartition(".")
    return sa.table(bare, *(sa.column(column) for column in columns), schema=schema or None)


def given(value: Any) -> Any:
    """A value that is sent beside the statement."""
    return sa.bindparam(None, value, type_=NullType(), unique=True)


def expression(column: Any, native: NativeColumn, type_: t.LogicalType, kind: str) -> Any:
    """A column's value as a declared type: rounded, widened, as a text where it is to be another type."""
    if kind in ANY_TYPE:
        return column
    if native.type is None:
        # Oracle's texts have a length in each cast.
        return sa.cast(column, sa.String(4000) if kind == "oracle" else sa.String())
    if kind == "postgresql" and isinstance(type_, t.TimestampType) and isinstance(native.type, t.TimestampLtzType):
        # In the zone of the session.
        return sa.cast(column, sa.TIMESTAMP())
    if isinstance(type_, t.DecimalType):
        own = native.type
        if isinstance(own, t.DecimalType) and (own.precision, own.scale) == (type_.precision, type_.scale):
            return column
        rounded = sa.func.round(column, sa.literal_column(str(type_.scale)))
        fits = sa.func.abs(rounded) < sa.literal_column("1" + "0" * (type_.precision - type_.scale))
        return sa.case((fits, rounded))
    if isinstance(type_, t.ApproximateType) and isinstance(native.type, t.FloatType):
        if kind in ("mysql", "mariadb"):
            # Of a float alone, they tell six digits.
            return column * sa.literal_column("1e0")
        return sa.cast(column, sa.Double()) if isinstance(type_, t.DoubleType) else column
    return column


def read(column: Any, native: NativeColumn, type_: t.LogicalType, kind: str) -> Any:
    """:func:`expression` in the form in which it travels."""
    if kind in ANY_TYPE and isinstance(type_, t.DecimalType):
        # What is stored as a float comes with the digits of the scale.
        rounded = sa.func.printf(sa.literal_column(f"'%.{type_.scale}f'"), column)
        as_text = sa.cast(column, sa.Text())
        return sa.case((sa.func.typeof(column) == sa.literal_column("'real'"), rounded), else_=as_text)
    return expression(column, native, type_, kind)


def takes_over(filter_: Expr, types: Mapping[int, t.LogicalType], kind: str) -> bool:
    """Whether the database applies a condition as FlowSQL does.

    Args:
        types: of the columns that it is about, by their places.
    """
    return _condition(filter_, lambda place: (sa.column(f"c{place}"), types[place]), kind) is not None


def select(wanted: Selection, there: Mapping[str, NativeColumn], kind: str) -> Any:
    """The query of a scan.

    Args:
        there: all columns of the table.
    """
    table = table_of(wanted.table, there)

    def column(place: int) -> tuple[Any, t.LogicalType]:
        native, type_ = wanted.native[place], wanted.declared[place].type
        return expression(table.c[native.name], native, type_, kind), type_

    columns = [
        read(table.c[wanted.native[place].name], wanted.native[place], wanted.declared[place].type, kind)
        for place in wanted.projection
    ]
    # Of a query that wants no column, rows count all the same.
    statement = sa.select(*(columns or [sa.literal_column("1")])).select_from(table)
    for filter_ in wanted.filters:
        part = _condition(filter_, column, kind)
        if part is not None:
            statement = statement.where(part)
    if wanted.part is not None:
        statement = statement.where(*_within(wanted.part, *column(wanted.part.column), kind))
    if kind not in STORED_ORDER:
        keys = sorted((native for native in there.values() if native.key), key=lambda native: native.key)
        statement = statement.order_by(*(table.c[native.name] for native in keys))
    return statement if wanted.limit is None else statement.limit(wanted.limit)


def _within(part: Part, column: Any, type_: t.LogicalType, kind: str) -> list[Any]:
    first, end = given(_bound(part.first, type_, kind)), given(_bound(part.end, type_, kind))
    return [column >= first, column <= end if part.last else column < end]


def _bound(value: int, type_: t.LogicalType, kind: str) -> Any:
    """Integers as they are; days of a DATE and microseconds of a TIMESTAMP as moments."""
    if not isinstance(type_, _DATE_OR_TIMESTAMP):
        return value
    found = _moment(value if isinstance(type_, t.DateType) else value * _MICROSECOND, type_)
    return found.isoformat(*(() if isinstance(type_, t.DateType) else " ")) if kind in ANY_TYPE else found


def _moment(value: int, type_: t.LogicalType) -> Any:
    """Days of a DATE or nanoseconds of a TIMESTAMP; None beyond the years 1 to 9999."""
    try:
        if isinstance(type_, t.DateType):
            return (_EPOCH + datetime.timedelta(days=value)).date()
        return _EPOCH + datetime.timedelta(microseconds=value // _MICROSECOND)
    except OverflowError:
        return None


def _condition(filter_: Expr, column: Columns, kind: str) -> Any:
    return condition(filter_, _Conditions(column, kind))


@record
class _Conditions:
    of: Columns
    kind: str

    def column(self, index: int) -> Any:
        if self.kind in ANY_TYPE:
            return None
        # Of numbers, all but 0 are TRUE.
        return self.of(index)[0] != sa.false()

    def is_null(self, index: int) -> Any:
        return self.of(index)[0].is_(None)

    def is_not_null(self, index: int) -> Any:
        return self.of(index)[0].is_not(None)

    def compared(self, index: int, operator: str, value: Any, type_: t.LogicalType) -> Any:
        column, declared = self.of(index)
        match type_:
            case t.CharacterType():
                return self._text(column, operator, value)
            case t.IntegerType():
                return _OPERATORS[operator](column, given(value))
            case t.DecimalType() if self.kind not in ANY_TYPE:
                return _OPERATORS[operator](column, given(value))
            case t.DoubleType() if value - value == 0:
                return _OPERATORS[operator](column, given(value))
            case t.DateType() if self.kind in MOMENTS and isinstance(declared, t.DateType):
                moment = _moment(value, type_)
                return None if moment is None else _OPERATORS[operator](column, given(moment))
            case t.TimestampType() if self.kind in MOMENTS and isinstance(declared, t.TimestampType):
                unit = _MILLISECOND if declared.precision <= 3 else _MICROSECOND
                return _cut(column, operator, value, unit)
        return None

    def _text(self, column: Any, operator: str, value: str) -> Any:
        collation = BINARY_COLLATIONS.get(self.kind)
        if collation is None or "\0" in value:
            return None
        if operator == "LIKE":
            return column.like(given(value), escape="") if self.kind == "postgresql" else None
        ordered = self.kind in ANY_TYPE or operator not in ("=", "<>")
        return _OPERATORS[operator](sa.collate(column, collation) if ordered else column, given(value))

    def every(self, parts: Sequence[Any]) -> Any:
        return sa.and_(*parts)

    def some(self, parts: Sequence[Any]) -> Any:
        return sa.or_(*parts)

    def negated(self, part: Any) -> Any:
        return sa.not_(part)


def _cut(column: Any, operator: str, value: int, unit: int) -> Any:
    """A comparison of a timestamp whose digits behind a unit do not count with a constant, both in nanoseconds: by
    bounds, as the column has all of its digits in the database. None: no bound can be told."""
    type_ = t.TimestampType(precision=6)
    floor = value // unit * unit
    at, after = _moment(floor, type_), _moment(floor + unit, type_)
    if at is None or after is None:
        return None
    whole = floor == value
    match operator:
        case "<" | ">=":
            return _OPERATORS[operator](column, given(at if whole else after))
        case "<=":
            return column < given(after)
        case ">":
            return column >= given(after)
        case "=" if whole:
            return sa.and_(column >= given(at), column < given(after))
        case "<>" if whole:
            return sa.or_(column < given(at), column >= given(after))
    return None
