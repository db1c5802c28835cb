"""Names and literals. Contents are checked here: a DATE that is no date is an error of the text, with a place."""

from __future__ import annotations

import re

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token

# What may stand in E'...': C's escapes, and the doubled quote.
_C_ESCAPE = re.compile(r"''|\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_C_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DATE = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(\.\d*)?")
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_UNITS = {unit.value: unit for unit in ast.TimeUnit}
_INTERVAL_ENDS = {
    "YEAR": ("MONTH",),
    "DAY": ("HOUR", "MINUTE", "SECOND"),
    "HOUR": ("MINUTE", "SECOND"),
    "MINUTE": ("SECOND",),
}
_SINGLE = {
    "SECOND": r"\d+(\.\d{1,9})?",
}
_STEPS = {"YEAR": 0, "MONTH": 1, "DAY": 2, "HOUR": 3, "MINUTE": 4, "SECOND": 5}
# What stands before each part of a compound interval, and the part.
_PARTS = {"MONTH": r"-\d{1,2}", "HOUR": r" \d{1,2}", "MINUTE": r":\d{1,2}", "SECOND": r":\d{1,2}(\.\d{1,9})?"}
_LIMITS = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}


def is_date(text: str) -> bool:
    """Whether a text is ``y-m-d`` and that day exists."""
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part) for part in found.groups())
    if not (1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return leap or month != 2 or day <= 28


def is_time(text: str) -> bool:
    """Whether a text is ``h:m:s`` with an optional fraction, within the day."""
    found = _TIME.fullmatch(text)
    return found is not None and int(found[1]) <= 23 and int(found[2]) <= 59 and int(found[3]) <= 59


def _bad(code: str, message: str, span: Span, hint: str | None = None) -> ParseError:
    return ParseError(code, "SQL parse failed. " + message, span, hint)


class LiteralBuilder:
    """Methods of the rules of names and literals."""

    def name(self, span: Span, token: Token | ast.Name) -> ast.Name:
        """A plain name, or one of the words that are not reserved."""
        return ast.Name(token.text, span=span)

    def quoted_name(self, span: Span, token: Token) -> ast.Name:
        """A name between back-ticks, of which two stand for one."""
        return ast.Name(token.text[1:-1].replace("``", "`"), quoted=True, span=span)

    def non_reserved(self, span: Span, token: Token) -> ast.Name:
        """A keyword used as a name."""
        return ast.Name(token.text, span=span)

    def reserved_function(self, span: Span, token: Token) -> ast.Identifier:
        """A reserved word used as the name of a function."""
        return ast.Identifier((ast.Name(token.text, span=span),), span=span)

    def path(self, span: Span, *parts: ast.Name) -> ast.Identifier:
        """Names with dots between."""
        return ast.Identifier(parts, span=span)

    def number(self, span: Span, token: Token) -> ast.NumberLiteral:
        """A number as written."""
        return ast.NumberLiteral(token.text, span=span)

    def signed_number(self, span: Span, sign: Token, number: ast.NumberLiteral) -> ast.NumberLiteral:
        """A number of a partition, where no expression may stand."""
        return ast.NumberLiteral(("-" if sign.text == "-" else "") + number.text, span=span)

    def string(self, span: Span, *children: Token | str | None) -> str:
        """The content of a string where only a string may stand."""
        return self.string_literal(span, *children).value

    def string_literal(self, span: Span, *children: Token | str | None) -> ast.StringLiteral:
        """Adjacent pieces joined; the last child is the Token of UESCAPE or None."""
        *pieces, escape = children
        value, charset = "", None
        for piece in pieces:
            assert isinstance(piece, Token)
            text = piece.text
            quote = text.index("'")
            content = text[quote + 1 : -1].replace("''", "'")
            prefix = text[:quote]
            if prefix.startswith("_"):
                charset = prefix[1:].upper()
            elif prefix in ("N", "n"):
                charset = "ISO-8859-1"
            elif prefix in ("E", "e"):
                content = _C_ESCAPE.sub(_c_escape, text[quote + 1 : -1])
            elif prefix:
                content = self._unescape(content, piece, escape if isinstance(escape, Token) else None)
                charset = "UTF16"
            value += content
        if isinstance(escape, Token) and charset != "UTF16":
            raise _bad("bad-unicode-escape", "UESCAPE belongs behind U&'...' only.", escape.span)
        return ast.StringLiteral(value, charset, span=span)

    def _unescape(self, content: str, token: Token, escape: Token | None) -> str:
        mark = "\\"
        if escape is not None:
            mark = escape.text[1:-1].replace("''", "'")
            if len(mark) != 1 or mark in "0123456789abcdefABCDEF+'\" \t\n":
                raise _bad("bad-unicode-escape", f"UESCAPE '{mark}' is not a usable escape character.", escape.span)
        out, at = [], 0
        while at < len(content):
            if content[at] != mark:
                out.append(content[at])
                at += 1
            elif content[at + 1 : at + 2] == mark:
                out.append(mark)
                at += 2
            elif re.fullmatch("[0-9a-fA-F]{4}", digits := content[at + 1 : at + 5]):
                out.append(chr(int(digits, 16)))
                at += 5
            else:
                raise _bad("bad-unicode-escape", f"'{mark}' is not followed by 4 hexadecimal digits.", token.span)
        try:
            return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise _bad("bad-unicode-escape", "Half of a surrogate pair stands alone.", token.span) from None

    def binary_literal(self, span: Span, token: Token) -> ast.BinaryLiteral:
        """``X'0F'``."""
        digits = token.text[2:-1]
        if not re.fullmatch("[0-9a-fA-F]*", digits):
            raise _bad("bad-binary-literal", f"Binary literal '{digits}' holds other than hexadecimal digits.", span)
        if len(digits) % 2:
            raise _bad("bad-binary-literal", "Binary literal string must contain an even number of hexits.", span)
        return ast.BinaryLiteral(bytes.fromhex(digits), span=span)

    def true_literal(self, span: Span) -> ast.BooleanLiteral:
        """TRUE."""
        return ast.BooleanLiteral(True, span=span)

    def false_literal(self, span: Span) -> ast.BooleanLiteral:
        """FALSE."""
        return ast.BooleanLiteral(False, span=span)

    def unknown_literal(self, span: Span) -> ast.BooleanLiteral:
        """UNKNOWN."""
        return ast.BooleanLiteral(None, span=span)

    def null_literal(self, span: Span) -> ast.NullLiteral:
        """NULL."""
        return ast.NullLiteral(span=span)

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
        date, _, time = text.strip().partition(" ")
        if not is_date(date) or not is_time(time):
            kind = "TIMESTAMP WITH LOCAL TIME ZONE" if local else "TIMESTAMP"
            raise _bad("bad-literal", f"Illegal {kind} literal '{text}': not in format 'yyyy-MM-dd HH:mm:ss'.", span)
        return ast.TimestampLiteral(text.strip(), local, span=span)

    def local_timestamp_literal(self, span: Span, text: str) -> ast.TimestampLiteral:
        """``TIMESTAMP WITH LOCAL TIME ZONE '...'``."""
        return self.timestamp_literal(span, text, True)

    def decimal_literal(self, span: Span, text: str) -> ast.NumberLiteral | ast.UnaryOp:
        """``DECIMAL '1.5'``: the number itself."""
        found = re.fullmatch(r"\s*([+-]?)(\d+\.?\d*|\.\d+)\s*", text)
        if found is None:
            raise _bad("bad-literal", f"Literal '{text}' can not be parsed to type 'DECIMAL'.", span)
        number = ast.NumberLiteral(found[2], span=span)
        return ast.UnaryOp(ast.UnaryOperator.MINUS, number, span=span) if found[1] == "-" else number

    def one_precision(self, span: Span, token: Token) -> tuple[int, ...]:
        """``(p)``."""
        return (int(token.text),)

    def two_precisions(self, span: Span, first: Token, second: Token) -> tuple[int, ...]:
        """``(p, s)``."""
        return int(first.text), int(second.text)

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
        start, end = qualifier.start.value, qualifier.end.value if qualifier.end else None
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


def _c_escape(found: re.Match[str]) -> str:
    if found.group() == "''":
        return "'"
    hexadecimal = found[1] or found[2] or found[3]
    if hexadecimal:
        return chr(min(int(hexadecimal, 16), 0x10FFFF))
    return chr(int(found[4], 8)) if found[4] else _C_LETTERS.get(found[5], found[5])
