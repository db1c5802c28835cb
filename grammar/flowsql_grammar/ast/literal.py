"""Literals, and the parameter that stands for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.interval import IntervalLiteral


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


class Parameter(Node):
    """``?``."""


Literal: TypeAlias = (
    "NumberLiteral | StringLiteral | BinaryLiteral | BooleanLiteral | NullLiteral | DateLiteral | TimeLiteral"
    " | TimestampLiteral | IntervalLiteral"
)
