"""Expressions as written: columns, operators, predicates, CASE, casts, constructors and access.

``Expression`` at the end is the union to ``match`` over. Its other members stand in ``literal``, ``call``, ``special``
and ``json``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.call import DefaultValue, FunctionCall
    from flowsql_grammar.ast.interval import IntervalExpression
    from flowsql_grammar.ast.json import (
        JsonArray,
        JsonArrayAgg,
        JsonExists,
        JsonObject,
        JsonObjectAgg,
        JsonQuery,
        JsonValue,
    )
    from flowsql_grammar.ast.literal import Literal, Parameter
    from flowsql_grammar.ast.query import Query
    from flowsql_grammar.ast.special import (
        ConvertTo,
        EscapedFunction,
        Extract,
        IntervalDifference,
        NewObject,
        Overlay,
        Position,
        RoundToUnit,
        SequenceValue,
        Substring,
        TimestampAdd,
        TimestampDiff,
        TranslateUsing,
        Trim,
    )
    from flowsql_grammar.ast.type import TypeSpec


class ColumnRef(Node):
    """A column, or a field of a column, by path; ``A.price`` inside MATCH_RECOGNIZE too."""

    path: Identifier


class Star(Node):
    """``*`` or ``t.*`` in a select list; ``*`` as the argument of COUNT."""

    qualifier: Identifier | None = None


class UnaryOperator(StrEnum):
    """Operators in front."""

    PLUS = "+"
    MINUS = "-"
    NOT = "NOT"


class UnaryOp(Node):
    """``-x``, ``NOT x``."""

    operator: UnaryOperator
    operand: Expression


class BinaryOperator(StrEnum):
    """Operators between two operands, without those that have nodes of their own. ``!=`` is written ``<>``."""

    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    DIVIDE = "/"
    MODULO = "%"
    CONCAT = "||"
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "AND"
    OR = "OR"
    MEMBER_OF = "MEMBER OF"
    SUBMULTISET_OF = "SUBMULTISET OF"
    MULTISET_UNION = "MULTISET UNION"
    MULTISET_UNION_DISTINCT = "MULTISET UNION DISTINCT"
    MULTISET_INTERSECT = "MULTISET INTERSECT"
    MULTISET_INTERSECT_DISTINCT = "MULTISET INTERSECT DISTINCT"
    MULTISET_EXCEPT = "MULTISET EXCEPT"
    MULTISET_EXCEPT_DISTINCT = "MULTISET EXCEPT DISTINCT"
    OVERLAPS = "OVERLAPS"
    CONTAINS = "CONTAINS"
    EQUALS = "EQUALS"
    PRECEDES = "PRECEDES"
    SUCCEEDS = "SUCCEEDS"
    IMMEDIATELY_PRECEDES = "IMMEDIATELY PRECEDES"
    IMMEDIATELY_SUCCEEDS = "IMMEDIATELY SUCCEEDS"


class BinaryOp(Node):
    """Two operands and an operator. Chains lean to the left as in Flink: ``a + b + c`` is ``(a + b) + c``."""

    operator: BinaryOperator
    left: Expression
    right: Expression


class IsTest(StrEnum):
    """What stands behind ``IS [NOT]``."""

    NULL = "NULL"
    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"
    EMPTY = "EMPTY"
    A_SET = "A SET"
    JSON = "JSON VALUE"
    JSON_OBJECT = "JSON OBJECT"
    JSON_ARRAY = "JSON ARRAY"
    JSON_SCALAR = "JSON SCALAR"


class IsPredicate(Node):
    """``x IS NOT NULL``, ``x IS JSON OBJECT``."""

    operand: Expression
    test: IsTest
    negated: bool = False


class IsDistinctFrom(Node):
    """``a IS [NOT] DISTINCT FROM b``."""

    left: Expression
    right: Expression
    negated: bool = False


class Between(Node):
    """``x [NOT] BETWEEN [SYMMETRIC] low AND high``."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    symmetric: bool = False


class InList(Node):
    """``x [NOT] IN (a, b)``."""

    operand: Expression
    values: tuple[Expression, ...]
    negated: bool = False


class InSubquery(Node):
    """``x [NOT] IN (SELECT ...)``."""

    operand: Expression
    query: Query
    negated: bool = False


class LikeKind(StrEnum):
    """The pattern language."""

    LIKE = "LIKE"
    ILIKE = "ILIKE"
    RLIKE = "RLIKE"
    SIMILAR_TO = "SIMILAR TO"


class Like(Node):
    """``x [NOT] LIKE pattern [ESCAPE e]`` and its kin."""

    operand: Expression
    pattern: Expression
    kind: LikeKind = LikeKind.LIKE
    escape: Expression | None = None
    negated: bool = False


class Quantifier(StrEnum):
    """SOME and ANY mean the same."""

    SOME = "SOME"
    ANY = "ANY"
    ALL = "ALL"


class QuantifiedComparison(Node):
    """``x > ALL (SELECT ...)`` or ``x = ANY (1, 2)``; ``right`` is a query or a list."""

    operator: BinaryOperator
    left: Expression
    quantifier: Quantifier
    right: Query | tuple[Expression, ...]


class Exists(Node):
    """``EXISTS (SELECT ...)``."""

    query: Query


class Unique(Node):
    """``UNIQUE (SELECT ...)``."""

    query: Query


class Subquery(Node):
    """A query in brackets where a value is expected."""

    query: Query


class When(Node):
    """One branch of CASE; in ``CASE x WHEN 1, 2 THEN`` there are several conditions."""

    conditions: tuple[Expression, ...]
    result: Expression


class Case(Node):
    """``CASE [operand] WHEN ... THEN ... [ELSE ...] END``."""

    operand: Expression | None
    branches: tuple[When, ...]
    otherwise: Expression | None = None


class Cast(Node):
    """``CAST(x AS t)``; ``TRY_CAST`` when ``safe``."""

    operand: Expression
    type: TypeSpec
    safe: bool = False


class RowConstructor(Node):
    """``ROW(a, b)``, or ``(a, b)`` when not ``explicit``; at least two items in the implicit form."""

    items: tuple[Expression, ...]
    explicit: bool = True


class ArrayConstructor(Node):
    """``ARRAY[a, b]``."""

    items: tuple[Expression, ...]


class MultisetConstructor(Node):
    """``MULTISET[a, b]``."""

    items: tuple[Expression, ...]


class MapConstructor(Node):
    """``MAP[k1, v1, k2, v2]``, as pairs."""

    entries: tuple[tuple[Expression, Expression], ...]


class CollectionKind(StrEnum):
    """What a query is gathered into."""

    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"


class CollectionQuery(Node):
    """``ARRAY(SELECT ...)``, ``MAP(SELECT ...)``, ``MULTISET(SELECT ...)``."""

    kind: CollectionKind
    query: Query


class ItemAccess(Node):
    """``array[1]``, ``map['k']``."""

    operand: Expression
    index: Expression


class FieldAccess(Node):
    """``f(x).a``, ``rows[1].a``: a field of something that is not a plain path."""

    operand: Expression
    field: Name


Expression: TypeAlias = (
    "ColumnRef | Star | Literal | IntervalExpression | Parameter | UnaryOp | BinaryOp | IsPredicate |"
    " IsDistinctFrom | Between | InList | InSubquery | Like | QuantifiedComparison | Exists | Unique | Subquery"
    " | Case | Cast | RowConstructor | ArrayConstructor | MultisetConstructor | MapConstructor | CollectionQuery"
    " | ItemAccess | FieldAccess | FunctionCall | Extract | RoundToUnit | Trim | Position | Overlay | Substring"
    " | TranslateUsing | TimestampAdd | TimestampDiff | ConvertTo | IntervalDifference | SequenceValue |"
    " NewObject | EscapedFunction | JsonExists | JsonValue | JsonQuery | JsonObject | JsonArray | JsonObjectAgg"
    " | JsonArrayAgg | DefaultValue"
)
