"""Hints for joins in batch mode: whom they name, and which of them change an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Call, Expr, conjuncts, input_refs
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.logical.nodes import Filter, Join, Rel
from flowsql_planner.logical.rewrite import walk

#: Hints that say how to join, in the order in which Flink asks for them.
JOIN_HINTS: Final = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
_BY_HASH: Final = frozenset({"BROADCAST", "SHUFFLE_HASH"})


def named_joins(hints: Sequence[ast.Hint]) -> dict[str, str]:
    """Table or alias -> the first hint of a SELECT that says how to join it."""
    found: dict[str, str] = {}
    for hint in hints:
        name = hint.name.text.upper()
        if name in JOIN_HINTS:
            for argument in hint.arguments:
                found.setdefault(argument.value, name)
    return found


def check_join_hints(rel: Rel, hints: Sequence[ast.Hint]) -> None:
    """Refuse a join by hash whose keys are FLOAT or DOUBLE: there Flink finds NaN equal to NaN, and -0.0 not to 0.0.

    Raises:
        NotSupportedYetError: at the hint.
    """
    for hint in hints:
        name = hint.name.text.upper()
        if name in _BY_HASH and _joins_numbers(rel):
            raise NotSupportedYetError(f"{name} of a join by keys of FLOAT or DOUBLE", hint.span)


def _joins_numbers(rel: Rel) -> bool:
    nodes = list(walk(rel))
    if not any(isinstance(node, Join) for node in nodes):
        return False
    conditions = [node.condition for node in nodes if isinstance(node, Join | Filter) and node.condition is not None]
    return any(_is_key(part) for condition in conditions for part in conjuncts(condition))


def _is_key(part: Expr) -> bool:
    if not isinstance(part, Call) or part.function not in ("=", "IS NOT DISTINCT FROM"):
        return False
    return all(isinstance(arg.type, t.ApproximateType) and input_refs(arg) for arg in part.args)
