"""``CompletableFuture``: an answer that comes with the end of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from flowsql.common.public_api import public_api

T = TypeVar("T")


@public_api
class CompletableFuture(Generic[T]):
    """An answer that may not be there yet.

    Args:
        answer: blocks until the answer is there, and gives it or raises.
        done: whether ``answer`` would return at once.
    """

    def __init__(self, answer: Callable[[], T], done: Callable[[], bool]) -> None:
        self._answer = answer
        self._done = done

    def done(self) -> bool:
        """Whether the answer is there, or never will be."""
        return self._done()

    def cancelled(self) -> bool:
        """Whether the question was taken back; it cannot be."""
        return False

    def cancel(self) -> bool:
        """False: the question cannot be taken back. Cancel the job itself with ``JobClient.cancel``."""
        return False

    def result(self) -> T:
        """Wait for the answer; raises what kept it from coming."""
        return self._answer()

    def exception(self) -> BaseException | None:
        """Wait, then what kept the answer from coming, or None."""
        try:
            self._answer()
        except Exception as error:
            return error
        return None
