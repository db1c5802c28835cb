"""``on-error.dead-letter.table``: the catalog table that takes the rows of another one that cannot be read."""

from __future__ import annotations

from dataclasses import replace

from flowsql_connectors.bad_rows import LETTER_COLUMNS
from flowsql_connectors.filesystem.options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE, FORMAT, PATH
from flowsql_core.catalog import CatalogTable, ObjectPath
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.script import parse_expression
from flowsql_planner.bind.context import BindContext
from flowsql_planner.catalog.schema import table_spec


def with_dead_letters(context: BindContext, spec: TableSpec, span: Span | None) -> TableSpec:
    """The table with the folder of its dead-letter table as an option instead of that table's name.

    A name of one or two parts is looked for in the database or catalog of the table itself.

    Raises:
        BindError: the name is of no table, a path is given as well, or a column is not that of a letter.
        NotSupportedYetError: a table whose files are no JSON lines in one folder.
    """
    name = spec.option(DEAD_LETTER_TABLE.key)
    if name is None:
        return spec
    if spec.option(DEAD_LETTER_PATH.key) is not None:
        raise BindError(
            "bad-row-options", f"Give '{DEAD_LETTER_TABLE.key}' or '{DEAD_LETTER_PATH.key}', not both.", span
        )
    letters = _letters(context, spec, name, span)
    _check_columns(letters, span)
    if letters.option("connector") != "filesystem" or letters.option(FORMAT.key) != "json" or letters.partition_keys:
        raise NotSupportedYetError(
            f"'{DEAD_LETTER_TABLE.key}' = '{name}'", span, "name a filesystem table with format json, not partitioned"
        )
    kept = tuple(item for item in spec.options if item[0] != DEAD_LETTER_TABLE.key)
    return replace(spec, options=(*kept, (DEAD_LETTER_PATH.key, letters.option(PATH.key) or "")))


def _letters(context: BindContext, spec: TableSpec, name: str, span: Span | None) -> TableSpec:
    tree = parse_expression(name)
    texts = tree.path.texts if isinstance(tree, ast.ColumnRef) else ()
    if not 1 <= len(texts) <= 3:
        raise BindError("bad-row-options", f"'{DEAD_LETTER_TABLE.key}' = '{name}' is no name of a table.", span)
    path = ObjectPath(*(*spec.path[: 3 - len(texts)], *texts))
    found = context.catalogs.lookup(path)
    if found is None or not isinstance(found.value, CatalogTable):
        raise BindError(
            "table-not-found",
            f"Object '{path.name}' of '{DEAD_LETTER_TABLE.key}' not found",
            span,
            f"create table {path}",
        )
    return table_spec(path, found.value)


def _check_columns(letters: TableSpec, span: Span | None) -> None:
    known = {column.name: column.type for column in LETTER_COLUMNS}
    for column in letters.columns:
        wanted = known.get(column.name)
        if wanted is None or not column.type.same(wanted):
            shown = ", ".join(f"{item.name} {item.type}" for item in LETTER_COLUMNS)
            raise BindError(
                "bad-row-options",
                f"Column '{column.name}' {column.type} of the dead-letter table '{letters.name}' is none of a letter.",
                span,
                f"a letter has {shown}",
            )
