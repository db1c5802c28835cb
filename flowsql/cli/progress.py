"""A line on the terminal about a job that takes long; nothing where standard error is a file or a pipe."""

from __future__ import annotations

import contextlib
import io
import shutil
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.table.table_result import TableResult

#: Seconds before the first line, and between two.
PATIENCE_S = 2.0
PERIOD_S = 0.5

_ERASE = "\r\x1b[K"


class _Line:
    """The one line below what is printed. Rows and line share a terminal: who writes rows erases the line first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._stream: TextIO | None = None
        self._text = ""

    def draw(self, stream: TextIO, text: str) -> None:
        """Show a text in place of the one before, cut to the terminal's width."""
        width = shutil.get_terminal_size().columns - 1
        with self.lock:
            self._stream, self._text = stream, text[:width]
            self._write(_ERASE + self._text)

    def write_above(self, out: TextIO, text: str) -> int:
        """Write rows where the line stands, and the line below them."""
        with self.lock:
            if self._stream is None:
                return out.write(text)
            self._write(_ERASE)
            written = out.write(text)
            out.flush()
            if text.endswith("\n"):
                self._write(self._text)
            return written

    def erase(self) -> None:
        """Leave nothing of it."""
        with self.lock:
            if self._stream is not None:
                self._write(_ERASE)
                self._stream = None

    def _write(self, text: str) -> None:
        assert self._stream is not None
        self._stream.write(text)
        self._stream.flush()


_line = _Line()


class _Above(io.TextIOBase):
    """A stream to a terminal whose last line may be the progress of a job."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        """Write above the line of progress."""
        return _line.write_above(self._out, text)

    def flush(self) -> None:
        """As the stream does."""
        self._out.flush()


def above_progress(out: TextIO) -> TextIO:
    """The same stream; to a terminal one that does not run into the line of progress."""
    return _Above(out) if out.isatty() else out  # type: ignore[return-value]


@contextlib.contextmanager
def progress(result: TableResult, stream: TextIO) -> Iterator[None]:
    """While the block runs, tell how long the job has been running and how far it is."""
    from flowsql.table.table_result import AnswerKind

    job = result.get_job_client()
    if job is None or not stream.isatty() or result.kind not in (AnswerKind.CHANGE, AnswerKind.QUERY):
        yield
        return
    stop = threading.Event()
    told = ProgressText(result, job)

    def tell() -> None:
        if stop.wait(PATIENCE_S):
            return
        while not stop.is_set():
            _line.draw(stream, told.text())
            stop.wait(PERIOD_S)

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        stop.set()
        teller.join()
        _line.erase()


class ProgressText:
    """What is told of one job: the seconds, how far it is or how many rows came, how many a second, its watermark."""

    def __init__(self, result: TableResult, job: JobClient) -> None:
        self._result = result
        self._job = job
        self._started = time.monotonic()
        self._last = (self._started, 0)

    def text(self) -> str:
        """The line."""
        from flowsql.table.table_result import AnswerKind

        now = time.monotonic()
        parts = [f"{now - self._started:.0f} s"]
        if self._result.kind is AnswerKind.CHANGE or self._job.is_computing():
            parts.append(self._job.progress_text())
            return f"[{', '.join(parts)}]"
        rows = self._result.rows_given
        before, rows_before = self._last
        self._last = (now, rows)
        rate = (rows - rows_before) / max(now - before, 0.001)
        parts += [f"{rows:,} {'row' if rows == 1 else 'rows'}", f"{rate:,.0f} rows/s"]
        parts += filter(None, [self._job.progress_text(), watermark_text(self._job)])
        return f"[{', '.join(parts)}]"


def watermark_text(job: JobClient) -> str:
    """How far event time is, in the notation of timestamps; nothing where there is none."""
    reached_ms = job.watermark_ms()
    if reached_ms is None:
        return ""
    import datetime

    try:
        moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=reached_ms)
    except OverflowError:
        return "watermark at the end"
    return f"watermark {moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"
