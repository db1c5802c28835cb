"""Queries and relations as written.

A query is always a :class:`Query`: WITH, a body, ORDER BY, LIMIT. Brackets without a tail of their own leave no trace.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.call import DefaultValue, FunctionCall, SetQuantifier
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.literal import NumberLiteral, Parameter
    from flowsql_grammar.ast.match import MatchRecognize
    from flowsql_grammar.ast.reshape import ExtendedColumn, Pivot, Sample, Unpivot
    from flowsql_grammar.ast.window import WindowSpec


class NullOrder(StrEnum):
    """Where NULL sorts."""

    FIRST = "NULLS FIRST"
    LAST = "NULLS LAST"


class OrderItem(Node):
    """``expression [DESC] [NULLS FIRST | LAST]``."""

    expression: Expression
    descending: bool = False
    nulls: NullOrder | None = None


class CommonTable(Node):
    """``name [(columns)] AS (query)`` in a WITH clause."""

    name: Name
    query: Query
    columns: tuple[Name, ...] = ()


class Query(Node):
    """``[WITH ...] body [ORDER BY ...] [OFFSET ...] [LIMIT ...]``; FETCH FIRST is ``limit``, LIMIT ALL is None."""

    body: QueryBody
    ctes: tuple[CommonTable, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    offset: NumberLiteral | Parameter | None = None
    limit: NumberLiteral | Parameter | None = None
    recursive: bool = False


class HintArgument(Node):
    """``'k' = 'v'``, or with ``key`` None a single value, of a hint; ``is_name`` where the value is no literal."""

    key: str | None
    value: str
    is_name: bool = False


class Hint(Node):
    """One hint between ``/*+`` and ``*/``: ``OPTIONS('k' = 'v')``, ``BROADCAST(a)``, ``LOOKUP('table' = 'd')``."""

    name: Name
    arguments: tuple[HintArgument, ...] = ()


class SelectItem(Node):
    """``expression [[AS] alias]``, ``*`` or ``t.*``."""

    expression: Expression
    alias: Name | None = None


class GroupingSet(Node):
    """``(a, b)`` or ``()``: columns that group together."""

    items: tuple[Expression, ...]


class GroupingSets(Node):
    """``GROUPING SETS (...)``."""

    elements: tuple[GroupingElement, ...]


class Rollup(Node):
    """``ROLLUP (...)``."""

    elements: tuple[Expression | GroupingSet, ...]


class Cube(Node):
    """``CUBE (...)``."""

    elements: tuple[Expression | GroupingSet, ...]


class GroupBy(Node):
    """``GROUP BY [ALL | DISTINCT] elements``."""

    elements: tuple[GroupingElement, ...]
    quantifier: SetQuantifier | None = None


class NamedWindow(Node):
    """``name AS (...)`` in a WINDOW clause."""

    name: Name
    spec: WindowSpec


class Select(Node):
    """``SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... WINDOW ... QUALIFY ...``."""

    items: tuple[SelectItem, ...]
    from_: Relation | None = None
    where: Expression | None = None
    group_by: GroupBy | None = None
    having: Expression | None = None
    windows: tuple[NamedWindow, ...] = ()
    qualify: Expression | None = None
    quantifier: SetQuantifier | None = None
    hints: tuple[Hint, ...] = ()


class SetOperator(StrEnum):
    """MINUS is EXCEPT."""

    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


class SetOperation(Node):
    """``left UNION [ALL] right``; INTERSECT binds more tightly than the others."""

    operator: SetOperator
    left: QueryBody
    right: QueryBody
    all: bool = False


class Values(Node):
    """``VALUES (1, 'a'), (2, 'b')``: rows of expressions; ``DEFAULT`` only below INSERT."""

    rows: tuple[tuple[Expression | DefaultValue, ...], ...]


class ExplicitTable(Node):
    """``TABLE t`` in the place of a SELECT."""

    name: Identifier


QueryBody: TypeAlias = "Select | SetOperation | Values | ExplicitTable | Query"
"""A nested Query is one in brackets with a WITH, ORDER BY or LIMIT of its own."""

GroupingElement: TypeAlias = "Expression | GroupingSet | GroupingSets | Rollup | Cube"


# Relations


class TableAlias(Node):
    """``[AS] name [(columns)]``."""

    name: Name
    columns: tuple[Name, ...] = ()


class TableRef(Node):
    """A table, view or common table by path, with its hints; ``period`` is the moment of FOR SYSTEM_TIME AS OF."""

    name: Identifier
    hints: tuple[Hint, ...] = ()
    period: Expression | None = None
    alias: TableAlias | None = None
    extended: tuple[ExtendedColumn, ...] = ()


class TableFunction(Node):
    """``[LATERAL] TABLE(f(...))``, or ``f(...)`` directly in FROM."""

    call: FunctionCall
    lateral: bool = False
    alias: TableAlias | None = None


class DerivedTable(Node):
    """``[LATERAL] (query)``."""

    query: Query
    lateral: bool = False
    alias: TableAlias | None = None


class Unnest(Node):
    """``UNNEST(a, b) [WITH ORDINALITY]``."""

    operands: tuple[Expression, ...]
    with_ordinality: bool = False
    lateral: bool = False
    alias: TableAlias | None = None


class JoinKind(StrEnum):
    """How two relations combine; COMMA is a CROSS JOIN that was written as a comma."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    CROSS = "CROSS"
    COMMA = "COMMA"


class Join(Node):
    """``left [NATURAL] kind JOIN right [ON condition | USING (columns)]``."""

    left: Relation
    right: Relation
    kind: JoinKind = JoinKind.INNER
    natural: bool = False
    on: Expression | None = None
    using: tuple[Name, ...] = ()


Relation: TypeAlias = (
    "TableRef | TableFunction | DerivedTable | Unnest | Join | MatchRecognize | Pivot | Unpivot | Sample"
)
