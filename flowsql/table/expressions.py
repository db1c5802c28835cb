"""Functions that make expressions: ``col("a")``, ``lit(5)``, ``call("f", col("a"))``, ``if_then_else(...)``.

The names are PyFlink's; each makes the syntax tree that SQL's parser makes of the same call.
"""

from __future__ import annotations

from flowsql.table.expression.enums import JsonOnNull, TimePointUnit
from flowsql.table.expression.expression import Expression, Word, single_unit
from flowsql.table.syntax.build import api_nodes, ast, chain, column
from flowsql.table.syntax.build import call as call_node
from flowsql.table.syntax.inline_functions import inline_name
from flowsql.table.syntax.literals import literal, written_type
from flowsql.table.types import DataType, logical_type
from flowsql_core.errors import BindError

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "convert_tz",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "date_format",
    "descriptor",
    "e",
    "from_unixtime",
    "if_then_else",
    "json",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "json_string",
    "lag",
    "lead",
    "lit",
    "local_time",
    "local_timestamp",
    "log",
    "map_",
    "map_from_arrays",
    "negative",
    "not_",
    "null_of",
    "object_of",
    "or_",
    "pi",
    "rand",
    "rand_integer",
    "range_",
    "row",
    "row_interval",
    "source_watermark",
    "temporal_overlaps",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_all_columns",
    "with_columns",
    "without_columns",
]

#: For ``Over``: from the partition's first row; up to the current row; the same by the sort key's value.
UNBOUNDED_ROW: Expression = Word("UNBOUNDED_ROW")
UNBOUNDED_RANGE: Expression = Word("UNBOUNDED_RANGE")
CURRENT_ROW: Expression = Word("CURRENT_ROW")
CURRENT_RANGE: Expression = Word("CURRENT_RANGE")


def _call(name: str, *args: object) -> Expression:
    """A call; None stands for an argument that is left out."""
    return Expression(call_node(name, [literal(arg) for arg in args if arg is not None]))


def _word(name: str) -> Expression:
    return Expression(ast.FunctionCall(ast.Identifier((ast.Name(name),)), niladic=True))


def col(name: str) -> Expression:
    """A column of the input, or ``*`` for all of them."""
    if not isinstance(name, str):
        raise BindError("bad-column", f"col() takes the name of a column, got {name!r}.")
    return Expression(ast.Star() if name == "*" else column(name))


def lit(v: object, data_type: DataType | None = None) -> Expression:
    """A constant, of ``data_type`` if one is given: ``lit(12)`` is INT, ``lit("abc")`` CHAR(3)."""
    made = literal(v)
    return Expression(made if data_type is None else ast.Cast(made, written_type(logical_type(data_type))))


def null_of(data_type: DataType) -> Expression:
    """NULL of a type."""
    return lit(None, data_type)


def range_(start: str | int, end: str | int) -> Expression:
    """Columns from ``start`` to ``end``, by name or by position from 1, for ``with_columns``."""
    return Expression(call_node("RANGE_", [column(at) if isinstance(at, str) else literal(at) for at in (start, end)]))


def with_all_columns() -> Expression:
    """All columns: ``*``."""
    return Expression(ast.Star())


def with_columns(head: object, *tails: object) -> Expression:
    """Some columns: names, positions from 1, ranges."""
    return _call("WITH_COLUMNS", head, *tails)


def without_columns(head: object, *tails: object) -> Expression:
    """All columns but these."""
    return _call("WITHOUT_COLUMNS", head, *tails)


# Logic


def and_(predicate0: object, predicate1: object, *predicates: object) -> Expression:
    """All of them, with SQL's three values."""
    operands = [literal(predicate) for predicate in (predicate0, predicate1, *predicates)]
    return Expression(chain(ast.BinaryOperator.AND, operands))


def or_(predicate0: object, predicate1: object, *predicates: object) -> Expression:
    """Any of them, with SQL's three values."""
    operands = [literal(predicate) for predicate in (predicate0, predicate1, *predicates)]
    return Expression(chain(ast.BinaryOperator.OR, operands))


def not_(expression: object) -> Expression:
    """The opposite; NULL stays NULL."""
    return Expression(ast.UnaryOp(ast.UnaryOperator.NOT, literal(expression)))


def if_then_else(condition: object, if_true: object, if_false: object) -> Expression:
    """``CASE WHEN condition THEN if_true ELSE if_false END``."""
    return Expression(ast.Case(None, (ast.When((literal(condition),), literal(if_true)),), literal(if_false)))


def coalesce(*args: object) -> Expression:
    """The first that is not NULL."""
    return _call("COALESCE", *args)


# The session and its clocks


def current_database() -> Expression:
    """The name of the current database."""
    return _call("CURRENT_DATABASE")


def current_date() -> Expression:
    """Today, in the session's time zone."""
    return _word("CURRENT_DATE")


def current_time() -> Expression:
    """The time of day, in the session's time zone."""
    return _word("CURRENT_TIME")


def current_timestamp() -> Expression:
    """This moment, TIMESTAMP_LTZ(3)."""
    return _word("CURRENT_TIMESTAMP")


def local_time() -> Expression:
    """The time of day, in the session's time zone."""
    return _word("LOCALTIME")


def local_timestamp() -> Expression:
    """This moment as the session's clock shows it, TIMESTAMP(3)."""
    return _word("LOCALTIMESTAMP")


def current_watermark(rowtimeAttribute: Expression) -> Expression:  # noqa: N803 - PyFlink's name
    """The watermark of an event-time attribute, NULL before the first."""
    return _call("CURRENT_WATERMARK", rowtimeAttribute)


def source_watermark() -> Expression:
    """The watermark that the source makes itself."""
    return _call("SOURCE_WATERMARK")


# Time


def to_date(date_str: object, format: str | Expression | None = None) -> Expression:
    """A DATE from text, ``yyyy-MM-dd`` unless told."""
    return _call("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: object, format: str | Expression | None = None) -> Expression:
    """A TIMESTAMP from text, ``yyyy-MM-dd HH:mm:ss`` unless told."""
    return _call("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: object) -> Expression:
    """A TIMESTAMP_LTZ from a number since the epoch and its precision, or from text with format and zone."""
    if not 1 <= len(args) <= 3:
        raise BindError("argument-count", f"to_timestamp_ltz() takes one to three arguments, got {len(args)}.")
    return _call("TO_TIMESTAMP_LTZ", *args)


def temporal_overlaps(
    left_time_point: object, left_temporal: object, right_time_point: object, right_temporal: object
) -> Expression:
    """Whether two spans of time, each a start with an end or a length, have a moment in common."""
    left = ast.RowConstructor((literal(left_time_point), literal(left_temporal)), False)
    right = ast.RowConstructor((literal(right_time_point), literal(right_temporal)), False)
    return Expression(ast.BinaryOp(ast.BinaryOperator.OVERLAPS, left, right))


def date_format(timestamp: object, format: object) -> Expression:
    """A moment as text."""
    return _call("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: object, time_point2: object) -> Expression:
    """Whole units between two moments."""
    return Expression(ast.TimestampDiff(single_unit(time_point_unit), literal(time_point1), literal(time_point2)))


def convert_tz(date_str: object, tz_from: object, tz_to: object) -> Expression:
    """Text of a moment in one time zone as that of another."""
    return _call("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: object, format: object = None) -> Expression:
    """Seconds since the epoch as text in the session's time zone."""
    return _call("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: object = None, format: object = None) -> Expression:
    """Seconds since the epoch, of now or of a text."""
    return _call("UNIX_TIMESTAMP", date_str, format)


# Collections and rows


def array(head: object, *tail: object) -> Expression:
    """``ARRAY[a, b]``."""
    return Expression(ast.ArrayConstructor(tuple(literal(item) for item in (head, *tail))))


def row(head: object, *tail: object) -> Expression:
    """``ROW(a, b)``."""
    return Expression(ast.RowConstructor(tuple(literal(item) for item in (head, *tail))))


def map_(key: object, value: object, *tail: object) -> Expression:
    """``MAP[k1, v1, k2, v2]``."""
    if len(tail) % 2:
        raise BindError("argument-count", "map_() takes keys and values in turn; the last key has no value.")
    flat = [literal(item) for item in (key, value, *tail)]
    return Expression(ast.MapConstructor(tuple(zip(flat[::2], flat[1::2], strict=True))))


def map_from_arrays(key: object, value: object) -> Expression:
    """A MAP of an array of keys and one of values."""
    return _call("MAP_FROM_ARRAYS", key, value)


def descriptor(*column_names: str) -> Expression:
    """``DESCRIPTOR(a, b)``: names of columns as an argument."""
    names = tuple(ast.DescriptorColumn(ast.Identifier((ast.Name(name, quoted=True),))) for name in column_names)
    return Expression(ast.Descriptor(names))


def object_of(class_name: str, *args: object) -> Expression:
    """A structured object of a class: names of fields and values in turn."""
    return _call("OBJECT_OF", class_name, *args)


def row_interval(rows: int) -> Expression:
    """So many rows, for windows that count."""
    return _call("ROW_INTERVAL", rows)


# Numbers


def pi() -> Expression:
    """The ratio of a circle's circumference to its diameter."""
    return _call("PI")


def e() -> Expression:
    """The base of the natural logarithm."""
    return _call("E")


def rand(seed: object = None) -> Expression:
    """A DOUBLE from 0 (included) to 1 (not included)."""
    return _call("RAND", seed)


def rand_integer(bound: object, seed: object = None) -> Expression:
    """An INT from 0 (included) to ``bound`` (not included)."""
    return _call("RAND_INTEGER", seed, bound)


def atan2(y: object, x: object) -> Expression:
    """The angle of a point."""
    return _call("ATAN2", y, x)


def negative(v: object) -> Expression:
    """``-v``."""
    return Expression(ast.UnaryOp(ast.UnaryOperator.MINUS, literal(v)))


def log(v: object, base: object = None) -> Expression:
    """The logarithm: natural, or to a base."""
    return _call("LOG", base, v)


# Text


def concat(first: object, *others: object) -> Expression:
    """Texts one behind the other; NULL where one is."""
    return _call("CONCAT", first, *others)


def concat_ws(separator: object, first: object, *others: object) -> Expression:
    """Texts with a separator between; NULL ones are left out."""
    return _call("CONCAT_WS", separator, first, *others)


def uuid() -> Expression:
    """A new UUID."""
    return _call("UUID")


# JSON


def json(value: object) -> Expression:
    """Text that is JSON already, inside of ``json_object`` and ``json_array``."""
    return _call("JSON", value)


def json_string(value: object) -> Expression:
    """A value as JSON text."""
    return _call("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: object) -> Expression:
    """``JSON_OBJECT(KEY k VALUE v ...)``: keys and values in turn."""
    if len(args) % 2:
        raise BindError("argument-count", "json_object() takes keys and values in turn; the last key has no value.")
    flat = [literal(arg) for arg in args]
    entries = tuple(ast.JsonEntry(key, value) for key, value in zip(flat[::2], flat[1::2], strict=True))
    return Expression(ast.JsonObject(entries, _null_clause(on_null)))


def json_object_agg(on_null: JsonOnNull, key_expr: object, value_expr: object) -> Expression:
    """An aggregate: one JSON object of the group's keys and values."""
    entry = ast.JsonEntry(literal(key_expr), literal(value_expr))
    return Expression(ast.JsonObjectAgg(entry, _null_clause(on_null)))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: object) -> Expression:
    """``JSON_ARRAY(a, b)``."""
    return Expression(ast.JsonArray(tuple(ast.JsonElement(literal(arg)) for arg in args), _null_clause(on_null)))


def json_array_agg(on_null: JsonOnNull, item_expr: object) -> Expression:
    """An aggregate: one JSON array of the group's values."""
    return Expression(ast.JsonArrayAgg(ast.JsonElement(literal(item_expr)), (), _null_clause(on_null)))


def _null_clause(on_null: JsonOnNull) -> ast.JsonNullClause:
    if not isinstance(on_null, JsonOnNull):
        raise BindError("bad-argument", f"The first argument says what NULL becomes, got {on_null!r}.",
                        hint="JsonOnNull.NULL or JsonOnNull.ABSENT")  # fmt: skip
    return ast.JsonNullClause.NULL_ON_NULL if on_null is JsonOnNull.NULL else ast.JsonNullClause.ABSENT_ON_NULL


# Neighbours in a window


def lag(expr: object, offset: object = 1, default: object = None) -> Expression:
    """The value ``offset`` rows before, with ``.over(...)``."""
    return _call("LAG", expr, offset, default)


def lead(expr: object, offset: object = 1, default: object = None) -> Expression:
    """The value ``offset`` rows behind, with ``.over(...)``."""
    return _call("LEAD", expr, offset, default)


# Functions by name, by object, by text


def call(f: object, *args: object) -> Expression:
    """A call of a function: by its name in the catalogs, or an object that ``udf`` and its kin made.

    An object need not be registered: the environment that runs the expression registers it for itself.
    """
    given = tuple(_argument(arg) for arg in args)
    if isinstance(f, str):
        parts = tuple(ast.Name(part) for part in f.split("."))
        return Expression(ast.FunctionCall(ast.Identifier(parts), given))
    if isinstance(f, type | Expression) or not callable(f):
        raise BindError("not-a-function", f"call() takes a function's name or object, got {f!r}.")
    name = api_nodes.InlineFunction(inline_name(f), function=f, quoted=True)
    return Expression(ast.FunctionCall(ast.Identifier((name,)), given))


def _argument(value: object) -> ast.Argument:
    if isinstance(value, Expression) and isinstance(value._node, ast.NamedArgument | ast.Descriptor):
        return value._node
    return literal(value)


def call_sql(sql_expression: str) -> Expression:
    """An expression as SQL text; its columns are the input's."""
    from flowsql_grammar import parse_expression

    return Expression(parse_expression(sql_expression))
