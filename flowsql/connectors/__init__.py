"""The public interface of connectors and formats. What stands here changes with :data:`API_VERSION` alone.

Plain Python: :class:`RowSource` iterates over rows, :class:`BatchSink` takes batches. All that a connector can do:
:class:`SourceFactory`, :class:`SinkFactory` and what they make (``flowsql_connectors.spi``). :func:`register` names a
connector in this process; packages offer theirs under the entry point groups ``flowsql.connectors``,
``flowsql.formats`` and ``flowsql.catalogs``. Tables that appear by themselves: :class:`TableCatalog`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flowsql.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql.connectors.register import register as register
    from flowsql_connectors.formats.format import FileFormat as FileFormat
    from flowsql_connectors.formats.format import FormatFactory as FormatFactory
    from flowsql_connectors.options import ConnectorOption as ConnectorOption
    from flowsql_connectors.options import OptionSet as OptionSet
    from flowsql_connectors.registry import Connector as Connector
    from flowsql_connectors.rowwise.base import At as At
    from flowsql_connectors.rowwise.base import BatchSink as BatchSink
    from flowsql_connectors.rowwise.base import DeclaredTable as DeclaredTable
    from flowsql_connectors.rowwise.base import RowSource as RowSource
    from flowsql_connectors.rowwise.catalog import CatalogOptions as CatalogOptions
    from flowsql_connectors.rowwise.catalog import ListedTable as ListedTable
    from flowsql_connectors.rowwise.catalog import TableCatalog as TableCatalog
    from flowsql_connectors.spi.catalog import CatalogFactory as CatalogFactory
    from flowsql_connectors.spi.sink import Committable as Committable
    from flowsql_connectors.spi.sink import Committer as Committer
    from flowsql_connectors.spi.sink import SinkFactory as SinkFactory
    from flowsql_connectors.spi.sink import SinkWriter as SinkWriter
    from flowsql_connectors.spi.sink import TableSink as TableSink
    from flowsql_connectors.spi.sink import WriterContext as WriterContext
    from flowsql_connectors.spi.source import ReaderContext as ReaderContext
    from flowsql_connectors.spi.source import ReadStatus as ReadStatus
    from flowsql_connectors.spi.source import SourceFactory as SourceFactory
    from flowsql_connectors.spi.source import SourceReader as SourceReader
    from flowsql_connectors.spi.source import Split as Split
    from flowsql_connectors.spi.source import SplitBatch as SplitBatch
    from flowsql_connectors.spi.source import SplitEnumerator as SplitEnumerator
    from flowsql_connectors.spi.source import TableSource as TableSource
    from flowsql_core.row import RowKind as RowKind

#: Raised where a connector that was written before would have to change.
API_VERSION: Final = 1

_HOMES = {
    "At": "flowsql_connectors.rowwise.base",
    "BatchSink": "flowsql_connectors.rowwise.base",
    "CatalogFactory": "flowsql_connectors.spi.catalog",
    "CatalogOptions": "flowsql_connectors.rowwise.catalog",
    "Committable": "flowsql_connectors.spi.sink",
    "Committer": "flowsql_connectors.spi.sink",
    "Connector": "flowsql_connectors.registry",
    "ConnectorOption": "flowsql_connectors.options",
    "DeclaredTable": "flowsql_connectors.rowwise.base",
    "FileFormat": "flowsql_connectors.formats.format",
    "FormatFactory": "flowsql_connectors.formats.format",
    "ListedTable": "flowsql_connectors.rowwise.catalog",
    "OptionSet": "flowsql_connectors.options",
    "ReadStatus": "flowsql_connectors.spi.source",
    "ReaderContext": "flowsql_connectors.spi.source",
    "RowKind": "flowsql_core.row",
    "RowSource": "flowsql_connectors.rowwise.base",
    "SinkFactory": "flowsql_connectors.spi.sink",
    "SinkWriter": "flowsql_connectors.spi.sink",
    "SourceFactory": "flowsql_connectors.spi.source",
    "SourceReader": "flowsql_connectors.spi.source",
    "Split": "flowsql_connectors.spi.source",
    "SplitBatch": "flowsql_connectors.spi.source",
    "SplitEnumerator": "flowsql_connectors.spi.source",
    "TableCatalog": "flowsql_connectors.rowwise.catalog",
    "TableSink": "flowsql_connectors.spi.sink",
    "TableSource": "flowsql_connectors.spi.source",
    "WriterContext": "flowsql_connectors.spi.sink",
    "register": "flowsql.connectors.register",
}

__all__ = sorted([*_HOMES, "API_VERSION"])

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
