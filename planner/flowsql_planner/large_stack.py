"""Statements that nest deeper than Python's stack allows, such as joins of hundreds of tables: planned with more room.

Almost no statement is deep, so that the first attempt runs as it is. Binding and planning change nothing but caches, so
that they can be repeated: in a thread of its own, whose stack is large, with a higher limit.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: Address space, of which only what is used becomes memory; and calls that it certainly holds.
_STACK_BYTES: Final = 256 << 20
_CALLS: Final = 20_000

#: The limit is the process's: while one thread has more room, nobody else begins to plan, whose stack is small.
_LOCK: Final = threading.RLock()
_LARGE: Final = threading.local()


def with_room(work: Callable[[], T]) -> T:
    """What ``work`` returns or raises; ``work`` may be called twice.

    Raises:
        RecursionError: the second attempt was not enough either.
    """
    if getattr(_LARGE, "here", False):
        return work()
    with _LOCK:
        try:
            return work()
        except RecursionError:
            return _in_large_stack(work)


def _in_large_stack(work: Callable[[], T]) -> T:
    answers: list[T] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        _LARGE.here = True
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(attempt,), name="flowsql-planner", daemon=True)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _CALLS))
    try:
        _start(thread)
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return answers[0]


def _start(thread: threading.Thread) -> None:
    before = threading.stack_size(_STACK_BYTES)
    try:
        thread.start()
    except RuntimeError as error:
        raise RecursionError("no memory for a larger stack") from error
    finally:
        threading.stack_size(before)
