"""What a notebook shows of a table or a result that is the value of a cell: ``_repr_html_``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from flowsql.display.endless import query_is_endless
from flowsql.display.html import line_html, table_html, text_html
from flowsql.display.view_rows import FirstRows, Materialized, ViewRows
from flowsql.table.values.answer_kind import AnswerKind
from flowsql.table.values.tableau import row_count
from flowsql_core.errors import FlowSqlError

if TYPE_CHECKING:
    from flowsql.table.query.runnable import RunnableQuery
    from flowsql.table.table_result import TableResult

#: Rows that are shown.
ROWS: Final = 20
#: Seconds that a query may run for the sake of its preview.
PATIENCE_S: Final = 5.0
#: Seconds that the rows of a running query are waited for: it goes on behind its preview.
PEEK_S: Final = 1.0
#: Rows of a running query that are held back for whoever reads it after the preview.
PEEKED_ROWS: Final = 100_000


def query_html(query: RunnableQuery) -> str:
    """The first rows of a query that ends; of one that never does its columns."""
    try:
        if query_is_endless(query._rel, query._environment.configuration):
            return table_html(query._schema, (), "rows that never end: show() keeps them up to date")
        result = query.execute()
        try:
            return _first_rows(result, time.monotonic() + PATIENCE_S)
        finally:
            result.cancel()
    except FlowSqlError as error:
        return text_html(error.render())


def result_html(result: TableResult) -> str:
    """The answer of a statement. Rows that are shown here can still be read."""
    match result.kind:
        case AnswerKind.DONE:
            return line_html("OK")
        case AnswerKind.TEXT:
            return text_html("".join(result.ready_texts()[0]))
        case AnswerKind.LISTING:
            rows = list(zip(*result.ready_texts(), strict=True))
            return table_html(result.schema, rows, row_count(len(rows)))
        case AnswerKind.CHANGE:
            return line_html(_job_text(result))
        case AnswerKind.QUERY:
            try:
                return _running(result)
            except FlowSqlError as error:
                return text_html(error.render())


def _first_rows(result: TableResult, deadline: float) -> str:
    job = result.get_job_client()
    assert job is not None
    first = FirstRows(result, ROWS) if job.has_only_inserts() else None
    view: ViewRows = first or Materialized(result, PEEKED_ROWS)
    view.take(result.batches(deadline))
    rows = view.now()
    line = row_count(len(rows))
    if not job.is_over() and not (first is not None and first.has_more):
        line = f"{line} after {PATIENCE_S:g} s: show() reads on"
    elif first is None and len(rows) > ROWS:
        line = f"the first {row_count(ROWS)} of {len(rows):,}"
    elif first is not None and first.has_more:
        line = f"the first {line}; there are more"
    return table_html(result.schema, rows[:ROWS], line)


def _running(result: TableResult) -> str:
    job = result.get_job_client()
    assert job is not None
    if result.is_read():
        return line_html(f"{row_count(result.rows_given)} read so far; {_job_text(result)}")
    peeked = result.peek(PEEKED_ROWS, time.monotonic() + PEEK_S)
    view = Materialized(result, PEEKED_ROWS)
    view.take(peeked)
    rows = view.now()
    line = row_count(len(rows)) if len(rows) <= ROWS else f"the first {row_count(ROWS)} of {len(rows):,}"
    if not job.is_over():
        line = f"{line} so far; the query runs: show() keeps them up to date, collect() reads them"
    return table_html(result.schema, rows[:ROWS], line)


def _job_text(result: TableResult) -> str:
    job = result.get_job_client()
    assert job is not None
    written = f", {row_count(job.records_written())} written" if result.kind is AnswerKind.CHANGE else ""
    return f"job {job.get_job_id()} is {job.get_job_status().value}{written}"
