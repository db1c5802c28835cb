"""Dates, times and intervals. A DATE that is no date is an error of the text, with a place."""

from __future__ import annotations

import re

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token

_DATE = r"(\d{1,4})-(\d{1,2})-(\d{1,2})"
_TIME = r"(\d{1,2}):(\d{1,2}):(\d{1,2})(\.\d*)?"
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_UNITS = {unit.value: unit for unit in ast.TimeUnit}
_INTERVAL_ENDS = {
    "YEAR": ("MONTH",),
    "DAY": ("HOUR", "MINUTE", "SECOND"),
    "HOUR": ("MINUTE", "SECOND"),
    "MINUTE": ("SECOND",),
}
_SINGLE = {"SECOND": r"\d+(\.\d{1,6})?"}
_STEPS = {"YEAR": 0, "MONTH": 1, "DAY": 2, "HOUR": 3, "MINUTE": 4, "SECOND": 5}
# What stands before each part of a compound interval, and the part.
_PARTS = {"MONTH": r"-\d{1,2}", "HOUR": r" \d{1,2}", "MINUTE": r":\d{1,2}", "SECOND": r":\d{1,2}(\.\d{1,6})?"}
_LIMITS = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}


def is_date(text: str) -> bool:
    """Whether a text is ``y-m-d`` and that day exists."""
    found = re.fullmatch(_DATE, text)
    if found is None:
        return False
    year, month, day = (int(part) for part in found.groups())
    if not (year and 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return False
    if year == 1582 and month == 10 and 4 < day < 15:
        # Where the new calendar took the place of the old one, ten days are missing.
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return leap or month != 2 or day <= 28


def is_time(text: str) -> bool:
    """Whether a text is ``h:m:s`` with an optional fraction, within the day."""
    found = re.fullmatch(_TIME, text)
    return found is not None and int(found[1]) <= 23 and int(found[2]) <= 59 and int(found[3]) <= 59


def _bad(code: str, message: str, span: Span) -> ParseError:
    return ParseError(code, "SQL parse failed. " + message, span)


class TemporalBuilder:
    """Methods of the rules of dates, times, intervals and units."""

    def date_literal(self, span: Span, text: str) -> ast.DateLiteral:
        """``DATE 'y-m-d'``."""
        if not is_date(text.strip()):
            raise _bad("bad-literal", f"Illegal DATE literal '{text}': not in format 'yyyy-MM-dd'.", span)
        return ast.DateLiteral(text.strip(), span=span)

    def time_literal(self, span: Span, text: str) -> ast.TimeLiteral:
        """``TIME 'h:m:s.f'``."""
        if not is_time(text.strip()):
            raise _bad("bad-literal", f"Illegal TIME literal '{text}': not in format 'HH:mm:ss'.", span)
        return ast.TimeLiteral(text.strip(), span=span)

    def timestamp_literal(self, span: Span, text: str, local: bool = False) -> ast.TimestampLiteral:
        """``TIMESTAMP 'y-m-d h:m:s.f'``."""
        date, blank, time = text.strip().partition(" ")
        if not blank and is_date(date):
            return ast.TimestampLiteral(date + " 00:00:00", local, span=span)
        if not is_date(date) or not is_time(time):
            kind = "TIMESTAMP WITH LOCAL TIME ZONE" if local else "TIMESTAMP"
            raise _bad("bad-literal", f"Illegal {kind} literal '{text}': not in format 'yyyy-MM-dd HH:mm:ss'.", span)
        return ast.TimestampLiteral(text.strip(), local, span=span)

    def local_timestamp_literal(self, span: Span, text: str) -> ast.TimestampLiteral:
        """``TIMESTAMP WITH LOCAL TIME ZONE '...'``."""
        return self.timestamp_literal(span, text, True)

    def escaped_date(self, span: Span, opening: Token, text: str) -> ast.DateLiteral:
        """``{d '...'}``."""
        return self.date_literal(span, text)

    def escaped_time(self, span: Span, opening: Token, text: str) -> ast.TimeLiteral:
        """``{t '...'}``."""
        return self.time_literal(span, text)

    def escaped_timestamp(self, span: Span, opening: Token, text: str) -> ast.TimestampLiteral:
        """``{ts '...'}``."""
        return self.timestamp_literal(span, text)

    def interval_difference(
        self, span: Span, operand: ast.Expression, qualifier: ast.IntervalQualifier
    ) -> ast.IntervalDifference:
        """``(a - b) DAY``."""
        return ast.IntervalDifference(operand, qualifier, span=span)

    def interval_qualifier(
        self,
        span: Span,
        start: str,
        precision: tuple[int, ...] | None,
        end: str | None = None,
        end_precision: tuple[int, ...] | None = None,
    ) -> ast.IntervalQualifier:
        """Units of an interval; which may follow which is checked here."""
        start = _singular(start)
        fraction = None
        if end is not None:
            end = _singular(end)
            if end not in _INTERVAL_ENDS.get(start, ()):
                raise _bad("bad-interval", f"INTERVAL {start} TO {end} does not exist.", span)
            if end_precision is not None:
                if end != "SECOND" or len(end_precision) > 1:
                    raise _bad("bad-interval", f"{end} at the end of an interval has no precision.", span)
                fraction = end_precision[0]
        if precision is not None and len(precision) > 1:
            if start != "SECOND" or end is not None:
                raise _bad("bad-interval", f"{start} of an interval has one precision, not two.", span)
            fraction = precision[1]
        return ast.IntervalQualifier(
            _UNITS[start], _UNITS[end] if end else None, precision[0] if precision else None, fraction, span=span
        )

    def interval_literal(
        self, span: Span, negative: bool, text: str, qualifier: ast.IntervalQualifier
    ) -> ast.IntervalLiteral:
        """``INTERVAL '1' DAY``; the text must fit the qualifier."""
        start, end = (qualifier.start.value, qualifier.end.value if qualifier.end else None)
        pattern = _SINGLE.get(start, r"\d+") if end is None else r"\d+"
        if end is not None:
            inner = [unit for unit, step in _STEPS.items() if _STEPS[start] < step <= _STEPS[end]]
            pattern += "".join(_PARTS[unit] for unit in inner)
        content = text.strip()
        found = re.fullmatch(r"[+-]?" + pattern, content)
        shown = start if end is None else f"{start} TO {end}"
        if found is None or not self._in_range(content, start, end):
            raise _bad("bad-interval", f"Illegal interval literal format '{text}' for INTERVAL {shown}.", span)
        digits = re.match(r"[+-]?(\d+)", content)
        assert digits is not None
        if len(digits[1].lstrip("0")) > (qualifier.precision or 2) and qualifier.precision is not None:
            raise _bad(
                "bad-interval",
                f"Interval field value {digits[1]} exceeds precision of {start}({qualifier.precision}) field.",
                span,
            )
        return ast.IntervalLiteral(content, qualifier, negative, span=span)

    def _in_range(self, content: str, start: str, end: str | None) -> bool:
        if end is None:
            return True
        inner = [unit for unit, step in _STEPS.items() if _STEPS[start] < step <= _STEPS[end]]
        numbers = re.findall(r"\d+(?:\.\d+)?", content)[1:]
        return all(float(number) < _LIMITS[unit] + 1 for unit, number in zip(inner, numbers, strict=True))

    def interval_expression(
        self, span: Span, negative: bool, amount: ast.Expression, qualifier: ast.IntervalQualifier
    ) -> ast.IntervalExpression:
        """``INTERVAL (x) DAY``."""
        return ast.IntervalExpression(amount, qualifier, negative, span=span)

    def unit(self, span: Span, word: str) -> ast.TimeUnit:
        """A unit that is a reserved word."""
        return _UNITS[word]

    def unit_name(self, span: Span, name: ast.Name) -> ast.TimeUnit:
        """A unit by a word that is not reserved, ``SQL_TSI_DAY`` included."""
        word = name.text.upper().removeprefix("SQL_TSI_")
        word = {"FRAC_SECOND": "MICROSECOND"}.get(word, word)
        unit = _UNITS.get(word)
        if unit is None or name.quoted:
            raise _bad("bad-time-unit", f"'{name.text}' is not a valid time frame.", span)
        return unit


def _singular(word: str) -> str:
    return word.removesuffix("S")
