"""``AsyncDataStream``: asynchronous functions on streams, and the classes around them, under PyFlink's names."""

from __future__ import annotations

import enum
import inspect
from typing import TYPE_CHECKING, Any

from flowsql.common.public_api import public_api
from flowsql.datastream.plan import operators
from flowsql.datastream.values.result_type import OutputType, result_type
from flowsql_core.stream.async_functions import (
    NO_RETRY_STRATEGY,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from flowsql_core.stream.time import Span, span_ms

if TYPE_CHECKING:
    from flowsql.datastream.data_stream import DataStream

__all__ = ["AsyncDataStream", "AsyncFunction", "AsyncFunctionDescriptor", "AsyncRetryPredicate", "AsyncRetryStrategy"]

#: Elements that may be in flight, where a program says nothing.
_CAPACITY = 100


class AsyncFunctionDescriptor:
    """An asynchronous function with its settings."""

    class OutputMode(enum.Enum):
        """In which order results leave."""

        ORDERED = 0
        UNORDERED = 1

    def __init__(
        self,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        capacity: int,
        async_retry_strategy: AsyncRetryStrategy[Any],
        output_mode: OutputMode,
    ) -> None:
        self.async_function = async_function
        self.timeout = timeout
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode


@public_api
class AsyncDataStream:
    """Applies asynchronous functions to streams."""

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        capacity: int = _CAPACITY,
        output_type: OutputType = None,
    ) -> DataStream:
        """Results leave as they come, but never across a watermark."""
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = _CAPACITY,
        output_type: OutputType = None,
    ) -> DataStream:
        """The same where calls may be tried again; ``timeout`` is that of all attempts together."""
        mode = AsyncFunctionDescriptor.OutputMode.UNORDERED
        asked = AsyncFunctionDescriptor(async_function, timeout, capacity, async_retry_strategy, mode)
        return _applied(data_stream, asked, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        capacity: int = _CAPACITY,
        output_type: OutputType = None,
    ) -> DataStream:
        """Results leave in the order of their elements."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = _CAPACITY,
        output_type: OutputType = None,
    ) -> DataStream:
        """The same where calls may be tried again; ``timeout`` is that of all attempts together."""
        mode = AsyncFunctionDescriptor.OutputMode.ORDERED
        asked = AsyncFunctionDescriptor(async_function, timeout, capacity, async_retry_strategy, mode)
        return _applied(data_stream, asked, output_type)


def _applied(stream: DataStream, asked: AsyncFunctionDescriptor, output_type: OutputType) -> DataStream:
    function, strategy = asked.async_function, asked.async_retry_strategy
    timeout_ms = span_ms(asked.timeout)
    if not isinstance(function, AsyncFunction):
        raise TypeError("The input must be an AsyncFunction")
    name = type(function).__name__
    if not inspect.iscoroutinefunction(function.async_invoke):
        raise TypeError(f"Method 'async_invoke' of class '{name}' should be declared as 'async def'.")
    if not isinstance(strategy, AsyncRetryStrategy):
        raise TypeError("Async retry strategy should not be None.")
    tries_again = strategy is not NO_RETRY_STRATEGY
    if tries_again and timeout_ms <= 0:
        raise ValueError("Timeout should be configured when do async with retry.")
    if strategy.get_retry_predicate() is None:
        raise TypeError(f"Retry predicate of the async retry strategy '{type(strategy).__name__}' is None.")
    if asked.capacity < 1:
        raise ValueError(f"the capacity is at least 1, not {asked.capacity}")
    type_ = result_type(output_type)
    ordered = asked.output_mode is AsyncFunctionDescriptor.OutputMode.ORDERED
    retry = strategy if tries_again else None
    make = operators.async_function(function, ordered, timeout_ms, asked.capacity, retry, type_)
    return stream.transform("async wait operator", make, type_)
