"""The JSON functions of the SQL standard, which have clauses of their own."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.query import OrderItem
    from flowsql_grammar.ast.type import TypeSpec


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


class JsonPassing(Node):
    """``value AS name`` of ``PASSING``."""

    value: Expression
    name: Name


class JsonExists(Node):
    """``JSON_EXISTS(x, path [PASSING ...] [behavior ON ERROR])``."""

    operand: Expression
    path: Expression
    on_error: JsonErrorBehavior | None = None
    passing: tuple[JsonPassing, ...] = ()


class JsonValue(Node):
    """``JSON_VALUE(x, path [PASSING ...] [RETURNING t] [b ON EMPTY] [b ON ERROR])``."""

    operand: Expression
    path: Expression
    returning: TypeSpec | None = None
    on_empty: JsonBehavior | None = None
    on_error: JsonBehavior | None = None
    passing: tuple[JsonPassing, ...] = ()


class JsonWrapper(StrEnum):
    """Whether JSON_QUERY puts brackets around what it found."""

    WITHOUT_ARRAY = "WITHOUT ARRAY WRAPPER"
    WITH_CONDITIONAL_ARRAY = "WITH CONDITIONAL ARRAY WRAPPER"
    WITH_UNCONDITIONAL_ARRAY = "WITH UNCONDITIONAL ARRAY WRAPPER"


class JsonQuery(Node):
    """``JSON_QUERY(x, path [PASSING ...] [RETURNING t] [wrapper] [b ON EMPTY] [b ON ERROR])``."""

    operand: Expression
    path: Expression
    returning: TypeSpec | None = None
    wrapper: JsonWrapper | None = None
    on_empty: JsonBehavior | None = None
    on_error: JsonBehavior | None = None
    passing: tuple[JsonPassing, ...] = ()


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
