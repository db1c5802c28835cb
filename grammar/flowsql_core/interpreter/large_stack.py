"""More room on the stack for what nests deeper than Python allows: statements, expressions, types, values.

Almost none is deep, so that a first attempt runs as it is. Binding, planning and compiling change nothing but caches,
so that they can be repeated: in a thread of its own, whose stack is large, with a higher limit.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: Address space, of which only what is used becomes memory; and calls that it certainly holds.
_STACK_BYTES: Final = 1 << 30
_CALLS: Final = 100_000

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
            return _in_thread(work)


def in_large_stack(work: Callable[[], T]) -> T:
    """Return or raise what ``work`` does, which is known to need a large stack.

    Raises:
        RecursionError: the large stack was not enough.
    """
    if getattr(_LARGE, "here", False):
        return work()
    with _LOCK:
        return _in_thread(work)


def _in_thread(work: Callable[[], T]) -> T:
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
