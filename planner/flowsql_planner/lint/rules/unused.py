"""What is written and read by nobody."""

from __future__ import annotations

from collections.abc import Iterator

from flowsql_grammar import ast
from flowsql_planner.lint.model import Hit, Rule, Subject


def unused_with(subject: Subject) -> Iterator[Hit]:
    """Queries of WITH whose names nothing reads."""
    for query in subject.written(ast.Query):
        for common in query.ctes:
            others = [each.query for each in query.ctes if each is not common]
            if not any(common.name.text in _names(node) for node in (query.body, *others)):
                yield Hit(common.name.span, f"Nothing reads '{common.name}'.")


def _names(node: ast.Node) -> Iterator[str]:
    for each in node.walk():
        if isinstance(each, ast.TableRef | ast.ExplicitTable):
            yield each.name.texts[0]
        elif isinstance(each, ast.TableArgument) and isinstance(each.table, ast.Identifier):
            yield each.table.texts[0]


RULES = (
    Rule(
        "unused-with",
        "A query of WITH that nothing reads.",
        "it is checked and then left out: a join or a filter that was meant is missing, or the text misleads",
        "read it, or take it out",
        unused_with,
    ),
)
