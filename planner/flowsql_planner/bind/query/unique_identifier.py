"""The argument ``uid`` that every process table function has."""

from __future__ import annotations

import re
from typing import Final

from flowsql_core.errors import BindError
from flowsql_core.expr import Literal
from flowsql_core.types.logical import STRING
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.logical.expression_text import ExpressionPrinter

_FORM: Final = re.compile(r"[a-zA-Z_][a-zA-Z\-_0-9]*")


def unique_identifier(context: BindContext, function: str, given: ast.Argument | None) -> tuple[str | None, str]:
    """The identifier, None where the call gives none, and the argument as plans show it.

    Raises:
        BindError: the argument is no literal, or is not written as identifiers are; in Flink's words.
    """
    if given is None:
        return None, "DEFAULT()"
    assert not isinstance(given, ast.NamedArgument | ast.TableArgument | ast.ModelArgument | ast.Descriptor)
    bound = ExpressionBinder(context, Scope(), function).bind(given)
    if isinstance(bound, Literal) and bound.value is None:
        bound = Literal(None, STRING)
    text = ExpressionPrinter(()).print(bound)
    value = bound.value if isinstance(bound, Literal) else None
    if isinstance(bound, Literal) and value is None:
        return None, text
    if not isinstance(value, str) or not _FORM.fullmatch(value):
        found = value if isinstance(value, str) else text
        raise BindError(
            "bad-uid",
            "Invalid unique identifier for process table function. The `uid` argument must be a string literal "
            f"that follows the pattern [a-zA-Z_][a-zA-Z-_0-9]*. But found: {found}",
            given.span,
        )
    return value, text
