"""Columns that reach a sink by their place."""

from __future__ import annotations

from collections.abc import Iterator

from flowsql_grammar import ast
from flowsql_planner.lint.model import Hit, Rule, Subject

#: A star in a select list, and the table whose columns it stands for.
_Starred = tuple[ast.Star, ast.Identifier]


def select_star_into_sink(subject: Subject) -> Iterator[Hit]:
    """INSERTs that take all columns of a table, whatever they are when the statement runs."""
    for insert in subject.written(ast.Insert):
        for star, table in _starred(insert.query, frozenset()):
            message = f"'*' gives '{insert.target}' the columns of '{table}' by their place."
            yield Hit(subject.place(star.span, insert.span), message)


def _starred(query: ast.QueryBody, common: frozenset[str]) -> Iterator[_Starred]:
    """Stars that stand for columns of a table or view, which the statement does not show."""
    match query:
        case ast.Query(body=body, ctes=ctes):
            yield from _starred(body, common | {each.name.text for each in ctes})
        case ast.SetOperation(left=left, right=right):
            yield from _starred(left, common)
            yield from _starred(right, common)
        case ast.Select(items=items, from_=relation) if relation is not None:
            for item in items:
                if isinstance(item.expression, ast.Star):
                    yield from _behind(item.expression, relation, common)


def _behind(star: ast.Star, relation: ast.Relation, common: frozenset[str]) -> Iterator[_Starred]:
    match relation:
        case ast.Join(left=left, right=right):
            found = [*_behind(star, left, common), *_behind(star, right, common)]
            # One star is one finding.
            yield from found[:1]
        case ast.TableRef(name=name, alias=alias):
            called = alias.name.text if alias is not None else name.last.text
            wanted = star.qualifier is None or star.qualifier.last.text == called
            if wanted and not (len(name.parts) == 1 and name.texts[0] in common):
                yield star, name
        case ast.DerivedTable(query=query, alias=alias):
            if star.qualifier is None or (alias is not None and star.qualifier.last.text == alias.name.text):
                yield from _starred(query, common)


RULES = (
    Rule(
        "select-star-into-sink",
        "INSERT INTO ... SELECT * from a table: columns reach the sink by their place.",
        "a column that is added to one of the tables, or moved, breaks the statement or goes into another column",
        "name the columns: INSERT INTO t (a, b) SELECT a, b FROM s",
        select_star_into_sink,
    ),
)
