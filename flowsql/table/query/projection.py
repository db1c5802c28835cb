"""Expressions of one method over one input: ranges of columns opened, names given, functions made known.

Names are Flink's: a column keeps its name, with a type behind it where it is cast (``a-BIGINT``); an aggregate or a
window's property without an alias is ``EXPR$0``, ``EXPR$1``, ...; any other expression ``_c`` and its position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from flowsql.table.expression.expression import Expression, order_item
from flowsql.table.syntax.build import api_nodes, ast, called, column, shown
from flowsql.table.syntax.method_text import Step
from flowsql.table.syntax.rewrite import placed, rewritten
from flowsql_core.errors import BindError, FlowSqlError, did_you_mean
from flowsql_core.types import logical as t
from flowsql_core.udf_aggregates import AggregateUdf

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment

N = TypeVar("N", bound="ast.Node")


class Projection:
    """What the arguments of a method mean over the columns of its table."""

    def __init__(self, environment: TableEnvironment, schema: t.Schema, step: Step) -> None:
        self.environment = environment
        self._schema = schema
        self._step = step

    # Single expressions

    def value(self, given: object, position: int) -> ast.Expression:
        """An argument that is a value: a predicate, a key."""
        return self._step.at(position, self.known(self.expression(given)._value()))

    def condition(self, given: object, position: int) -> ast.Expression:
        """An argument that is true or false.

        Raises:
            BindError: it is of another type.
        """
        made = self.value(given, position)
        type_ = self.type_of(made)
        if type_ is not None and not isinstance(type_, t.BooleanType | t.NullType):
            message = f"Filter operator requires a boolean expression as input, but {shown(made)} is of type {type_}"
            raise BindError("not-a-condition", message, self._step.spans[position])
        return made

    def order_item(self, given: object, position: int) -> ast.OrderItem:
        """An argument that is a sort key."""
        return self._step.at(position, self.known(order_item(self.expression(given))))

    def expression(self, given: object) -> Expression:
        """The argument itself; BindError when it is no expression."""
        if isinstance(given, Expression):
            return given
        hint = f"write col('{given}')" if isinstance(given, str) else "e.g. col('a'), lit(5), col('a') + 1"
        raise BindError("not-an-expression", f"{self._step.method}() takes expressions, got {given!r}.", hint=hint)

    def known(self, node: N) -> N:
        """The tree with its function objects registered here, and ``+`` of texts as ``||``."""
        for part in node.walk():
            if isinstance(part, api_nodes.InlineFunction):
                self.environment.register_inline(part.text, part.function)
            elif isinstance(part, api_nodes.TableQuery):
                self.environment.require_own(part.environment, self._step.method)
        return cast(N, rewritten(node, self._meant, lambda part: isinstance(part, ast.Query)))

    def _meant(self, node: ast.Node) -> ast.Node:
        """What depends on types: ``+`` of texts, and a field of a ROW by its place."""
        if isinstance(node, ast.FieldAccess) and isinstance(node.field, api_nodes.FieldPlace):
            return self._field_at(node, node.field.place)
        if not isinstance(node, ast.BinaryOp) or node.operator is not ast.BinaryOperator.PLUS:
            return node
        if not self._is_text(node.left):
            return node
        right = node.right if self._is_text(node.right) else ast.Cast(node.right, ast.BasicType("STRING"))
        return ast.BinaryOp(ast.BinaryOperator.CONCAT, node.left, right)

    def _field_at(self, node: ast.FieldAccess, place: int) -> ast.Node:
        type_ = self.type_of(node.operand)
        if not isinstance(type_, t.RowType):
            raise BindError("no-fields", f"get({place}) takes a field of a ROW, {shown(node.operand)} is {type_}.")
        if not 0 <= place < len(type_.fields):
            raise BindError("no-field", f"There is no field at place {place} of {type_}: it has {len(type_.fields)}.")
        return ast.FieldAccess(node.operand, ast.Name(type_.fields[place].name, quoted=True))

    def _is_text(self, node: ast.Expression) -> bool:
        """Whether an expression is text; those below it have been looked at before. Most tell by themselves."""
        match node:
            case ast.BinaryOp(operator):
                return operator is ast.BinaryOperator.CONCAT
            case ast.UnaryOp() | ast.NumberLiteral() | ast.IntervalLiteral() | ast.IntervalExpression():
                return False
            case ast.StringLiteral():
                return True
            case ast.Cast(_, ast.BasicType(name)):
                return name in ("STRING", "VARCHAR", "CHAR")
        return isinstance(self.type_of(node), t.CharacterType)

    def type_of(self, node: ast.Expression) -> t.LogicalType | None:
        """The type of an expression over the input; None where it cannot be told (binding says why)."""
        if isinstance(node, ast.ColumnRef) and len(node.path.parts) == 1:
            found = next((item for item in self._schema if item.name == node.path.last.text), None)
            return None if found is None else found.type
        try:
            return self.environment.type_of(node, self._schema)
        except FlowSqlError:
            return None

    # Columns

    def items(self, fields: Sequence[object]) -> list[ast.SelectItem]:
        """The columns that arguments stand for, without names for those that have none."""
        made: list[ast.SelectItem] = []
        for position, given in enumerate(fields):
            node = self.expression(given)._node
            if isinstance(node, ast.OrderItem):
                self.expression(given)._value()
            opened = self._opened(node)
            made += [self._step.at(position, self.known(item)) for item in opened]
        return made

    def _opened(self, node: ast.Node) -> list[ast.SelectItem]:
        if isinstance(node, ast.SelectItem):
            return [node]
        if isinstance(node, ast.Star) and node.qualifier is None:
            return [ast.SelectItem(column(item.name)) for item in self._schema]
        if called(node, "WITH_COLUMNS"):
            return [ast.SelectItem(column(name)) for name in self._range(cast(ast.FunctionCall, node))]
        if called(node, "WITHOUT_COLUMNS"):
            left_out = self._range(cast(ast.FunctionCall, node))
            return [ast.SelectItem(column(item.name)) for item in self._schema if item.name not in left_out]
        if called(node, "FLATTEN"):
            return self._flattened(cast(ast.Expression, cast(ast.FunctionCall, node).args[0]))
        return [ast.SelectItem(cast(ast.Expression, node))]

    def _range(self, node: ast.FunctionCall) -> list[str]:
        """Names that the arguments of ``with_columns`` stand for."""
        names = [item.name for item in self._schema]
        found: list[str] = []
        for arg in node.args:
            if isinstance(arg, ast.Star):
                found += names
            elif called(arg, "RANGE_"):
                first, last = (self._position(end) for end in cast(ast.FunctionCall, arg).args)
                if first > last:
                    raise BindError("bad-range", f"The range in {self._step.method}() ends before it starts.")
                found += names[first : last + 1]
            else:
                found.append(names[self._position(arg)])
        return found

    def _position(self, node: ast.Argument) -> int:
        names = [item.name for item in self._schema]
        if isinstance(node, ast.NumberLiteral) and node.is_integer and 1 <= int(node.text) <= len(names):
            return int(node.text) - 1
        if isinstance(node, ast.ColumnRef) and node.path.last.text in names:
            return names.index(node.path.last.text)
        text = node.path.last.text if isinstance(node, ast.ColumnRef) else shown(node)
        message = f"Cannot resolve field [{text}], input field list:[{', '.join(names)}]."
        raise BindError("column-not-found", message, None, did_you_mean(text, names))

    def _flattened(self, node: ast.Expression) -> list[ast.SelectItem]:
        if isinstance(node, ast.RowConstructor):
            return [ast.SelectItem(item, ast.Name(f"f{i}", quoted=True)) for i, item in enumerate(node.items)]
        type_ = self.type_of(node)
        if not isinstance(type_, t.RowType):
            return [ast.SelectItem(node)]
        prefix = f"{_own_name(node)}$" if _own_name(node) else ""
        return [
            ast.SelectItem(
                ast.FieldAccess(node, ast.Name(field.name, quoted=True)),
                ast.Name(f"{prefix}{field.name}", quoted=True),
            )
            for field in type_.fields
        ]


def named(items: Sequence[ast.SelectItem]) -> list[ast.SelectItem]:
    """The items with the names that Flink gives to those without one.

    Raises:
        BindError: two columns would bear the same name.
    """
    properties = _aggregates_of(items)
    made: list[ast.SelectItem] = []
    seen: set[str] = set()
    for position, item in enumerate(items):
        name = item.alias.text if item.alias is not None else _name(item.expression, position, properties)
        if name in seen:
            raise BindError(
                "ambiguous-name", f"Ambiguous column name: {name}", item.span, "give one of them another with alias()"
            )
        seen.add(name)
        plain = isinstance(item.expression, ast.ColumnRef) and item.expression.path.last.text == name
        alias = None if plain else ast.Name(name, quoted=True, span=item.span)
        made.append(ast.SelectItem(item.expression, alias, span=item.span))
    return made


def has_aggregates(items: Sequence[ast.SelectItem]) -> bool:
    """Whether an aggregate stands in one of the items, outside of OVER."""
    return any(not isinstance(found, ast.FieldAccess) for found in _aggregates_of(items))


def item_name(item: ast.SelectItem) -> str | None:
    """The name that an item has by itself: its alias, or that of the column it stands for."""
    return item.alias.text if item.alias is not None else _own_name(item.expression)


def _name(expression: ast.Expression, position: int, properties: list[ast.Node]) -> str:
    return _own_name(expression, properties) or f"_c{position}"


def _own_name(node: ast.Node, properties: Sequence[ast.Node] = ()) -> str | None:
    if node in properties:
        return f"EXPR${properties.index(node)}"
    match node:
        case ast.ColumnRef(path):
            return path.last.text
        case ast.Cast(operand, type_):
            name = _own_name(operand, properties)
            return None if name is None else f"{name}-{shown(type_)}"
        case ast.FieldAccess(operand, field) if not isinstance(field, api_nodes.WindowProperty):
            name = _own_name(operand, properties)
            return None if name is None else f"{name}${field.text}"
    return None


def _aggregates_of(items: Sequence[ast.SelectItem]) -> list[ast.Node]:
    """Aggregates and window properties, each once, in the order in which they stand."""
    found: list[ast.Node] = []
    for item in items:
        _note_aggregates(item.expression, found)
    return found


def _note_aggregates(node: ast.Node, found: list[ast.Node]) -> None:
    if isinstance(node, ast.Query):
        return
    if _is_aggregate(node) or (isinstance(node, ast.FieldAccess) and isinstance(node.field, api_nodes.WindowProperty)):
        if node not in found:
            found.append(node)
        return
    for child in node.children():
        _note_aggregates(child, found)


def _is_aggregate(node: ast.Node) -> bool:
    if isinstance(node, ast.JsonObjectAgg | ast.JsonArrayAgg):
        return True
    if not isinstance(node, ast.FunctionCall) or node.over is not None or len(node.name.parts) > 1:
        return False
    if isinstance(node.name.last, api_nodes.InlineFunction):
        return isinstance(node.name.last.function, AggregateUdf)
    from flowsql_compute.functions.registry import is_aggregate

    return is_aggregate(node.name.last.text.upper())


def with_properties(
    node: ast.Expression, window: str | None, properties: Mapping[str, ast.Expression] | None = None
) -> ast.Expression:
    """``col("w").start`` as what ``properties`` has for it.

    Raises:
        BindError: a property of something that is no window of this query.
    """
    return cast(ast.Expression, rewritten(node, lambda part: _property(part, window, properties or {})))


def _property(node: ast.Node, window: str | None, properties: Mapping[str, ast.Expression]) -> ast.Node:
    if not isinstance(node, ast.FieldAccess) or not isinstance(node.field, api_nodes.WindowProperty):
        return node
    operand = node.operand
    if not isinstance(operand, ast.ColumnRef) or operand.path.last.text != window:
        raise BindError(
            "no-window",
            "Window properties can only be used on windowed tables.",
            node.span,
            "table.window(Tumble.over(...).on(...).alias('w')).group_by(col('w')).select(col('w').start)",
        )
    return placed(properties[node.field.text], node.span)
