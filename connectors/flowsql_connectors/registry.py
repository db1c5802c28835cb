"""Connector name -> module, imported on use. Third parties register a :class:`Connector` under ``flowsql.connectors``.

An entry point of that group bears the identifier as its name and loads a :class:`Connector`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from flowsql_connectors.spi.catalog import CatalogFactory
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import InferredTable, PlainFiles, SourceFactory, TableSource
from flowsql_core.errors import BindError, ConnectorError, did_you_mean
from flowsql_core.graph.spark import SparkReader
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import LogicalType, Schema

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINT_GROUP: Final = "flowsql.connectors"
#: Types of catalogs without a connector of the same name: an entry point loads a CatalogFactory or a TableCatalog.
CATALOG_GROUP: Final = "flowsql.catalogs"


@record
class Connector:
    """What stands behind one identifier, as ``module:Class`` (imported on use) or a class; None where there is none.

    ``source``: a ``SourceFactory`` or a ``RowSource``. ``sink``: a ``SinkFactory`` or a ``BatchSink``.
    """

    source: str | type | None = None
    sink: str | type | None = None
    #: A ``CatalogFactory`` or a ``TableCatalog``: catalogs of a type of the same name.
    catalog: str | type | None = None
    #: The option that names another table of the catalogs, if there is one: see ``SourceFactory.with_referenced``.
    table_reference: str | None = None
    #: The table function whose calls are tables of this connector: see ``SourceFactory.discovered``.
    table_function: str | None = None
    #: The option that holds the path or URI of the rows, by which programs other than this one know them.
    location: str | None = None
    #: Whether tables may leave out their columns: see ``SourceFactory.inferred``.
    infers: bool = False
    #: Whether a text in FROM is a table of this connector, with the text as its location.
    named_by_location: bool = False


_BUILT_IN: Final[dict[str, Connector]] = {
    "blackhole": Connector(sink="flowsql_connectors.blackhole:BlackholeSinkFactory"),
    "datagen": Connector(source="flowsql_connectors.datagen.source:DatagenSourceFactory"),
    "delta": Connector(
        source="flowsql_connectors.lakes.delta.factory:DeltaSourceFactory",
        sink="flowsql_connectors.lakes.delta.factory:DeltaSinkFactory",
        location="table-path",
        infers=True,
    ),
    "elasticsearch-7": Connector(sink="flowsql_connectors.elasticsearch.sink:ElasticsearchSinkFactory"),
    "elasticsearch-8": Connector(sink="flowsql_connectors.elasticsearch.sink:ElasticsearchSinkFactory"),
    "filesystem": Connector(
        source="flowsql_connectors.filesystem.factory:FileSourceFactory",
        sink="flowsql_connectors.filesystem.factory:FileSinkFactory",
        table_reference="on-error.dead-letter.table",
        location="path",
        infers=True,
        named_by_location=True,
    ),
    "http": Connector(
        source="flowsql_connectors.http.factory:HttpSourceFactory",
        sink="flowsql_connectors.http.factory:HttpSinkFactory",
        table_reference="on-error.dead-letter.table",
    ),
    "iceberg": Connector(
        source="flowsql_connectors.lakes.iceberg.factory:IcebergSourceFactory",
        sink="flowsql_connectors.lakes.iceberg.factory:IcebergSinkFactory",
        catalog="flowsql_connectors.lakes.iceberg.factory:IcebergCatalogFactory",
        infers=True,
    ),
    "jdbc": Connector(
        source="flowsql_connectors.jdbc.factory:JdbcSourceFactory",
        sink="flowsql_connectors.jdbc.factory:JdbcSinkFactory",
        catalog="flowsql_connectors.jdbc.catalog:JdbcCatalogFactory",
    ),
    "kafka": Connector(
        source="flowsql_connectors.kafka.factory:KafkaSourceFactory",
        sink="flowsql_connectors.kafka.factory:KafkaSinkFactory",
        table_reference="on-error.dead-letter.table",
    ),
    "memory": Connector(
        source="flowsql_connectors.memory.connector:MemorySourceFactory",
        sink="flowsql_connectors.memory.connector:MemorySinkFactory",
    ),
    "mysql-cdc": Connector(source="flowsql_connectors.cdc.mysql.factory:MySqlCdcFactory"),
    "postgres-cdc": Connector(source="flowsql_connectors.cdc.postgres.factory:PostgresCdcFactory"),
    "mongodb": Connector(
        source="flowsql_connectors.mongodb.factory:MongoSourceFactory",
        sink="flowsql_connectors.mongodb.factory:MongoSinkFactory",
    ),
    "mqtt": Connector(
        source="flowsql_connectors.mqtt:MqttSourceFactory",
        sink="flowsql_connectors.mqtt:MqttSinkFactory",
        table_reference="on-error.dead-letter.table",
    ),
    "nats": Connector(
        source="flowsql_connectors.nats:NatsSourceFactory",
        sink="flowsql_connectors.nats:NatsSinkFactory",
        table_reference="on-error.dead-letter.table",
    ),
    "opensearch": Connector(sink="flowsql_connectors.elasticsearch.sink:ElasticsearchSinkFactory"),
    "opensearch-2": Connector(sink="flowsql_connectors.elasticsearch.sink:ElasticsearchSinkFactory"),
    "print": Connector(sink="flowsql_connectors.print:PrintSinkFactory"),
    "python": Connector(
        source="flowsql_connectors.rowwise.by_class:PythonSourceFactory",
        sink="flowsql_connectors.rowwise.by_class:PythonSinkFactory",
    ),
    "redis": Connector(
        source="flowsql_connectors.redis.factory:RedisSourceFactory",
        sink="flowsql_connectors.redis.sink:RedisSinkFactory",
        table_reference="on-error.dead-letter.table",
    ),
    "sse": Connector(sink="flowsql_connectors.sse:EventSinkFactory"),
    "socket": Connector(
        source="flowsql_connectors.socket:SocketSourceFactory", table_reference="on-error.dead-letter.table"
    ),
    "webhook": Connector(
        source="flowsql_connectors.webhook:WebhookSourceFactory", table_reference="on-error.dead-letter.table"
    ),
    "websocket": Connector(
        source="flowsql_connectors.websocket:WebsocketSourceFactory",
        sink="flowsql_connectors.websocket:WebsocketSinkFactory",
        table_reference="on-error.dead-letter.table",
    ),
    "upsert-kafka": Connector(
        source="flowsql_connectors.kafka.factory:UpsertKafkaSourceFactory",
        sink="flowsql_connectors.kafka.factory:UpsertKafkaSinkFactory",
        table_reference="on-error.dead-letter.table",
    ),
}

#: Connectors of tables that a program makes without a WITH clause: nobody is told to name them.
#: The key of connectors in WITH clauses of Flink 1.
_OLD_KEY: Final = "connector.type"

_INTERNAL: Final[dict[str, Connector]] = {
    "arrow": Connector(source="flowsql_connectors.inline:InlineSourceFactory"),
    "datastream": Connector(
        source="flowsql_connectors.datastream:StreamSourceFactory",
        sink="flowsql_connectors.datastream:StreamSinkFactory",
    ),
    "filesystem of Flink 1": Connector(
        source="flowsql_connectors.filesystem.flink1.factory:OldFileSourceFactory",
        sink="flowsql_connectors.filesystem.flink1.factory:OldFileSinkFactory",
        location="connector.path",
    ),
    "file-sink": Connector(sink="flowsql_connectors.filesystem.stream_sink:StreamFileSinkFactory"),
    "file-source": Connector(source="flowsql_connectors.filesystem.stream_source:StreamFileSourceFactory"),
    "given-rows": Connector(
        source="flowsql_connectors.given:GivenSourceFactory", sink="flowsql_connectors.given:GivenSinkFactory"
    ),
    "handed-rows": Connector(source="flowsql_connectors.handed:HandedSourceFactory"),
    "python-input-format": Connector(source="flowsql_connectors.inline:InlineSourceFactory"),
}

#: Connectors of floors above this one, which know things that nothing here may know.
_PROVIDED: Final[dict[str, Connector]] = {}

#: Connectors that a program registered for itself.
_REGISTERED: Final[dict[str, Connector]] = {}

#: Connectors of Flink's own distribution that FlowSQL knows by name and does not have yet.
_KNOWN_ELSEWHERE: Final = frozenset(
    {"hbase-2.2", "kinesis", "pulsar"}
)  # fmt: skip


def provide(identifier: str, connector: Connector) -> None:
    """Offer a connector that a floor above has; again is no mistake."""
    _PROVIDED[identifier] = connector


def register(identifier: str, connector: Connector) -> None:
    """Know a connector by a name in this process; again replaces it.

    Raises:
        BindError: the name is one of FlowSQL's own.
    """
    if identifier in _BUILT_IN or identifier in _INTERNAL or identifier in _PROVIDED:
        raise BindError("connector-exists", f"FlowSQL has a connector '{identifier}' already: take another name.")
    _REGISTERED[identifier] = connector


def table_function(name: str) -> tuple[str, SourceFactory] | None:
    """Identifier and factory of the connector whose table function has a name, in any case of letters; or None."""
    for identifier, connector in _PROVIDED.items():
        if connector.table_function is not None and connector.table_function.upper() == name.upper():
            return identifier, source_factory(identifier)
    return None


def inferred(table: TableSpec, configuration: Mapping[str, str]) -> InferredTable | None:
    """A table without columns with those that its rows show; None for connectors that cannot tell."""
    connector = _known(table)
    if connector is None or not connector.infers:
        return None
    return source_factory(_identifier(table)).inferred(table, configuration)


def at_location(path: tuple[str, str, str], text: str) -> TableSpec:
    """The table that a text names by the location of its rows; its columns are still to be inferred."""
    identifier, key = next((i, c.location) for i, c in _BUILT_IN.items() if c.named_by_location and c.location)
    return TableSpec(path, (), (("connector", identifier), (key, text)))


def identifiers() -> list[str]:
    """Every identifier that ``'connector' = '...'`` may name, sorted."""
    return sorted({*_BUILT_IN, *_REGISTERED, *(point.name for point in _offered())})


def source_factory(identifier: str) -> SourceFactory:
    """The source factory of a connector; BindError for an unknown name or a sink-only connector."""
    connector = _find(identifier)
    if connector.source is None:
        raise BindError(
            "connector-is-sink-only",
            f"Connector '{identifier}' can only be used as a sink. It cannot be used as a source.",
        )
    factory = factory_of(identifier, connector.source)
    if not isinstance(factory, SourceFactory):
        raise BindError(
            "bad-connector", f"Connector '{identifier}': {connector.source} is neither a SourceFactory nor a RowSource."
        )
    return factory


def sink_factory(identifier: str) -> SinkFactory:
    """The sink factory of a connector; BindError for an unknown name or a source-only connector."""
    connector = _find(identifier)
    if connector.sink is None:
        raise BindError(
            "connector-is-source-only",
            f"Connector '{identifier}' can only be used as a source. It cannot be used as a sink.",
        )
    factory = factory_of(identifier, connector.sink)
    if not isinstance(factory, SinkFactory):
        raise BindError(
            "bad-connector", f"Connector '{identifier}': {connector.sink} is neither a SinkFactory nor a BatchSink."
        )
    return factory


def catalog_types() -> list[str]:
    """Types of catalogs that connectors and other packages have, sorted."""
    known = {name for name, connector in (_BUILT_IN | _REGISTERED).items() if connector.catalog is not None}
    return sorted({*known, *(point.name for point in _offered(CATALOG_GROUP))})


def catalog_factory(identifier: str) -> CatalogFactory | None:
    """What makes catalogs of a type; None where nothing does.

    Raises:
        BindError: what another package offers under the name makes no catalogs.
    """
    known = _at_hand(identifier)
    named: object = None if known is None else known.catalog
    if named is None:
        named = next((point.load() for point in _offered(CATALOG_GROUP) if point.name == identifier), None)
    if named is None and known is None:
        offered = _offer(identifier)
        named = None if offered is None else offered.catalog
    if named is None:
        return None
    factory = factory_of(identifier, named) if isinstance(named, str | type) else named
    if not isinstance(factory, CatalogFactory):
        raise BindError("bad-connector", f"Catalog type '{identifier}': {named} is no CatalogFactory or TableCatalog.")
    return factory


def create_source(scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
    """The source of a scan, its WITH clause checked."""
    factory = source_factory(_identifier(scan.table))
    factory.options(scan.table).check(scan.table)
    return factory.create_source(scan, configuration)


def create_sink(sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
    """The sink of an INSERT, its WITH clause checked."""
    factory = sink_factory(_identifier(sink.table))
    factory.options(sink.table).check(sink.table)
    return factory.create_sink(sink, configuration)


def supports_overwrite(table: TableSpec) -> bool:
    """Whether INSERT OVERWRITE may replace what a table holds."""
    return sink_factory(_identifier(table)).supports_overwrite()


def writable_metadata(table: TableSpec) -> Mapping[str, LogicalType]:
    """Metadata keys that an INSERT into a table may write, with their types."""
    return sink_factory(_identifier(table)).writable_metadata(table)


def plain_files(table: TableSpec) -> PlainFiles | None:
    """Where the rows of a table are, if other engines may read them there."""
    return source_factory(_identifier(table)).plain_files(table)


def spark_view(table: TableSpec) -> str | None:
    """The global temporary view of Spark that holds the rows of a table, if there is one."""
    return source_factory(_identifier(table)).spark_view(table)


def spark_reader(table: TableSpec) -> SparkReader | None:
    """Spark's own reader of the rows of a table, if there is one."""
    return source_factory(_identifier(table)).spark_reader(table)


def as_of(table: TableSpec, moment_ms: int) -> tuple[tuple[str, str], ...] | None:
    """Options that make a scan give the rows that a table had at a time; None where nobody keeps them."""
    connector = _known(table)
    return (
        None
        if connector is None or connector.source is None
        else source_factory(_identifier(table)).as_of(table, moment_ms)
    )


def table_reference(table: TableSpec) -> tuple[str, str] | None:
    """The option of a table that names another one of the catalogs, and the name; None for unknown connectors."""
    connector = _known(table)
    key = None if connector is None else connector.table_reference
    name = None if key is None else table.option(key)
    return None if key is None or name is None else (key, name)


def location(table: TableSpec) -> str | None:
    """The path or URI of a table's rows, as declared; None where they have none, and for unknown connectors."""
    connector = _known(table)
    return None if connector is None or connector.location is None else table.declared(connector.location)


def with_referenced(table: TableSpec, referenced: TableSpec) -> TableSpec:
    """A table with what it needs of the one that it names."""
    return source_factory(_identifier(table)).with_referenced(table, referenced)


def handed_table(path: tuple[str, str, str], columns: Schema, resource: str) -> TableSpec:
    """A table, under a name of its own, of rows that an engine hands over while the job runs.

    Args:
        resource: of the job; a ``flowsql_connectors.handed.HandedRows``.
    """
    return TableSpec(path, columns, (("connector", "handed-rows"), ("rows", resource)))


def validate_table(table: TableSpec, *, as_source: bool = True) -> None:
    """Check the WITH clause of a table for one use of it. Flink does so when a table is used, not at CREATE."""
    identifier = _identifier(table)
    factory = source_factory(identifier) if as_source else sink_factory(identifier)
    factory.options(table).check(table)


def _known(table: TableSpec) -> Connector | None:
    identifier = table.option("connector") or ("" if table.option(_OLD_KEY) is None else _old_identifier(table))
    return _at_hand(identifier) or _offer(identifier)


def _at_hand(identifier: str) -> Connector | None:
    """The connector of a name, where no other package needs to be asked."""
    for known in (_BUILT_IN, _INTERNAL, _PROVIDED, _REGISTERED):
        if identifier in known:
            return known[identifier]
    return None


def _old_identifier(table: TableSpec) -> str:
    """The connector of a table that is declared with Flink 1's keys."""
    old, format_ = table.option(_OLD_KEY), table.option("format.type")
    if old == "filesystem" and format_ in (None, "csv"):
        return "filesystem of Flink 1"
    given = f"'{_OLD_KEY}' = '{old}'" + ("" if format_ is None else f", 'format.type' = '{format_}'")
    raise BindError(
        "flink-1-connector",
        f"Could not find a suitable table factory: {given} are keys of Flink 1, of which csv files are left.",
        hint=f"write 'connector' = '{old}' and the options of today into the WITH clause of {table.name}",
    )


def _identifier(table: TableSpec) -> str:
    identifier = table.option("connector")
    if identifier is None and table.option(_OLD_KEY) is not None:
        return _old_identifier(table)
    if identifier is None:
        raise BindError(
            "missing-connector",
            "Table options do not contain an option key 'connector' for discovering a connector.",
            hint=f"add 'connector' = '...' to the WITH clause of {table.name}: " + ", ".join(identifiers()),
        )
    return identifier


def _find(identifier: str) -> Connector:
    found = _at_hand(identifier) or _offer(identifier)
    if found is not None:
        return found
    known = identifiers()
    near = did_you_mean(identifier, known)
    install = (
        f"FlowSQL has no '{identifier}' connector yet; a package that offers one under the entry point group "
        f"'{ENTRY_POINT_GROUP}' adds it by `pip install`"
    )
    raise BindError(
        "unknown-connector",
        f"Could not find any factory for identifier '{identifier}' that implements "
        "'org.apache.flink.table.factories.DynamicTableFactory' in the classpath.\n\n"
        "Available factory identifiers are:\n\n" + "\n".join(known),
        hint=install if identifier in _KNOWN_ELSEWHERE or near is None else near,
    )


def _offer(identifier: str) -> Connector | None:
    """The connector that another package offers under a name."""
    for point in _offered():
        if point.name == identifier:
            return _as_connector(point.load(), point.value)
    return None


def _as_connector(loaded: object, name: str) -> Connector:
    from flowsql_connectors.rowwise.base import BatchSink, RowSource

    if isinstance(loaded, Connector):
        return loaded
    if isinstance(loaded, type) and issubclass(loaded, RowSource | BatchSink):
        is_source = issubclass(loaded, RowSource)
        return Connector(source=loaded if is_source else None, sink=None if is_source else loaded)
    raise BindError("bad-connector", f"Entry point '{name}' is no Connector, RowSource or BatchSink.")


def _offered(group: str = ENTRY_POINT_GROUP) -> EntryPoints:
    """What other packages offer. Looked for when a name is not built in: the search is slow."""
    from importlib.metadata import entry_points

    return entry_points(group=group)


def factory_of(identifier: str, named: str | type) -> object:
    """The factory that ``module:Class`` or a class leads to.

    Args:
        identifier: of the connector, for messages.
    """
    try:
        kind = named if isinstance(named, type) else _imported(named)
    except ImportError as error:
        raise ConnectorError(
            "connector-not-installed",
            f"Connector '{identifier}' needs the Python module '{error.name}', which is not installed.",
            hint=f"pip install {error.name}",
        ) from error
    if issubclass(kind, SourceFactory | SinkFactory | CatalogFactory):
        return kind()
    from flowsql_connectors.rowwise.base import BatchSink, RowSource

    if issubclass(kind, RowSource):
        from flowsql_connectors.rowwise.factory import RowSourceFactory

        return RowSourceFactory(kind)
    if issubclass(kind, BatchSink):
        from flowsql_connectors.rowwise.sink import BatchSinkFactory

        return BatchSinkFactory(kind)
    from flowsql_connectors.rowwise.catalog import TableCatalog, TableCatalogFactory

    return TableCatalogFactory(identifier, kind) if issubclass(kind, TableCatalog) else kind()


def _imported(path: str) -> type:
    module, _, name = path.partition(":")
    kind: type = getattr(import_module(module), name)
    return kind
