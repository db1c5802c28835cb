"""Types of a user's function from its type hints, and what arguments its hints take."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import functools
import inspect
import types
import typing
from typing import Any, Final

from flowsql_core.errors import BindError
from flowsql_core.types import logical as t
from flowsql_core.udf import (
    AsyncScalarFunction,
    FunctionKind,
    ScalarFunction,
    ScalarUdf,
    UserDefinedFunction,
    called,
    function_name,
    is_asynchronous,
)

#: What a hint makes of a result, and of an argument that has another type.
_BY_CLASS: Final[dict[type, t.LogicalType]] = {
    bool: t.BOOLEAN,
    int: t.BIGINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    bytearray: t.BYTES,
    decimal.Decimal: t.DecimalType(precision=38, scale=18),
    datetime.date: t.DATE,
    datetime.time: t.TimeType(precision=3),
    datetime.datetime: t.TimestampType(precision=6),
    datetime.timedelta: t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3),
}

#: Types whose Python values a hint takes as they are.
_TAKEN: Final[dict[type, tuple[type[t.LogicalType], ...]]] = {
    bool: (t.BooleanType,),
    int: (t.IntegerType, t.YearMonthIntervalType),
    float: (t.ApproximateType,),
    str: (t.CharacterType,),
    bytes: (t.BinaryStringType,),
    bytearray: (t.BinaryStringType,),
    decimal.Decimal: (t.DecimalType,),
    datetime.date: (t.DateType,),
    datetime.time: (t.TimeType,),
    datetime.datetime: (t.TimestampType, t.TimestampLtzType),
    datetime.timedelta: (t.DayTimeIntervalType,),
    list: (t.ArrayType,),
    dict: (t.MapType, t.MultisetType),
}


def make_udf(
    function: Any,
    *,
    name: str | None = None,
    input_types: tuple[t.LogicalType, ...] | None = None,
    result_type: t.LogicalType | None = None,
    deterministic: bool | None = None,
    kind: FunctionKind = FunctionKind.GENERAL,
    make: type[ScalarUdf] = ScalarUdf,
) -> ScalarUdf:
    """A declared function; what is not said follows from the function itself.

    Raises:
        TypeError: not a function. ValueError: ``deterministic`` contradicts ``is_deterministic()``, or an asynchronous
            function takes columns.
        BindError: no result type was given, and the type hints tell none.
    """
    own_class = isinstance(function, ScalarFunction | AsyncScalarFunction)
    if isinstance(function, type) or not (own_class or callable(function)):
        raise TypeError(f"Invalid function: not a function or callable (__call__ is not defined): {type(function)}")
    own = function.is_deterministic() if isinstance(function, UserDefinedFunction) else None
    if deterministic is not None and own is not None and deterministic != own:
        raise ValueError(f"Inconsistent deterministic: {deterministic} and {own}")
    if is_asynchronous(function):
        if kind is not FunctionKind.GENERAL:
            raise ValueError(
                f"Async scalar functions do not support {kind.value} func_type. "
                "Please use func_type='general' (default) for async functions."
            )
        kind = FunctionKind.ASYNC
    by_row = kind in (FunctionKind.GENERAL, FunctionKind.ASYNC)
    called_name = name or function_name(function)
    hints = _hints(function)
    if result_type is None:
        result_type = type_of_hint(hints.get("return", Any)) if by_row else None
        if result_type is None:
            raise BindError(
                "udf-result-type",
                f"The result type of the Python function '{called_name}' is not known.",
                hint="write @udf(result_type=DataTypes.BIGINT()), or a type hint: def f(x: int) -> int",
            )
    input_hints = None
    if input_types is None and by_row:
        input_hints = _parameter_hints(function, hints)
    return make(
        function,
        called_name,
        result_type,
        input_types=input_types,
        input_hints=input_hints,
        kind=kind,
        deterministic=next((said for said in (deterministic, own) if said is not None), True),
    )


def type_of_hint(hint: Any) -> t.LogicalType | None:
    """The SQL type of a type hint, nullable; None for a hint that tells none (``Any``, a union)."""
    plain = _without_none(hint)
    if isinstance(plain, type) and plain in _BY_CLASS:
        return _BY_CLASS[plain]
    origin, args = typing.get_origin(plain), typing.get_args(plain)
    match origin, args:
        case (builtin, (element,)) if builtin in (list, collections.abc.Sequence):
            inner = type_of_hint(element)
            return None if inner is None else t.ArrayType(element=inner)
        case (builtin, (key, value)) if builtin in (dict, collections.abc.Mapping):
            of_key, of_value = type_of_hint(key), type_of_hint(value)
            return None if of_key is None or of_value is None else t.MapType(key=of_key, value=of_value)
    return None


def takes(hint: Any, type_: t.LogicalType) -> bool:
    """Whether a parameter with this hint takes values of a type as they are."""
    plain = _without_none(hint)
    cls = typing.get_origin(plain) or plain
    if isinstance(type_, t.NullType) or cls not in _TAKEN:
        return True
    return isinstance(type_, _TAKEN[cls])


def _without_none(hint: Any) -> Any:
    """``Optional[X]`` and ``X | None`` as X: every SQL value may be NULL."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        return parts[0] if len(parts) == 1 else Any
    return hint


def _hinted(function: Any) -> Any:
    """The Python function whose hints count."""
    if isinstance(function, ScalarFunction | AsyncScalarFunction):
        return function.eval
    if isinstance(function, functools.partial):
        return _hinted(function.func)
    if inspect.isroutine(function):
        return function
    return type(function).__call__


def _hints(function: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(_hinted(function))
    except (NameError, TypeError, AttributeError):
        # Names that are only there for type checkers, or a function written in C: no hints then.
        return {}


def _parameter_hints(function: Any, hints: dict[str, Any]) -> tuple[Any, ...] | None:
    """Hints of the positional parameters in order; None when there are none, or when ``*args`` takes the rest."""
    try:
        parameters = inspect.signature(called(function)).parameters
    except (TypeError, ValueError):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters.values()):
        return None
    named = [name for name, parameter in parameters.items() if parameter.kind in positional]
    return tuple(hints.get(name, Any) for name in named) if any(name in hints for name in named) else None
