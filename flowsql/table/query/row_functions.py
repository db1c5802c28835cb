"""Functions that take a whole row: what ``map`` and ``flat_map`` make of them."""

from __future__ import annotations

from flowsql.table.expression import Expression
from flowsql.table.expressions import call, col
from flowsql.table.syntax.build import ast, column
from flowsql.table.syntax.literals import written_type
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types.logical import Field, RowType, Schema
from flowsql_core.udf import FunctionKind, ScalarUdf


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
    fields = [Field(item.name, item.type) for item in schema]
    cells: list[ast.Expression] = [column(item.name) for item in schema]
    if func.kind is FunctionKind.PANDAS:
        fields, cells = _flat(schema)
    values = ast.RowConstructor(tuple(cells))
    named_row = RowType(fields=tuple(fields))
    return call(func, Expression(ast.Cast(values, written_type(named_row))))


def _flat(schema: Schema) -> tuple[list[Field], list[ast.Expression]]:
    """The columns of the frame that a pandas function gets: the fields of a ROW are columns, as in PyFlink."""
    fields: list[Field] = []
    cells: list[ast.Expression] = []
    for item in schema:
        if isinstance(item.type, RowType):
            for field in item.type.fields:
                fields.append(Field(field.name, field.type.as_nullable()))
                cells.append(col(item.name).get(field.name)._value())
        else:
            fields.append(Field(item.name, item.type))
            cells.append(column(item.name))
    return fields, cells
