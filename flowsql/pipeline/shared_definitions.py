"""Scripts of one folder that read what others of them define."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from flowsql.pipeline.names import functions_called, tables_read
from flowsql_core.errors import ParseError
from flowsql_core.span import Source
from flowsql_grammar import ast, parse_statement, split_statements

if TYPE_CHECKING:
    from flowsql_grammar.ast.statement import Statement

#: A statement and the text that it stands in.
Written = tuple["Statement", Source]
_Definition = ast.CreateTable | ast.CreateView | ast.CreateFunction


class SharedDefinitions:
    """The tables, views and functions of some scripts, by their last names; statements that are wrong are left out."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._statements = {source: list(_parsed(source)) for source in sources}
        self._definers: dict[str, list[Written]] = {}
        for source, statements in self._statements.items():
            for statement in statements:
                if isinstance(statement, _Definition):
                    self._definers.setdefault(_name(statement), []).append((statement, source))

    def needed_by(self, source: Source) -> list[Written]:
        """Definitions that a script reads and others make, each behind what it reads itself.

        A name that the script defines, or that several scripts define, is its own matter.
        """
        found: dict[str, Written] = {}
        own = {_name(each) for each in self._statements[source] if isinstance(each, _Definition)}
        for statement in self._statements[source]:
            self._add(statement, own, found)
        return list(found.values())

    def _add(self, statement: Statement, passed: set[str], found: dict[str, Written]) -> None:
        for name in _read(statement):
            definers = self._definers.get(name, [])
            if name in passed or len(definers) != 1:
                continue
            passed.add(name)
            self._add(definers[0][0], passed, found)
            found[name] = definers[0]


def _parsed(source: Source) -> Iterator[Statement]:
    for piece in split_statements(source):
        try:
            yield parse_statement(source, piece)
        except ParseError:
            continue


def _name(statement: _Definition) -> str:
    name = statement.name.last.text
    return name.lower() if isinstance(statement, ast.CreateFunction) else name


def _read(statement: Statement) -> Iterator[str]:
    """Names of tables that a statement reads or writes, and of functions that it calls."""
    for path in tables_read(statement):
        yield path.last.text
    for insert in statement.walk():
        if isinstance(insert, ast.Insert):
            yield insert.target.last.text
    yield from sorted(functions_called(statement))
