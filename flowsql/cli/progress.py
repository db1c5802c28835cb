"""A line on the terminal about a job that takes long; nothing where standard error is a file or a pipe."""

from __future__ import annotations

import contextlib
import io
import shutil
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
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
    from flowsql.display.progress_text import ProgressText
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
