"""When and how asynchronous calls are tried again, under PyFlink's names: refused where a program uses them."""

from __future__ import annotations

from typing import Any, Final

from flowsql.common.refused import refused_name

_NAMES: Final = frozenset(
    {
        "ExponentialBackoffDelayRetryStrategy",
        "FixedDelayRetryStrategy",
        "NoRetryStrategy",
        "RetryPredicate",
    }
)

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    hint = "call the service in a map function; open() makes the connection"
    return refused_name(__name__, name, _NAMES, "async I/O on DataStreams", hint)
