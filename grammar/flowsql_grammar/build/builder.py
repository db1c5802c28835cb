"""Which method builds what a rule stands for. A module of builders is imported when a rule asks for it first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

# Module and class, the ones that ordinary queries need first.
_HOMES = (
    ("query", "QueryBuilder"),
    ("expression", "ExpressionBuilder"),
    ("literal", "LiteralBuilder"),
    ("relation", "RelationBuilder"),
    ("statement", "StatementBuilder"),
    ("call", "CallBuilder"),
    ("type", "TypeBuilder"),
    ("temporal", "TemporalBuilder"),
    ("ddl", "DdlBuilder"),
    ("special", "SpecialBuilder"),
    ("alter", "AlterBuilder"),
    ("match", "MatchBuilder"),
)


@cache
def builders() -> tuple[Any, ...]:
    """One object of every class of builders."""
    return tuple(_builder(number) for number in range(len(_HOMES)))


@cache
def _builder(number: int) -> Any:
    module, name = _HOMES[number]
    return getattr(import_module(f"flowsql_grammar.build.{module}"), name)()


def method(action: str) -> Callable[..., Any]:
    """The method of an action.

    It takes the span of what was read and the children that the grammar keeps.
    """
    for number in range(len(_HOMES)):
        found: Callable[..., Any] | None = getattr(_builder(number), action, None)
        if found is not None:
            return found
    raise AttributeError(f"no builder has the method {action!r}")
