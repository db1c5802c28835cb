"""An event loop in a thread of its own: the coroutines of one subtask run there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final

#: So long coroutines may take to end once they were cancelled.
LONGEST_END_S: Final = 1.0


class EventLoop:
    """Runs coroutines until :meth:`stop`."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._running: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, call: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine (any thread)."""
        self._loop.call_soon_threadsafe(self._start, call)

    def stop(self) -> None:
        """Cancel what runs, and end; a coroutine that does not let itself be cancelled is left behind."""
        self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join(LONGEST_END_S)

    def _start(self, call: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(call)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _cancel(self) -> None:
        for task in self._running:
            task.cancel()
        cancelled = asyncio.gather(*self._running, return_exceptions=True)
        cancelled.add_done_callback(lambda _: self._loop.stop())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
