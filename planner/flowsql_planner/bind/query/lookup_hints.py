"""LOOKUP hints: how a table of a lookup join is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql_core.config import parse_bool, parse_duration_ms
from flowsql_core.errors import BindError
from flowsql_core.span import Span
from flowsql_grammar import ast

Hints = tuple[tuple[str, str], ...]

TABLE: Final = "table"
RETRY: Final = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"expected {' or '.join(words)}")
        return text.lower()

    return parse


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise ValueError("expected a whole number above zero")
    return int(text)


_OPTIONS: Final[dict[str, Callable[[str], Any]]] = {
    TABLE: str,
    "async": parse_bool,
    "output-mode": _one_of("ordered", "allow_unordered"),
    "capacity": int,
    "timeout": parse_duration_ms,
    "retry-predicate": _one_of("lookup_miss"),
    "retry-strategy": _one_of("fixed_delay"),
    "fixed-delay": parse_duration_ms,
    "max-attempts": _count,
    "shuffle": parse_bool,
}


def lookup_hints(hints: Sequence[ast.Hint]) -> dict[str, Hints]:
    """Table or alias -> options of the LOOKUP hint that names it; the first one counts.

    Raises:
        BindError: an option is unreadable, or not all options of a retry are there.
    """
    found: dict[str, Hints] = {}
    for hint in hints:
        if hint.name.text.upper() != "LOOKUP":
            continue
        options: dict[str, str] = {}
        for argument in hint.arguments:
            span = argument.span or hint.span
            if argument.key is None:
                raise _bad("only support key-value options", span)
            options[argument.key] = argument.value
            try:
                # As in Flink an option that is not known says nothing.
                _OPTIONS.get(argument.key, str)(argument.value)
            except ValueError as error:
                raise _bad(f"'{argument.value}' of '{argument.key}'", span, str(error)) from None
        if TABLE not in options:
            raise _bad("the option 'table' is missing", hint.span, "say which table or alias is looked up")
        if 0 < sum(key in options for key in RETRY) < len(RETRY):
            raise _bad("retry options can be both null or all not null", hint.span, f"give all of {', '.join(RETRY)}")
        found.setdefault(options[TABLE], tuple((f"LOOKUP.{key}", value) for key, value in options.items()))
    return found


def _bad(what: str, span: Span | None, hint: str | None = None) -> BindError:
    return BindError("bad-hint", f"Invalid LOOKUP hint: {what}", span, hint)
