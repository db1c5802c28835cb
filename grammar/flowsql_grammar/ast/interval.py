"""Amounts of time and their units."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.expression import Expression


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
