"""Which jobs this process runs, and when it offers them to others: once one has been running for a while.

Most jobs are over in less than a second. They cost nothing here but a line in a table.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from flowsql.jobs.registry import JobRegistry

if TYPE_CHECKING:
    from flowsql.jobs.endpoint import ControlEndpoint
    from flowsql_runtime.cluster.job import Job

logger = logging.getLogger(__name__)

#: A job that runs longer than this can be seen and stopped from other processes.
PATIENCE_S: Final = 1.0

#: Elsewhere there are no sockets with an owner: each process is alone.
OTHERS_CAN_SEE: Final = os.name == "posix"

#: Every job that a session or a program of this process starts.
JOBS: Final = JobRegistry()


class _Offer:
    """The endpoint of this process, made when a job is long enough."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = False
        self._endpoint: ControlEndpoint | None = None

    def soon(self) -> None:
        """Look after a while whether a job is still running."""
        with self._lock:
            if self._waiting or self._endpoint is not None or not OTHERS_CAN_SEE:
                return
            self._waiting = True
        threading.Thread(target=self._wait, name="control-offer", daemon=True).start()

    def _wait(self) -> None:
        try:
            while True:
                with self._lock:
                    oldest_ms = JOBS.oldest_alive_ms()
                    if oldest_ms is None:
                        self._waiting = False
                        return
                left_s = PATIENCE_S - (time.time() - oldest_ms / 1000)
                if left_s <= 0:
                    break
                time.sleep(min(left_s, PATIENCE_S))
            from flowsql.jobs.endpoint import ControlEndpoint

            endpoint = ControlEndpoint(_handle, _follow)
        except Exception as error:  # jobs run without it
            logger.warning("Jobs of this process cannot be reached from others: %s", error)
            return
        with self._lock:
            self._endpoint, self._waiting = endpoint, False


def _handle(method: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    from flowsql.jobs.handlers import handle

    return handle(JOBS, method, arguments)


def _follow(method: str, arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]] | None:
    from flowsql.jobs.handlers import follow

    return follow(JOBS, method, arguments)


_OFFER: Final = _Offer()


def watch(job: Job) -> None:
    """Make a job known to this process and, if it runs long enough, to the user's other processes."""
    JOBS.add(job)
    _OFFER.soon()
