"""A database that goes away and comes back: connections are made again, with growing pauses."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from flowsql_connectors.cdc.log import DatabaseLog
from flowsql_connectors.cdc.options import CdcSettings
from flowsql_core.errors import ConnectorError

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0

T = TypeVar("T")


class StoppedError(Exception):
    """The reader was closed in the meantime."""


class Reconnecting:
    """A log that is opened when it is first asked, and again where its connection is lost; one thread.

    A failure that is not ``retryable`` passes, and so does one that comes again ``connect.max-retries`` times and for
    ``connect.timeout``: the restart strategy of the job may go on from there.
    """

    def __init__(self, open_log: Callable[[], DatabaseLog], settings: CdcSettings, stopped: threading.Event) -> None:
        self._open_log = open_log
        self._settings = settings
        self._stopped = stopped
        self._log: DatabaseLog | None = None
        self._failures = 0
        self._failing_since = 0.0

    def ask(self, question: Callable[[DatabaseLog], T]) -> T:
        """The answer of the log, asked as often as it takes."""
        while True:
            if self._stopped.is_set():
                raise StoppedError
            try:
                answer = question(self.log)
            except ConnectorError as error:
                self.failed(error)
            else:
                self.succeeded()
                return answer

    @property
    def log(self) -> DatabaseLog:
        """The log; it connects when it is asked for something."""
        if self._log is None:
            self._log = self._open_log()
        return self._log

    def succeeded(self) -> None:
        """The database answered."""
        self._failures = 0

    def failed(self, error: ConnectorError) -> None:
        """Pause after a failure, to try with a new connection; or raise it.

        Raises:
            ConnectorError: it is no use to try again.
            StoppedError: the reader was closed.
        """
        self.close()
        if not error.retryable:
            raise error
        now = time.monotonic()
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        waited_ms = (now - self._failing_since) * 1000
        if self._failures > self._settings.retries and waited_ms >= self._settings.timeout_ms:
            raise error
        pause_s = min(_FIRST_PAUSE_S * 2 ** (self._failures - 1), _LONGEST_PAUSE_S)
        logger.warning("%s Trying again in %.1f s.", error.message, pause_s)
        if self._stopped.wait(pause_s):
            raise StoppedError

    def cancel(self) -> None:
        """Give up what the thread waits for; any thread."""
        log = self._log
        if log is not None:
            log.cancel()

    def close(self) -> None:
        """Release the connections."""
        if self._log is not None:
            self._log.close()
            self._log = None
