"""Wake-ups after a pause, for readers whose rows come with the time: one thread for all of them."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable


class Alarm:
    """Calls back after a pause, from one daemon thread that starts with the first call.

    ``threading.Timer`` starts a thread for every pause: thousands a minute for a source with a rate.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def after(self, seconds: float, wake: Callable[[], None]) -> None:
        """Call ``wake`` in ``seconds``; it must return at once and not raise (any thread)."""
        with self._changed:
            entry = (time.monotonic() + seconds, next(self._numbers), wake)
            heapq.heappush(self._due, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="alarm", daemon=True)
                self._thread.start()
            elif self._due[0] is entry:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                pause = self._due[0][0] - time.monotonic() if self._due else None
                if pause is None or pause > 0:
                    self._changed.wait(pause)
                    continue
                wake = heapq.heappop(self._due)[2]
            wake()


#: The one of this process.
ALARM = Alarm()
