"""``show()``: an answer as a table, in a notebook kept up to date while the query runs."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from flowsql.display.notebook import CellOutput, is_notebook
from flowsql.display.preview import result_html
from flowsql.display.progress_text import ProgressText
from flowsql.display.view_rows import Cells, FirstRows, LastRows, Materialized, ViewRows
from flowsql.table.values.answer_kind import AnswerKind
from flowsql.table.values.tableau import Tableau, row_count

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult

#: Rows of an updating answer that are kept; the oldest go.
KEPT: Final = 1_000_000
#: Seconds between two looks at the rows.
PERIOD_S: Final = 0.3


def show(result: TableResult, rows: int, timeout_s: float | None) -> None:
    """See :meth:`~flowsql.table.table_result.TableResult.show`."""
    if rows < 1:
        raise ValueError(f"show() takes a number of rows above zero, got {rows}")
    if result.kind is AnswerKind.QUERY:
        _show_query(result, rows, timeout_s)
    elif not is_notebook():
        result.print()
    else:
        if result.kind is AnswerKind.CHANGE:
            result.wait()
        CellOutput().show(result_html(result))


class QueryView:
    """The table of a query: the rows that are shown, and the line below them.

    Args:
        rows: shown at most: the newest of a query whose rows never end, the first of others.
    """

    def __init__(self, result: TableResult, rows: int) -> None:
        job = result.get_job_client()
        assert job is not None
        self._result = result
        self._rows = rows
        self._progress = ProgressText(result, job)
        self._is_endless = job.is_endless()
        self.view: ViewRows
        if not job.has_only_inserts():
            self.view = Materialized(result, KEPT)
        elif self._is_endless and is_notebook():
            self.view = LastRows(result, rows)
        else:
            # Nobody looks at a terminal's rows while they change: the first ones are as good.
            self.view = FirstRows(result, rows)

    def rows(self) -> list[Cells]:
        """The rows that are shown now."""
        found = self.view.now()
        return found[-self._rows :] if self._is_endless else found[: self._rows]

    def line(self, end: str = "") -> str:
        """What is told below them; ``end``: how the query ended before its rows did."""
        found, shown = self.view.now(), self.rows()
        if isinstance(self.view, FirstRows):
            count = f"the first {row_count(len(shown))}; there are more" if self.view.has_more else ""
        elif isinstance(self.view, LastRows):
            given = self._result.rows_given
            count = f"the newest {row_count(len(shown))} of {given:,}" if given > len(shown) else ""
        elif len(found) > len(shown):
            count = f"the {'newest' if self._is_endless else 'first'} {row_count(len(shown))} of {len(found):,}"
        else:
            count = ""
        count = count or row_count(len(shown))
        if end:
            return f"{count}, {end}"
        return count if self.view.is_complete else f"{count} {self._progress.text()}"

    def html(self, end: str = "") -> str:
        """Both as HTML."""
        from flowsql.display.html import table_html

        return table_html(self._result.schema, self.rows(), self.line(end))

    def text(self, end: str = "") -> str:
        """Both as printed text."""
        result, shown = self._result, self.rows()
        if not shown:
            return f"Empty set{f', {end}' if end else ''}\n"
        table = Tableau.by_texts(result.schema, shown, result.max_column_width)
        return table.header() + table.lines(shown) + table.border() + self.line(end) + "\n"


def _show_query(result: TableResult, rows: int, timeout_s: float | None) -> None:
    query = QueryView(result, rows)
    cell = CellOutput() if is_notebook() else None
    reader = threading.Thread(target=query.view.read, name="show", daemon=True)
    end = ""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        reader.start()
        # Not by `Thread.join(timeout)`: up to Python 3.12 an interrupt in it marks a thread as ended that still runs.
        while not query.view.has_ended.wait(PERIOD_S):
            if deadline is not None and time.monotonic() >= deadline:
                end = f"stopped after {timeout_s:g} s"
                break
            if cell is not None:
                cell.show(query.html())
    except KeyboardInterrupt:
        # Whoever ends the query wants to see how far it came.
        end = "stopped"
    finally:
        failure = query.view.failure
        was_complete = query.view.is_complete
        result.cancel()
        if reader.ident is not None:
            query.view.has_ended.wait()
    if failure is not None:
        raise failure
    end = "" if was_complete else end
    if cell is not None:
        cell.show(query.html(end))
    else:
        sys.stdout.write(query.text(end))
        sys.stdout.flush()
