"""Calls with everything that may stand in them and behind them: arguments, orders, filters.

``FunctionCall`` covers every ordinary call, aggregate or not; which functions exist and what they mean is for the
planner. Arguments that only stand in calls (``TABLE t``, ``DESCRIPTOR(x)``, ``MODEL m``, ``name => value``, DEFAULT)
have nodes of their own.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.query import OrderItem, Query
    from flowsql_grammar.ast.window import WindowSpec


class SetQuantifier(StrEnum):
    """``DISTINCT`` or ``ALL`` in a call or a select list."""

    ALL = "ALL"
    DISTINCT = "DISTINCT"


class NullTreatment(StrEnum):
    """Behind a call: ``LAST_VALUE(x) IGNORE NULLS``."""

    IGNORE = "IGNORE NULLS"
    RESPECT = "RESPECT NULLS"


class NamedArgument(Node):
    """``name => value``."""

    name: Name
    value: Argument


class TableArgument(Node):
    """``TABLE t [PARTITION BY ...] [ORDER BY ...]`` or a query in its place, as an argument of a table function."""

    table: Identifier | Query
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()


class ModelArgument(Node):
    """``MODEL m``."""

    name: Identifier


class DescriptorColumn(Node):
    """A name in a descriptor."""

    name: Identifier


class Descriptor(Node):
    """``DESCRIPTOR(a, b)``."""

    columns: tuple[DescriptorColumn, ...]


class DefaultValue(Node):
    """``DEFAULT`` as an argument or an inserted value."""


class MatchScope(StrEnum):
    """In front of FIRST, LAST and aggregates of MATCH_RECOGNIZE."""

    RUNNING = "RUNNING"
    FINAL = "FINAL"


class FunctionCall(Node):
    """``name(args)`` with everything that may follow it.

    ``niladic`` calls are written without brackets: ``CURRENT_TIMESTAMP``. Built-in names keep the letters they were
    written with; they resolve without regard to case. ``over`` is a window's name or its definition.
    """

    name: Identifier
    args: tuple[Argument, ...] = ()
    quantifier: SetQuantifier | None = None
    order_by: tuple[OrderItem, ...] = ()
    within_group: tuple[OrderItem, ...] = ()
    filter: Expression | None = None
    null_treatment: NullTreatment | None = None
    over: WindowSpec | Name | None = None
    match_scope: MatchScope | None = None
    niladic: bool = False
    within_distinct: tuple[Expression, ...] = ()


Argument: TypeAlias = "Expression | NamedArgument | TableArgument | ModelArgument | Descriptor"
