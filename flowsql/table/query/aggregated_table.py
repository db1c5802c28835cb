"""Tables behind ``aggregate`` and ``flat_aggregate`` that still lack their ``select``."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from flowsql.common.public_api import public_api
from flowsql.table.expression import Expression
from flowsql.table.syntax.build import api_nodes, ast
from flowsql.table.syntax.inline_functions import inline_name
from flowsql.table.syntax.rewrite import rewritten
from flowsql_core.errors import BindError
from flowsql_core.types.logical import LogicalType, RowType
from flowsql_core.udf_aggregates import TableAggregateUdf

if TYPE_CHECKING:
    from flowsql.table.table import Table


#: What Flink calls the result of ``aggregate`` and its fields: ``TMP_0``, ``TMP_0$a``.
_RESULT: Final = "TMP_0"
#: The column of a row that is no ROW.
_SINGLE: Final = "f0"


#: Declared functions, and how ``flat_aggregate`` calls them.
_FLAT: Final[dict[int, tuple[object, TableAggregateUdf]]] = {}


@public_api
class AggregatedTable:
    """Groups with the fields of what an aggregate function made of each."""

    def __init__(self, whole: Table) -> None:
        self._whole = whole

    def select(self, *fields: Expression) -> Table:
        """Columns of the keys and of the results."""
        return self._whole.select(*fields)


@public_api
class FlatAggregateTable(AggregatedTable):
    """Groups with the rows that a table aggregate function made of each."""


def flat_call(call: Expression) -> Expression:
    """The call of a table aggregate function as one that stands among columns.

    Raises:
        BindError: it is none.
    """

    def flat(node: ast.Node) -> ast.Node:
        if not isinstance(node, api_nodes.InlineFunction) or not isinstance(node.function, TableAggregateUdf):
            return node
        # The declared one is kept beside its copy: its id must not become another one's.
        _, made = _FLAT.setdefault(id(node.function), (node.function, copy.copy(node.function)))
        made.in_flat_aggregate = True
        return api_nodes.InlineFunction(inline_name(made), function=made, quoted=True, span=node.span)

    made = rewritten(call._node, flat)
    inner = made.expression if isinstance(made, ast.SelectItem) else made
    name = inner.name.last if isinstance(inner, ast.FunctionCall) else None
    if not isinstance(name, api_nodes.InlineFunction) or not isinstance(name.function, TableAggregateUdf):
        hint = "what udtaf() makes of a TableAggregateFunction: flat_aggregate(f(col('a')))"
        raise BindError("not-a-function", "flat_aggregate() takes a table aggregate function.", inner.span, hint)
    return Expression(made)


def result_columns(item: ast.SelectItem, type_: LogicalType | None, rows: bool) -> list[ast.SelectItem]:
    """The columns of a call's result: the fields of a ROW, any other value alone; under its aliases, where it has some.

    Args:
        rows: the call makes rows, whose fields are columns by their own names.

    Raises:
        BindError: as many aliases as there are columns are not there.
    """
    aliases = [] if item.alias is None else [item.alias]
    aliases += item.further if isinstance(item, api_nodes.Aliased) else ()
    values: list[tuple[ast.Expression, str]] = [(item.expression, _SINGLE if rows else _RESULT)]
    prefix = "" if rows else f"{_RESULT}$"
    if isinstance(type_, RowType):
        values = [
            (ast.FieldAccess(item.expression, ast.Name(field.name, quoted=True)), prefix + field.name)
            for field in type_.fields
        ]
    if aliases and len(aliases) != len(values):
        raise BindError(
            "alias-columns",
            f"List of column aliases must have same degree as table; the returned table of function has "
            f"{len(values)} columns, whereas alias list has {len(aliases)} columns",
            item.span,
        )
    names = aliases or [ast.Name(name, quoted=True) for _, name in values]
    return [ast.SelectItem(value, name, span=item.span) for (value, _), name in zip(values, names, strict=True)]
