"""The Elasticsearch connector of DataStreams, under PyFlink's names: refused where a program uses them."""

from __future__ import annotations

from typing import Any, Final

from flowsql.common.refused import refused_name

_NAMES: Final = frozenset(
    {
        "Elasticsearch6SinkBuilder",
        "Elasticsearch7SinkBuilder",
        "ElasticsearchEmitter",
        "ElasticsearchSink",
        "FlushBackoffType",
    }
)

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    hint = "read or write a table and cross over with to_data_stream and from_data_stream"
    return refused_name(__name__, name, _NAMES, "the Elasticsearch connector of DataStreams", hint)
