"""Functions of whole tables in the Table API: ``process``, ``from_call``, ``to_changelog``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from flowsql.common.public_api import public_api
from flowsql.table.expression import Expression
from flowsql.table.query.projection import Projection
from flowsql.table.syntax.build import api_nodes, ast, select
from flowsql.table.syntax.inline_functions import inline_name
from flowsql.table.syntax.literals import literal
from flowsql.table.syntax.method_text import Step
from flowsql.table.syntax.operands import QueryOperand
from flowsql_core.errors import BindError
from flowsql_core.process_function import ProcessTableFunction, ProcessUdf
from flowsql_core.span import Source

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table import Table


@public_api
class PartitionedTable:
    """A table whose rows belong together by keys: made by :meth:`Table.partition_by`, for :meth:`process`."""

    def __init__(self, table: Table, keys: Sequence[object], order: Sequence[object] = ()) -> None:
        self._table = table
        self._keys = tuple(keys)
        self._order = tuple(order)

    def order_by(self, *fields: Expression) -> PartitionedTable:
        """Rows of a partition in the order of their times, the first of these columns, once the watermark is there."""
        return PartitionedTable(self._table, self._keys, fields)

    def process(self, func: object, *arguments: object) -> Table:
        """What a process table function makes of the table: its first argument, with ``arguments`` behind it."""
        return processed(self._table, func, arguments, self)

    def as_argument(self, name: str) -> Expression:
        """``name => TABLE t PARTITION BY ...``: one of several tables of a call."""
        return Expression(ast.NamedArgument(ast.Name(name), self.argument()))

    def argument(self) -> ast.TableArgument:
        """``TABLE t PARTITION BY ... ORDER BY ...``."""
        table = self._table
        step = Step(table.source, "partition_by", self._keys)
        projection = Projection(table._environment, table._schema, step)
        with table._environment.located(step.source):
            keys = tuple(projection.value(key, place) for place, key in enumerate(self._keys))
        by = Step(step.source, "order_by", self._order)
        ordering = Projection(table._environment, table._schema, by)
        with table._environment.located(by.source):
            order = tuple(ordering.order_item(field, place) for place, field in enumerate(self._order))
        return ast.TableArgument(_operand(table), keys, order)


def table_argument(table: Table) -> ast.TableArgument:
    """``TABLE t``."""
    return ast.TableArgument(_operand(table))


def _operand(table: Table) -> ast.Identifier | ast.Query:
    """The table's name where it is all of one, else its query."""
    relation = table._relation()
    return relation.name if isinstance(relation, ast.TableRef) and not relation.hints else table._query


def processed(
    table: Table, func: object, arguments: Sequence[object], partitioned: PartitionedTable | None = None
) -> Table:
    """The rows that a function makes of a table."""
    step = table._step("process", (_Shown(_shown(func)), *arguments))
    data = table_argument(table) if partitioned is None else partitioned.argument()
    given = [_argument(value) for value in arguments]
    call = ast.FunctionCall(_name(table._environment, func, step), (data, *given))
    return table._then(step, select(ast.TableFunction(call), None))


def called(environment: TableEnvironment, func: object, arguments: Sequence[object]) -> tuple[ast.Query, Source]:
    """The query of a call, and its text."""
    step = Step(Source("", "from_call()"), "from_call", (_Shown(_shown(func)), *arguments))
    call = ast.FunctionCall(_name(environment, func, step), tuple(_argument(value) for value in arguments))
    return step.fill(ast.Query(select(ast.TableFunction(call), None))), step.source


def by_function(table: Table, method: str, arguments: Sequence[Expression]) -> Table:
    """What a built-in function over whole tables makes of one; arguments are named."""
    step = table._step(method, arguments)
    given = []
    for place, argument in enumerate(arguments):
        node = step.at(place, argument._node)
        if not isinstance(node, ast.NamedArgument):
            message = f"{method}() takes named arguments."
            raise table._refused(step, "named-arguments", message, "descriptor('code').as_argument('op')")
        given.append(node)
    data = ast.NamedArgument(ast.Name("input"), table_argument(table))
    function = ast.Identifier((ast.Name(method.upper()),))
    return table._then(step, select(ast.TableFunction(ast.FunctionCall(function, (data, *given))), None))


def _argument(value: object) -> ast.Argument:
    """An argument: a table, something named, a descriptor, a value; None stands for one that is left out."""
    if value is None:
        return ast.DefaultValue()
    if isinstance(value, PartitionedTable):
        return value.argument()
    if isinstance(value, QueryOperand):
        # The one class that holds a query is Table.
        return table_argument(cast("Table", value))
    if isinstance(value, Expression) and isinstance(value._node, ast.NamedArgument | ast.Descriptor):
        return value._node
    return literal(value)


def _name(environment: TableEnvironment, func: object, step: Step) -> ast.Identifier:
    """The function's name; an object is registered under one of its own."""
    if isinstance(func, str):
        return ast.Identifier(tuple(ast.Name(part) for part in func.split(".")))
    made: Any = func
    if isinstance(func, ProcessTableFunction) or (isinstance(func, type) and issubclass(func, ProcessTableFunction)):
        from flowsql.table.process_function import process_table_function

        made = process_table_function(func)
    if not isinstance(made, ProcessUdf):
        raise BindError(
            "not-a-function",
            f"{step.method}() takes the name of a function or what process_table_function() made, got {func!r}.",
            step.whole,
        ).within(step.source)
    name = inline_name(made)
    environment.register_inline(name, made)
    return ast.Identifier((api_nodes.InlineFunction(name, function=made, quoted=True),))


def _shown(func: object) -> str:
    return func if isinstance(func, str) else str(getattr(func, "name", getattr(func, "__name__", repr(func))))


class _Shown:
    """A word in the text of a chain that is no value."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text
