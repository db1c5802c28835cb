"""What a query and its expressions see around them: common tables, named windows, the row of a query outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from flowsql_core.expr import Call, Expr
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.aggregate_calls import AggregateCollector
from flowsql_planner.logical.internal_calls import OUTER
from flowsql_planner.logical.nodes import Rel


class QueryBinder(Protocol):
    """Binds a query inside of another one."""

    def __call__(self, env: Environment, query: ast.Query, is_view: bool = False) -> Rel:
        """The query's plan."""
        ...


class ClauseBinder(Protocol):
    """Binds the expressions of one clause; see ``ExpressionBinder``, which is the one there is."""

    @property
    def context(self) -> BindContext:
        """What is bound, and with which options."""
        ...

    @property
    def clause(self) -> str:
        """The clause's name for messages."""
        ...

    @property
    def aggregates(self) -> AggregateCollector | None:
        """Where aggregate calls are collected; None where they are not allowed."""
        ...

    @property
    def nested(self) -> Environment | None:
        """What queries inside of expressions see; None where none may stand."""
        ...

    @property
    def windows(self) -> Mapping[str, ast.WindowSpec]:
        """The windows that the WINDOW clause names."""
        ...

    def bind(self, node: ast.Expression | ast.Argument) -> Expr:
        """The typed expression of a written one."""
        ...


@dataclass(slots=True)
class OuterRow:
    """The row around a query: how its names are bound, and which of its expressions the query has asked for."""

    binder: ClauseBinder
    captured: list[Expr] = field(default_factory=list)

    def column(self, node: ast.ColumnRef) -> Expr:
        """A column of the outer row, as the query inside sees it. Raises BindError if there is none."""
        return self.capture(self.binder.bind(node), node.span)

    def capture(self, found: Expr, span: Span | None = None) -> Expr:
        """An expression of the outer row, as the query inside sees it."""
        if found not in self.captured:
            self.captured.append(found)
        return Call(OUTER, (), found.type, (("slot", self.captured.index(found)),), span or found.span)


@record
class Environment:
    """What FROM may see: common tables by name, and how nested queries are bound.

    ``state_ttl``: table or alias -> duration text of a STATE_TTL hint of the SELECT. ``lookups``: the same of LOOKUP
    hints, with their options. ``multi_join``: names in its MULTI_JOIN hints.
    """

    context: BindContext
    bind_query: QueryBinder
    common_tables: Mapping[str, Rel] = field(default_factory=dict)
    state_ttl: Mapping[str, str] = field(default_factory=dict)
    lookups: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    multi_join: frozenset[str] = frozenset()
    #: Table or alias -> hint of the SELECT that says how to join it; of batch mode.
    join_hints: Mapping[str, str] = field(default_factory=dict)
    #: The row around the query, and the windows that its WINDOW clause names.
    outer: OuterRow | None = None
    windows: Mapping[str, ast.WindowSpec] = field(default_factory=dict)

    def around(self, row: OuterRow) -> Environment:
        """What a query inside of an expression sees."""
        return replace(self, outer=row, windows={})

    def bind_view(self, context: BindContext, query: ast.Query) -> Rel:
        """A view's query sees no common tables of the query around it."""
        return self.bind_query(Environment(context, self.bind_query), query, is_view=True)
