"""Filters of JSON paths: ``?(@.price > 10 && @.name =~ /a.*/i || !(@.tags))`` as functions of an item and the root."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from flowsql_core.record import record

#: ``(item, root)`` to whether the item is wanted.
Filter = Callable[[Any, Any], bool]
_Operand = Callable[[Any, Any], Any]


class _Missing:
    """What a path that leads nowhere gives; it equals only itself."""


_MISSING: Final = _Missing()


@record
class _Side:
    """One side of a comparison: its value, and for a path whether it is there at all."""

    value: _Operand
    exists: Filter | None = None


def parse_filter(text: str, start: int, parse_path: Callable[[str], Any]) -> tuple[Filter, int]:
    """The filter in the parentheses that open at ``start``, and the place behind them.

    Raises:
        ValueError: it does not parse.
    """
    parser = _Parser(text, start, parse_path)
    parser.expect("(")
    made = parser.disjunction()
    parser.expect(")")
    return made, parser.at


class _Parser:
    def __init__(self, text: str, at: int, parse_path: Callable[[str], Any]) -> None:
        self.text = text
        self.at = at
        self.parse_path = parse_path

    def expect(self, mark: str) -> None:
        self._skip()
        if not self.text.startswith(mark, self.at):
            raise ValueError(f"expected '{mark}' at position {self.at}")
        self.at += len(mark)

    def disjunction(self) -> Filter:
        parts = [self._conjunction()]
        while self._takes("||"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda item, root: any(part(item, root) for part in parts)

    def _conjunction(self) -> Filter:
        parts = [self._term()]
        while self._takes("&&"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else lambda item, root: all(part(item, root) for part in parts)

    def _term(self) -> Filter:
        if self._takes("!"):
            inner = self._term()
            return lambda item, root: not inner(item, root)
        if self._takes("("):
            made = self.disjunction()
            self.expect(")")
            return made
        left = self._operand()
        operator = self._operator()
        if operator is None:
            if left.exists is None:
                raise ValueError("a comparison is expected")
            return left.exists
        right = self._operand()
        compare = _COMPARISONS[operator]
        return lambda item, root: compare(left.value(item, root), right.value(item, root))

    def _operator(self) -> str | None:
        self._skip()
        found = _OPERATOR.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        name = found[0].lower()
        if name not in _COMPARISONS:
            raise ValueError(f"Filter operator {found[0]} is not supported!")
        return name

    def _operand(self) -> _Side:
        self._skip()
        head = self.text[self.at : self.at + 1]
        if head and head in "@$":
            return self._path()
        if head and head in "'\"":
            return _constant(self._quoted(head))
        if head and head in "[{":
            return _constant(self._json())
        if head == "/":
            return _constant(self._pattern())
        found = _WORD.match(self.text, self.at)
        if found is None:
            raise ValueError(f"could not parse the filter at position {self.at}")
        self.at = found.end()
        words: dict[str, Any] = {"true": True, "false": False, "null": None}
        return _constant(words[found[0]] if found[0] in words else Decimal(found[0]))

    def _path(self) -> _Side:
        start, depth, quote = self.at, 0, ""
        while self.at < len(self.text):
            char = self.text[self.at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "[(":
                depth += 1
            elif char in "])":
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and char in " =!<>&|,~":
                break
            self.at += 1
        written = self.text[start : self.at]
        path = self.parse_path(written)
        of_root = written.startswith("$")

        def value(item: Any, root: Any) -> Any:
            try:
                return path.read(root if of_root else item)
            except Exception:  # a path that leads nowhere, or a function of no number
                return _MISSING

        return _Side(value, lambda item, root: value(item, root) is not _MISSING)

    def _quoted(self, quote: str) -> str:
        made = []
        self.at += 1
        while self.text[self.at] != quote:
            if self.text[self.at] == "\\":
                self.at += 1
            made.append(self.text[self.at])
            self.at += 1
        self.at += 1
        return "".join(made)

    def _json(self) -> Any:
        # Imported here: documents parse paths' literals, paths do not need documents.
        import json

        depth, start, quote = 0, self.at, ""
        while True:
            char = self.text[self.at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            depth += (not quote) * ((char in "[{") - (char in "]}"))
            self.at += 1
            if depth == 0:
                break
        written = self.text[start : self.at]
        return json.loads(written.replace("'", '"'), parse_float=Decimal)

    def _pattern(self) -> re.Pattern[str]:
        end = self.at + 1
        while self.text[end] != "/":
            end += 2 if self.text[end] == "\\" else 1
        written = self.text[self.at + 1 : end]
        self.at = end + 1
        flags = 0
        while self.text[self.at : self.at + 1] in tuple(_FLAGS):
            flags |= _FLAGS[self.text[self.at]]
            self.at += 1
        try:
            return re.compile(written, flags)
        except re.error as error:
            raise ValueError(str(error)) from None

    def _takes(self, mark: str) -> bool:
        self._skip()
        if mark == "!" and self.text.startswith("!=", self.at):
            return False
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def _skip(self) -> None:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1


_OPERATOR: Final = re.compile(r"=~|[=!]==?|[<>]=?|[A-Za-z]+")
_WORD: Final = re.compile(r"true|false|null|[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
_FLAGS: Final = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "x": re.VERBOSE, "u": re.UNICODE}


def _constant(value: Any) -> _Side:
    return _Side(lambda item, root: value)


def _number(value: Any) -> Any:
    """Numbers compare as decimals, whatever they were written as."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _equal(a: Any, b: Any) -> bool:
    left, right = _number(a), _number(b)
    if left is not None and right is not None:
        return bool(left == right)
    # A text equals a number that is written so.
    if isinstance(a, str) and right is not None:
        return a == str(b)
    if left is not None and isinstance(b, str):
        try:
            return bool(left == Decimal(b))
        except ArithmeticError:
            return False
    return type(a) is type(b) and bool(a == b)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def apply(a: Any, b: Any) -> bool:
        left, right = _number(a), _number(b)
        if left is not None and right is not None:
            return compare(left, right)
        return isinstance(a, str) and isinstance(b, str) and compare(a, b)

    return apply


def _matches(a: Any, b: Any) -> bool:
    if isinstance(a, re.Pattern):
        a, b = b, a
    if not isinstance(b, re.Pattern) or isinstance(a, _Missing | dict | list) or a is None:
        return False
    text = a if isinstance(a, str) else str(a).lower() if isinstance(a, bool) else str(a)
    return b.fullmatch(text) is not None


def _among(a: Any, b: Any) -> bool:
    return isinstance(b, list) and any(_equal(a, item) for item in b)


def _size(a: Any, b: Any) -> bool:
    return isinstance(a, str | list) and _number(b) == len(a)


def _empty(a: Any, b: Any) -> bool:
    return isinstance(a, str | list) and (len(a) == 0) is b


def _contains(a: Any, b: Any) -> bool:
    if isinstance(a, str):
        return isinstance(b, str) and b in a
    return _among(b, a)


def _lists(test: Callable[[list[Any], list[Any]], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: isinstance(a, list) and isinstance(b, list) and test(a, b)


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": _equal,
    "===": lambda a, b: type(a) is type(b) and _equal(a, b),
    "!=": lambda a, b: not _equal(a, b),
    "!==": lambda a, b: type(a) is not type(b) or not _equal(a, b),
    "<": _ordered(lambda a, b: a < b),
    "<=": _ordered(lambda a, b: a <= b),
    ">": _ordered(lambda a, b: a > b),
    ">=": _ordered(lambda a, b: a >= b),
    "=~": _matches,
    "in": _among,
    "nin": lambda a, b: not _among(a, b),
    "size": _size,
    "empty": _empty,
    "contains": _contains,
    "all": _lists(lambda a, b: all(_among(item, a) for item in b)),
    "subsetof": _lists(lambda a, b: all(_among(item, b) for item in a)),
    "anyof": _lists(lambda a, b: any(_among(item, b) for item in a)),
    "noneof": _lists(lambda a, b: not any(_among(item, b) for item in a)),
}
