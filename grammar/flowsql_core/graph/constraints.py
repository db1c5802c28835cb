"""What a sink demands of its rows beyond their types: NOT NULL, lengths, and both of them inside of nested columns.

Constraints are made of a table's schema and three options. ``str`` of one is what Flink prints in a plan. Source:
Flink's manual, ``table.exec.sink.not-null-enforcer``, ``...type-length-enforcer``, ``...nested-constraint-enforcer``.
"""

from __future__ import annotations

from typing import Final

from flowsql_core.config import (
    NESTED_ENFORCER,
    NOT_NULL_ENFORCER,
    TYPE_LENGTH_ENFORCER,
    Configuration,
    NestedMode,
    NotNullMode,
    TypeLengthMode,
)
from flowsql_core.errors import PlanError
from flowsql_core.expr import Expr
from flowsql_core.graph.expectation import ViolationAction
from flowsql_core.record import record
from flowsql_core.types import logical as t

#: What the parts of collections are called while their own constraints are judged.
ELEMENT: Final = "element"
KEY: Final = "key"
VALUE: Final = "value"


@record
class Place:
    """A column of a row, by index and name."""

    index: int
    name: str


@record
class NotNull:
    """NULL at any of the places fails the job, or drops the row."""

    places: tuple[Place, ...]
    drops: bool

    def __str__(self) -> str:
        return f"NotNullEnforcer(fields=[{_names(self.places)}])"


@record
class Length:
    """Texts (or bytes) of a length that the declared type does not have fail the job, or are cut and padded.

    ``lengths``: for each place, characters or bytes. ``fixed``: whether fewer are wrong, too (CHAR, BINARY).
    """

    places: tuple[Place, ...]
    lengths: tuple[int, ...]
    fixed: tuple[bool, ...]
    binary: bool
    fits: bool

    def __str__(self) -> str:
        return f"LengthEnforcer(fields=[{_names(self.places)}])"


@record
class InRows:
    """Constraints on the fields of ROW columns: ``inner`` for each place."""

    places: tuple[Place, ...]
    inner: tuple[tuple[Constraint, ...], ...]

    def __str__(self) -> str:
        return _nested("NestedRowEnforcer", "=", self.places, self.inner)


@record
class InArrays:
    """Constraints on the elements of ARRAY columns, each taken as a row of one column ``element``."""

    places: tuple[Place, ...]
    inner: tuple[tuple[Constraint, ...], ...]

    def __str__(self) -> str:
        return _nested("NestedArrayEnforcer", "=", self.places, self.inner)


@record
class InMaps:
    """Constraints on the entries of MAP columns, each taken as a row of the columns ``key`` and ``value``."""

    places: tuple[Place, ...]
    inner: tuple[tuple[Constraint, ...], ...]

    def __str__(self) -> str:
        return _nested("NestedMapEnforcer", "==", self.places, self.inner)


Constraint = NotNull | Length | InRows | InArrays | InMaps


@record
class Expectation:
    """A condition on the rows that a table gets. Only FALSE breaks it; ``condition`` reads the table's stored columns.

    ``table``: for messages. ``text``: the condition as SQL.
    """

    table: str
    name: str
    condition: Expr
    text: str
    action: ViolationAction

    def __str__(self) -> str:
        return f"Expectation(name=[{self.name}], check=[{self.text}], onViolation=[{self.action}])"


def constraints_of(schema: t.Schema, configuration: Configuration) -> tuple[Constraint, ...]:
    """What is demanded of rows of a schema, in the order in which it is judged; empty where nothing is.

    Raises:
        PlanError: values inside of collections cannot be cut and padded (Flink's words).
    """
    modes = _Modes(
        configuration.get(NOT_NULL_ENFORCER),
        configuration.get(TYPE_LENGTH_ENFORCER),
        configuration.get(NESTED_ENFORCER),
    )
    if modes.length is TypeLengthMode.TRIM_PAD and modes.nested is NestedMode.ROWS_AND_COLLECTIONS:
        raise PlanError(
            "trim-in-collections",
            "Trimming and/or padding is not supported if constraint checking is enabled on types nested in "
            "collections.",
            hint=f"set '{NESTED_ENFORCER.key}' to ROWS",
        )
    return _of_columns(schema, modes)


@record
class _Modes:
    not_null: NotNullMode
    length: TypeLengthMode
    nested: NestedMode


def _of_columns(columns: t.Schema, modes: _Modes) -> tuple[Constraint, ...]:
    found: list[Constraint] = []
    strict = tuple(Place(index, column.name) for index, column in enumerate(columns) if not column.type.nullable)
    if strict:
        found.append(NotNull(strict, modes.not_null is NotNullMode.DROP))
    if modes.length is not TypeLengthMode.IGNORE:
        found += _lengths(columns, modes.length)
    if modes.nested is not NestedMode.IGNORE:
        found += _of_rows(columns, modes)
    if modes.nested is NestedMode.ROWS_AND_COLLECTIONS:
        found += _of_collections(columns, modes)
    return tuple(found)


def _lengths(columns: t.Schema, mode: TypeLengthMode) -> list[Constraint]:
    found: list[Constraint] = []
    for kinds, fixed in (
        ((t.CharType, t.VarCharType), t.CharType),
        ((t.BinaryType, t.VarBinaryType), t.BinaryType),
    ):
        limited = [
            (Place(index, column.name), column.type.length, isinstance(column.type, fixed))
            for index, column in enumerate(columns)
            if isinstance(column.type, kinds) and column.type.length < t.MAX_LENGTH
        ]
        if limited:
            places, lengths, fixes = zip(*limited, strict=True)
            found.append(Length(places, lengths, fixes, fixed is t.BinaryType, fits=mode is TypeLengthMode.TRIM_PAD))
    return found


def _of_rows(columns: t.Schema, modes: _Modes) -> list[Constraint]:
    found = [
        (Place(index, column.name), _of_columns(_fields(column.type), modes))
        for index, column in enumerate(columns)
        if isinstance(column.type, t.RowType)
    ]
    return [InRows(tuple(place for place, _ in found), tuple(inner for _, inner in found))] if found else []


def _of_collections(columns: t.Schema, modes: _Modes) -> list[Constraint]:
    arrays, maps = [], []
    for index, column in enumerate(columns):
        match column.type:
            case t.ArrayType(element=element):
                arrays.append((Place(index, column.name), _of_columns((t.Column(ELEMENT, element),), modes)))
            case t.MapType(key=key, value=value):
                entry = (t.Column(KEY, key), t.Column(VALUE, value))
                maps.append((Place(index, column.name), _of_columns(entry, modes)))
    found: list[Constraint] = []
    if arrays:
        found.append(InArrays(tuple(place for place, _ in arrays), tuple(inner for _, inner in arrays)))
    if maps:
        found.append(InMaps(tuple(place for place, _ in maps), tuple(inner for _, inner in maps)))
    return found


def _fields(type_: t.RowType) -> t.Schema:
    return tuple(t.Column(field.name, field.type) for field in type_.fields)


def _names(places: tuple[Place, ...]) -> str:
    return ", ".join(place.name for place in places)


def _nested(word: str, sign: str, places: tuple[Place, ...], inner: tuple[tuple[Constraint, ...], ...]) -> str:
    parts = (f"{{{place.name}{sign}[{', '.join(map(str, own))}]}}" for place, own in zip(places, inner, strict=True))
    return f"{word}(constraints=[{', '.join(parts)}])"
