"""Functions whose results have a declared type: a user's function with the type's converter behind it.

What a function emits to a side output is not of that type and passes untouched. Only what has a converter is wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flowsql.common.type_conversion import Converter
from flowsql.common.typeinfo import TypeInformation
from flowsql_core.stream.async_functions import AsyncFunction
from flowsql_core.stream.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from flowsql_core.stream.functions import (
    AggregateFunction,
    AllWindowFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FlatMapFunction,
    Function,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    WindowFunction,
)
from flowsql_core.stream.output_tag import OutputTag


def typed(function: Any, kind: type[Function], type_: TypeInformation) -> Any:
    """The function as it is, or wrapped so that its results pass the converter of their type.

    Args:
        function: an instance of ``kind``, or a callable that stands for one.
        kind: the base class that says which of the function's methods give results.
        type_: of the results.
    """
    # None is a key, as it is a value of a field.
    convert = type_.nullable_converter() if kind is KeySelector else type_.converter()
    if convert is None:
        return function
    return _WRAPPERS[kind](function, convert)


class _Wrapper(Function):
    """Opens and closes the function inside, which a subtask copies together with its wrapper."""

    def __init__(self, inner: Any, convert: Converter) -> None:
        self._inner = inner
        self._convert = convert

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._inner, Function):
            self._inner.open(runtime_context)

    def close(self) -> None:
        if isinstance(self._inner, Function):
            self._inner.close()

    def _method(self, name: str) -> Any:
        """The function's method, or the callable itself."""
        return getattr(self._inner, name) if isinstance(self._inner, Function) else self._inner

    def _each(self, results: Iterable[Any] | None) -> Iterator[Any]:
        if results is None:
            return
        convert = self._convert
        for result in results:
            if type(result) is tuple and len(result) == 2 and isinstance(result[0], OutputTag):
                yield result
            else:
                yield convert(result)


class _Map(_Wrapper, MapFunction):
    _call: Any = None

    def map(self, value: Any) -> Any:
        if self._call is None:
            self._call = self._method("map")
        return self._convert(self._call(value))


class _FlatMap(_Wrapper, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        return self._each(self._method("flat_map")(value))


class _Async(_Wrapper, AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> Any:
        return self._converted(await self._inner.async_invoke(value))

    def timeout(self, value: Any) -> Any:
        return self._converted(self._inner.timeout(value))

    def _converted(self, results: Any) -> Any:
        # What is no list is refused by the operator.
        return [self._convert(result) for result in results] if isinstance(results, Iterable) else results


class _Reduce(_Wrapper, ReduceFunction):
    _call: Any = None

    def reduce(self, value1: Any, value2: Any) -> Any:
        if self._call is None:
            self._call = self._method("reduce")
        return self._convert(self._call(value1, value2))


class _KeySelector(_Wrapper, KeySelector):
    _call: Any = None

    def get_key(self, value: Any) -> Any:
        if self._call is None:
            self._call = self._method("get_key")
        return self._convert(self._call(value))


class _Process(_Wrapper, ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        return self._each(self._inner.process_element(value, ctx))


class _KeyedProcess(_Wrapper, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return self._each(self._inner.process_element(value, ctx))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        return self._each(self._inner.on_timer(timestamp, ctx))


class _CoMap(_Wrapper, CoMapFunction):
    def map1(self, value: Any) -> Any:
        result = self._inner.map1(value)
        return None if result is None else self._convert(result)

    def map2(self, value: Any) -> Any:
        result = self._inner.map2(value)
        return None if result is None else self._convert(result)


class _CoFlatMap(_Wrapper, CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        return self._each(self._inner.flat_map1(value))

    def flat_map2(self, value: Any) -> Any:
        return self._each(self._inner.flat_map2(value))


class _CoProcess(_Wrapper, CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        return self._each(self._inner.process_element1(value, ctx))

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        return self._each(self._inner.process_element2(value, ctx))


class _KeyedCoProcess(_Wrapper, KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self._each(self._inner.process_element1(value, ctx))

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self._each(self._inner.process_element2(value, ctx))

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        return self._each(self._inner.on_timer(timestamp, ctx))


class _BroadcastProcess(_Wrapper, BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        return self._each(self._inner.process_element(value, ctx))

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        return self._each(self._inner.process_broadcast_element(value, ctx))


class _KeyedBroadcastProcess(_Wrapper, KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        return self._each(self._inner.process_element(value, ctx))

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        return self._each(self._inner.process_broadcast_element(value, ctx))

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        return self._each(self._inner.on_timer(timestamp, ctx))


class _Window(_Wrapper, WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return self._each(self._inner.apply(key, window, inputs))


class _AllWindow(_Wrapper, AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return self._each(self._inner.apply(window, inputs))


class _ProcessWindow(_Wrapper, ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]) -> Iterable[Any]:
        return self._each(self._inner.process(key, context, elements))

    def clear(self, context: ProcessWindowFunction.Context[Any]) -> None:
        self._inner.clear(context)


class _ProcessAllWindow(_Wrapper, ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: ProcessAllWindowFunction.Context[Any], elements: Iterable[Any]) -> Iterable[Any]:
        return self._each(self._inner.process(context, elements))

    def clear(self, context: ProcessAllWindowFunction.Context[Any]) -> None:
        self._inner.clear(context)


class _Aggregate(_Wrapper, AggregateFunction):
    def create_accumulator(self) -> Any:
        return self._inner.create_accumulator()

    def add(self, value: Any, accumulator: Any) -> Any:
        return self._inner.add(value, accumulator)

    def get_result(self, accumulator: Any) -> Any:
        return self._convert(self._inner.get_result(accumulator))

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return self._inner.merge(acc_a, acc_b)


_WRAPPERS: dict[type[Function], type[_Wrapper]] = {
    KeySelector: _KeySelector,
    AsyncFunction: _Async,
    MapFunction: _Map,
    FlatMapFunction: _FlatMap,
    ReduceFunction: _Reduce,
    ProcessFunction: _Process,
    KeyedProcessFunction: _KeyedProcess,
    CoMapFunction: _CoMap,
    CoFlatMapFunction: _CoFlatMap,
    CoProcessFunction: _CoProcess,
    KeyedCoProcessFunction: _KeyedCoProcess,
    BroadcastProcessFunction: _BroadcastProcess,
    KeyedBroadcastProcessFunction: _KeyedBroadcastProcess,
    WindowFunction: _Window,
    AllWindowFunction: _AllWindow,
    ProcessWindowFunction: _ProcessWindow,
    ProcessAllWindowFunction: _ProcessAllWindow,
    AggregateFunction: _Aggregate,
}
