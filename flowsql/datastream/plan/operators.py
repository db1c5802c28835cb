"""How each kind of operator becomes a spec with its resources. One function a kind; the job's settings come last."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.plan.transformations import JobSettings, SpecMaker, SpecWithResources
from flowsql.datastream.values.key_bytes import key_bytes
from flowsql.datastream.values.text import line_text
from flowsql.datastream.values.typed_functions import typed
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import PlanError
from flowsql_core.graph.specs import CollectSinkSpec, OperatorSpec, ScanSpec, SinkSpec
from flowsql_core.graph.stream_specs import (
    AssignTimestampsSpec,
    AsyncFunctionSpec,
    BatchMapSpec,
    BroadcastFunctionSpec,
    CoCall,
    CoFunctionSpec,
    CollectionSourceSpec,
    HybridSourceSpec,
    InputOrder,
    KeyedBroadcastFunctionSpec,
    KeyedCall,
    KeyedCoFunctionSpec,
    KeyedFunctionSpec,
    KeySelectSpec,
    LineSourceSpec,
    PrintObjectsSpec,
    RowCall,
    RowFunctionSpec,
    SortedInputsSpec,
    StreamWindowSpec,
)
from flowsql_core.row import INSERT_ONLY
from flowsql_core.stream.async_functions import AsyncFunction
from flowsql_core.stream.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from flowsql_core.stream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FlatMapFunction,
    Function,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from flowsql_core.stream.watermark import WatermarkGenerator, WatermarkStrategy

#: Whole batches to whole batches: keeps rows, their order and the watermark track.
BatchMap = Callable[[ChangelogBatch], ChangelogBatch]

_ROW_KINDS: dict[RowCall, type[Function]] = {
    RowCall.MAP: MapFunction,
    RowCall.FLAT_MAP: FlatMapFunction,
    RowCall.PROCESS: ProcessFunction,
}
_KEYED_KINDS: dict[KeyedCall, type[Function]] = {
    KeyedCall.MAP: MapFunction,
    KeyedCall.FLAT_MAP: FlatMapFunction,
    KeyedCall.PROCESS: KeyedProcessFunction,
    KeyedCall.REDUCE: ReduceFunction,
}


def _one(settings: JobSettings, resource: Any, make: Callable[[str], OperatorSpec]) -> SpecWithResources:
    """A spec with one resource."""
    key = f"{settings.prefix}.function"
    return SpecWithResources(make(key), {key: resource})


def collection_source(elements: Sequence[Any]) -> SpecMaker:
    """The elements, in order."""
    return lambda settings: _one(settings, elements, CollectionSourceSpec)


def line_source(paths: Sequence[str], charset: str, monitor_ms: int) -> SpecMaker:
    """The lines of files; ``monitor_ms`` 0: of those that are there."""

    return _of_files(LineSourceSpec(tuple(paths), charset, monitor_ms), bounded=not monitor_ms)


def _of_files(spec: OperatorSpec, bounded: bool) -> SpecMaker:
    """A source of files; one without end is refused in batch mode."""

    def make(settings: JobSettings) -> SpecWithResources:
        if settings.batch and not bounded:
            raise PlanError(
                "unbounded-in-batch",
                "Detected an UNBOUNDED source with the 'execution.runtime-mode' set to 'BATCH'. This combination is "
                "not allowed.",
                hint="use RuntimeExecutionMode.STREAMING, or read what is there: process_static_file_set()",
            )
        return SpecWithResources(spec)

    return make


def hybrid_source(sources: Sequence[SpecMaker]) -> SpecMaker:
    """One source behind the other."""

    def make(settings: JobSettings) -> SpecWithResources:
        made = [
            source(dataclasses.replace(settings, prefix=f"{settings.prefix}.{place}"))
            for place, source in enumerate(sources)
        ]
        resources = {key: value for part in made for key, value in part.resources.items()}
        return SpecWithResources(HybridSourceSpec(tuple(part.spec for part in made)), resources)

    return make


def row_function(function: Any, call: RowCall, output_type: TypeInformation) -> SpecMaker:
    """A function of one stream without keys."""
    # A filter gives what it took.
    made = typed(function, _ROW_KINDS[call], output_type) if call in _ROW_KINDS else function
    return lambda settings: _one(settings, made, lambda key: RowFunctionSpec(key, call))


def in_batch(make: SpecMaker, inputs: tuple[InputOrder, ...], key_type: TypeInformation | None = None) -> SpecMaker:
    """The operator, whose inputs are sorted in batch mode; ``key_type``: of their keys, None: not declared."""

    def wrapped(settings: JobSettings) -> SpecWithResources:
        found = make(settings)
        if not settings.batch:
            return found
        if InputOrder.SORTED not in inputs:
            return SpecWithResources(SortedInputsSpec(found.spec, inputs), found.resources)
        key = f"{settings.prefix}.key-bytes"
        resources = {**found.resources, key: key_bytes(key_type)}
        return SpecWithResources(SortedInputsSpec(found.spec, inputs, key), resources)

    return wrapped


def keyed_function(
    function: Any,
    call: KeyedCall,
    output_type: TypeInformation,
    key_type: TypeInformation | None,
    sorted_in_batch: bool = True,
) -> SpecMaker:
    """A function of a keyed stream; a reduction in batch mode gives only each key's last result."""
    made = typed(function, _KEYED_KINDS[call], output_type) if call in _KEYED_KINDS else function

    def make(settings: JobSettings) -> SpecWithResources:
        final_only = call is KeyedCall.REDUCE and settings.batch
        return _one(settings, made, lambda key: KeyedFunctionSpec(key, call, final_only))

    return in_batch(make, (InputOrder.SORTED,), key_type) if sorted_in_batch else make


def co_function(
    function: Any, call: CoCall, keyed: bool, output_type: TypeInformation, key_type: TypeInformation | None
) -> SpecMaker:
    """A function of two streams, both keyed or none; ``key_type``: of the keys."""
    match call:
        case CoCall.MAP:
            kind: type[Function] = CoMapFunction
        case CoCall.FLAT_MAP:
            kind = CoFlatMapFunction
        case CoCall.PROCESS:
            kind = KeyedCoProcessFunction if isinstance(function, KeyedCoProcessFunction) else CoProcessFunction
    made = typed(function, kind, output_type)
    spec = KeyedCoFunctionSpec if keyed else CoFunctionSpec

    def make(settings: JobSettings) -> SpecWithResources:
        return _one(settings, made, lambda key: spec(key, call))

    return in_batch(make, (InputOrder.SORTED, InputOrder.SORTED), key_type) if keyed else make


def broadcast_function(
    function: Any,
    states: tuple[str, ...],
    keyed: bool,
    output_type: TypeInformation,
    key_type: TypeInformation | None,
) -> SpecMaker:
    """A function of a stream and a broadcast one, which comes first in batch mode; ``key_type``: of the keys."""
    made = typed(function, KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction, output_type)
    spec = KeyedBroadcastFunctionSpec if keyed else BroadcastFunctionSpec

    def make(settings: JobSettings) -> SpecWithResources:
        return _one(settings, made, lambda key: spec(key, states))

    return in_batch(make, (InputOrder.SORTED if keyed else InputOrder.LAST, InputOrder.FIRST), key_type)


def async_function(
    function: Any, ordered: bool, timeout_ms: int, capacity: int, retry: Any, output_type: TypeInformation
) -> SpecMaker:
    """An asynchronous function; ``retry`` None: no call is tried again."""
    made = typed(function, AsyncFunction, output_type)

    def make(settings: JobSettings) -> SpecWithResources:
        key, retry_key = f"{settings.prefix}.function", f"{settings.prefix}.retry"
        resources = {key: made} if retry is None else {key: made, retry_key: retry}
        spec = AsyncFunctionSpec(key, ordered, timeout_ms, capacity, None if retry is None else retry_key)
        return SpecWithResources(spec, resources)

    return make


def key_select(selector: Any, key_type: TypeInformation | None) -> SpecMaker:
    """The selector of ``key_by``; a declared type converts the keys."""
    made = selector if key_type is None else typed(selector, KeySelector, key_type)
    return lambda settings: _one(settings, made, KeySelectSpec)


#: Name of what stamps.
TIMES: Final = "Timestamps/Watermarks"


def assign_timestamps(strategy: WatermarkStrategy, of_source: bool = False) -> SpecMaker:
    """Timestamps and watermarks. Only those of a source hold it back, and only where watermarks leave.

    In batch mode the only watermark is the last one.
    """

    def make(settings: JobSettings) -> SpecWithResources:
        interval_ms = 0 if settings.batch else settings.watermark_interval_ms
        leave = interval_ms > 0 and strategy.generator is not WatermarkGenerator.NO_WATERMARKS
        aligned = strategy.alignment if of_source and leave else None
        return _one(settings, strategy, lambda key: AssignTimestampsSpec(key, interval_ms, alignment=aligned))

    return make


@dataclasses.dataclass(frozen=True, slots=True)
class WindowParts:
    """What a window operator is made of; see ``StreamWindowSpec``."""

    assigner: Any
    trigger: Any = None
    aggregation: Any = None
    function: Any = None
    allowed_lateness_ms: int = 0
    late_tag: str | None = None
    whole_stream: bool = False


def window(parts: WindowParts, key_type: TypeInformation | None) -> SpecMaker:
    """Windows of a keyed stream."""

    def make(settings: JobSettings) -> SpecWithResources:
        resources = {
            f"{settings.prefix}.{name}": part
            for name in ("assigner", "trigger", "aggregation", "function")
            if (part := getattr(parts, name)) is not None
        }

        def key(name: str) -> str | None:
            return f"{settings.prefix}.{name}" if getattr(parts, name) is not None else None

        spec = StreamWindowSpec(
            assigner=f"{settings.prefix}.assigner",
            trigger=key("trigger"),
            aggregation=key("aggregation"),
            function=key("function"),
            allowed_lateness_ms=parts.allowed_lateness_ms,
            late_tag=parts.late_tag,
            whole_stream=parts.whole_stream,
        )
        return SpecWithResources(spec, resources)

    return in_batch(make, (InputOrder.SORTED,), key_type)


def print_sink(type_: TypeInformation, identifier: str, to_error: bool) -> SpecMaker:
    """Lines on standard output or standard error."""
    text = line_text(type_)

    def make(settings: JobSettings) -> SpecWithResources:
        if text is str:
            return SpecWithResources(PrintObjectsSpec(identifier, to_error))
        return _one(settings, text, lambda key: PrintObjectsSpec(identifier, to_error, key))

    return make


def batch_map(function: BatchMap) -> SpecMaker:
    """A conversion of whole batches."""
    return lambda settings: _one(settings, function, BatchMapSpec)


def table_scan(spec: ScanSpec) -> SpecMaker:
    """A connector's scan; it gives columns."""
    return lambda settings: SpecWithResources(spec)


def file_scan(spec: ScanSpec, bounded: bool) -> SpecMaker:
    """A scan of files; it gives columns."""
    return _of_files(spec, bounded)


def table_sink(spec: SinkSpec) -> SpecMaker:
    """A connector's sink; it takes columns."""
    return lambda settings: SpecWithResources(spec)


def collect_sink(receiver: Any) -> SpecMaker:
    """Values for the program that asked."""
    return lambda settings: _one(settings, receiver, lambda key: CollectSinkSpec(key, (), INSERT_ONLY))
