"""Asynchronous functions, under PyFlink's names: refused until there is asynchronous I/O on DataStreams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Generic

from flowsql.common.refused import Refused
from flowsql_core.stream.functions import IN, OUT, Function

_CONSTRUCT: Final = "async I/O on DataStreams"
_HINT: Final = "call the service in a map function; open() makes the connection"


class AsyncFunction(Function, ABC, Generic[IN, OUT]):
    """Works on several elements at once. Programs may define one; :class:`AsyncDataStream` refuses it."""

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The results for an element."""

    def timeout(self, value: IN) -> list[OUT]:
        """The results for an element that took too long."""
        raise TimeoutError("Async function call has timed out for input: " + str(value))


class AsyncRetryPredicate(metaclass=Refused, construct=_CONSTRUCT, hint=_HINT):
    """When a call is tried again."""


class AsyncRetryStrategy(metaclass=Refused, construct=_CONSTRUCT, hint=_HINT):
    """How often a call is tried again."""


class AsyncFunctionDescriptor(metaclass=Refused, construct=_CONSTRUCT, hint=_HINT):
    """An asynchronous function with its settings."""


class AsyncDataStream(metaclass=Refused, construct=_CONSTRUCT, hint=_HINT):
    """Applies asynchronous functions."""

    #: PyFlink's methods; asking for one says that it is refused.
    unordered_wait: Any
    ordered_wait: Any
