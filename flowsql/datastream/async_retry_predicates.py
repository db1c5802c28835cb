"""After which results and errors an asynchronous call is tried again, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def empty_result_predicate(result: Sequence[Any] | None) -> bool:
    """Whether there is no result."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Whether there was an exception."""
    return error is not None


def exception_type_predicate(error: BaseException | None, expected_error_type: type[BaseException]) -> bool:
    """Whether there was an exception of a type."""
    return isinstance(error, expected_error_type)
