"""``CloseableIterator``: the values of a running job, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from flowsql.common.public_api import public_api
from flowsql_core.graph.stream_specs import VALUE

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.table.session.collect import CollectBuffer


@public_api
class CloseableIterator:
    """Values of a stream, once. A context manager: leaving it ends the job behind an unfinished iterator."""

    def __init__(self, buffer: CollectBuffer, client: JobClient, convert: Callable[[Any], Any] | None = None) -> None:
        self._buffer = buffer
        self._client = client
        self._convert = convert
        self._values = self._read()
        self._closed = False

    def _read(self) -> Iterator[Any]:
        for batch in self._buffer.batches(self._client.is_over):
            values = batch.columns[VALUE].values
            yield from values if self._convert is None else map(self._optional, values)
        self._client.wait()
        if not self._closed:
            self._client.check_not_cancelled()

    def _optional(self, value: Any) -> Any:
        return value if value is None or self._convert is None else self._convert(value)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._values)

    def next(self) -> Any:
        """The next value; StopIteration at the end, or what made the job fail."""
        return next(self._values)

    def close(self) -> None:
        """End the job if it still runs; further values are lost."""
        self._closed = True
        self._buffer.cancel()
        if not self._client.is_over():
            self._client.cancel_and_wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
