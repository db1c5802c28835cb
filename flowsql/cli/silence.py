"""What a user hears of a query or an INSERT that gives no rows: why, once, and again when the reason is another one."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from flowsql.cli.progress import above_progress
from flowsql.table.table_result import AnswerKind
from flowsql_core.secrets.hidden import hidden

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.table.table_result import TableResult

#: Seconds between two reasons at least.
PERIOD_S = 30.0


@contextlib.contextmanager
def explained_silence(
    result: TableResult, patience_ms: int, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """While the block runs, tell why no rows come, if none come for so long.

    Args:
        result: of a query or an INSERT; for others nothing is done.
        patience_ms: 0 tells nothing.
        tell: takes each line; by default standard error does.
    """
    job = result.get_job_client()
    if job is None or not patience_ms or result.kind not in (AnswerKind.CHANGE, AnswerKind.QUERY):
        yield
        return
    stop = threading.Event()
    watch = _Watch(result, job, patience_ms / 1000, tell or _to_standard_error)
    watcher = threading.Thread(target=watch.run, args=(stop,), name="silence", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _to_standard_error(line: str) -> None:
    above_progress(sys.stderr).write(f"[INFO] {line}\n")
    sys.stderr.flush()


class _Watch:
    """Looks at a job now and then, at little cost: a reason is looked for only while nothing comes."""

    def __init__(self, result: TableResult, job: JobClient, patience_s: float, tell: Callable[[str], None]) -> None:
        self._result = result
        self._job = job
        self._patience_s = patience_s
        self._tell = tell

    def run(self, stop: threading.Event) -> None:
        """Look until somebody says stop."""
        given, read = self._given(), 0
        quiet_since = time.monotonic()
        next_look = quiet_since + self._patience_s
        key = ""
        while not stop.wait(max(0.0, min(next_look - time.monotonic(), self._patience_s))):
            rows = self._given()
            now = time.monotonic()
            if rows != given:
                given, read, quiet_since = rows, self._job.records_read(), now
                next_look = max(next_look, now + self._patience_s)
            if now < next_look:
                continue
            next_look = now + self._patience_s
            if self._job.is_over() or self._job.is_computing():
                continue
            found = self._job.explain_silence(read)
            read = self._job.records_read()
            if found is not None and found.key != key and not stop.is_set():
                key = found.key
                next_look = now + PERIOD_S
                self._tell(hidden(_line(given, now - quiet_since, found.text)))

    def _given(self) -> int:
        return self._result.rows_given if self._result.kind is AnswerKind.QUERY else self._job.records_written()


def _line(given: int, seconds: float, text: str) -> str:
    so_long = f"{seconds:.0f} seconds" if seconds >= 1.5 else f"{seconds:.1g} s"
    return f"No {'more ' if given else ''}rows for {so_long}: {text}."
