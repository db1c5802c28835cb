"""What physical planning asks of its surroundings: options and connectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors import registry
from flowsql_connectors.spi.sink import TableSink
from flowsql_connectors.spi.source import TableSource
from flowsql_core.config import (
    LOCAL_TIME_ZONE,
    MINI_BATCH_ENABLED,
    MINI_BATCH_LATENCY_MS,
    MINI_BATCH_SIZE,
    RUNTIME_MODE,
    Configuration,
    RuntimeMode,
)
from flowsql_core.errors import BindError, PlanError
from flowsql_core.graph.specs import MiniBatch, ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import ChangelogMode
from flowsql_core.span import Span
from flowsql_planner.error_position import errors_at
from flowsql_planner.physical.options import CDC_EVENTS_DUPLICATE


@dataclass(slots=True)
class PlanContext:
    """One per planned statement. Connectors are made once per spec and only looked at; the runtime makes its own."""

    configuration: Configuration
    #: Python objects of the job that is planned, by the id that specs name them with.
    resources: dict[str, Any] = field(default_factory=dict)
    #: No operator of the statement collects rows, whatever the options say.
    without_mini_batches: bool = False
    _sources: dict[ScanSpec, TableSource] = field(default_factory=dict)
    _sinks: dict[SinkSpec, TableSink] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        """Whether the answer is given once, when all inputs have ended."""
        return self.configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH

    @property
    def flat(self) -> Mapping[str, str]:
        """The flat view that connectors read."""
        return dict(self.configuration.items())

    def source(self, spec: ScanSpec, span: Span | None) -> TableSource:
        """The source behind a scan.

        Raises:
            FlowSqlError: the table's options do not fit; ``span``, where the table is read, is its place.
        """
        if spec not in self._sources:
            with errors_at(span):
                self._sources[spec] = registry.create_source(spec, self.flat)
        return self._sources[spec]

    def table_source(self, table: TableSpec, span: Span | None) -> TableSource:
        """The source of a table that reads everything: what it can do."""
        return self.source(ScanSpec(table, tuple(range(len(table.columns))), table.columns), span)

    def reads_without_end(self) -> bool:
        """Whether a table that was planned has rows that never end."""
        return any(not source.bounded for source in self._sources.values())

    def source_mode(self, table: TableSpec, span: Span | None) -> ChangelogMode:
        """The changelog that a scan of a table emits."""
        return self.table_source(table, span).changelog_mode

    def source_guarantee(self, table: TableSpec, span: Span | None) -> str | None:
        """What becomes of a scan's rows when the job is restored; None: each counts exactly once."""
        return self.table_source(table, span).guarantee()

    def normalizes(self, table: TableSpec, span: Span | None) -> bool:
        """Whether the changes of a scan are made a complete changelog by the table's primary key.

        Raises:
            PlanError: the table has none, or batch mode does not read its upserts.
        """
        mode = self.source_mode(table, span)
        if mode.upsert and self.bounded:
            raise PlanError(
                "updates-in-batch",
                "Querying a table in batch mode is currently only possible for INSERT-only table sources. But the "
                f"source for table '{table.name}' produces other changelog messages than just INSERT.",
                span,
                f"SET '{RUNTIME_MODE.key}' = 'streaming'",
            )
        if mode.upsert:
            if not table.primary_key:
                raise PlanError(
                    "primary-key-needed",
                    f"Table '{table.name}' produces a changelog stream that contains UPDATE_AFTER but no UPDATE_BEFORE."
                    " This requires defining a primary key constraint on the table.",
                    span,
                    "declare PRIMARY KEY (...) NOT ENFORCED",
                )
            return True
        if mode.insert_only or not self.configuration.get(CDC_EVENTS_DUPLICATE):
            return False
        if not table.primary_key:
            raise PlanError(
                "primary-key-needed",
                f"Configuration '{CDC_EVENTS_DUPLICATE.key}' is enabled which requires the changelog sources to define "
                f"a PRIMARY KEY. However, table '{table.name}' doesn't have a primary key.",
                span,
                f"declare PRIMARY KEY (...) NOT ENFORCED, or SET '{CDC_EVENTS_DUPLICATE.key}' = 'false'",
            )
        return True

    def sink(self, spec: SinkSpec, span: Span | None) -> TableSink:
        """The sink behind a spec; options that do not fit are refused at ``span``."""
        if spec not in self._sinks:
            with errors_at(span):
                self._sinks[spec] = registry.create_sink(spec, self.flat)
        return self._sinks[spec]

    def sink_mode(self, sink: SinkSpec, span: Span | None) -> ChangelogMode:
        """What a sink takes when the query produces the spec's mode."""
        return self.sink(sink, span).accepts(sink.changelog_mode)

    def shows_each_change(self, sink: SinkSpec, span: Span | None) -> bool:
        """Whether somebody sees each change that a sink gets, although it takes upserts."""
        return self.sink(sink, span).shows_each_change()

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
        return None if self.without_mini_batches else MiniBatch(size, latency)

    @property
    def zone(self) -> str:
        """``table.local-time-zone`` as a zone name; the machine's when it says 'default'."""
        name = self.configuration.get(LOCAL_TIME_ZONE)
        return machine_zone() if name == "default" else name
