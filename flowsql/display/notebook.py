"""The cell of a notebook that is run: an output that is put in place of the one before."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from flowsql.display.html import line_html
from flowsql.display.progress_text import ProgressText

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult

#: Seconds before the progress of a job is told, and between two lines.
PATIENCE_S: Final = 2.0
PERIOD_S: Final = 0.5


def is_notebook() -> bool:
    """Whether the program runs in the kernel of a notebook, which shows HTML."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    shell = ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class CellOutput:
    """An output of the cell. It appears with its first text."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown = ""

    def show(self, html: str) -> None:
        """Put a text in place of the one before."""
        if html == self._shown:
            return
        self._shown = html
        ipython: Any = importlib.import_module("IPython.display")
        if self._handle is None:
            self._handle = ipython.display(ipython.HTML(html), display_id=True)
        else:
            self._handle.update(ipython.HTML(html))

    def clear(self) -> None:
        """Leave an empty output."""
        if self._handle is not None:
            self.show("")


@contextlib.contextmanager
def cell_progress(result: TableResult) -> Iterator[None]:
    """While the block runs in a notebook, tell in the cell how far the job is; nothing elsewhere."""
    job = result.get_job_client()
    if job is None or not is_notebook():
        yield
        return
    stop = threading.Event()
    cell, told = CellOutput(), ProgressText(result, job)

    def tell() -> None:
        if stop.wait(PATIENCE_S):
            return
        while not stop.is_set():
            cell.show(line_html(told.text()))
            stop.wait(PERIOD_S)

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        stop.set()
        teller.join()
        cell.clear()
