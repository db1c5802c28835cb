"""What physical planning asks of its surroundings: options and connectors."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from flowsql_connectors import registry
from flowsql_connectors.spi.sink import TableSink
from flowsql_connectors.spi.source import TableSource
from flowsql_core.config import (
    LOCAL_TIME_ZONE,
    MINI_BATCH_ENABLED,
    MINI_BATCH_LATENCY_MS,
    MINI_BATCH_SIZE,
    Configuration,
)
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import MiniBatch, ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import ChangelogMode
from flowsql_planner.physical.nodes import SinkNode, TableSourceScan


@dataclass(slots=True)
class PlanContext:
    """One per planned statement. Connectors are made once per spec and only looked at; the runtime makes its own."""

    configuration: Configuration
    _sources: dict[ScanSpec, TableSource] = field(default_factory=dict)
    _sinks: dict[SinkSpec, TableSink] = field(default_factory=dict)

    @property
    def flat(self) -> Mapping[str, str]:
        """The flat view that connectors read."""
        return dict(self.configuration.items())

    def source(self, spec: ScanSpec) -> TableSource:
        """The source behind a scan."""
        if spec not in self._sources:
            self._sources[spec] = registry.create_source(spec, self.flat)
        return self._sources[spec]

    def table_source(self, table: TableSpec) -> TableSource:
        """The source of a table that reads everything: what it can do."""
        return self.source(ScanSpec(table, tuple(range(len(table.columns))), table.columns))

    def source_mode(self, scan: TableSourceScan) -> ChangelogMode:
        """The changelog that a scan emits."""
        return self.table_source(scan.table).changelog_mode

    def sink(self, spec: SinkSpec) -> TableSink:
        """The sink behind a spec."""
        if spec not in self._sinks:
            self._sinks[spec] = registry.create_sink(spec, self.flat)
        return self._sinks[spec]

    def sink_mode(self, table: TableSpec, sink: SinkNode, wanted: ChangelogMode) -> ChangelogMode:
        """What a sink takes when the query produces ``wanted``."""
        return self.table_sink(table, sink, wanted).accepts(wanted)

    def table_sink(self, table: TableSpec, sink: SinkNode, mode: ChangelogMode) -> TableSink:
        """The sink of an INSERT as far as planning is concerned."""
        return self.sink(SinkSpec(table, sink.schema, mode, sink.overwrite, sink.static_partition))

    @property
    def mini_batch(self) -> MiniBatch | None:
        """``table.exec.mini-batch.*``, checked as Flink checks them; None when off."""
        if not self.configuration.get(MINI_BATCH_ENABLED):
            return None
        latency, size = self.configuration.get(MINI_BATCH_LATENCY_MS), self.configuration.get(MINI_BATCH_SIZE)
        if latency <= 0:
            raise BindError(
                "invalid-option-value",
                "MiniBatch Latency must be greater than 0 ms.",
                hint="set 'table.exec.mini-batch.allow-latency', e.g. '2 s'",
            )
        if size <= 0:
            raise BindError(
                "invalid-option-value",
                "Key: 'table.exec.mini-batch.size' , default: -1 (fallback keys: []) must be > 0.",
                hint="set 'table.exec.mini-batch.size', e.g. '5000'",
            )
        return MiniBatch(size, latency)

    @property
    def zone(self) -> str:
        """``table.local-time-zone`` as a zone name; the machine's when it says 'default'."""
        name = self.configuration.get(LOCAL_TIME_ZONE)
        return _machine_zone() if name == "default" else name


def _machine_zone() -> str:
    local = datetime.datetime.now().astimezone().tzinfo
    key = getattr(local, "key", None)
    if isinstance(key, str):
        return key
    offset = datetime.datetime.now().astimezone().utcoffset() or datetime.timedelta()
    minutes = round(offset.total_seconds() / 60)
    if minutes == 0:
        return "UTC"
    return f"{'+' if minutes > 0 else '-'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
