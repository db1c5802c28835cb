"""Hints for joins in batch mode: whom they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_grammar import ast

#: Hints that say how to join, in the order in which Flink asks for them.
JOIN_HINTS: Final = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")


def named_joins(hints: Sequence[ast.Hint]) -> dict[str, str]:
    """Table or alias -> the first hint of a SELECT that says how to join it."""
    found: dict[str, str] = {}
    for hint in hints:
        name = hint.name.text.upper()
        if name in JOIN_HINTS:
            for argument in hint.arguments:
                found.setdefault(argument.value, name)
    return found
