"""What operators tell when somebody asks why nothing comes: asked in the task's thread, between two batches.

Nothing is kept for it while rows go through. A task that is busy answers late or not at all; nobody waits long.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from flowsql_core.record import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Submit = Callable[[Callable[[], None]], None]


@record
class AtWork:
    """Of one subtask of any operator: its task takes mails, so it is not in the middle of a batch."""


@record
class SourceState:
    """Of one subtask of a scan. ``follows``: new splits may come. ``paused``: it waits for sources that are behind."""

    bounded: bool
    splits_left: tuple[str, ...]
    follows: bool
    paused: bool


@record
class Backlog:
    """Of one subtask of a source: whether it gave all that was there when the job started."""

    caught_up: bool


@record
class AssignerState:
    """Of one subtask that makes watermarks.

    ``by_split``: how far the splits are that gave rows; None: the whole source. ``not_begun``: unfinished ones that
    gave none. ``idle_timeout_ms`` 0: the source is never declared idle.
    """

    idle: bool
    by_split: tuple[tuple[str | None, int], ...]
    not_begun: tuple[str, ...]
    idle_timeout_ms: int


@record
class Waiting:
    """The earliest of what one subtask keeps until time has come.

    ``what``: ``window``, ``session`` or ``row``. ``start_ms``, ``end_ms``: its bounds on the clock of ``zone``; a row
    has an end alone. ``due_ms``: the watermark, or the clock, that lets it go.
    """

    what: str
    count: int
    start_ms: int | None
    end_ms: int
    due_ms: int
    zone: str | None = None
    by_clock: bool = False


def earliest(
    what: str,
    ends: npt.NDArray[np.int64],
    dues: npt.NDArray[np.int64],
    passed_ms: int,
    start: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]] | None = None,
    zone: str | None = None,
    by_clock: bool = False,
) -> Waiting | None:
    """The earliest that is not due yet; ``start`` gives starts for ends."""
    open_yet = ends[dues > passed_ms]
    if not len(open_yet):
        return None
    first = open_yet.argmin()
    return Waiting(
        what,
        len(set(open_yet.tolist())),
        None if start is None else int(start(open_yet[first : first + 1])[0]),
        int(open_yet[first]),
        int(dues[dues > passed_ms][first]),
        zone,
        by_clock,
    )


class Answer:
    """What somebody will be told; None: nothing."""

    __slots__ = ("_there", "_value")

    def __init__(self) -> None:
        self._there = threading.Event()
        self._value: object = None

    def give(self, read: Callable[[], object]) -> None:
        """Owner: read and tell. What goes wrong must not harm the job, and is told as nothing."""
        with contextlib.suppress(Exception):
            self._value = read()
        self._there.set()

    def within(self, seconds: float) -> object:
        """What was told, waited for no longer than that."""
        return self._value if self._there.wait(seconds) else None


def asked(submit: Submit, read: Callable[[], object]) -> Answer:
    """What ``read`` gives in the thread that ``submit`` reaches."""
    answer = Answer()
    submit(partial(answer.give, read))
    return answer


def answers(asking: Iterable[Mapping[type, Callable[[], Answer]]], timeout_s: float) -> list[tuple[object, ...]]:
    """What several operators tell; those that do not answer in time tell nothing."""
    begun = [[ask() for ask in list(told.values())] for told in asking]
    deadline = time.monotonic() + timeout_s
    found = [[answer.within(max(0.0, deadline - time.monotonic())) for answer in each] for each in begun]
    return [tuple(one for one in each if one is not None) for each in found]
