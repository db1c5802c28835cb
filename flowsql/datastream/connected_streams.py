"""``ConnectedStreams``: two streams of different types for one function, which sees each value and whence it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowsql.common.public_api import public_api
from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.plan import operators
from flowsql.datastream.values.result_type import OutputType, result_type
from flowsql_core.graph.stream_specs import CoCall
from flowsql_core.stream.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from flowsql_core.stream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from flowsql_core.stream.state import MapStateDescriptor

if TYPE_CHECKING:
    from flowsql.datastream.data_stream import DataStream


@public_api
class ConnectedStreams:
    """Two streams, both keyed or none. Made by :meth:`DataStream.connect`."""

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Values of equal keys of both streams meet in one subtask and share state."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: OutputType = None) -> DataStream:
        """One value, or none for None, for each."""
        if not isinstance(func, CoMapFunction):
            raise TypeError("The input function must be a CoMapFunction!")
        return self._co("Co-Map", func, CoCall.MAP, output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: OutputType = None) -> DataStream:
        """Any number of values for each."""
        if not isinstance(func, CoFlatMapFunction):
            raise TypeError("The input must be a CoFlatMapFunction!")
        return self._co("Co-Flat Map", func, CoCall.FLAT_MAP, output_type)

    def process(self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: OutputType = None) -> DataStream:
        """What a CoProcessFunction makes of each value; on keyed streams a KeyedCoProcessFunction has timers, too."""
        if not isinstance(func, CoProcessFunction | KeyedCoProcessFunction):
            raise TypeError("The input must be a CoProcessFunction or KeyedCoProcessFunction!")
        if isinstance(func, KeyedCoProcessFunction) and not self._keyed:
            raise TypeError("A KeyedCoProcessFunction needs keyed streams: key_by() both, or use a CoProcessFunction.")
        return self._co("Keyed Co-Process" if self._keyed else "Co-Process", func, CoCall.PROCESS, output_type)

    @property
    def _keyed(self) -> bool:
        keyed = [stream.is_keyed for stream in (self.stream1, self.stream2)]
        if keyed[0] != keyed[1]:
            raise TypeError("Both streams must be keyed, or none.")
        return keyed[0]

    def _co(self, name: str, func: Any, call: CoCall, output_type: OutputType) -> DataStream:
        type_ = result_type(output_type)
        make = operators.co_function(func, call, self._keyed, type_, self.stream1.key_type)
        return self.stream1.transform(name, make, type_, others=(self.stream2,))


class BroadcastStream:
    """A stream whose elements go to every subtask, to be kept in broadcast state. Made by :meth:`DataStream.broadcast`.

    Args:
        input_stream: partitioned so that every subtask gets all elements.
        broadcast_state_descriptors: the states that there will be.
    """

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


@public_api
class BroadcastConnectedStream:
    """A stream, keyed or not, and a broadcast one for one function. Made by :meth:`DataStream.connect`."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: OutputType = None,
    ) -> DataStream:
        """What a BroadcastProcessFunction makes of the elements of both; a keyed stream takes a keyed one."""
        keyed = self.non_broadcast_stream.is_keyed
        if isinstance(func, BroadcastProcessFunction) and keyed:
            raise TypeError("BroadcastProcessFunction should be applied to non-keyed DataStream")
        if isinstance(func, KeyedBroadcastProcessFunction) and not keyed:
            raise TypeError("KeyedBroadcastProcessFunction should be applied to keyed DataStream")
        if not isinstance(func, BroadcastProcessFunction | KeyedBroadcastProcessFunction):
            raise TypeError("The input must be a BroadcastProcessFunction or KeyedBroadcastProcessFunction!")
        type_ = result_type(output_type)
        names = tuple(descriptor.name for descriptor in self.broadcast_state_descriptors)
        return self.non_broadcast_stream.transform(
            "Keyed-Co-Process-Broadcast" if keyed else "Co-Process-Broadcast",
            operators.broadcast_function(func, names, keyed, type_, self.non_broadcast_stream.key_type),
            type_,
            others=(self.broadcast_stream.input_stream,),
        )
