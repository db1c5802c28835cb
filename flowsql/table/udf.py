"""Python functions under PyFlink's names: ``from flowsql.table.udf import udf, ScalarFunction``.

What a declared function is to the engine stands in ``flowsql_core.udf``; here are the decorators and the objects that
they make, which expressions of the Table API call.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from flowsql_core.catalog import CatalogFunction
from flowsql_core.errors import BindError
from flowsql_core.process_function import ProcessTableFunction
from flowsql_core.types.logical import ArrayType, Field, LogicalType, MapType, RowType
from flowsql_core.udf import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    FunctionKind,
    ImperativeAggregateFunction,
    RowsOf,
    ScalarFunction,
    ScalarUdf,
    TableAggregateFunction,
    TableFunction,
    TableUdf,
    UserDefinedFunction,
    function_name,
    is_asynchronous,
)
from flowsql_core.udf_aggregates import AggregateUdf, TableAggregateUdf, make_aggregate, make_own
from flowsql_core.udf_types import make_udf

if TYPE_CHECKING:
    from flowsql.table.expression import Expression

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedAggregateFunctionWrapper",
    "UserDefinedAsyncScalarFunctionWrapper",
    "UserDefinedFunction",
    "UserDefinedScalarFunctionWrapper",
    "UserDefinedTableAggregateFunctionWrapper",
    "UserDefinedTableFunctionWrapper",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]


class UserDefinedTableFunctionWrapper(TableUdf):
    """What :func:`udtf` makes. A call makes an expression for ``join_lateral`` and its kin."""

    #: Names that :meth:`alias` gave.
    aliases: tuple[str, ...] = ()

    def alias(self, *names: str) -> UserDefinedTableFunctionWrapper:
        """The function for ``join_lateral`` of whole rows, with names of its columns."""
        made = copy.copy(self)
        made.aliases = names
        return made

    def __call__(self, *args: object) -> Expression:
        """The function over columns and values."""
        from flowsql.table import expressions

        return expressions.call(self, *args)

    def __repr__(self) -> str:
        return f"<udtf {self.name} -> {self.result_type}>"


class UserDefinedAggregateFunctionWrapper(AggregateUdf):
    """What :func:`udaf` makes. A call makes an expression: ``total(col("a"))``."""

    def __call__(self, *args: object) -> Expression:
        """The function over columns and values."""
        from flowsql.table import expressions

        return expressions.call(self, *args)

    def alias(self, *names: str) -> UserDefinedAggregateFunctionWrapper:
        """The function for ``aggregate`` and ``flat_aggregate`` of whole rows, with names of its results."""
        made = copy.copy(self)
        made.aliases = names
        return made

    #: Names that :meth:`alias` gave.
    aliases: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{'udtaf' if isinstance(self, TableAggregateUdf) else 'udaf'} {self.name} -> {self.result_type}>"


class UserDefinedTableAggregateFunctionWrapper(UserDefinedAggregateFunctionWrapper, TableAggregateUdf):
    """What :func:`udtaf` makes. A call makes an expression for ``flat_aggregate``."""


class UserDefinedScalarFunctionWrapper(ScalarUdf):
    """What :func:`udf` makes. A call makes an expression: ``add(col("a"), lit(1))``."""

    def __call__(self, *args: object) -> Expression:
        """The function over columns and values."""
        from flowsql.table import expressions

        return expressions.call(self, *args)

    def alias(self, *names: str) -> Self:
        """The function itself. ``map`` takes the names of its results from their type, as in PyFlink."""
        del names
        return self

    def __repr__(self) -> str:
        return f"<udf {self.name} -> {self.result_type}>"


class UserDefinedAsyncScalarFunctionWrapper(UserDefinedScalarFunctionWrapper):
    """What :func:`udf` makes of a function whose calls are coroutines."""


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
    udf_type: str | None = None,
) -> Any:
    """Declare a scalar function, as a decorator or by a call.

    Args:
        f: a function, a lambda, ``functools.partial``, an object with ``__call__``, or a :class:`ScalarFunction`; an
            ``async def`` or an :class:`AsyncScalarFunction` is called for several rows at once.
        input_types: types of the arguments, one or a list; arguments are cast to them. Left out: arguments come as they
            are, or as the type hints say.
        result_type: a data type or its SQL text. Left out: the type hint of the result.
        deterministic: False for functions such as ``random``: they are called once a row, where they were written.
        name: how plans and messages call it.
        func_type: ``general`` (row by row), ``pandas`` (Series in and out) or ``arrow`` (pyarrow arrays in and out).
        udf_type: an older name of ``func_type``.

    >>> @udf(result_type="BIGINT")
    ... def add(i, j):
    ...     return i + j
    >>> udf(lambda i: i + 1, result_type="BIGINT")
    <udf <lambda> -> BIGINT>
    """
    kind = _kind(func_type if udf_type is None else udf_type)

    def declare(function: Any) -> ScalarUdf:
        if isinstance(function, TableFunction | ImperativeAggregateFunction):
            raise TypeError(f"{type(function).__name__} is no scalar function")
        made = make_udf(
            function,
            name=name,
            input_types=_input_types(input_types),
            result_type=None if result_type is None else _logical(result_type, "result_type"),
            deterministic=deterministic,
            kind=kind,
            make=UserDefinedAsyncScalarFunctionWrapper
            if is_asynchronous(function)
            else UserDefinedScalarFunctionWrapper,
        )
        made.__doc__ = getattr(function, "__doc__", None)
        return made

    return declare if f is None else declare(f)


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Declare a table function, as a decorator or by a call: it gives any number of rows for each row.

    Args:
        f: a function, or a :class:`TableFunction`. A list, a range or a generator gives many rows; anything else is one
            row, None no row. A row is a tuple or a ``Row``, or the value of its only column.
        input_types: as for :func:`udf`.
        result_types: the type of the one column, or the types of the columns, which are ``f0``, ``f1``; the text
            ``ROW<w STRING, n INT>`` names them.
        deterministic: False for functions such as ``random``.
        name: how plans and messages call it.

    >>> @udtf(result_types=["STRING", "INT"])
    ... def words(text):
    ...     for word in text.split():
    ...         yield word, len(word)
    """
    if result_types is None:
        raise TypeError("udtf() takes result_types: the types of the columns that the function gives")

    def declare(function: Any) -> ScalarUdf:
        if is_asynchronous(function) or is_asynchronous(getattr(function, "eval", None)):
            called = name or function_name(function)
            raise TypeError(f"The table function '{called}' is asynchronous; only scalar functions can be: use udf()")
        if isinstance(function, type) or not (isinstance(function, TableFunction) or callable(function)):
            raise TypeError(f"Invalid function: not a function or callable (__call__ is not defined): {type(function)}")
        if isinstance(function, ScalarFunction | ImperativeAggregateFunction):
            raise TypeError(f"{type(function).__name__} is no table function")
        return make_udf(
            RowsOf(function),
            name=name or function_name(function),
            input_types=_input_types(input_types),
            result_type=ArrayType(element=_rows_type(result_types), nullable=False),
            deterministic=deterministic,
            make=UserDefinedTableFunctionWrapper,
        )

    return declare if f is None else declare(f)


def udaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declare an aggregate function, as a decorator or by a call: one value for many rows.

    Args:
        f: an :class:`AggregateFunction`; with ``func_type="pandas"`` also anything that takes Series and gives a value.
        input_types: types of the arguments, to which these are cast. Left out: arguments come as they are.
        result_type: a data type or its SQL text. Left out: what ``get_result_type`` says.
        accumulator_type: likewise, of ``get_accumulator_type``. Accumulators are kept as the Python objects they are.
        deterministic: whether equal rows always give equal results.
        name: how plans and messages call it.
        func_type: ``general`` (row by row) or ``pandas`` (all rows at once).

    Raises:
        TypeError: no aggregate function, or no types. ValueError: another ``func_type``.
    """
    kind = _aggregate_kind(func_type)

    def declare(function: Any) -> AggregateUdf:
        return _declare_aggregate(
            function, input_types, result_type, accumulator_type, deterministic, name, kind,
            UserDefinedAggregateFunctionWrapper,
        )  # fmt: skip

    return declare if f is None else declare(f)


def udtaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declare a table aggregate function, a :class:`TableAggregateFunction`: any number of rows for many rows.

    Arguments are those of :func:`udaf`; ``result_type`` is the ROW of one row.

    Raises:
        TypeError: no table aggregate function, or no types. ValueError: another ``func_type`` than ``general``.
    """
    if func_type != "general":
        raise ValueError(f"The func_type must be 'general', got {func_type}.")

    def declare(function: Any) -> AggregateUdf:
        return _declare_aggregate(
            function, input_types, result_type, accumulator_type, deterministic, name, FunctionKind.GENERAL,
            UserDefinedTableAggregateFunctionWrapper,
        )  # fmt: skip

    return declare if f is None else declare(f)


def _aggregate_kind(func_type: str) -> FunctionKind:
    if func_type not in ("general", "pandas"):
        raise ValueError(f"The func_type must be one of 'general, pandas', got {func_type}.")
    return FunctionKind(func_type)


def _declare_aggregate(
    function: Any,
    input_types: Any,
    result_type: Any,
    accumulator_type: Any,
    deterministic: bool | None,
    name: str | None,
    kind: FunctionKind,
    make: type[AggregateUdf],
) -> AggregateUdf:
    if isinstance(function, type) or not (isinstance(function, UserDefinedFunction) or callable(function)):
        raise TypeError(f"Invalid function: not a function or callable (__call__ is not defined): {type(function)}")
    said = isinstance(function, ImperativeAggregateFunction)
    if result_type is None and said:
        result_type = function.get_result_type()
    if result_type is None:
        raise TypeError("Invalid returnType: returnType should be DataType or str but is None")
    if accumulator_type is None and said and kind is FunctionKind.GENERAL:
        accumulator_type = function.get_accumulator_type()
    result = _logical(result_type, "returnType")
    if kind is FunctionKind.PANDAS and isinstance(result, MapType):
        raise TypeError(f"Invalid returnType: Pandas UDAF doesn't support DataType type {result} currently")
    made = make_aggregate(
        function,
        name=name,
        input_types=_input_types(input_types),
        result_type=result,
        accumulator_type=None if accumulator_type is None else _logical(accumulator_type, "accumulator_type"),
        deterministic=deterministic,
        kind=kind,
        make=make,
    )
    made.__doc__ = getattr(function, "__doc__", None)
    return made


def stored_function(function: Any) -> CatalogFunction:
    """The entry of a function in a catalog that keeps it: the path under which every process finds it.

    Raises:
        BindError: a lambda, or anything else that no path leads to.
    """
    if isinstance(function, ImperativeAggregateFunction):
        declared: ScalarUdf = make_own(function)
    elif isinstance(function, ProcessTableFunction):
        from flowsql_core.process_signature import make_own_process

        declared = make_own_process(function)
    else:
        declared = function if isinstance(function, ScalarUdf) else make_udf(function)
    own = declared.function
    # An object without values of its own is what its class makes anew.
    classes = ScalarFunction | AsyncScalarFunction | ImperativeAggregateFunction | ProcessTableFunction
    plain = isinstance(own, classes) and not vars(own)
    named = type(own) if plain else own
    module, path = getattr(named, "__module__", "__main__"), getattr(named, "__qualname__", "")
    found: Any = None
    if module != "__main__":
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part, None)
    if not any(found is one for one in (function, named)):
        raise BindError(
            "function-path",
            f"The Python function '{declared.name}' has no path under which a catalog could keep it.",
            hint="define it at the top of a module, or use create_temporary_function",
        )
    return CatalogFunction(f"{module}.{path}")


def _kind(func_type: str) -> FunctionKind:
    known = [kind.value for kind in FunctionKind if kind is not FunctionKind.ASYNC]
    if func_type not in known:
        raise ValueError(f"The func_type must be one of '{', '.join(known)}', got {func_type}.")
    return FunctionKind(func_type)


def _input_types(given: Any) -> tuple[LogicalType, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable) or _is_row(given):
        one = _logical(given, "input_type")
        return tuple(field.type for field in one.fields) if isinstance(one, RowType) else (one,)
    return tuple(_logical(each, "input_type") for each in given)


def _rows_type(given: Any) -> RowType:
    """The ROW of a table function's columns: ``f0``, ``f1``, as in PyFlink; a ROW's text says their names."""
    if isinstance(given, list | tuple):
        types = [_logical(each, "result_type") for each in given]
    else:
        one = _logical(given, "result_type")
        if isinstance(one, RowType) and isinstance(given, str):
            return RowType(fields=one.fields, nullable=False)
        types = [field.type for field in one.fields] if isinstance(one, RowType) else [one]
    return RowType(fields=tuple(Field(f"f{place}", type_) for place, type_ in enumerate(types)), nullable=False)


def _is_row(given: Any) -> bool:
    return isinstance(getattr(given, "logical", given), RowType)


def _logical(given: Any, argument: str) -> LogicalType:
    """The type behind a DataType, a logical type, or a text."""
    from flowsql.table.types import logical_type

    try:
        return logical_type(given)
    except BindError as error:
        if error.code != "not-a-type":
            raise
        raise TypeError(f"Invalid {argument}: {argument} should be DataType or str but is {given!r}") from None
