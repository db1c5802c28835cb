"""UNNEST: the collection that is taken apart, and the columns that its elements make."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.expr import Expr, input_refs
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Namespace, Scope
from flowsql_planner.bind.output_names import unnamed
from flowsql_planner.logical.nodes import Correlate, Rel, Values
from flowsql_planner.logical.rewrite import correlate_schema

#: Flink's name of the place of an element.
_ORDINALITY: Final = t.Column("ORDINALITY", t.IntType(nullable=False))


@record
class Unnested:
    """A bound UNNEST: the collection over the row in front of it, and the columns of an element.

    ``columns``: as the query names them. ``added``: as plans name them.
    """

    node: ast.Unnest
    collection: Expr
    columns: t.Schema
    added: t.Schema

    @property
    def is_constant(self) -> bool:
        """Whether the collection is the same for every row."""
        return not input_refs(self.collection)

    def namespace(self, start: int = 0) -> Namespace:
        """The item of FROM."""
        alias = self.node.alias
        return Namespace(None if alias is None else alias.name.text, self.columns, start)

    def beside(self, rel: Rel, outer: bool, condition: Expr | None = None) -> Correlate:
        """Each row of a relation beside the elements of its collection; ``condition``: over an element's columns."""
        schema = correlate_schema(rel.schema, self.added, outer)
        return Correlate(
            rel,
            self.collection,
            self.added,
            schema,
            self.node.with_ordinality,
            outer,
            condition,
            span=self.node.span,
        )

    def alone(self) -> Correlate:
        """The elements of a constant."""
        return self.beside(Values(((),), (), self.node.span), outer=False)


def bind_unnest(context: BindContext, node: ast.Unnest, scope: Scope) -> Unnested:
    """UNNEST of a collection over the columns of a scope, under the names of its alias.

    Raises:
        BindError: the operand is no ARRAY, MAP or MULTISET, or the alias does not name each column once.
        NotSupportedYetError: several operands.
    """
    if len(node.operands) > 1:
        raise NotSupportedYetError("UNNEST of several collections", node.span)
    operand = node.operands[0]
    collection = ExpressionBinder(context, scope, "UNNEST").bind(operand)
    columns = _columns(collection, operand)
    added = _plan_columns(collection, columns)
    if node.with_ordinality:
        columns = added = (*columns, _ORDINALITY)
    return Unnested(node, collection, _aliased(columns, node), added)


def bind_table_call(context: BindContext, node: ast.TableFunction, scope: Scope) -> Unnested | None:
    """The rows of a user's table function over the columns of a scope; None for another function."""
    collection = ExpressionBinder(context, scope, "LATERAL TABLE").table_call(node.call)
    if collection is None:
        return None
    columns, alias = _columns(collection, node.call), node.alias
    if alias is not None and not alias.columns:
        # The alias names the rows, not the one column that they may have.
        alias = replace(alias, columns=tuple(ast.Name(column.name, span=alias.span) for column in columns))
    unnest = ast.Unnest((node.call,), False, True, alias, span=node.span)
    return Unnested(unnest, collection, _aliased(columns, unnest), columns)


def _columns(collection: Expr, operand: ast.Expression) -> t.Schema:
    """The columns of an element, under the names that a query without alias sees."""
    match collection.type:
        case t.ArrayType(element=t.RowType(fields=fields)) | t.MultisetType(element=t.RowType(fields=fields)):
            # Rows that are NULL are dropped, so that fields are NOT NULL as declared.
            return tuple(t.Column(f.name, f.type) for f in fields)
        case t.ArrayType(element=element) | t.MultisetType(element=element):
            return (t.Column(unnamed(0), element),)
        case t.MapType(key=key, value=value):
            return (t.Column("KEY", key), t.Column("VALUE", value))
    shown = collection.type.as_nullable().text()
    shown = {"INT": "INTEGER", "STRING": f"VARCHAR({t.MAX_LENGTH})"}.get(shown, shown)
    raise BindError(
        "bad-argument-type",
        f"Cannot apply 'UNNEST' to arguments of type 'UNNEST(<{shown}>)'. Supported form(s): 'UNNEST(<MULTISET>)'\n"
        "'UNNEST(<ARRAY>)'\n'UNNEST(<MAP>)'",
        operand.span,
    )


def _plan_columns(collection: Expr, columns: t.Schema) -> t.Schema:
    """The same columns under the names that Flink's plans give them: fields of rows keep theirs."""
    if isinstance(collection.type, t.ArrayType | t.MultisetType) and isinstance(collection.type.element, t.RowType):
        return columns
    return tuple(t.Column(f"f{index}", column.type) for index, column in enumerate(columns))


def _aliased(columns: t.Schema, node: ast.Unnest) -> t.Schema:
    alias = node.alias
    if alias is None:
        return columns
    names = tuple(name.text for name in alias.columns)
    if not names:
        # The alias names the one column too.
        names = (alias.name.text,) if len(columns) == 1 else tuple(column.name for column in columns)
    if len(names) != len(columns):
        raise BindError(
            "alias-columns",
            f"List of column aliases must have same degree as table; table has {len(columns)} columns "
            f"({', '.join(repr(column.name) for column in columns)}), whereas alias list has {len(names)} columns",
            alias.span,
        )
    repeated = next((name for i, name in enumerate(alias.columns) if name.text in names[:i]), None)
    if repeated is not None:
        raise BindError("duplicate-alias", f"Duplicate name '{repeated}' in column alias list", repeated.span)
    return tuple(t.Column(name, column.type) for name, column in zip(names, columns, strict=True))
