"""A line on the terminal about a job that takes long; nothing where standard error is a file or a pipe."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult

#: Seconds before the first line, and between two.
PATIENCE_S = 2.0
PERIOD_S = 0.5


@contextlib.contextmanager
def progress(result: TableResult, stream: TextIO) -> Iterator[None]:
    """While the block runs, tell how long the job has been running and how far it is.

    Of an INSERT to its end; of a query only while another engine has not begun to answer.
    """
    from flowsql.table.table_result import AnswerKind

    job = result.get_job_client()
    if job is None or not stream.isatty() or not (result.kind is AnswerKind.CHANGE or job.is_computing()):
        yield
        return
    whole = result.kind is AnswerKind.CHANGE
    stop = threading.Event()
    started = time.monotonic()

    def tell() -> None:
        if stop.wait(PATIENCE_S):
            return
        while not stop.is_set() and (whole or job.is_computing()):
            stream.write(f"\r\x1b[K[{time.monotonic() - started:.0f} s, {job.progress_text()}]")
            stream.flush()
            stop.wait(PERIOD_S)
        stream.write("\r\x1b[K")
        stream.flush()

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        stop.set()
        teller.join()
