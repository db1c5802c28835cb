"""Built-in functions with syntax of their own: ``EXTRACT(DAY FROM x)``, ``TRIM(BOTH 'a' FROM x)``, ``{fn f(x)}``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Identifier, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.call import Argument
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.interval import IntervalQualifier, TimeUnit


class Extract(Node):
    """``EXTRACT(unit FROM x)``."""

    unit: TimeUnit
    operand: Expression


class RoundDirection(StrEnum):
    """Which way ``FLOOR(x TO unit)`` or ``CEIL(x TO unit)`` goes."""

    FLOOR = "FLOOR"
    CEIL = "CEIL"


class RoundToUnit(Node):
    """``FLOOR(x TO unit)``, ``CEIL(x TO unit)``, ``FLOOR(x TO WEEK(day))``; without a unit they are ordinary calls."""

    direction: RoundDirection
    operand: Expression
    unit: TimeUnit
    week_start: str | None = None
    """The day of ``WEEK(MONDAY)``."""


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


class ConvertTo(Node):
    """``CONVERT(type, x)``; ``type`` is a name without numbers."""

    type: str
    operand: Expression


class IntervalDifference(Node):
    """``(a - b) DAY TO SECOND``: what lies between two moments, in these units."""

    operand: Expression
    qualifier: IntervalQualifier


class SequenceValue(Node):
    """``NEXT VALUE FOR s`` or ``CURRENT VALUE FOR s``."""

    sequence: Identifier
    current: bool = False


class NewObject(Node):
    """``NEW type(a, b)``."""

    type: Identifier
    args: tuple[Argument, ...] = ()


class EscapedFunction(Node):
    """``{fn f(x)}``: a function by its name in JDBC."""

    call: Expression
