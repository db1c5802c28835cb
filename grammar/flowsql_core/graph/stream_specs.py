"""Specs of DataStream operators: Python objects row by row, user functions by resource id.

**The data contract.** Batches on DataStream edges hold Python objects: column ``VALUE`` (0), a ``PyObjectColumn``;
behind :class:`KeySelectSpec` also column ``KEY`` (1), the key objects, a ``PyObjectColumn``. A keyed edge is HASH on
``(KEY,)``: the exchange hashes the canonical bytes of ``flowsql_core.stream.keys``, where there are several channels.
``ChangelogBatch.row_times`` holds timestamps (None, or not valid: the record has none); ``kinds`` is None: rows of a
changelog carry their kind themselves. ``OperatorNode.output`` of these operators is ``()``.

**Resources** are the user's objects as given: an instance of the class of ``flowsql_core.stream.functions`` that is
named, or a plain callable where one is named. Each subtask works with a copy of its own (functions and lambdas are
shared). A resource that two operators name is copied for each.

**Sides**: what a function emits as ``(OutputTag, value)`` leaves under ``tag_id``: the ``tag`` of a chain or exchange
edge. Results go to a program through ``CollectSinkSpec(resource, (), INSERT_ONLY)``, whose batches hold the objects in
column 0.
"""

from __future__ import annotations

import enum

from flowsql_core.graph.specs import OperatorSpec, WatermarkAlignment
from flowsql_core.record import record

#: Column of the elements, and of their keys on keyed edges.
VALUE = 0
KEY = 1


@record
class CollectionSourceSpec(OperatorSpec):
    """The elements of a list in order, from subtask 0. ``elements``: a resource, a list that nobody changes."""

    elements: str


@record
class LineSourceSpec(OperatorSpec):
    """The lines of text files as texts, decompressed by the files' extensions.

    ``paths``: files, folders or globs. ``monitor_ms``: look for new files so often, for ever; 0: read what is there.
    """

    paths: tuple[str, ...]
    charset: str = "UTF-8"
    monitor_ms: int = 0


@record
class HybridSourceSpec(OperatorSpec):
    """Several sources, one behind the other, in one subtask. All of them end by themselves."""

    sources: tuple[OperatorSpec, ...]


class RowCall(enum.Enum):
    """What a function of one stream is: the base class, or what a plain callable is taken for."""

    MAP = "map"
    FLAT_MAP = "flat_map"
    FILTER = "filter"
    PROCESS = "process_element"


@record
class RowFunctionSpec(OperatorSpec):
    """One stream without keys: MapFunction, FlatMapFunction, FilterFunction (or callables) or ProcessFunction.

    A keyed input is fine, its keys are not used.
    """

    function: str
    call: RowCall


class KeyedCall(enum.Enum):
    """What a function of a keyed stream is."""

    MAP = "map"
    FLAT_MAP = "flat_map"
    FILTER = "filter"
    PROCESS = "process_element"
    REDUCE = "reduce"


@record
class KeyedFunctionSpec(OperatorSpec):
    """A keyed stream: KeyedProcessFunction, or a Map-, FlatMap-, Filter- or ReduceFunction (or callables) with state.

    REDUCE emits what each element makes of those before it; with ``final_only`` (batch mode) the last of each key when
    the input ends.
    """

    function: str
    call: KeyedCall
    final_only: bool = False


class CoCall(enum.Enum):
    """What a function of two connected streams is; its methods end in 1 and 2."""

    MAP = "map"
    FLAT_MAP = "flat_map"
    PROCESS = "process_element"


@record
class CoFunctionSpec(OperatorSpec):
    """Two streams without keys (``number_of_inputs=2``): CoMapFunction, CoFlatMapFunction or CoProcessFunction."""

    function: str
    call: CoCall


@record
class KeyedCoFunctionSpec(OperatorSpec):
    """Two keyed streams (``number_of_inputs=2``): KeyedCoProcessFunction, CoMapFunction or CoFlatMapFunction."""

    function: str
    call: CoCall


@record
class BroadcastFunctionSpec(OperatorSpec):
    """A stream and a broadcast one (``number_of_inputs=2``, the second on a BROADCAST edge).

    ``function``: a BroadcastProcessFunction.
    ``states``: names of the broadcast state that there is.
    """

    function: str
    states: tuple[str, ...]


@record
class KeyedBroadcastFunctionSpec(OperatorSpec):
    """A keyed stream and a broadcast one: as :class:`BroadcastFunctionSpec`, with a KeyedBroadcastProcessFunction."""

    function: str
    states: tuple[str, ...]


@record
class AsyncFunctionSpec(OperatorSpec):
    """One stream; ``function``: an AsyncFunction; ``retry``: an AsyncRetryStrategy, None: no call is tried again.

    ``ordered``: results leave in the order of the elements. ``timeout_ms``: of all attempts together, 0: none.
    ``capacity``: elements in flight at once.
    """

    function: str
    ordered: bool
    timeout_ms: int
    capacity: int
    retry: str | None = None


@record
class KeySelectSpec(OperatorSpec):
    """Adds the key column. ``selector``: a KeySelector or a callable. Goes before the HASH edge."""

    selector: str


class WatermarkTick(enum.Enum):
    """When watermarks leave the assigner of a DataStream.

    CLOCK, Flink's rule: every interval of processing time, 0: never before the end of the input.
    RECORD, the rule of SQL: after each record that lifts the watermark by more than the interval.
    """

    CLOCK = "clock"
    RECORD = "record"


@record
class AssignTimestampsSpec(OperatorSpec):
    """Timestamps and watermarks. ``strategy``: a WatermarkStrategy; ``interval_ms``: pipeline.auto-watermark-interval.

    Watermarks of the input are replaced but for the last. ``alignment``: the source in the same task waits for others.
    """

    strategy: str
    interval_ms: int = 200
    tick: WatermarkTick = WatermarkTick.CLOCK
    alignment: WatermarkAlignment | None = None


@record
class StreamWindowSpec(OperatorSpec):
    """Windows of a keyed stream; ``window_all`` is a key_by(NullByteKeySelector) before it and ``whole_stream=True``.

    ``assigner``: a WindowAssigner. ``trigger``: a Trigger, None for the assigner's own.
    ``aggregation``: a ReduceFunction (or callable of two values) or an AggregateFunction; None keeps all elements.
    ``function``: a WindowFunction or ProcessWindowFunction (their All... forms with ``whole_stream``); None emits what
    was aggregated. ``late_tag``: ``tag_id`` for elements that come too late, None drops them.
    """

    assigner: str
    trigger: str | None = None
    aggregation: str | None = None
    function: str | None = None
    allowed_lateness_ms: int = 0
    late_tag: str | None = None
    whole_stream: bool = False


class InputOrder(enum.Enum):
    """How elements of an input come in batch mode.

    SORTED: by key and time, after all inputs have ended. FIRST: at once, before those of other inputs.
    LAST: in the order of arrival, after all inputs have ended.
    """

    SORTED = "sorted"
    FIRST = "first"
    LAST = "last"


@record
class SortedInputsSpec(OperatorSpec):
    """Batch mode of an operator with keyed inputs, or with a broadcast one: it sees one key after the other.

    ``operator``: the spec of the operator itself. ``inputs``: one for each input.
    ``key_bytes``: a resource, a callable that gives the bytes of a key, compared as signed ones; None without keys.
    """

    operator: OperatorSpec
    inputs: tuple[InputOrder, ...]
    key_bytes: str | None = None


@record
class BatchMapSpec(OperatorSpec):
    """A bridge: ``function`` is a callable ``(ChangelogBatch) -> ChangelogBatch`` that keeps rows, order and track."""

    function: str


@record
class PrintObjectsSpec(OperatorSpec):
    """Print elements: ``text`` is a callable from element to text, None for ``str``.

    ``identifier`` and, above parallelism 1, the subtask (from 1) stand before each line: ``id:2> value``.
    """

    identifier: str = ""
    to_error: bool = False
    text: str | None = None
