"""Functions that read JSON text: IS JSON, JSON_EXISTS, JSON_VALUE, JSON_QUERY, JSON_UNQUOTE.

Each distinct document is parsed once for all paths of a batch. A strict path that leads nowhere is an error (ON ERROR),
as is a text that is no JSON; a lax one gives nothing (ON EMPTY).

Source: Flink manual, "Built-in functions", JSON functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, values_and_validity
from flowsql_compute.eval.json import plain_documents as json_kernels
from flowsql_compute.eval.json.document import (
    Document,
    documents_of,
    json_text,
    scalar_text,
    well_formed,
)
from flowsql_compute.eval.json.path import ModePath, mode_path
from flowsql_compute.eval.nested.lists import column_of
from flowsql_compute.functions.registry import CUSTOM, NOT_NULL, NULLABLE, Invocation, implicit_cast, scalar
from flowsql_compute.functions.signature import summary
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError
from flowsql_core.expr import Expr
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

# IS JSON


def _is_json(text: Any, test: Callable[[Any], bool], kinds: frozenset[int] | None = None) -> Any:
    """Whether each text begins with a value that passes ``test``, which a plain one of ``kinds`` (None: any) does."""

    def parsed(column: Any) -> Any:
        made = documents_of(column).map(lambda document: document.broken is None and test(document.root), pa.bool_())
        return pc.fill_null(made, False)

    if not json_kernels.is_large(text):
        return parsed(text)
    found = json_kernels.find(text, ())
    plain = found.kind != json_kernels.ODD
    fits = plain if kinds is None else np.isin(found.kind, list(kinds))
    return json_kernels.with_left(text, make_array(fits, None, pa.bool_()), found.left(~plain), parsed)


@scalar("IS JSON(STRING) -> BOOLEAN", nulls=NOT_NULL, aliases=("IS JSON VALUE",), costly=True, spark=None)
def is_json(text: Any) -> Any:
    """Whether a text begins with JSON of any kind; FALSE for NULL. What stands behind the first value is not read."""
    return _is_json(text, lambda value: True)


@scalar("IS JSON OBJECT(STRING) -> BOOLEAN", nulls=NOT_NULL, costly=True, spark=None)
def is_json_object(text: Any) -> Any:
    """Whether a text begins with a JSON object."""
    return _is_json(text, lambda value: isinstance(value, dict), frozenset([json_kernels.OBJECT]))


@scalar("IS JSON ARRAY(STRING) -> BOOLEAN", nulls=NOT_NULL, costly=True, spark=None)
def is_json_array(text: Any) -> Any:
    """Whether a text begins with a JSON array."""
    return _is_json(text, lambda value: isinstance(value, list), frozenset([json_kernels.ARRAY]))


@scalar("IS JSON SCALAR(STRING) -> BOOLEAN", nulls=NOT_NULL, costly=True, spark=None)
def is_json_scalar(text: Any) -> Any:
    """Whether a text begins with a JSON number, string, truth value or null."""
    return _is_json(text, lambda value: not isinstance(value, dict | list), json_kernels.SCALARS)


@scalar("IS NOT JSON(STRING) -> BOOLEAN", nulls=NOT_NULL, aliases=("IS NOT JSON VALUE",), costly=True, spark=None)
def is_not_json(text: Any) -> Any:
    """Whether a text does not begin with JSON; TRUE for NULL."""
    return pc.invert(is_json(text))


@scalar("IS NOT JSON OBJECT(STRING) -> BOOLEAN", nulls=NOT_NULL, costly=True, spark=None)
def is_not_json_object(text: Any) -> Any:
    """Whether a text does not begin with a JSON object."""
    return pc.invert(is_json_object(text))


@scalar("IS NOT JSON ARRAY(STRING) -> BOOLEAN", nulls=NOT_NULL, costly=True, spark=None)
def is_not_json_array(text: Any) -> Any:
    """Whether a text does not begin with a JSON array."""
    return pc.invert(is_json_array(text))


@scalar("IS NOT JSON SCALAR(STRING) -> BOOLEAN", nulls=NOT_NULL, costly=True, spark=None)
def is_not_json_scalar(text: Any) -> Any:
    """Whether a text does not begin with a JSON scalar."""
    return pc.invert(is_json_scalar(text))


# Paths


class _Nowhere:
    """What a path finds when it fails; the reason is for ERROR ON ERROR."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _find(document: Document, path: ModePath, exact: bool) -> Any:
    """The value at the path, :class:`_Nowhere` on an error, None also where a lax path finds nothing."""
    if path.path is None:
        return _Nowhere(path.problem)
    if document.broken is not None:
        return None if path.lax else _Nowhere(document.broken)
    try:
        found = path.path.read(document.exact() if exact else document.root)
    except (LookupError, ValueError, ArithmeticError, TypeError) as error:
        if path.lax:
            return None if path.path.definite else []
        return _Nowhere(str(error) or type(error).__name__)
    if isinstance(found, float) and not exact:
        return _find(document, path, exact=True)
    return found


#: Makes a column of what kernels found at a path, and says which rows they leave.
Quick = Callable[[json_kernels.Found, bool], "tuple[Any, json_kernels.Bools]"]


def _by_path(
    call: Invocation,
    text: Any,
    path: Any,
    result: Callable[[Document, ModePath], Any],
    type_: pa.DataType,
    quick: Quick | None = None,
) -> Any:
    """``result`` of each row's document and path, NULL where one is NULL; ``quick`` does so for plain documents."""
    column = column_of(text, call.n)
    if isinstance(path, pa.Scalar):
        if not path.is_valid:
            return pa.nulls(call.n, type_)
        compiled = mode_path(path.as_py())
        steps = json_kernels.plain_steps(compiled)
        if quick is None or steps is None or not json_kernels.is_large(column):
            return documents_of(column).map(_along(result, compiled), type_)
        found = json_kernels.find(column, steps)
        made, left = quick(found, compiled.lax)
        return json_kernels.with_left(
            column, made, found.left(left), lambda rows: documents_of(rows).map(_along(result, compiled), type_)
        )
    # Few paths: the documents of the rows of each.
    encoded = pc.dictionary_encode(path)
    made = pa.nulls(call.n, type_)
    for number, written in enumerate(encoded.dictionary):
        compiled = mode_path(written.as_py())
        rows = pc.fill_null(pc.equal(encoded.indices, number), False)
        found = documents_of(column).map(_along(result, compiled), type_)
        made = pc.if_else(rows, found, made)
    return made


def _along(result: Callable[[Document, ModePath], Any], path: ModePath) -> Callable[[Document], Any]:
    return lambda document: result(document, path)


def _never(kind: str, nothing: _Nowhere | None, what: str) -> ExecutionError:
    if nothing is not None:
        return ExecutionError("json-path", nothing.reason)
    return ExecutionError("json-path", f"Empty result of {what} function is not allowed")


@scalar("JSON_EXISTS(STRING, STRING) -> BOOLEAN", nulls=CUSTOM, costly=True,
        returns=lambda args, options: t.BOOLEAN, spark=None)  # fmt: skip
def json_exists(call: Invocation, text: Any, path: Any) -> Any:
    """Whether a path leads to a value that is not null. An error gives FALSE, or what ``ON ERROR`` says."""
    on_error = call.option("on_error", "FALSE")

    def result(document: Document, path: ModePath) -> bool | None:
        found = _find(document, path, exact=False)
        if not isinstance(found, _Nowhere):
            return found is not None
        if on_error == "ERROR":
            raise _never("ERROR", found, "JSON_EXISTS")
        return outcomes[on_error]

    outcomes = {"TRUE": True, "FALSE": False, "UNKNOWN": None}

    def quick(found: json_kernels.Found, lax: bool) -> tuple[Any, json_kernels.Bools]:
        missing, left = found.kind == json_kernels.MISSING, found.kind == json_kernels.ODD
        there = ~(missing | (found.kind == json_kernels.NULL))
        known = np.ones(call.n, dtype=np.bool_) if found.valid is None else found.valid
        if not lax:
            if on_error == "ERROR":
                left |= missing
            elif on_error == "UNKNOWN":
                known = known & ~missing
            else:
                there |= missing & (on_error == "TRUE")
        return make_array(there, known, pa.bool_()), left

    return _by_path(call, text, path, result, pa.bool_(), quick)


# JSON_VALUE


def _value_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    returning = options.get("returning")
    if returning is None:
        return t.STRING
    if not isinstance(returning, t.VarCharType | t.IntType | t.DoubleType | t.BooleanType):
        raise BindError("json-returning", f"Unsupported type '{returning}' for RETURNING in JSON_VALUE().")
    made: t.LogicalType = returning.as_nullable()
    return made


def _check_defaults(args: Sequence[Expr], span: Span | None) -> None:
    for arg in args[2:]:
        if isinstance(arg.type, t.NullType):
            raise BindError("illegal-null", "Illegal use of 'NULL'", arg.span or span, "write NULL ON EMPTY")


def _to_defaults(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    """Defaults become text where text is asked for, but for the types that ``_default`` spells; others stay."""
    if not isinstance(type_, t.CharacterType):
        return args
    spelled = t.BooleanType | t.DateType | t.TimeType | t.DayTimeIntervalType | t.YearMonthIntervalType
    return (*args[:2], *(arg if isinstance(arg.type, spelled) else implicit_cast(arg, type_) for arg in args[2:]))


def _default(call: Invocation, place: int, value: Any) -> Any:
    """A default as a value of the result's type; None where it is of another type, which Flink refuses to take.

    Flink writes the numbers behind dates, times and intervals, and takes no DOUBLE at all.
    """
    given = call.arg_types[place]
    match call.type, given:
        case t.CharacterType(), t.DateType() | t.TimeType():
            return pc.cast(pc.cast(value, pa.int32()), pa.string())
        case t.CharacterType(), t.DayTimeIntervalType() | t.YearMonthIntervalType():
            return pc.cast(pc.cast(value, pa.int64()), pa.string())
        case t.CharacterType(), t.BooleanType():
            return pc.cast(value, pa.string())
        case (t.CharacterType(), _) | (t.IntType(), t.IntType()) | (t.BooleanType(), t.BooleanType()):
            return value
    return None


@scalar("JSON_VALUE(STRING, STRING, [ANY], [ANY]) -> STRING", nulls=NULLABLE, costly=True, returns=_value_type,
        check=_check_defaults, coerce=_to_defaults, raises=True, spark=None)  # fmt: skip
def json_value(call: Invocation, text: Any, path: Any, *defaults: Any) -> Any:
    """The scalar at a path as text, or as the type that RETURNING names; NULL, or what ON EMPTY and ON ERROR say."""
    empty, error = call.option("on_empty", "NULL"), call.option("on_error", "NULL")
    convert = _CONVERSIONS[type(call.type)]
    outcome = _Outcome(call, text, path, defaults, empty, error)

    def classify(document: Document, path: ModePath) -> Any:
        found = _find(document, path, exact=False)
        if isinstance(found, _Nowhere):
            return outcome.failed(found)
        if path.lax and (found is None or isinstance(found, dict | list)):
            return outcome.missing("JSON_VALUE")
        if found is None or isinstance(found, dict | list):
            reason = f"Strict jsonpath mode requires scalar value, and the actual value is: '{found}'"
            return outcome.failed(_Nowhere(reason))
        return convert(found)

    made = outcome.column(classify, to_arrow(call.type), _scalars_of(call.type))
    if isinstance(call.type, t.VarCharType) and call.type.length < t.MAX_LENGTH:
        return pc.utf8_slice_codeunits(made, 0, call.type.length)
    return made


def _scalars_of(type_: t.LogicalType) -> tuple[Callable[[json_kernels.Found, json_kernels.Bools], Any], list[int]]:
    """How kernels make a column of what they found, and of which kinds."""
    match type_:
        case t.BooleanType():
            return _truths, [json_kernels.TRUTH]
        case t.DoubleType():
            return lambda found, rows: pc.cast(found.text(rows), pa.float64()), [json_kernels.DECIMAL]
        case t.IntType():
            return lambda found, rows: pc.cast(found.text(rows), pa.int32()), [json_kernels.INTEGER]
    return json_kernels.Found.text, [
        json_kernels.TRUTH, json_kernels.INTEGER, json_kernels.DECIMAL, json_kernels.STRING,
    ]  # fmt: skip


def _truths(found: json_kernels.Found, rows: json_kernels.Bools) -> Any:
    letters = found.data[np.where(rows, found.low, 0)] if len(found.data) else np.zeros(len(rows), dtype=np.uint8)
    return make_array(letters == ord("t"), rows, pa.bool_())


#: Where a scalar is asked for, these are none.
_NO_SCALARS = [json_kernels.MISSING, json_kernels.NULL, json_kernels.OBJECT, json_kernels.ARRAY]
_EMPTY = object()
_ERROR = object()


class _Outcome:
    """What stands for rows without a value: NULL, an error, or a default that may differ from row to row."""

    def __init__(
        self, call: Invocation, text: Any, path: Any, defaults: tuple[Any, ...], on_empty: str, on_error: str
    ) -> None:
        self.call, self.text, self.path = call, column_of(text, call.n), path
        self.on_empty, self.on_error = on_empty, on_error
        places = iter(range(2, 2 + len(defaults)))
        #: By mark: the place of the default among the arguments.
        self.places = {mark: next(places) for mark, behavior in ((1, on_empty), (2, on_error)) if behavior == "DEFAULT"}
        self.defaults = defaults
        self.marks: list[Any] = []

    def failed(self, reason: _Nowhere) -> Any:
        if self.on_error == "ERROR":
            raise _never("ERROR", reason, "")
        return _ERROR if self.on_error == "DEFAULT" else None

    def missing(self, what: str) -> Any:
        if self.on_empty == "ERROR":
            raise _never("ERROR", None, what)
        return _EMPTY if self.on_empty == "DEFAULT" else None

    def column(
        self,
        classify: Callable[[Document, ModePath], Any],
        type_: pa.DataType,
        scalars: tuple[Callable[[json_kernels.Found, json_kernels.Bools], Any], list[int]],
    ) -> Any:
        """The column, defaults put where they belong; ``scalars``: how kernels make it of which kinds."""
        make, kinds = scalars

        def quick_value(found: json_kernels.Found, lax: bool) -> tuple[Any, json_kernels.Bools]:
            scalar_, instead = np.isin(found.kind, kinds), np.isin(found.kind, _NO_SCALARS)
            if pa.types.is_int32(type_):
                # A longer one may not fit.
                scalar_ &= found.high - found.low < 10
            left = ~scalar_ if (self.on_empty if lax else self.on_error) == "ERROR" else ~(scalar_ | instead)
            return make(found, scalar_), left

        def quick_mark(found: json_kernels.Found, lax: bool) -> tuple[Any, json_kernels.Bools]:
            # Rows that have a value need no mark.
            instead = np.isin(found.kind, _NO_SCALARS)
            asked = (self.on_empty if lax else self.on_error) == "DEFAULT"
            number = 0 if not asked else 1 if lax else 2
            marks = np.where(instead, number, 0).astype(np.int8)
            return make_array(marks, found.valid, pa.int8()), ~(instead | np.isin(found.kind, kinds))

        if not self.places:
            return _by_path(self.call, self.text, self.path, classify, type_, quick_value)

        def value(document: Document, path: ModePath) -> Any:
            found = classify(document, path)
            return None if found is _EMPTY or found is _ERROR else found

        def mark(document: Document, path: ModePath) -> int:
            found = classify(document, path)
            return 1 if found is _EMPTY else 2 if found is _ERROR else 0

        made = _by_path(self.call, self.text, self.path, value, type_, quick_value)
        marks, valid = values_and_validity(_by_path(self.call, self.text, self.path, mark, pa.int8(), quick_mark))
        for number, place in self.places.items():
            hit = marks == number if valid is None else (marks == number) & valid
            if hit.any():
                default = _default(self.call, place, self.defaults[place - 2])
                if default is None:
                    given = self.call.arg_types[place]
                    raise ExecutionError(
                        "json-type", f"JSON_VALUE that returns {self.call.type} cannot take a DEFAULT of {given}"
                    )
                made = pc.if_else(pa.array(np.asarray(hit)), default, made)
        return made


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if -(2**31) <= value < 2**31:
            return value
        raise ExecutionError("json-type", f"{value} does not fit INT")
    raise _other_type(value, "Integer")


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _other_type(value, "Boolean")


def _double(value: Any) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise _other_type(value, "Double")


def _other_type(value: Any, wanted: str) -> FlowSqlError:
    return ExecutionError("json-type", f"the JSON value {scalar_text(value)} is no {wanted}")


def _text(value: Any) -> str:
    return well_formed(scalar_text(value))


_CONVERSIONS: dict[type[t.LogicalType], Callable[[Any], Any]] = {
    t.VarCharType: _text,
    t.CharType: _text,
    t.IntType: _integer,
    t.BooleanType: _truth,
    t.DoubleType: _double,
}


# JSON_QUERY


def _query_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    returning = options.get("returning")
    if returning is None:
        return t.STRING
    texts = isinstance(returning, t.ArrayType) and isinstance(returning.element, t.VarCharType)
    if not texts and not isinstance(returning, t.VarCharType):
        raise BindError("json-returning", f"Unsupported type '{returning}' for RETURNING in JSON_QUERY().")
    for event in ("empty", "error"):
        if texts and options.get(f"on_{event}") == "EMPTY OBJECT":
            raise BindError(
                "json-returning",
                f"Illegal on {event} behavior 'EMPTY OBJECT' for return type: {summary(returning.element)} ARRAY",
            )
    made: t.LogicalType = returning.as_nullable()
    return made


@scalar("JSON_QUERY(STRING, STRING) -> STRING", nulls=NULLABLE, costly=True, returns=_query_type, raises=True,
        spark=None)  # fmt: skip
def json_query(call: Invocation, text: Any, path: Any) -> Any:
    """The object or array at a path as JSON text, or as ARRAY<STRING>; NULL, or what ON EMPTY and ON ERROR say."""
    on_empty, on_error = call.option("on_empty", "NULL"), call.option("on_error", "NULL")
    wrapper = call.option("wrapper", "WITHOUT ARRAY WRAPPER")
    as_array = isinstance(call.type, t.ArrayType)

    def instead(behavior: str, reason: _Nowhere | None) -> Any:
        match behavior:
            case "ERROR":
                raise _never("ERROR", reason, "JSON_QUERY")
            case "EMPTY ARRAY":
                return [] if as_array else "[]"
            case "EMPTY OBJECT":
                return "{}"
        return None

    def result(document: Document, path: ModePath) -> Any:
        found = _find(document, path, exact=True)
        if isinstance(found, _Nowhere):
            return instead(on_error, found)
        if found is not None and (
            wrapper == "WITH UNCONDITIONAL ARRAY WRAPPER"
            or (wrapper == "WITH CONDITIONAL ARRAY WRAPPER" and not isinstance(found, list))
        ):
            found = [found]
        if path.lax and not isinstance(found, dict | list):
            return instead(on_empty, None)
        if not isinstance(found, dict | list):
            reason = f"Strict jsonpath mode requires array or object value, and the actual value is: '{found}'"
            return instead(on_error, _Nowhere(reason))
        if not as_array:
            return json_text(found)
        if isinstance(found, dict):
            return instead(on_error, _Nowhere("Cannot convert JSON object to ARRAY<STRING>"))
        return [_element(item) for item in found]

    def quick(found: json_kernels.Found, lax: bool) -> tuple[Any, json_kernels.Bools]:
        holder = np.isin(found.kind, [json_kernels.OBJECT, json_kernels.ARRAY])
        behavior = on_empty if lax else on_error
        made = json_kernels.compact(
            found.data, np.where(holder, found.low, -1), found.high, ordered=True, trimmed=False
        )
        other = (found.kind != json_kernels.ODD) & ~holder
        done = made.state > 0
        if behavior == "ERROR":
            return made.text, ~done
        if behavior != "NULL" and other.any():
            return pc.if_else(make_array(other, None, pa.bool_()), instead(behavior, None), made.text), ~(done | other)
        return made.text, ~(done | other)

    plain = wrapper == "WITHOUT ARRAY WRAPPER" and not as_array
    return _by_path(call, text, path, result, to_arrow(call.type), quick if plain else None)


def _element(value: Any) -> str | None:
    if value is None:
        return None
    return json_text(value) if isinstance(value, dict | list) else _text(value)
