"""Data types as written: no meaning is given to them here beyond canonical names (``INTEGER`` is ``INT``).

What a type name denotes, and which lengths and precisions are allowed, is the business of ``flowsql_core.types``.
``nullable`` is everywhere True for ``NULL``, False for ``NOT NULL``, None when neither is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.interval import IntervalQualifier


class BasicType(Node):
    """A type with a name and at most two numbers: ``VARCHAR(10)``, ``DECIMAL(10, 2)``, ``TIMESTAMP_LTZ(3)``.

    ``name`` is one of CHAR VARCHAR STRING BOOLEAN BINARY VARBINARY BYTES DECIMAL TINYINT SMALLINT INT BIGINT FLOAT
    DOUBLE DATE TIME TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_TZ NULL VARIANT BITMAP, whichever synonym was written.
    """

    name: str
    parameters: tuple[int, ...] = ()
    nullable: bool | None = None


class IntervalType(Node):
    """``INTERVAL DAY(3) TO SECOND(3)``, ``INTERVAL YEAR``."""

    qualifier: IntervalQualifier
    nullable: bool | None = None


class ArrayType(Node):
    """``ARRAY<t>`` or ``t ARRAY``."""

    element: TypeSpec
    nullable: bool | None = None


class MultisetType(Node):
    """``MULTISET<t>`` or ``t MULTISET``."""

    element: TypeSpec
    nullable: bool | None = None


class MapType(Node):
    """``MAP<k, v>``."""

    key: TypeSpec
    value: TypeSpec
    nullable: bool | None = None


class RowField(Node):
    """One field of a row or structured type; the comment is a bare string behind the type."""

    name: Name
    type: TypeSpec
    comment: str | None = None


class RowType(Node):
    """``ROW<a INT, b STRING 'comment'>`` or the same with round brackets."""

    fields: tuple[RowField, ...]
    nullable: bool | None = None


class StructuredType(Node):
    """``STRUCTURED<'com.acme.Order', a INT>``."""

    class_name: str
    fields: tuple[RowField, ...]
    nullable: bool | None = None


class RawType(Node):
    """``RAW('class', 'serializer snapshot')``."""

    class_name: str
    serializer: str
    nullable: bool | None = None


class UserType(Node):
    """A type of the user's, by path."""

    name: Identifier
    nullable: bool | None = None


TypeSpec: TypeAlias = (
    "BasicType | IntervalType | ArrayType | MultisetType | MapType | RowType | StructuredType | RawType | UserType"
)
