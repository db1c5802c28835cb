"""Python rows, Arrow tables and data frames as columns of a table: types inferred or given, values checked."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Callable, Iterable, Sequence
from decimal import MAX_PREC, ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from flowsql.common.row import Row
from flowsql.table.syntax.build import ast, column, select
from flowsql.table.syntax.literals import written_type
from flowsql.table.syntax.rewrite import placed
from flowsql.table.types import DataType, RowType, UserDefinedType, data_type, logical_type
from flowsql.table.values.user_types import serialized, serializer
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.row import RowKind
from flowsql_core.span import Span
from flowsql_core.types import logical as t

if TYPE_CHECKING:
    from flowsql_connectors.inline import InlineRows
    from flowsql_core.span import Source
    from flowsql_grammar import ast

Columns = tuple[t.Schema, "InlineRows"]


class ElementTypeError(BindError, TypeError):
    """A value of a class that its type does not take."""


class ElementValueError(BindError, ValueError):
    """A value that its type cannot hold, or a row that does not fit."""


#: What a value of a Python type is unless a schema says otherwise, as in PyFlink.
_INFERRED: dict[type, t.LogicalType] = {
    bool: t.BOOLEAN,
    int: t.BIGINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    bytearray: t.BYTES,
    Decimal: t.DecimalType(precision=38, scale=18),
    datetime.date: t.DATE,
    datetime.time: t.TimeType(),
    datetime.datetime: t.TimestampLtzType(precision=6),
    datetime.timedelta: t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3),
}


#: Classes of values that hold no other ones.
_PLAIN: Final = {*_INFERRED, type(None)}


# Rows of Python values


def elements_to_columns(rows: Sequence[Any], schema: Any, verify: bool) -> Columns:
    """Rows as columns.

    Args:
        rows: tuples, lists, dicts, Rows, named tuples, objects; plain values where ``schema`` is one type.
        schema: None, names of columns, a ROW type, or the type of plain values.
        verify: whether text longer than its type and the like is refused.

    Raises:
        BindError: rows that do not fit, with the position of the first one.
    """
    from flowsql_core.types.arrow import to_arrow

    fields, columns = _shaped(rows, schema)
    # Types that were inferred hold what they were inferred from.
    verify = verify and not _names_alone(schema)
    arrays = [
        _array(values, field, to_arrow(field.type), verify) for field, values in zip(fields, columns, strict=True)
    ]
    return tuple(fields), _inline([arrays], len(rows))


def _shaped(rows: Sequence[Any], schema: Any) -> tuple[Sequence[t.Column], list[Sequence[Any]]]:
    """Columns with their values."""
    if _names_alone(schema):
        return _inferred(rows, None if schema is None else list(schema))
    type_ = logical_type(schema)
    if not isinstance(type_, t.RowType):
        return (t.Column("value", type_),), [_plain_values(rows, schema, "value")]
    columns = tuple(t.Column(field.name, field.type) for field in type_.fields)
    turned = _turned(rows, [column.name for column in columns])
    if not isinstance(schema, RowType):
        return columns, turned
    return columns, [
        _plain_values(values, field.data_type, field.name) for field, values in zip(schema.fields, turned, strict=True)
    ]


def _plain_values(values: Sequence[Any], type_: Any, name: str) -> Sequence[Any]:
    """The values of a column, objects of user-defined types as values of SQL types."""
    change = serializer(type_, f"field {name}") if isinstance(type_, DataType) else None
    if change is None:
        return values
    made = []
    for position, value in enumerate(values):
        try:
            made.append(change(value))
        except ValueError as error:
            raise ElementValueError("bad-element", str(error), hint=f"row {position + 1}") from error
    return made


def _names_alone(schema: Any) -> bool:
    """Whether a schema leaves the types to be inferred."""
    return schema is None or (isinstance(schema, list | tuple) and all(isinstance(name, str) for name in schema))


def _turned(rows: Sequence[Any], names: Sequence[str]) -> list[Sequence[Any]]:
    """The values of each column."""
    if not rows:
        return [() for _ in names]
    plain = set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) == {len(names)}
    cells = rows if plain else [_cells(row, names, position) for position, row in enumerate(rows)]
    return [[row[index] for row in cells] for index in range(len(names))]


def _inferred(rows: Sequence[Any], names: list[str] | None) -> tuple[Sequence[t.Column], list[Sequence[Any]]]:
    if not rows:
        raise ElementValueError(
            "no-rows", "can not infer schema from empty data set", hint="give a DataTypes.ROW for schema"
        )
    own = _field_names(rows[0])
    width = len(own) if own is not None else len(_sequence(rows[0], 0))
    # Names beyond the width of the rows are left out, as in PyFlink.
    found = own if own is not None else list(names or ())[:width]
    found += [f"_{i}" for i in range(len(found) + 1, width + 1)]
    columns = []
    turned = _turned(rows, found)
    for name, values in zip(found, turned, strict=True):
        merged = _merged(values, f"field {name}")
        if _has_null(merged):
            raise ElementValueError(
                "no-type",
                f"Some column types cannot be determined after inferring: column '{name}' has no value.",
                hint="give a DataTypes.ROW for schema",
            )
        columns.append(t.Column(name, merged))
    return columns, [_without_objects(values) for values in turned]


def _without_objects(values: Sequence[Any]) -> Sequence[Any]:
    """The values of a column, objects whose classes name a user-defined type as values of SQL types."""
    return values if set(map(type, values)) <= _PLAIN else [serialized(value) for value in values]


def _field_names(row: Any) -> list[str] | None:
    """Names that a row brings itself; None for tuples and lists."""
    if isinstance(row, dict):
        return sorted(row)
    if isinstance(row, Row):
        return None if row._names is None else list(row._names)
    if hasattr(row, "_fields"):
        return list(row._fields)
    if isinstance(row, list | tuple):
        return None
    if hasattr(row, "__dict__"):
        return sorted(vars(row))
    return None


def _sequence(row: Any, position: int) -> Sequence[Any]:
    if isinstance(row, list | tuple | Row):
        return list(row)
    raise ElementTypeError(
        "not-a-row",
        f"Row {position + 1} is {row!r}: can not infer schema for type {type(row).__name__}.",
        hint="a row is a tuple: from_elements([(1,), (2,)]), or give the values' type: DataTypes.INT()",
    )


def _cells(row: Any, names: Sequence[str], position: int) -> Sequence[Any]:
    if isinstance(row, Row) and row.get_row_kind() is not RowKind.INSERT:
        raise BindError(
            "changelog-row",
            f"Row {position + 1} is {row}: from_elements() takes inserted rows only.",
            hint="StreamTableEnvironment.from_changelog_stream takes changes",
        )
    if isinstance(row, dict):
        return [row.get(name) for name in names]
    if isinstance(row, Row) and row._names is not None:
        missing = [name for name in names if name not in row._names]
        if not missing:
            # Further fields are left out, as in PyFlink.
            return row.get_fields_by_names(names)
        if len(row) != len(names):
            raise ElementValueError("row-width", f"Row {position + 1} has no field '{missing[0]}': {row!r}")
    if not isinstance(row, list | tuple | Row) and hasattr(row, "__dict__"):
        return [vars(row).get(name) for name in names]
    cells = _sequence(row, position)
    if len(cells) != len(names):
        raise ElementValueError(
            "row-width",
            f"Length of object ({len(cells)}) does not match with length of fields ({len(names)}): row {position + 1} "
            f"is {row!r}",
        )
    return cells


def _merged(values: Iterable[Any], where: str) -> t.LogicalType:
    """The one type of some values; NULL has any."""
    made: t.LogicalType = t.NULL
    given = list(values)
    kinds = dict.fromkeys(map(type, given))
    # Of plain values the class alone decides: thousands of rows have a handful.
    plain = all(kind in _INFERRED or kind is type(None) for kind in kinds)
    found = [_INFERRED.get(kind, t.NULL) for kind in kinds] if plain else dict.fromkeys(map(_infer, given))
    for type_ in found:
        made = _merge(made, type_, where)
    return made


def _infer(value: Any) -> t.LogicalType:
    if value is None:
        return t.NULL
    known = _INFERRED.get(type(value))
    if known is not None:
        return known
    own = getattr(value, "__UDT__", None)
    if isinstance(own, UserDefinedType):
        return own.logical
    if isinstance(value, array):
        return t.ArrayType(element=_element_of(value).as_nullable(False))
    if isinstance(value, list):
        return t.ArrayType(element=_merged(value, "an element of an array"))
    if isinstance(value, dict):
        key = _merged(value, "a key of a map")
        return t.MapType(key=key.as_nullable(False), value=_merged(value.values(), "a value of a map"))
    names = _field_names(value)
    if names is None and isinstance(value, tuple | Row):
        names = [f"_{i + 1}" for i in range(len(value))]
    if names is None:
        raise ElementTypeError("no-type", f"not supported type: {type(value)}")
    cells = _cells(value, names, 0)
    return t.RowType(fields=tuple(t.Field(name, _infer(cell)) for name, cell in zip(names, cells, strict=True)))


def _element_of(values: array[Any]) -> t.LogicalType:
    """The type of the values of an ``array.array``: the smallest that holds all of its kind."""
    code = values.typecode
    if code == "f":
        return t.FloatType()
    if code == "d":
        return t.DOUBLE
    if code == "u":
        return t.CharType(length=values.itemsize)
    bits = 8 * values.itemsize + (1 if code.isupper() else 0)
    kinds = (t.TinyIntType(), t.SmallIntType(), t.INT, t.BIGINT)
    found = next((kind for kind in kinds if kind.bits >= bits), None)
    if found is None:
        raise ElementTypeError("no-type", f"not supported type: array({code})", hint="a list of numbers is a BIGINT")
    return found


def _merge(a: t.LogicalType, b: t.LogicalType, where: str) -> t.LogicalType:
    match a, b:
        case t.NullType(), _:
            return b
        case _, t.NullType():
            return a
        case t.ArrayType(), t.ArrayType():
            return t.ArrayType(element=_merge(a.element, b.element, f"element in array {where}"))
        case t.MapType(), t.MapType():
            key, value = f"key of map {where}", f"value of map {where}"
            return t.MapType(key=_merge(a.key, b.key, key), value=_merge(a.value, b.value, value))
        case t.RowType(), t.RowType() if [f.name for f in a.fields] == [f.name for f in b.fields]:
            pairs = zip(a.fields, b.fields, strict=True)
            return t.RowType(
                fields=tuple(t.Field(x.name, _merge(x.type, y.type, f"field {x.name} in {where}")) for x, y in pairs)
            )
    if a != b:
        raise ElementTypeError("mixed-types", f"{where}: Can not merge type {a} and {b}", hint="give a schema")
    return a


def _has_null(type_: t.LogicalType) -> bool:
    match type_:
        case t.NullType():
            return True
        case t.ArrayType(element=element) | t.MultisetType(element=element):
            return _has_null(element)
        case t.MapType(key=key, value=value):
            return _has_null(key) or _has_null(value)
        case t.RowType(fields=fields):
            return any(_has_null(field.type) for field in fields)
    return False


# Values


def _array(values: Sequence[Any], field: t.Column, target: Any, verify: bool) -> Any:
    import pyarrow as pa

    convert = _converter(field.type)
    position = 0
    try:
        check = _checker(field.type, f"field {field.name}") if verify and _needs_a_look(values, field.type) else None
        if check is not None:
            for position, value in enumerate(values):  # noqa: B007 - named in the message
                check(value)
        position = -1
        return pa.array(values if convert is None else [_optional(convert, value) for value in values], type=target)
    except BindError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
        kind = ElementTypeError if isinstance(error, TypeError) else ElementValueError
        if position >= 0:
            raise kind("bad-element", str(error), hint=f"row {position + 1}, a value of type {field.type}") from error
        raise kind(
            "bad-element", f"A value in column '{field.name}' does not fit its type {field.type}: {error}"
        ) from error


def _optional(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)


def _converter(type_: t.LogicalType) -> Callable[[Any], Any] | None:
    """What makes Arrow's value of a Python one; None where they are the same."""
    match type_:
        case t.TimestampLtzType():
            # One without a zone is one of the machine's clock, as in PyFlink.
            return lambda value: value.astimezone() if value.tzinfo is None else value
        case t.DecimalType(scale=scale):
            return _rounded(scale)
        case t.DayTimeIntervalType():
            return lambda value: value // datetime.timedelta(milliseconds=1)
        case t.TimeType():
            return lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)
        case t.ArrayType(element=element):
            inner = _converter(element)
            if inner is None:
                return lambda value: list(value)
            return lambda value: [_optional(inner, item) for item in value]
        case t.MapType(key=key, value=item):
            keys, items = _converter(key), _converter(item)
            return lambda value: [
                (k if keys is None else keys(k), v if items is None else _optional(items, v)) for k, v in value.items()
            ]
        case t.MultisetType():
            return lambda value: list(value.items())
        case t.RowType(fields=fields):
            names = [field.name for field in fields]
            inners = [_converter(field.type) for field in fields]
            return lambda value: {
                name: cell if inner is None else _optional(inner, cell)
                for name, inner, cell in zip(names, inners, _cells(value, names, 0), strict=True)
            }
    return None


def _rounded(scale: int) -> Callable[[Decimal], Decimal]:
    """Digits beyond the scale are rounded, as in PyFlink; too many before the point stay, to be an error, not NULL."""
    unit, context = Decimal(1).scaleb(-scale), Context(prec=MAX_PREC, rounding=ROUND_HALF_UP)

    def convert(value: Decimal) -> Decimal:
        exponent = value.as_tuple().exponent
        return value.quantize(unit, context=context) if isinstance(exponent, int) and -exponent > scale else value

    return convert


#: Python types whose values a column takes; those of other columns are Arrow's business.
_ACCEPTED: tuple[tuple[type, tuple[type, ...]], ...] = (
    (t.BooleanType, (bool,)),
    (t.IntegerType, (int,)),
    (t.ApproximateType, (float,)),
    (t.DecimalType, (Decimal,)),
    (t.CharacterType, (str,)),
    (t.BinaryStringType, (bytes, bytearray)),
    (t.TimestampType, (datetime.datetime,)),
    (t.TimestampLtzType, (datetime.datetime,)),
    (t.TimeType, (datetime.time,)),
    (t.DayTimeIntervalType, (datetime.timedelta,)),
)


def _needs_a_look(values: Sequence[Any], type_: t.LogicalType) -> bool:
    """Whether values have to be looked at one by one: their classes alone do not say that they fit."""
    kinds = set(map(type, values))
    if type(None) in kinds and not type_.nullable:
        return True
    accepted = next((types for kind, types in _ACCEPTED if isinstance(type_, kind)), None)
    simple = isinstance(type_, t.BigIntType) or type_ in (t.STRING, t.BYTES) or type_.same(t.DOUBLE)
    return not (simple and accepted is not None and kinds <= {type(None), *accepted})


def _checker(type_: t.LogicalType, name: str) -> Callable[[Any], None]:
    """What refuses a value that the type cannot hold, in the words of PyFlink's ``verify_schema``.

    Args:
        type_: of the value.
        name: of what holds it: ``field a``, ``element in array field a``.
    """
    accepted = next((types for kind, types in _ACCEPTED if isinstance(type_, kind)), None)
    length = type_.length if isinstance(type_, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType) else None
    exact = isinstance(type_, t.CharType | t.BinaryType)
    inside = _inside(type_, name)
    kind = type(data_type(type_)).__name__

    def check(value: Any) -> None:
        if value is None:
            if not type_.nullable:
                raise ValueError(f"{name}: This field is not nullable, but got None")
            return
        if accepted is not None and (
            not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted)
        ):
            raise TypeError(f"{name}: {type_.text()} can not accept object {value!r} in type {type(value)}")
        if isinstance(type_, t.IntegerType) and not -(2 ** (type_.bits - 1)) <= value < 2 ** (type_.bits - 1):
            raise ValueError(f"{name}: object of {kind} out of range, got: {value}")
        if length is not None and (len(value) > length or (exact and len(value) != length)):
            wrong = "is not" if exact else "exceeds"
            raise ValueError(f"{name}: length of object ({value}) of {kind} {wrong}: {length}")
        if inside is not None:
            inside(value)

    return check


def _inside(type_: t.LogicalType, name: str) -> Callable[[Any], None] | None:
    """What looks at the values in a value; None where there are none."""
    match type_:
        case t.ArrayType(element=element):
            check = _checker(element, f"element in array {name}")

            def check_elements(value: Any) -> None:
                if isinstance(value, str | bytes | dict | Row) or not hasattr(value, "__iter__"):
                    raise TypeError(f"{name}: ARRAY can not accept object {value!r} in type {type(value)}")
                for item in value:
                    check(item)

            return check_elements
        case t.MapType(key=key, value=item_type):
            keys, items = _checker(key, f"key of map {name}"), _checker(item_type, f"value of map {name}")

            def check_entries(value: Any) -> None:
                if not isinstance(value, dict):
                    raise TypeError(f"{name}: MAP can not accept object {value!r} in type {type(value)}")
                for key, item in value.items():
                    keys(key)
                    items(item)

            return check_entries
        case t.RowType(fields=fields):
            names = [field.name for field in fields]
            checks = [_checker(field.type, f"field {field.name} in {name}") for field in fields]

            def check_fields(value: Any) -> None:
                for check, cell in zip(checks, _cells(value, names, 0), strict=True):
                    check(cell)

            return check_fields
    return None


# Arrow and pandas


def arrow_to_columns(data: Any, schema: Any) -> Columns:
    """The columns of an Arrow Table, RecordBatch or reader, in the types of the engine.

    ``schema``: None, names, types, or a ROW type.
    """
    import pyarrow as pa

    from flowsql_core.types.arrow import to_arrow

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if not isinstance(data, pa.Table):
        raise BindError(
            "not-arrow", f"from_arrow() takes a pyarrow Table, RecordBatch or reader, got {type(data).__name__}."
        )
    columns = _given_columns(data.schema, schema)
    target = pa.schema([pa.field(column.name, to_arrow(column.type)) for column in columns])
    try:
        fitted = data.rename_columns([column.name for column in columns]).cast(target)
    except (pa.ArrowException, ValueError) as error:
        raise BindError("bad-element", f"The columns cannot be cast to {target}: {error}") from error
    batches = fitted.to_batches()
    for declared, data_column in zip(columns, fitted.columns, strict=True):
        if not declared.type.nullable and data_column.null_count:
            raise BindError("bad-element", f"Column '{declared.name}' is {declared.type} and holds NULL.")
    return columns, _inline([batch.columns for batch in batches], 0)


def pandas_to_columns(pdf: Any, schema: Any) -> Columns:
    """The columns of a data frame; NaN and NaT are NULL."""
    try:
        import pandas as pd
    except ImportError as error:
        raise BindError("no-pandas", "from_pandas() needs pandas.", hint="pip install flowsql[pandas]") from error
    import pyarrow as pa

    if not isinstance(pdf, pd.DataFrame):
        raise BindError("not-pandas", f"Unsupported type, expected pandas.DataFrame, got {type(pdf).__name__}.")
    named = pdf.set_axis([str(name) for name in pdf.columns], axis=1)
    try:
        table = pa.Table.from_pandas(named, preserve_index=False)
    except pa.ArrowException as error:
        raise BindError("bad-element", f"A column of the data frame has no one type: {error}") from error
    if schema is not None and _names_alone(schema):
        # As in PyFlink: names are those of the first columns; names beyond the columns are left out.
        table, schema = table.select(range(min(len(schema), table.num_columns))), list(schema)[: table.num_columns]
    return arrow_to_columns(table, schema)


def _given_columns(found: Any, schema: Any) -> tuple[t.Column, ...]:
    from flowsql_core.types.arrow import from_arrow

    names = list(found.names)
    try:
        types = [from_arrow(field.type, field.nullable) for field in found]
    except FlowSqlError as error:
        raise BindError("bad-element", str(error)) from error
    if isinstance(schema, list | tuple):
        if len(schema) != len(names):
            raise BindError("row-width", f"The schema has {len(schema)} columns, the data {len(names)}.")
        if all(isinstance(part, str) for part in schema):
            names = list(schema)
        elif all(isinstance(part, DataType) for part in schema):
            types = [logical_type(part) for part in schema]
        else:
            raise BindError("not-a-type", f"The schema is names or types of columns, got {schema!r}.")
    elif schema is not None:
        row = logical_type(schema)
        if not isinstance(row, t.RowType) or len(row.fields) != len(names):
            raise BindError("row-width", f"The schema {row} does not fit data of {len(names)} columns.")
        names, types = [field.name for field in row.fields], [field.type for field in row.fields]
    return tuple(t.Column(name, type_) for name, type_ in zip(names, types, strict=True))


def _inline(batches: Sequence[Sequence[Any]], rows: int) -> InlineRows:
    from flowsql_connectors.inline import InlineRows
    from flowsql_core.batch import ChangelogBatch

    return InlineRows([ChangelogBatch.of(list(columns), num_rows=rows) for columns in batches])


# Rows of expressions


def expressions_to_query(rows: Sequence[Any], schema: Any, source: Source) -> ast.Query:
    """``VALUES`` of ``row(...)`` expressions, cast to the schema if there is one."""
    cells = [row._node.items if isinstance(row._node, ast.RowConstructor) else (row._value(),) for row in rows]
    values = ast.Query(ast.Values(tuple(cells)))
    width = len(cells[0])
    names = tuple(ast.Name(f"f{i}", quoted=True) for i in range(width))
    query = ast.Query(select(ast.DerivedTable(values, alias=ast.TableAlias(ast.Name("given"), names))))
    if schema is not None:
        type_ = logical_type(schema) if not isinstance(schema, list | tuple) else None
        wanted = type_.fields if isinstance(type_, t.RowType) else None
        labels = [field.name for field in wanted] if wanted is not None else list(schema)
        items = [
            ast.SelectItem(
                column(old.text) if wanted is None else ast.Cast(column(old.text), written_type(wanted[i].type)),
                ast.Name(labels[i], quoted=True),
            )
            for i, old in enumerate(names)
        ]
        query = ast.Query(select(ast.DerivedTable(query), items))
    return placed(query, Span(0, len(source.text)))
