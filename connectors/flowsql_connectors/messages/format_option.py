"""The format of messages: which one, its options, and which columns it has."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.formats.format import FileFormat
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec

FORMAT: Final = ConnectorOption("format", str, "", "Format of the messages.")


def format_options(table: TableSpec, default: str | None) -> OptionSet:
    """``format``, and the options of the format that a table names.

    Args:
        default: the format where it names none; None: it must name one.
    """
    own = OptionSet((FORMAT,)) if default is None else OptionSet(optional=(FORMAT,))
    name = table.option(FORMAT.key) or default
    return own if name is None else own.merged(format_factory(name).options())


def format_of(table: TableSpec, values: OptionValues, default: str | None) -> FileFormat:
    """The format of a table whose options were checked."""
    name = values.get(FORMAT) or default
    if name is None:
        raise BindError("missing-option", f"Missing required options are:\n\n{FORMAT.key}", hint=FORMAT.doc)
    return format_factory(name).create(values, table)
