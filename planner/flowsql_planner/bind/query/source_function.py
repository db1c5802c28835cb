"""Table functions of connectors: a call in FROM that is a table which nobody declared, such as ``state(...)``."""

from __future__ import annotations

from flowsql_connectors import registry
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.graph.specs import TableSpec
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.error_position import errors_at
from flowsql_planner.logical.nodes import Scan


def bind_source_function(context: BindContext, call: ast.FunctionCall) -> Scan | None:
    """The scan that a call stands for; None for functions that no connector has.

    Raises:
        BindError: arguments that do not fit.
    """
    found = registry.table_function(call.name.last.text) if len(call.name.parts) == 1 else None
    if found is None:
        return None
    identifier, factory = found
    given = _arguments(call, factory.function_parameters())
    shown = f"{call.name.last.text.lower()}({', '.join(given.values())})"
    table = TableSpec((ANONYMOUS, ANONYMOUS, shown), (), (("connector", identifier), *given.items()))
    with errors_at(call.span):
        factory.options(table).check(table)
        table = factory.discovered(table)
    return Scan(table, tuple(range(len(table.columns))), table.columns, span=call.span)


def _arguments(call: ast.FunctionCall, names: tuple[str, ...]) -> dict[str, str]:
    """Key and text of each argument."""
    form = f"{call.name.last.text}({', '.join(names)})"
    given: dict[str, str] = {}
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.NamedArgument):
            name, value = argument.name.text, argument.value
            if name not in names:
                hint = did_you_mean(name, names) or form
                raise BindError("unknown-parameter", f"{call.name} has no parameter '{name}'", argument.span, hint)
        elif position >= len(names):
            raise BindError("argument-count", f"{call.name} takes at most {len(names)} arguments", argument.span, form)
        else:
            name, value = names[position], argument
        if name in given:
            raise BindError("duplicate-parameter", f"Parameter '{name}' of {call.name} is given twice", argument.span)
        given[name] = _text(call, name, value, argument.span)
    return given


def _text(call: ast.FunctionCall, name: str, value: ast.Argument, span: Span) -> str:
    match value:
        case ast.StringLiteral(text):
            return text
        case ast.BooleanLiteral(truth):
            return str(truth).lower()
    raise BindError("bad-argument", f"Parameter '{name}' of {call.name} takes a literal", span, "write it in quotes")
