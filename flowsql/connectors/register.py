"""Connectors that a program has for itself."""

from __future__ import annotations

from flowsql_connectors import registry
from flowsql_connectors.registry import Connector
from flowsql_connectors.rowwise.base import BatchSink, RowSource
from flowsql_connectors.rowwise.catalog import TableCatalog
from flowsql_connectors.spi.catalog import CatalogFactory
from flowsql_connectors.spi.sink import SinkFactory
from flowsql_connectors.spi.source import SourceFactory


def register(
    identifier: str,
    *,
    source: type[RowSource] | type[SourceFactory] | None = None,
    sink: type[BatchSink] | type[SinkFactory] | None = None,
    catalog: type[TableCatalog] | type[CatalogFactory] | None = None,
) -> None:
    """Know a connector as ``'connector' = 'identifier'``, and catalogs as ``'type' = 'identifier'``, in this process;
    again replaces it.

    Raises:
        BindError: the name is one of FlowSQL's own.
        TypeError: a class is none that a connector can be.
    """
    _check(source, RowSource, SourceFactory, "source")
    _check(sink, BatchSink, SinkFactory, "sink")
    _check(catalog, TableCatalog, CatalogFactory, "catalog")
    if isinstance(source, type) and issubclass(source, RowSource) and not (source.reads() or source.looks_up()):
        raise TypeError(f"{source!r} has neither read() nor lookup()")
    if source is None and sink is None and catalog is None:
        raise TypeError(f"register('{identifier}') takes a source, a sink, a catalog, or several of them")
    registry.register(identifier, Connector(source=source, sink=sink, catalog=catalog))


def _check(given: object, plain: type, factory: type, what: str) -> None:
    if given is None or (isinstance(given, type) and issubclass(given, plain | factory)):
        return
    raise TypeError(f"a {what} is a subclass of {plain.__name__} or {factory.__name__}, got {given!r}")
