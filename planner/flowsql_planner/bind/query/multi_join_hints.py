"""MULTI_JOIN hints: which joins of a query become one of several inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_core.errors import BindError
from flowsql_grammar import ast
from flowsql_planner.logical.nodes import Join, Rel
from flowsql_planner.logical.rewrite import walk

#: A hint of a ``Join``, without a value.
MULTI_JOIN: Final = "MULTI_JOIN"


def multi_join_names(hints: Sequence[ast.Hint]) -> frozenset[str]:
    """Tables and aliases that MULTI_JOIN hints name: each join right above one of them is hinted at.

    Raises:
        BindError: a hint has options.
    """
    found: set[str] = set()
    for hint in hints:
        if hint.name.text.upper() != MULTI_JOIN:
            continue
        for argument in hint.arguments:
            if argument.key is not None:
                message = "Invalid MULTI_JOIN hint, only support table names, without options"
                raise BindError("bad-hint", message, argument.span or hint.span, "MULTI_JOIN(a, b)")
            found.add(argument.value)
    return frozenset(found)


def is_multi_join_hinted(rel: Rel) -> bool:
    """Whether any join of a plan has the hint."""
    return any(isinstance(node, Join) and (MULTI_JOIN, "") in node.hints for node in walk(rel))
