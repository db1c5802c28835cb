"""``DataStream`` and ``KeyedStream``: each method records a transformation and answers the stream behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, overload

from flowsql.common.public_api import public_api
from flowsql.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from flowsql.common.without_java import WithoutJava
from flowsql.datastream.connected_streams import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from flowsql.datastream.connectors.base import Sink, SinkFunctionOf
from flowsql.datastream.data_stream_sink import DataStreamSink
from flowsql.datastream.iterator import CloseableIterator
from flowsql.datastream.plan import operators
from flowsql.datastream.plan.custom_partition import custom_assigner
from flowsql.datastream.plan.field_fold import FieldCall, FieldFold
from flowsql.datastream.plan.transformations import (
    OperatorTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SpecMaker,
    TableTransformation,
    Transformation,
    UnionTransformation,
    Wishes,
)
from flowsql.datastream.slot_sharing_group import SlotSharingGroup
from flowsql.datastream.values.collected import WithKey, handed_out
from flowsql.datastream.values.result_type import OutputType, result_type
from flowsql.datastream.windowed_stream import AllWindowedStream, WindowedStream, count_assigner
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.job import ChainingStrategy, Partitioning, ShipStrategy
from flowsql_core.graph.stream_specs import KEY, KeyedCall, RowCall
from flowsql_core.stream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    NullByteKeySelector,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
)
from flowsql_core.stream.output_tag import OutputTag
from flowsql_core.stream.state import MapStateDescriptor
from flowsql_core.stream.watermark import WatermarkStrategy
from flowsql_core.stream.window import WindowAssigner

if TYPE_CHECKING:
    from flowsql.common.execution_config import ExecutionConfig
    from flowsql.datastream.stream_execution_environment import StreamExecutionEnvironment

_TABLES_INSTEAD: Final = "make the stream a table with from_data_stream and insert that: execute_insert"


def check_function(function: Any, kind: type[Function], plain_allowed: bool = True) -> None:
    """TypeError unless this is a function of the kind, or a callable where one may stand for it."""
    if isinstance(function, kind):
        return
    # A function's class instead of an instance is a slip, though it can be called.
    slip = isinstance(function, Function) or (isinstance(function, type) and issubclass(function, Function))
    if plain_allowed and callable(function) and not slip:
        return
    name = kind.__name__
    raise TypeError(f"The input must be a {name}{' or a callable function' if plain_allowed else ''}")


@public_api
class DataStream(WithoutJava):
    """Values of one type on their way. Made by an environment, or by the methods of another stream."""

    #: The type of the keys; None without keys, or where it was not declared.
    key_type: TypeInformation | None = None

    def __init__(self, environment: StreamExecutionEnvironment, number: int) -> None:
        self._environment = environment
        self._number = number

    # What other streams and the bridges ask.

    @property
    def environment(self) -> StreamExecutionEnvironment:
        """Where the stream belongs."""
        return self._environment

    @property
    def transformation(self) -> Transformation:
        """What was recorded for this stream."""
        return self._environment.recorder[self._number]

    @property
    def number(self) -> int:
        """The id of the transformation."""
        return self._number

    @property
    def is_keyed(self) -> bool:
        """Whether values stand by their keys."""
        return False

    def transform(
        self,
        name: str,
        make_spec: SpecMaker,
        output_type: TypeInformation,
        *,
        others: tuple[DataStream, ...] = (),
        wishes: Wishes | None = None,
    ) -> DataStream:
        """The stream behind an operator that reads this one (and ``others``, as further inputs)."""
        recorder = self._environment.recorder
        made = OperatorTransformation(
            recorder.next_id(),
            output_type,
            (self._number, *(other.number for other in others)),
            name,
            make_spec,
            wishes=wishes or Wishes(parallelism=self._environment.get_parallelism()),
        )
        return DataStream(self._environment, recorder.add(made))

    def _partition(self, partitioning: Partitioning, resources: dict[str, Any] | None = None) -> DataStream:
        recorder = self._environment.recorder
        made = PartitionTransformation(recorder.next_id(), self.get_type(), self._number, partitioning, resources or {})
        return DataStream(self._environment, recorder.add(made))

    def _sink(self, name: str, make_spec: SpecMaker, parallelism: int | None = None) -> DataStreamSink:
        recorder = self._environment.recorder
        made = OperatorTransformation(
            recorder.next_id(),
            self.get_type(),
            (self._number,),
            name,
            make_spec,
            sink=True,
            wishes=Wishes(parallelism=parallelism or self._environment.get_parallelism()),
        )
        recorder.sinks.append(recorder.add(made))
        return DataStreamSink(recorder, made.id)

    # Settings of the operator that makes this stream.

    def get_name(self) -> str:
        """The operator's name."""
        found = self.transformation
        return found.name if isinstance(found, OperatorTransformation) else type(found).__name__

    def name(self, name: str) -> Self:
        """Name the operator: logs, plans and errors bear it."""
        self._environment.recorder.rename(self._number, name)
        return self

    def uid(self, uid: str) -> Self:
        """Identify the operator over edits of the program; unique in the job."""
        return self._set(uid=uid)

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Identify the operator by a hash; :meth:`uid` does what this does."""
        return self._set(uid=uid_hash)

    def set_description(self, description: str) -> Self:
        """Describe the operator in plans."""
        return self._set(description=description)

    def set_parallelism(self, parallelism: int) -> Self:
        """Subtasks of the operator.

        Raises:
            ValueError: below 1, or above 1 for an operator that has only one.
        """
        if parallelism < 1:
            raise ValueError("The parallelism of an operator must be at least 1.")
        found = self.transformation
        if (
            isinstance(found, OperatorTransformation | TableTransformation)
            and found.wishes.parallelism_fixed
            and parallelism != 1
        ):
            raise ValueError("The parallelism of non parallel operator must be 1.")
        return self._set(parallelism=parallelism)

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Key groups of the operator."""
        if not 0 < max_parallelism <= 1 << 15:
            raise ValueError(f"Maximum parallelism must be between 1 and {1 << 15}. Found: {max_parallelism}")
        return self._set(max_parallelism=max_parallelism)

    def force_non_parallel(self) -> Self:
        """One subtask, and never another number."""
        return self._set(parallelism=1, max_parallelism=1, parallelism_fixed=True)

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Longest wait of a row in the exchange behind the operator, in ms; -1: what the environment says."""
        if timeout_millis < -1:
            raise ValueError("the timeout is at least -1")
        return self._set(buffer_timeout_ms=None if timeout_millis == -1 else timeout_millis)

    def start_new_chain(self) -> Self:
        """Run the operator in another task than what is before it."""
        return self._set(chaining=ChainingStrategy.HEAD)

    def disable_chaining(self) -> Self:
        """Run the operator in a task of its own."""
        return self._set(chaining=ChainingStrategy.NEVER)

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Share tasks only with operators of the same group."""
        group = slot_sharing_group
        return self._set(slot_sharing_group=group.get_name() if isinstance(group, SlotSharingGroup) else group)

    def _set(self, **wishes: Any) -> Self:
        self._environment.recorder.change(self._number, **wishes)
        return self

    def get_type(self) -> TypeInformation:
        """The type of the values."""
        return self.transformation.output_type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Where the stream belongs."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """How the jobs of the environment run."""
        return self._environment.get_config()

    # Functions

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: OutputType = None) -> DataStream:
        """One value for each."""
        check_function(func, MapFunction)
        return self._row("Map", func, RowCall.MAP, output_type)

    def flat_map(self, func: Callable[[Any], Any] | FlatMapFunction, output_type: OutputType = None) -> DataStream:
        """Any number of values for each."""
        check_function(func, FlatMapFunction)
        return self._row("FlatMap", func, RowCall.FLAT_MAP, output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Those for which ``func`` answers True."""
        check_function(func, FilterFunction)
        return self._row("Filter", func, RowCall.FILTER, self.get_type())

    def process(self, func: ProcessFunction, output_type: OutputType = None) -> DataStream:
        """What a :class:`ProcessFunction` makes of each value; it sees timestamps and may emit to side outputs."""
        check_function(func, ProcessFunction, plain_allowed=False)
        return self._row("PROCESS", func, RowCall.PROCESS, output_type)

    def _row(self, name: str, func: Any, call: RowCall, output_type: OutputType) -> DataStream:
        type_ = result_type(output_type)
        return self.transform(name, operators.row_function(func, call, type_), type_)

    def project(self, *field_indexes: int) -> DataStream:
        """Fields of tuples, in the order asked. The stream must have a tuple type."""
        type_ = self.get_type()
        if not isinstance(type_, TupleTypeInfo):
            raise TypeError("Only Tuple DataStreams can be projected.")
        fields = type_.get_field_types()
        projected = Types.TUPLE([fields[index] for index in field_indexes])
        make = operators.row_function(
            lambda value: tuple([value[index] for index in field_indexes]), RowCall.MAP, Types.PICKLED_BYTE_ARRAY()
        )
        return self.transform("Projection", make, projected)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give each value the time at which it happened, and make watermarks of these times."""
        return self.transform(operators.TIMES, operators.assign_timestamps(watermark_strategy), self.get_type())

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the operator emits under a tag."""
        recorder = self._environment.recorder
        type_ = result_type(output_tag.type_info)
        made = SideOutputTransformation(recorder.next_id(), type_, self._number, output_tag.tag_id)
        side = DataStream(self._environment, recorder.add(made))
        if type_.converter() is None:
            return side
        return side.map(_same, type_).name("SideOutput")

    # Streams together

    def union(self, *streams: DataStream) -> DataStream:
        """All values of this stream and of the others.

        Raises:
            ValueError: a stream is of another type.
        """
        if not streams:
            return self
        own = self.values().get_type()
        for stream in streams:
            if stream.values().get_type() != own:
                raise ValueError(f"Cannot union streams of different types: {own} and {stream.values().get_type()}")
        recorder = self._environment.recorder
        inputs = tuple(stream.values().number for stream in (self, *streams))
        made = UnionTransformation(recorder.next_id(), self.values().get_type(), inputs)
        return DataStream(self._environment, recorder.add(made))

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...
    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...
    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Two streams of different types for one function; one of them may be broadcast, with its state."""
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def values(self) -> DataStream:
        """The stream itself; of a keyed stream its values, without the keys."""
        return self

    def key_by(
        self, key_selector: Callable[[Any], Any] | KeySelector, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Values of equal keys meet in one subtask; functions behind it have state for each key."""
        check_function(key_selector, KeySelector)
        recorder = self._environment.recorder
        with_key = OperatorTransformation(
            recorder.next_id(),
            self.get_type(),
            (self._number,),
            "KeyBy",
            operators.key_select(key_selector, key_type),
            keyed_output=True,
        )
        recorder.add(with_key)
        exchange = PartitionTransformation(
            recorder.next_id(), self.get_type(), with_key.id, Partitioning(ShipStrategy.HASH, (KEY,))
        )
        return KeyedStream(self._environment, recorder.add(exchange), self, key_type)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Windows over the whole stream, in one subtask."""
        return AllWindowedStream(self.key_by(NullByteKeySelector()), window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of ``size`` values of the whole stream, one every ``slide`` (each behind the last for 0)."""
        return self.window_all(count_assigner(size, slide))

    # Partitioning

    def shuffle(self) -> DataStream:
        """Each value to a random subtask of what follows."""
        return self._partition(Partitioning(ShipStrategy.SHUFFLE))

    def rebalance(self) -> DataStream:
        """Values to the subtasks of what follows in turn."""
        return self._partition(Partitioning(ShipStrategy.REBALANCE))

    def rescale(self) -> DataStream:
        """Values in turn to those subtasks of what follows that belong to this subtask."""
        return self._partition(Partitioning(ShipStrategy.RESCALE))

    def forward(self) -> DataStream:
        """Values to the same subtask of what follows, which must have the same parallelism."""
        return self._partition(Partitioning(ShipStrategy.FORWARD))

    def global_(self) -> DataStream:
        """Values to the first subtask of what follows."""
        return self._partition(Partitioning(ShipStrategy.GLOBAL))

    @overload
    def broadcast(self) -> DataStream: ...
    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream: ...
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Values to every subtask of what follows; with descriptors a stream to connect, for broadcast state."""
        everywhere = self._partition(Partitioning(ShipStrategy.BROADCAST))
        if broadcast_state_descriptor is None:
            return everywhere
        descriptors = [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        if not all(isinstance(descriptor, MapStateDescriptor) for descriptor in descriptors):
            raise TypeError("broadcast_state_descriptor must be MapStateDescriptor")
        return BroadcastStream(everywhere, descriptors)

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> DataStream:
        """Values to the subtask that ``partitioner`` names for their key and the number of subtasks."""
        check_function(partitioner, Partitioner)
        check_function(key_selector, KeySelector)
        resource = f"partitioner-{self._environment.recorder.next_id()}"
        return self._partition(
            Partitioning(ShipStrategy.CUSTOM, (), resource),
            {resource: custom_assigner(partitioner, key_selector)},
        )

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write each value on a line of standard output, behind ``identifier:subtask> `` where there are several."""
        make = operators.print_sink(self.get_type(), sink_identifier or "", False)
        return self._sink("Print to Std. Out", make)

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """:meth:`print` to standard error."""
        make = operators.print_sink(self.get_type(), sink_identifier or "", True)
        return self._sink("Print to Std. Err", make)

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the values into a sink: ``FileSink``."""
        if not isinstance(sink, Sink):
            raise NotSupportedYetError(f"sinks of type {type(sink).__name__}", hint=_TABLES_INSTEAD)
        to_columns = operators.batch_map(sink.columns_of_values(self.get_type()))
        columns = self.transform("Columns", to_columns, self.get_type(), wishes=Wishes())
        return columns._sink("Writer", operators.table_sink(sink.spec()))

    def add_sink(self, sink_func: SinkFunctionOf) -> DataStreamSink:
        """Write the values into a sink of the older kind: ``StreamingFileSink``."""
        if not isinstance(sink_func, SinkFunctionOf):
            raise NotSupportedYetError(f"sinks of type {type(sink_func).__name__}", hint=_TABLES_INSTEAD)
        return self.sink_to(sink_func.written_by)

    def cache(self) -> NoReturn:
        """Refused."""
        raise NotSupportedYetError("cached streams", hint="keep list(stream.execute_and_collect())")

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Start the job and read this stream's values: an iterator to close, or a list of the first ``limit``.

        Raises:
            ValueError: the limit is below 1.
        """
        if limit is not None and limit < 1:
            raise ValueError("Limit must be greater than 0")
        from flowsql.table.session.collect import CollectBuffer

        buffer, collected = CollectBuffer(), self._collected()
        collected._sink("Collect Stream Sink", operators.collect_sink(buffer), parallelism=1)
        job = self._environment.execute_async(job_execution_name)
        values = CloseableIterator(buffer, job, handed_out(collected.get_type()))
        if limit is None:
            return values
        with values:
            return [value for value, _ in zip(values, range(limit), strict=False)]

    def _collected(self) -> DataStream:
        """The stream whose values a program collects."""
        return self


def _same(value: Any) -> Any:
    return value


@public_api
class KeyedStream(DataStream):
    """A stream whose values of equal keys are in one subtask. Made by :meth:`DataStream.key_by`."""

    def __init__(
        self, environment: StreamExecutionEnvironment, number: int, origin: DataStream, key_type: TypeInformation | None
    ) -> None:
        super().__init__(environment, number)
        self._origin = origin
        self.key_type = key_type

    @property
    def is_keyed(self) -> bool:
        """Yes."""
        return True

    def values(self) -> DataStream:
        """The values where their keys are, without them."""
        return self._keyed("Values", _same, KeyedCall.MAP, None, self.get_type(), sorted_in_batch=False)

    def key_by(
        self, key_selector: Callable[[Any], Any] | KeySelector, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """The same values by another key."""
        return self._origin.key_by(key_selector, key_type)

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: OutputType = None) -> DataStream:
        """One value for each; a MapFunction may keep state."""
        check_function(func, MapFunction)
        return self._keyed("Map", func, KeyedCall.MAP, output_type)

    def flat_map(self, func: Callable[[Any], Any] | FlatMapFunction, output_type: OutputType = None) -> DataStream:
        """Any number of values for each; a FlatMapFunction may keep state."""
        check_function(func, FlatMapFunction)
        return self._keyed("FlatMap", func, KeyedCall.FLAT_MAP, output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Those for which ``func`` answers True; a FilterFunction may keep state."""
        check_function(func, FilterFunction)
        return self._keyed("Filter", func, KeyedCall.FILTER, self.get_type())

    # As in PyFlink, a keyed stream takes the keyed kind.
    def process(  # type: ignore[override]
        self, func: KeyedProcessFunction, output_type: OutputType = None
    ) -> DataStream:
        """What a :class:`KeyedProcessFunction` makes of each value and of its timers."""
        if not isinstance(func, KeyedProcessFunction):
            raise TypeError("KeyedProcessFunction is required for KeyedStream.")
        return self._keyed("KEYED PROCESS", func, KeyedCall.PROCESS, output_type)

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """For each value what it and those before it of its key make together."""
        check_function(func, ReduceFunction)
        return self._keyed("Reduce", func, KeyedCall.REDUCE, self.get_type())

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The sum of a field so far, in the first value of the key."""
        return self.reduce(FieldFold(position_to_sum, FieldCall.SUM))

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The least of a field so far, in the first value of the key."""
        return self.reduce(FieldFold(position_to_min, FieldCall.MIN))

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The greatest of a field so far, in the first value of the key."""
        return self.reduce(FieldFold(position_to_max, FieldCall.MAX))

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The first value so far with the least of a field."""
        return self.reduce(FieldFold(position_to_min_by, FieldCall.MIN_BY))

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The first value so far with the greatest of a field."""
        return self.reduce(FieldFold(position_to_max_by, FieldCall.MAX_BY))

    def _collected(self) -> DataStream:
        """Rows of key (``f0``) and value (``f1``), as PyFlink hands them out."""
        make = operators.keyed_function(WithKey(), KeyedCall.PROCESS, result_type(None), None, sorted_in_batch=False)
        row = Types.ROW([self.key_type or Types.PICKLED_BYTE_ARRAY(), self.get_type()])
        return self.transform("Key And Value", make, row, wishes=Wishes(parallelism=1))

    def _keyed(
        self,
        name: str,
        func: Any,
        call: KeyedCall,
        output_type: OutputType,
        known_type: TypeInformation | None = None,
        sorted_in_batch: bool = True,
    ) -> DataStream:
        type_ = result_type(output_type)
        make = operators.keyed_function(func, call, type_, self.key_type, sorted_in_batch)
        return self.transform(name, make, known_type or type_)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Windows of each key."""
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of ``size`` values of a key, one every ``slide`` (each behind the last for 0)."""
        return self.window(count_assigner(size, slide))

    def project(self, *field_indexes: int) -> DataStream:
        """Fields of tuples."""
        return self.values().project(*field_indexes)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Times for the values."""
        return self.values().assign_timestamps_and_watermarks(watermark_strategy)

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the values."""
        return self.values().print(sink_identifier)

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the values to standard error."""
        return self.values().print_to_err(sink_identifier)

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the values into a sink."""
        return self.values().sink_to(sink)

    def _partition(self, partitioning: Partitioning, resources: dict[str, Any] | None = None) -> NoReturn:
        raise TypeError("Cannot override partitioning for KeyedStream.")

    def get_name(self) -> NoReturn:
        """Refused, as in Flink: a keyed stream is no operator."""
        raise TypeError("Get name of KeyedStream is not supported.")

    def name(self, name: str) -> NoReturn:
        """Refused, as in Flink: a keyed stream is no operator."""
        raise TypeError("Set name for KeyedStream is not supported.")

    def _set(self, **wishes: Any) -> NoReturn:
        raise TypeError(f"Set {', '.join(wishes).replace('_', ' ')} for KeyedStream is not supported.")

    def get_side_output(self, output_tag: OutputTag) -> NoReturn:
        """Refused: a keyed stream is no operator."""
        raise TypeError("Side outputs of KeyedStream are not supported.")
