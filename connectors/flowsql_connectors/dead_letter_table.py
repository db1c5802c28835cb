"""``on-error.dead-letter.table``: the table that takes the rows of another one that cannot be read."""

from __future__ import annotations

from dataclasses import replace

from flowsql_connectors.bad_row_options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE
from flowsql_connectors.filesystem.options import FORMAT, PATH
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.logical import Schema


def with_letters(table: TableSpec, letters: TableSpec, columns: Schema) -> TableSpec:
    """The table with the folder of its dead-letter table as an option instead of that table's name.

    Args:
        columns: of a letter of the table's connector.

    Raises:
        BindError: a path is given as well, or a column is not that of a letter.
        NotSupportedYetError: a table whose files are no JSON lines in one folder.
    """
    if table.option(DEAD_LETTER_PATH.key) is not None:
        raise BindError("bad-row-options", f"Give '{DEAD_LETTER_TABLE.key}' or '{DEAD_LETTER_PATH.key}', not both.")
    _check_columns(letters, columns)
    if letters.option("connector") != "filesystem" or letters.option(FORMAT.key) != "json" or letters.partition_keys:
        raise NotSupportedYetError(
            f"'{DEAD_LETTER_TABLE.key}' = '{table.option(DEAD_LETTER_TABLE.key)}'",
            None,
            "name a filesystem table with format json, not partitioned",
        )
    kept = tuple(item for item in table.options if item[0] != DEAD_LETTER_TABLE.key)
    return replace(table, options=(*kept, (DEAD_LETTER_PATH.key, letters.declared(PATH.key) or "")))


def _check_columns(letters: TableSpec, columns: Schema) -> None:
    known = {column.name: column.type for column in columns}
    for column in letters.columns:
        wanted = known.get(column.name)
        if wanted is None or not column.type.same(wanted):
            shown = ", ".join(f"{item.name} {item.type}" for item in columns)
            raise BindError(
                "bad-row-options",
                f"Column '{column.name}' {column.type} of the dead-letter table '{letters.name}' is none of a letter.",
                hint=f"a letter has {shown}",
            )
