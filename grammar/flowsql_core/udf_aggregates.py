"""Aggregate functions of users with their declarations: what ``udaf`` and ``udtaf`` make, and what plans call."""

from __future__ import annotations

import functools
from typing import Any

from flowsql_core.types.logical import ArrayType, LogicalType
from flowsql_core.types.text import parse_type
from flowsql_core.udf import (
    AggregateFunction,
    FunctionKind,
    ImperativeAggregateFunction,
    ScalarUdf,
    TableAggregateFunction,
    UserDefinedFunction,
    accepts,
    function_name,
)


class AggregateUdf(ScalarUdf):
    """An aggregate function: an :class:`AggregateFunction`; of pandas also anything that is called with Series.

    ``accumulator_type``: what the function says of its accumulators. They are kept as Python objects of any type.
    """

    accumulator_type: LogicalType | None = None

    @property
    def takes_rows(self) -> Any:
        """What of the function takes the arguments of a row, or of all rows."""
        if isinstance(self.function, ImperativeAggregateFunction):
            return functools.partial(self.function.accumulate, None)
        return self.function

    def accepts_count(self, count: int) -> bool:
        """Whether the function may be called with so many arguments, as far as Python tells."""
        return accepts(self.takes_rows, self.input_types, count)


class TableAggregateUdf(AggregateUdf):
    """A table aggregate function. ``result_type``: the ROW of one row; a value that is no ROW is its only field.

    ``in_flat_aggregate``: as that method calls it; nowhere else may it stand among columns.
    """

    in_flat_aggregate: bool = False


def declared_type(given: Any) -> LogicalType:
    """The type that ``get_result_type`` gives: a type, its SQL text, or an object of the Table API that holds one.

    Raises:
        TypeError: something else.
    """
    found = getattr(given, "logical", given)
    if isinstance(found, str):
        return parse_type(found)
    if not isinstance(found, LogicalType):
        raise TypeError(f"Invalid returnType: returnType should be DataType or str but is {given!r}")
    return found


def make_own(function: ImperativeAggregateFunction, name: str | None = None) -> AggregateUdf:
    """A function that nobody declared, with the types that it says itself."""
    return make_aggregate(
        function,
        name=name,
        input_types=None,
        result_type=declared_type(function.get_result_type()),
        accumulator_type=declared_type(function.get_accumulator_type()),
        deterministic=None,
        kind=FunctionKind.GENERAL,
        make=TableAggregateUdf if isinstance(function, TableAggregateFunction) else AggregateUdf,
    )


class PandasAggregate(AggregateFunction):
    """A callable over Series as an aggregate function, as PyFlink delegates: the accumulator is a list of results."""

    def __init__(self, function: Any) -> None:
        self.inner = function

    def open(self, function_context: Any) -> None:
        """Open the callable, where it is an object with ``open``."""
        if isinstance(self.inner, UserDefinedFunction):
            self.inner.open(function_context)

    def close(self) -> None:
        """Close it."""
        if isinstance(self.inner, UserDefinedFunction):
            self.inner.close()

    def create_accumulator(self) -> list[Any]:
        """No result yet."""
        return []

    def accumulate(self, accumulator: list[Any], *args: Any) -> None:
        """Call it once with all rows."""
        accumulator.append(self.inner(*args))

    def get_value(self, accumulator: list[Any]) -> Any:
        """What it gave."""
        return accumulator[0]


def make_aggregate(
    function: Any,
    *,
    name: str | None,
    input_types: tuple[LogicalType, ...] | None,
    result_type: LogicalType,
    accumulator_type: LogicalType | None,
    deterministic: bool | None,
    kind: FunctionKind,
    make: type[AggregateUdf],
) -> AggregateUdf:
    """A declared aggregate function.

    Raises:
        TypeError: not an aggregate function. ValueError: ``deterministic`` contradicts ``is_deterministic()``.
    """
    own = function.is_deterministic() if isinstance(function, UserDefinedFunction) else None
    if deterministic is not None and own is not None and deterministic != own:
        raise ValueError(f"Inconsistent deterministic: {deterministic} and {own}")
    wanted = TableAggregateFunction if issubclass(make, TableAggregateUdf) else AggregateFunction
    called_name = name or function_name(function)
    if kind is FunctionKind.PANDAS and not isinstance(function, ImperativeAggregateFunction) and callable(function):
        function = PandasAggregate(function)
    if not isinstance(function, wanted):
        raise TypeError(f"Invalid function: {function_name(function)} is no {wanted.__name__}")
    made = make(
        function,
        called_name,
        result_type,
        input_types=input_types,
        kind=kind,
        deterministic=next((said for said in (deterministic, own) if said is not None), True),
    )
    made.accumulator_type = ArrayType(element=result_type) if kind is FunctionKind.PANDAS else accumulator_type
    return made
