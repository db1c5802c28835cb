"""Asynchronous functions as programs write them, and when a call is tried again. PyFlink's names and signatures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Generic

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
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """So many times more, always after the same time."""
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
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[Any]):
    """The two predicates of a strategy."""

    def __init__(self, result_predicate: ResultPredicate | None, exception_predicate: ErrorPredicate | None) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        """True for results that are not good enough."""
        return self._result_predicate

    def exception_predicate(self) -> ErrorPredicate | None:
        """True for errors that may go away."""
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[Any]):
    """No call is tried again."""

    def can_retry(self, current_attempts: int) -> bool:
        """Never."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """There is none."""
        return -1

    def get_retry_predicate(self) -> RetryPredicate:
        """Nothing is asked."""
        return RetryPredicate(None, None)


class _Limited(AsyncRetryStrategy[Any]):
    """So many times more."""

    def __init__(
        self,
        max_attempts: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> None:
        _check_positive(max_attempts=max_attempts)
        self._max_attempts = max_attempts
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        """``max_attempts`` times after the first call."""
        return current_attempts <= self._max_attempts

    def get_retry_predicate(self) -> RetryPredicate:
        """The predicates that were given."""
        return self._predicate


class FixedDelayRetryStrategy(_Limited):
    """Always after the same time."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        _check_positive(backoff_time_millis=backoff_time_millis)
        self._backoff_time_millis = backoff_time_millis

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The same after each attempt."""
        return self._backoff_time_millis


class ExponentialBackoffDelayRetryStrategy(_Limited):
    """After times that grow by a factor up to a limit, for each element from the beginning.

    PyFlink's keeps one time for all elements in flight, which then depends on their order.
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        _check_positive(initial_delay=initial_delay, max_retry_delay=max_retry_delay, multiplier=multiplier)
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The initial time after the first attempt, then more and more."""
        delay = self._initial_delay
        for _ in range(1, current_attempts):
            delay = int(min(delay * self._multiplier, self._max_retry_delay))
        return delay


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if number <= 0:
            raise ValueError(f"{name} should be greater than zero.")


NO_RETRY_STRATEGY: Final[AsyncRetryStrategy[Any]] = NoRetryStrategy()
