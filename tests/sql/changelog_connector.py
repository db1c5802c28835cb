"""The connector ``changelog`` of the tests: prints what it takes, which is what its option ``mode`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from flowsql_connectors import registry
from flowsql_connectors.options import SINK_PARALLELISM, ConnectorOption, OptionSet, parse_choice
from flowsql_connectors.print import PrintSink
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import ALL_CHANGES, INSERT_ONLY, ChangelogMode, RowKind

IDENTIFIER: Final = "changelog"

_MODES: Final = {
    "all": ALL_CHANGES,
    "append": INSERT_ONLY,
    "upsert": ChangelogMode(frozenset(RowKind) - {RowKind.UPDATE_BEFORE}),
}
_MODE = ConnectorOption("mode", parse_choice(*_MODES, "requested"), "requested", "What the sink takes.")
_OPTIONS = OptionSet(optional=(_MODE, SINK_PARALLELISM))


class ChangelogSink(PrintSink):
    """Takes changes of one mode; ``requested``: whatever comes."""

    def __init__(self, sink: SinkSpec) -> None:
        self._mode = _OPTIONS.check(sink.table).get(_MODE)
        options = tuple((key, value) for key, value in sink.table.options if key != _MODE.key)
        super().__init__(replace(sink, table=replace(sink.table, options=options)))

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """By the option ``mode``."""
        return _MODES.get(self._mode, wanted)


class ChangelogSinkFactory(SinkFactory):
    """Makes them."""

    identifier = IDENTIFIER

    def options(self, table: TableSpec) -> OptionSet:
        """The mode."""
        return _OPTIONS

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A printing sink of the mode."""
        return ChangelogSink(sink)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables name the connector."""
    path = f"{__name__}:{ChangelogSinkFactory.__name__}"
    monkeypatch.setitem(registry._BUILT_IN, IDENTIFIER, registry.Connector(sink=path))
