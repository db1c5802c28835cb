"""``python``: a table whose rows a class makes or takes, which the WITH clause names.

For programs and scripts that keep their connector beside them; packages offer theirs under a name of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from flowsql_connectors.options import ConnectorOption, OptionSet
from flowsql_connectors.rowwise.base import BatchSink, RowSource
from flowsql_connectors.rowwise.factory import RowSourceFactory
from flowsql_connectors.rowwise.sink import BatchSinkFactory
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec

CLASS = ConnectorOption("class", str, "", "A class as module:Class, e.g. 'sensors:Thermometer'.")


class PythonSourceFactory(SourceFactory):
    """Makes sources of the class that a table names."""

    identifier = "python"

    def options(self, table: TableSpec) -> OptionSet:
        """``class``, and what the class reads."""
        return _SourceOfClass(_found(table, RowSource)).options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A source of the class."""
        return _SourceOfClass(_found(scan.table, RowSource)).create_source(scan, configuration)


class PythonSinkFactory(SinkFactory):
    """Makes sinks of the class that a table names."""

    identifier = "python"

    def options(self, table: TableSpec) -> OptionSet:
        """``class``, and what the class reads."""
        return _with_class(BatchSinkFactory(_found(table, BatchSink)).options(table))

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink of the class."""
        return _SinkOfClass(_found(sink.table, BatchSink)).create_sink(sink, configuration)


class _SourceOfClass(RowSourceFactory):
    def options(self, table: TableSpec) -> OptionSet:
        """Those of the class and ``class`` itself."""
        return _with_class(super().options(table))


class _SinkOfClass(BatchSinkFactory):
    def options(self, table: TableSpec) -> OptionSet:
        """Those of the class and ``class`` itself."""
        return _with_class(super().options(table))


def _with_class(options: OptionSet) -> OptionSet:
    return OptionSet(required=(CLASS,)).merged(options)


def _found(table: TableSpec, kind: type[Any]) -> Any:
    text = table.option(CLASS.key)
    if text is None:
        raise BindError(
            "missing-option", f"Missing required options are:\n\n{CLASS.key}", hint=f"'{CLASS.key}': {CLASS.doc}"
        )
    module, _, name = text.partition(":")
    try:
        found: object = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BindError(
            "no-such-class",
            f"'{CLASS.key}' = '{text}' names no class: {error}.",
            hint="'module:Class', with the module's folder on PYTHONPATH",
        ) from None
    if not (isinstance(found, type) and issubclass(found, kind)):
        use = "a source" if kind is RowSource else "a sink"
        raise BindError("no-such-class", f"'{text}' is no {kind.__name__}: the table cannot be {use}.")
    return found
