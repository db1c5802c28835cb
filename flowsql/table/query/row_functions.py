"""Functions that take a whole row: what ``map`` and ``flat_map`` make of them."""

from __future__ import annotations

from flowsql.table.expression import Expression
from flowsql.table.expressions import call
from flowsql.table.syntax.build import ast, column
from flowsql.table.syntax.literals import written_type
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types.logical import Field, RowType, Schema
from flowsql_core.udf import ScalarUdf


def named_row_call(func: object, schema: Schema, method: str) -> Expression:
    """:func:`row_call`, its results under the names that the function's ``alias`` gave."""
    made = row_call(func, schema, method)
    names: tuple[str, ...] = () if isinstance(func, Expression) else getattr(func, "aliases", ())
    return made.alias(*names) if names else made


def row_call(func: object, schema: Schema, method: str) -> Expression:
    """The call of a function that takes the whole row as one ``Row`` with names."""
    if isinstance(func, Expression):
        return func
    if not isinstance(func, ScalarUdf):
        raise NotSupportedYetError(
            f"{method}() of anything but a call or a declared function",
            hint=f"call it with columns: {method}(f(col('a'), col('b')))",
        )
    values = ast.RowConstructor(tuple(column(item.name) for item in schema))
    named_row = RowType(fields=tuple(Field(item.name, item.type) for item in schema))
    return call(func, Expression(ast.Cast(values, written_type(named_row))))
