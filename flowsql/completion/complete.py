"""The words, names, functions, options and values that fit at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from flowsql.completion.candidate import Candidate, quoted
from flowsql.completion.cursor import TABLE_WORDS, Cursor, cursor_at, tables_of
from flowsql.completion.strings import strings_at
from flowsql_core.errors import FlowSqlError
from flowsql_grammar.expected import acceptable_after
from flowsql_grammar.lexer import kinds
from flowsql_grammar.reserved import RESERVED
from flowsql_grammar.tables import tables as grammar_tables

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql_planner.catalog.manager import CatalogManager

#: Words that many statements go on with stand first, in this order.
_FIRST: Final = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "JOIN", "ON", "AS", "INSERT",
    "INTO", "CREATE", "TABLE", "SHOW", "DESCRIBE", "EXPLAIN", "WITH", "SET", "USE",
)  # fmt: skip


def complete(environment: TableEnvironment, text: str, position: int) -> list[Candidate]:
    """What may stand at a place of a text, the likely first. Nothing runs; the answer has no duplicates.

    Args:
        environment: whose catalogs and options count.
        text: statements, the last of which may be unfinished.
        position: of the cursor, from the start of the text.
    """
    cursor = cursor_at(text, position)
    if cursor.in_string:
        found = list(strings_at(environment, cursor))
    else:
        found = [*_names(environment.catalogs, cursor), *_keywords(cursor)]
    return list({candidate.text: candidate for candidate in reversed(found)}.values())[::-1]


def _keywords(cursor: Cursor) -> Iterator[Candidate]:
    """Words that the grammar takes there, in the case in which they are begun."""
    if cursor.qualifiers:
        return
    accepted = acceptable_after(list(cursor.before))
    if accepted is None:
        return
    begun = cursor.word.upper()
    shown = grammar_tables().display
    fitting = {shown[kind] for kind in accepted if shown[kind][:1].isalpha() and shown[kind].startswith(begun)}
    if kinds().ident in accepted:
        # Other words would be names there.
        fitting = {word for word in fitting if word.split()[0] in RESERVED}
    if _begins_expression(accepted):
        fitting -= built_in_functions().keys()
    words = sorted(fitting, key=lambda word: (_FIRST.index(word) if word in _FIRST else len(_FIRST), word))
    lower = cursor.word[:1].islower()
    for word in words:
        if word != begun:
            yield Candidate(word.lower() if lower else word, cursor.start, word, "")


def _names(catalogs: CatalogManager, cursor: Cursor) -> Iterator[Candidate]:
    previous = cursor.previous()
    if previous == "CATALOG":
        yield from _matching(cursor, catalogs.catalog_names(), "catalog")
    elif previous in ("DATABASE", "USE"):
        catalog = cursor.qualifiers[0] if cursor.qualifiers else catalogs.current_catalog
        yield from _matching(cursor, _databases(catalogs, catalog), "database")
    elif previous == "FUNCTION":
        yield from _functions(catalogs, cursor, "")
    elif previous in TABLE_WORDS or (previous == "," and _is_in_from(cursor)):
        yield from _tables(catalogs, cursor)
    elif _takes_a_name(cursor):
        yield from _columns(catalogs, cursor)
        if not cursor.qualifiers:
            yield from _functions(catalogs, cursor, "(")


def _takes_a_name(cursor: Cursor) -> bool:
    """Whether an expression may begin there. Where a new name is wanted (an alias), nothing can be offered."""
    if cursor.qualifiers:
        return True
    accepted = acceptable_after(list(cursor.before))
    return accepted is not None and _begins_expression(accepted)


def _begins_expression(accepted: set[int]) -> bool:
    return kinds().ident in accepted and kinds().words["CASE"] in accepted


def _is_in_from(cursor: Cursor) -> bool:
    """Whether the last clause that begins in front of the cursor is FROM."""
    for token in reversed(cursor.before):
        word = token.text.upper()
        if word in ("FROM", "JOIN"):
            return True
        if word in ("SELECT", "WHERE", "BY", "ON", "HAVING", "SET", "("):
            return False
    return False


def _tables(catalogs: CatalogManager, cursor: Cursor) -> Iterator[Candidate]:
    """Tables and views of the database that is named, and the names that may stand in front of a table."""
    match cursor.qualifiers:
        case ():
            catalog, database = catalogs.current_catalog, catalogs.current_database
            yield from _matching(cursor, _with_clauses(cursor), "WITH")
        case (database,):
            catalog = catalogs.current_catalog
        case (catalog, database):
            pass
        case _:
            return
    names = _objects(catalogs, catalog, database)
    yield from _matching(cursor, names, lambda name: _kind(catalogs, catalog, database, name))
    if not cursor.qualifiers:
        yield from _matching(cursor, _databases(catalogs, catalog), "database")
        yield from _matching(cursor, catalogs.catalog_names(), "catalog")
    elif len(cursor.qualifiers) == 1:
        yield from _matching(cursor, _databases(catalogs, cursor.qualifiers[0]), "database")


def _with_clauses(cursor: Cursor) -> list[str]:
    """Names that WITH gives to queries of this statement: ``name AS (``."""
    tokens = [*cursor.before, *cursor.behind]
    if not tokens or tokens[0].text.upper() not in ("WITH", "INSERT", "EXPLAIN"):
        return []
    triples = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return [a.text for a, b, c in triples if b.text.upper() == "AS" and c.text == "(" and a.kind == kinds().ident]


def _columns(catalogs: CatalogManager, cursor: Cursor) -> Iterator[Candidate]:
    """Columns of the tables that the statement names, and the names by which these can be qualified."""
    named = tables_of(cursor)
    if cursor.qualifiers:
        qualifier = cursor.qualifiers[-1]
        named = [table for table in named if qualifier in (table.alias, table.path[-1])]
    for table in named:
        try:
            found = catalogs.lookup(catalogs.qualify(table.path))
        except FlowSqlError:
            continue
        if found is not None:
            types = {column.name: str(column.type) for column in found.value.columns}
            yield from _matching(cursor, types, types.__getitem__)
    if not cursor.qualifiers:
        yield from _matching(cursor, [table.alias for table in named], "table")


def _functions(catalogs: CatalogManager, cursor: Cursor, behind: str) -> Iterator[Candidate]:
    """Functions with what they take. Nothing begun offers none: there are hundreds."""
    begun = cursor.word.upper()
    if not begun:
        return
    for name in catalogs.functions.names(catalogs.current_catalog, catalogs.current_database):
        if name.upper().startswith(begun):
            yield Candidate(f"{quoted(name)}{behind}", cursor.start, name, "function of the user")
    lower = cursor.word[:1].islower()
    for name, forms in built_in_functions().items():
        if name.startswith(begun):
            yield Candidate(f"{name.lower() if lower else name}{behind}", cursor.start, name, forms)


@cache
def built_in_functions() -> dict[str, str]:
    """Signatures of built-in functions by name."""
    from flowsql_compute.functions.aggregate import aggregate_names
    from flowsql_compute.functions.registry import definitions

    found: dict[str, list[str]] = {}
    for definition in definitions():
        if definition.name[:1].isalpha() and " " not in definition.name:
            found.setdefault(definition.name, []).append(definition.signature.form())
    made = {name: forms[0] + (" ..." if len(set(forms)) > 1 else "") for name, forms in found.items()}
    for name in aggregate_names():
        made.setdefault(name, "aggregate")
    return dict(sorted(made.items()))


def _matching(cursor: Cursor, names: Iterable[str], detail: str | Callable[[str], str]) -> Iterator[Candidate]:
    """Names that begin with the word, in any case; those in its case first."""
    begun = cursor.word.removeprefix("`")
    lowered = begun.lower()
    fitting = [name for name in names if name.lower().startswith(lowered)]
    for name in sorted(fitting, key=lambda name: (not name.startswith(begun), name)):
        yield Candidate(quoted(name), cursor.start, name, detail if isinstance(detail, str) else detail(name))


def _objects(catalogs: CatalogManager, catalog: str, database: str) -> list[str]:
    try:
        return catalogs.object_names(catalog, database)
    except FlowSqlError:
        return []


def _databases(catalogs: CatalogManager, catalog: str) -> list[str]:
    found = catalogs.find_catalog(catalog)
    return [] if found is None else found.databases()


def _kind(catalogs: CatalogManager, catalog: str, database: str, name: str) -> str:
    from flowsql_core.catalog import CatalogView, ObjectPath

    found = catalogs.lookup(ObjectPath(catalog, database, name))
    return "view" if found is not None and isinstance(found.value, CatalogView) else "table"
