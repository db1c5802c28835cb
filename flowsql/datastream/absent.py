"""What PyFlink's package has and this one does not: named, so that an import says in one sentence what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from flowsql.lazy import lazy_names
from flowsql_core.errors import NotSupportedYetError

#: PyFlink's name -> the construct that it belongs to.
ABSENT: Final = {
    "AsyncDataStream": "async I/O on DataStreams",
    "AsyncFunction": "async I/O on DataStreams",
    "AsyncRetryPredicate": "async I/O on DataStreams",
    "AsyncRetryStrategy": "async I/O on DataStreams",
    "BroadcastConnectedStream": "broadcast state",
    "BroadcastProcessFunction": "broadcast state",
    "CheckpointConfig": "checkpoints",
    "CheckpointStorage": "checkpoints",
    "CustomCheckpointStorage": "checkpoints",
    "CustomStateBackend": "state backends",
    "EmbeddedRocksDBStateBackend": "state backends",
    "ExternalizedCheckpointRetention": "checkpoints",
    "FileSystemCheckpointStorage": "checkpoints",
    "HashMapStateBackend": "state backends",
    "JobManagerCheckpointStorage": "checkpoints",
    "KeyedBroadcastProcessFunction": "broadcast state",
    "MemorySize": "resources of a slot sharing group",
    "PredefinedOptions": "state backends",
    "SinkFunction": "add_sink of a Java function",
    "SourceFunction": "add_source of a Java function",
    "StateBackend": "state backends",
}


def names_of(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """:func:`flowsql.lazy.lazy_names` that refuses what is absent.

    Raises (when a name is looked up):
        NotSupportedYetError: PyFlink has the name, FlowSQL not yet.
    """
    load, names = lazy_names(package, homes)

    def look_up(name: str) -> object:
        if name in ABSENT:
            raise NotSupportedYetError(f"{name} ({ABSENT[name]})")
        return load(name)

    return look_up, names


class WithoutJava:
    """Refuses PyFlink's handles on Java objects, in one sentence."""

    def __getattr__(self, name: str) -> object:
        if name.startswith(("_j_", "get_j_", "get_java_")):
            raise AttributeError(f"'{name}' does not exist: there is no JVM behind FlowSQL, functions are Python's")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
