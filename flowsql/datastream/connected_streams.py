"""``ConnectedStreams``: two streams of different types for one function, which sees each value and whence it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowsql.common.typeinfo import TypeInformation, Types
from flowsql.datastream import operators
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.stream_specs import CoCall
from flowsql_core.stream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)

if TYPE_CHECKING:
    from flowsql.datastream.data_stream import DataStream


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

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One value, or none for None, for each."""
        if not isinstance(func, CoMapFunction):
            raise TypeError("The input function must be a CoMapFunction!")
        return self._co("Co-Map", func, CoCall.MAP, output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of values for each."""
        if not isinstance(func, CoFlatMapFunction):
            raise TypeError("The input must be a CoFlatMapFunction!")
        return self._co("Co-Flat Map", func, CoCall.FLAT_MAP, output_type)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """What a CoProcessFunction makes of each value; keyed streams take a KeyedCoProcessFunction."""
        wanted = KeyedCoProcessFunction if self._keyed else CoProcessFunction
        if not isinstance(func, wanted):
            raise TypeError(f"The input must be a {wanted.__name__}!")
        return self._co("Keyed Co-Process" if self._keyed else "Co-Process", func, CoCall.PROCESS, output_type)

    @property
    def _keyed(self) -> bool:
        keyed = [stream.is_keyed for stream in (self.stream1, self.stream2)]
        if keyed[0] != keyed[1]:
            raise TypeError("Both streams must be keyed, or none.")
        return keyed[0]

    def _co(self, name: str, func: Any, call: CoCall, output_type: TypeInformation | None) -> DataStream:
        type_ = output_type or Types.PICKLED_BYTE_ARRAY()
        make = operators.co_function(func, call, self._keyed, type_)
        return self.stream1.transform(
            name, make, type_, others=(self.stream2,), refused_in_batch="connected streams in batch mode"
        )


class BroadcastStream:
    """A stream for broadcast state: refused where it would be made."""

    def __init__(self) -> None:
        raise NotSupportedYetError("broadcast state")
