"""Shows the rows of a query on a screen of their own, as ``sql-client.execution.result-mode`` says."""

from __future__ import annotations

import sys

from flowsql.cli.options import MAX_TABLE_RESULT_ROWS, RESULT_MODE, ResultMode
from flowsql.display.progress_text import ProgressText
from flowsql.display.view_rows import Changes, Materialized, ViewRows
from flowsql.table.table_result import TableResult
from flowsql.table.values.tableau import text_width, type_width
from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError


def view(result: TableResult, configuration: Configuration) -> None:
    """Show the rows until the user leaves, which ends the query.

    Raises:
        ExecutionError: the changes of a query of batch mode were asked for: there are none.
        FlowSqlError: what made the query fail.
    """
    # The library of screens takes as long to load as a short script to run.
    from flowsql.cli.shell.views.screen import View

    names = [column.name for column in result.schema]
    widths = [
        max(text_width(column.name), type_width(column.type, result.max_column_width)) for column in result.schema
    ]
    job = result.get_job_client()
    assert job is not None
    told = ProgressText(result, job)
    rows: ViewRows
    if configuration.get(RESULT_MODE) is ResultMode.TABLE:
        rows = Materialized(result, configuration.get(MAX_TABLE_RESULT_ROWS))
        screen = View("SQL Query Result (Table)", names, widths, rows, told.text, is_paged=True)
    else:
        if not result.streaming:
            raise ExecutionError(
                "changelog-in-batch-mode",
                "Results of batch queries can only be served in table or tableau mode.",
                hint="SET 'sql-client.execution.result-mode' = 'table'",
            )
        rows = Changes(result)
        screen = View("SQL Query Result (Changelog)", ["op", *names], [2, *widths], rows, told.text, is_paged=False)
    screen.run()
    if rows.failure is not None:
        raise rows.failure
    if not rows.is_complete:
        print("[INFO] Result retrieval cancelled.", file=sys.stderr, flush=True)
