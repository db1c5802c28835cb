"""Expressions as written. Special syntax, as in ``EXTRACT(DAY FROM x)``, becomes typed fields.

``Expression`` at the end is the union to ``match`` over. ``FunctionCall`` covers every ordinary call, aggregate or not;
which functions exist and what they mean is for the planner. Arguments that only stand in calls (``TABLE t``,
``DESCRIPTOR(x)``, ``MODEL m``, ``name => value``, ``*``, ``DEFAULT``) have nodes of their own.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.query import OrderItem, Query
    from flowsql_grammar.ast.type import TypeSpec


class ColumnRef(Node):
    """A column, or a field of a column, by path; ``A.price`` inside MATCH_RECOGNIZE too."""

    path: Identifier


class Star(Node):
    """``*`` or ``t.*`` in a select list; ``*`` as the argument of COUNT."""

    qualifier: Identifier | None = None


# Literals


class NumberLiteral(Node):
    """An unsigned number with its text exactly as written: ``1``, ``1.50``, ``.5``, ``1e3``."""

    text: str

    @property
    def is_approximate(self) -> bool:
        """Whether it has an exponent, which makes it a DOUBLE."""
        return "e" in self.text or "E" in self.text

    @property
    def is_integer(self) -> bool:
        """Whether it has neither point nor exponent."""
        return self.text.isdigit()


class StringLiteral(Node):
    """A character string, escapes resolved; adjacent pieces joined."""

    value: str
    charset: str | None = None


class BinaryLiteral(Node):
    """``X'0F'``."""

    value: bytes


class BooleanLiteral(Node):
    """``TRUE``, ``FALSE``, or ``UNKNOWN`` (value None: a NULL of type BOOLEAN)."""

    value: bool | None


class NullLiteral(Node):
    """``NULL``."""


class DateLiteral(Node):
    """``DATE '2020-01-31'``; the text is a valid date."""

    text: str


class TimeLiteral(Node):
    """``TIME '10:00:00.5'``; the text is a valid time of day."""

    text: str


class TimestampLiteral(Node):
    """``TIMESTAMP '2020-01-31 10:00:00.123'``, or ``TIMESTAMP WITH LOCAL TIME ZONE '...'``."""

    text: str
    local_time_zone: bool = False


class TimeUnit(StrEnum):
    """Units of EXTRACT, FLOOR and CEIL, TIMESTAMPADD and intervals. Plural spellings are normalised."""

    NANOSECOND = "NANOSECOND"
    MICROSECOND = "MICROSECOND"
    MILLISECOND = "MILLISECOND"
    SECOND = "SECOND"
    MINUTE = "MINUTE"
    HOUR = "HOUR"
    DAY = "DAY"
    DOW = "DOW"
    ISODOW = "ISODOW"
    DOY = "DOY"
    WEEK = "WEEK"
    MONTH = "MONTH"
    QUARTER = "QUARTER"
    YEAR = "YEAR"
    ISOYEAR = "ISOYEAR"
    EPOCH = "EPOCH"
    DECADE = "DECADE"
    CENTURY = "CENTURY"
    MILLENNIUM = "MILLENNIUM"


class IntervalQualifier(Node):
    """``DAY(2) TO SECOND(3)``; ``end`` is None for a single unit. WEEK and QUARTER stand alone only."""

    start: TimeUnit
    end: TimeUnit | None = None
    precision: int | None = None
    fraction: int | None = None


class IntervalLiteral(Node):
    """``INTERVAL -'1 10:00' DAY TO MINUTE``; the text fits the qualifier."""

    text: str
    qualifier: IntervalQualifier
    negative: bool = False


class IntervalExpression(Node):
    """``INTERVAL 5 DAY`` or ``INTERVAL (a + 1) DAY``: an amount that is not a string."""

    amount: Expression
    qualifier: IntervalQualifier
    negative: bool = False


class Parameter(Node):
    """``?``."""


# Operators


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


# Constructors and access


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


# Calls


class SetQuantifier(StrEnum):
    """``DISTINCT`` or ``ALL`` in a call or a select list."""

    ALL = "ALL"
    DISTINCT = "DISTINCT"


class NullTreatment(StrEnum):
    """Behind a call: ``LAST_VALUE(x) IGNORE NULLS``."""

    IGNORE = "IGNORE NULLS"
    RESPECT = "RESPECT NULLS"


class FrameUnit(StrEnum):
    """Rows are counted; a range measures the sort key."""

    ROWS = "ROWS"
    RANGE = "RANGE"


class BoundKind(StrEnum):
    """Where a frame starts or ends."""

    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


class FrameBound(Node):
    """``10 PRECEDING``, ``CURRENT ROW``; ``offset`` only for PRECEDING and FOLLOWING."""

    kind: BoundKind
    offset: Expression | None = None


class Frame(Node):
    """``ROWS BETWEEN start AND end``; ``end`` is None in the short form, which ends at the current row."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound | None = None


class WindowSpec(Node):
    """``([base] [PARTITION BY ...] [ORDER BY ...] [frame])`` behind OVER or in a WINDOW clause."""

    base: Name | None = None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: Frame | None = None
    allow_partial: bool | None = None


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


class Extract(Node):
    """``EXTRACT(unit FROM x)``."""

    unit: TimeUnit
    operand: Expression


class RoundDirection(StrEnum):
    """Which way ``FLOOR(x TO unit)`` or ``CEIL(x TO unit)`` goes."""

    FLOOR = "FLOOR"
    CEIL = "CEIL"


class RoundToUnit(Node):
    """``FLOOR(x TO unit)``, ``CEIL(x TO unit)``; without a unit they are ordinary calls."""

    direction: RoundDirection
    operand: Expression
    unit: TimeUnit


class TrimSide(StrEnum):
    """Which end ``TRIM`` works on."""

    BOTH = "BOTH"
    LEADING = "LEADING"
    TRAILING = "TRAILING"


class Trim(Node):
    """``TRIM([side] [characters] FROM x)``; ``TRIM(x)`` is both ends and spaces."""

    operand: Expression
    side: TrimSide = TrimSide.BOTH
    characters: Expression | None = None


class Position(Node):
    """``POSITION(needle IN haystack [FROM start])``."""

    needle: Expression
    haystack: Expression
    start: Expression | None = None


class Overlay(Node):
    """``OVERLAY(x PLACING y FROM start [FOR length])``, or the same with commas."""

    operand: Expression
    replacement: Expression
    start: Expression
    length: Expression | None = None


class Substring(Node):
    """``SUBSTRING(x FROM start [FOR length])``, or the same with commas."""

    operand: Expression
    start: Expression
    length: Expression | None = None


class TranslateUsing(Node):
    """``TRANSLATE(x USING charset)`` and ``CONVERT(x USING charset)``."""

    operand: Expression
    charset: Identifier
    function: str = "TRANSLATE"


class TimestampAdd(Node):
    """``TIMESTAMPADD(unit, amount, moment)``."""

    unit: TimeUnit
    amount: Expression
    moment: Expression


class TimestampDiff(Node):
    """``TIMESTAMPDIFF(unit, start, end)``."""

    unit: TimeUnit
    start: Expression
    end: Expression


# JSON


class JsonErrorBehavior(StrEnum):
    """``... ON ERROR`` of JSON_EXISTS."""

    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


class JsonBehaviorKind(StrEnum):
    """What stands before ``ON EMPTY`` and ``ON ERROR``."""

    ERROR = "ERROR"
    NULL = "NULL"
    EMPTY_ARRAY = "EMPTY ARRAY"
    EMPTY_OBJECT = "EMPTY OBJECT"
    DEFAULT = "DEFAULT"


class JsonBehavior(Node):
    """``NULL ON EMPTY``, ``DEFAULT 1 ON ERROR``; ``value`` only with DEFAULT."""

    kind: JsonBehaviorKind
    value: Expression | None = None


class JsonExists(Node):
    """``JSON_EXISTS(x, path [behavior ON ERROR])``."""

    operand: Expression
    path: Expression
    on_error: JsonErrorBehavior | None = None


class JsonValue(Node):
    """``JSON_VALUE(x, path [RETURNING t] [b ON EMPTY] [b ON ERROR])``."""

    operand: Expression
    path: Expression
    returning: TypeSpec | None = None
    on_empty: JsonBehavior | None = None
    on_error: JsonBehavior | None = None


class JsonWrapper(StrEnum):
    """Whether JSON_QUERY puts brackets around what it found."""

    WITHOUT_ARRAY = "WITHOUT ARRAY WRAPPER"
    WITH_CONDITIONAL_ARRAY = "WITH CONDITIONAL ARRAY WRAPPER"
    WITH_UNCONDITIONAL_ARRAY = "WITH UNCONDITIONAL ARRAY WRAPPER"


class JsonQuery(Node):
    """``JSON_QUERY(x, path [RETURNING t] [wrapper] [b ON EMPTY] [b ON ERROR])``."""

    operand: Expression
    path: Expression
    returning: TypeSpec | None = None
    wrapper: JsonWrapper | None = None
    on_empty: JsonBehavior | None = None
    on_error: JsonBehavior | None = None


class JsonNullClause(StrEnum):
    """What JSON constructors do with NULL."""

    NULL_ON_NULL = "NULL ON NULL"
    ABSENT_ON_NULL = "ABSENT ON NULL"


class JsonEntry(Node):
    """``KEY k VALUE v [FORMAT JSON]`` or ``k : v``."""

    key: Expression
    value: Expression
    format_json: bool = False


class JsonElement(Node):
    """An element of JSON_ARRAY, with its ``FORMAT JSON``."""

    value: Expression
    format_json: bool = False


class JsonObject(Node):
    """``JSON_OBJECT(entries [null clause])``."""

    entries: tuple[JsonEntry, ...] = ()
    null_clause: JsonNullClause | None = None


class JsonArray(Node):
    """``JSON_ARRAY(elements [null clause])``."""

    elements: tuple[JsonElement, ...] = ()
    null_clause: JsonNullClause | None = None


class JsonObjectAgg(Node):
    """``JSON_OBJECTAGG(KEY k VALUE v [null clause])``, an aggregate."""

    entry: JsonEntry
    null_clause: JsonNullClause | None = None


class JsonArrayAgg(Node):
    """``JSON_ARRAYAGG(v [ORDER BY ...] [null clause])``, an aggregate."""

    element: JsonElement
    order_by: tuple[OrderItem, ...] = ()
    null_clause: JsonNullClause | None = None


Literal = (
    NumberLiteral
    | StringLiteral
    | BinaryLiteral
    | BooleanLiteral
    | NullLiteral
    | DateLiteral
    | TimeLiteral
    | TimestampLiteral
    | IntervalLiteral
)

Expression = (
    ColumnRef
    | Star
    | Literal
    | IntervalExpression
    | Parameter
    | UnaryOp
    | BinaryOp
    | IsPredicate
    | IsDistinctFrom
    | Between
    | InList
    | InSubquery
    | Like
    | QuantifiedComparison
    | Exists
    | Unique
    | Subquery
    | Case
    | Cast
    | RowConstructor
    | ArrayConstructor
    | MultisetConstructor
    | MapConstructor
    | CollectionQuery
    | ItemAccess
    | FieldAccess
    | FunctionCall
    | Extract
    | RoundToUnit
    | Trim
    | Position
    | Overlay
    | Substring
    | TranslateUsing
    | TimestampAdd
    | TimestampDiff
    | JsonExists
    | JsonValue
    | JsonQuery
    | JsonObject
    | JsonArray
    | JsonObjectAgg
    | JsonArrayAgg
    | DefaultValue
)

Argument = Expression | NamedArgument | TableArgument | ModelArgument | Descriptor
