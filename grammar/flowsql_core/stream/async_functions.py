"""Asynchronous functions as programs write them, and when a call is tried again. PyFlink's names and signatures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic

from flowsql_core.stream.functions import IN, OUT, Function

ResultPredicate = Callable[[list[Any]], bool]
ErrorPredicate = Callable[[Exception], bool]


class AsyncFunction(Function, Generic[IN, OUT]):
    """Works on several elements at once: a coroutine for each."""

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The results for an element."""

    def timeout(self, value: IN) -> list[OUT]:
        """The results for an element that took too long."""
        raise TimeoutError("Async function call has timed out for input: " + str(value))


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """After which results and errors a call is tried again."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate | None:
        """True for results that are not good enough; None: all are."""

    @abstractmethod
    def exception_predicate(self) -> ErrorPredicate | None:
        """True for errors that may go away; None: none does."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """How often and how soon a call is tried again. One object serves all elements of a subtask."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether there may be one more after so many."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait after so many attempts, in ms."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """After what."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never."""
        from flowsql_core.stream.async_retries import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """So many times more, always after the same time."""
        from flowsql_core.stream.async_retries import FixedDelayRetryStrategy

        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """So many times more, after times that grow."""
        from flowsql_core.stream.async_retries import ExponentialBackoffDelayRetryStrategy

        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )
