"""Expectations of tables: checked when a table is made or changed, kept as text in one option, bound for each INSERT.

Any catalog keeps options, so any catalog keeps expectations; a table that is made with the option is the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from flowsql_core.catalog import CatalogTable, ColumnKind, ObjectPath, TableColumn
from flowsql_core.errors import BindError, NotSupportedYetError, ParseError
from flowsql_core.expr import Call, Expr, walk
from flowsql_core.graph.constraints import Expectation
from flowsql_core.graph.expectation import EXPECTATIONS
from flowsql_core.python_call import PYTHON
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_grammar.ast.node import NOWHERE
from flowsql_grammar.script import parse_statement
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import scope_of
from flowsql_planner.bind.sql_text.respan import respan
from flowsql_planner.bind.sql_text.unparse import unparse_expression
from flowsql_planner.bind.sql_text.validated_form import FlinkForm, validated
from flowsql_planner.catalog.schema import Options
from flowsql_planner.optimize.determinism import changing_function

# The text


def expectation_text(node: ast.Expectation, form: FlinkForm = validated) -> str:
    """The one form in which an expectation is kept and shown."""
    condition = unparse_expression(form(node.condition))
    return f"CONSTRAINT {t.quote_identifier(node.name.text)} CHECK ({condition}) ON VIOLATION {node.action}"


def expectations_text(nodes: Iterable[ast.Expectation], form: FlinkForm = validated) -> str:
    """The value of the table's option."""
    return ", ".join(expectation_text(node, form) for node in nodes)


def stored_expectations(text: str, span: Span | None) -> tuple[ast.Expectation, ...]:
    """The trees of an option's value, which errors find at ``span``.

    Raises:
        BindError: the text is no list of CONSTRAINT clauses.
    """
    try:
        found = _parsed(text)
    except ParseError as error:
        raise BindError(
            "bad-expectations",
            f"The option '{EXPECTATIONS}' is no list of expectations: {error.message}",
            span,
            "write CONSTRAINT name CHECK (condition) ON VIOLATION FAIL, DROP or WARN",
        ) from None
    return tuple(respan(node, span or NOWHERE) for node in found)


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[ast.Expectation, ...]:
    statement = parse_statement(f"CREATE TABLE t ({text})")
    if (
        not isinstance(statement, ast.CreateTable)
        or statement != ast.CreateTable(statement.name, constraints=statement.constraints, span=statement.span)
        or not all(isinstance(part, ast.Expectation) for part in statement.constraints)
    ):
        raise ParseError("syntax", "something else stands there.")
    return tuple(part for part in statement.constraints if isinstance(part, ast.Expectation))


def expectations_in(table: CatalogTable) -> tuple[ast.Expectation, ...]:
    """What a table expects of the rows that are written to it, as trees."""
    text = dict(table.options).get(EXPECTATIONS)
    return () if text is None else stored_expectations(text, None)


def with_expectations(table: CatalogTable, nodes: Sequence[ast.Expectation]) -> CatalogTable:
    """The table with these expectations in place of its own."""
    options = tuple(option for option in table.options if option[0] != EXPECTATIONS)
    return replace(table, options=(*options, (EXPECTATIONS, expectations_text(nodes))) if nodes else options)


def columns_of(node: ast.Expectation) -> frozenset[str]:
    """First names of all column paths of the condition."""
    return frozenset(part.path.texts[0] for part in node.condition.walk() if isinstance(part, ast.ColumnRef))


# Checks


def check_names(nodes: Sequence[ast.Expectation], primary_key_name: str | None) -> None:
    """BindError where two constraints of a table have one name."""
    seen = {primary_key_name}
    for node in nodes:
        if node.name.text in seen:
            raise BindError(
                "duplicate-expectation",
                f"A constraint named '{node.name}' already exists in the table.",
                node.name.span,
            )
        seen.add(node.name.text)


def check_stored(context: BindContext, table: CatalogTable, node: ast.Alter) -> None:
    """ALTER TABLE: what the table expects has to fit its columns still; BindError where it does not."""
    text = dict(table.options).get(EXPECTATIONS)
    if text is None:
        return
    span = node.span
    if isinstance(node.action, ast.SetOptions):
        span = next((option.span for option in node.action.options if option.key == EXPECTATIONS), span)
    written = {
        part.name.text: part for part in getattr(node.action, "constraints", ()) if isinstance(part, ast.Expectation)
    }
    found = stored_expectations(text, span)
    check_names(found, table.primary_key_name)
    for each in found:
        # What stands in the statement is shown there.
        bind_condition(context, written.get(each.name.text, each), table.columns)


def bind_condition(context: BindContext, node: ast.Expectation, columns: Iterable[TableColumn]) -> Expr:
    """The condition over the stored columns of a table.

    Raises:
        BindError: it is no condition over them, or one row does not always give one answer.
        NotSupportedYetError: it calls a Python function.
    """
    columns = tuple(columns)
    stored = tuple(t.Column(column.name, column.type) for column in columns if column.kind is ColumnKind.PHYSICAL)
    others = {column.name for column in columns if column.kind is not ColumnKind.PHYSICAL}
    for part in node.condition.walk():
        if isinstance(part, ast.ColumnRef) and part.path.texts[0] in others:
            raise BindError(
                "expectation-column",
                f"Expectation '{node.name}' reads column '{part.path.texts[0]}', which is not written to the table",
                part.span,
                "write the condition over stored columns",
            )
    bound = ExpressionBinder(context, scope_of(stored), "CHECK").condition(node.condition)
    changing = changing_function(bound)
    if changing is not None:
        # A row that is taken back has to be judged as it was when it came.
        raise BindError(
            "changing-expectation",
            f"Expectation '{node.name}' calls '{changing}', which gives one row another answer each time",
            node.condition.span,
            "a condition reads the row alone",
        )
    for inner in walk(bound):
        if isinstance(inner, Call) and inner.function == PYTHON:
            raise NotSupportedYetError("a Python function in an expectation", inner.span or node.condition.span)
    return bound


def expectations_of(
    context: BindContext, path: ObjectPath, table: CatalogTable, options: Options, span: Span | None
) -> tuple[Expectation, ...]:
    """What an INSERT has to keep; ``options``: of a hint, which win. Errors are at ``span``."""
    text = {**dict(table.options), **dict(options)}.get(EXPECTATIONS)
    if text is None:
        return ()
    nodes = stored_expectations(text, span)
    check_names(nodes, table.primary_key_name)
    return tuple(
        Expectation(
            str(path),
            node.name.text,
            bind_condition(context, node, table.columns),
            unparse_expression(validated(node.condition)),
            node.action,
        )
        for node in nodes
    )
