"""``flowsql tail``: the newest rows of a table."""

from __future__ import annotations

import os
import re
import sys
import time

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.arguments.tail import LAST_ROWS, TailInvocation
from flowsql.cli.live.newest import NewestRows
from flowsql.cli.live.rows import show_live
from flowsql.cli.render.base import Limits
from flowsql.cli.render.forms import FORMS
from flowsql.cli.start import read_script, use_utf8, warn
from flowsql.configuration import command_line_configuration
from flowsql.jobs.everywhere import follow, resolved_id
from flowsql.session_zone import session_zone
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.values.tableau import MAX_COLUMN_WIDTH
from flowsql_core.config import RUNTIME_MODE
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.spark import EXECUTION_TARGET
from flowsql_core.span import Source

#: A name as a script writes it, quoted or not, with those of its database and catalog.
_NAME = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+)){0,2}")


def run(invocation: TailInvocation) -> int:
    """Show what the words behind ``flowsql tail`` ask for; the exit code."""
    use_utf8()
    try:
        if invocation.job is not None:
            job_id = resolved_id(invocation.job)
            answers = follow("sample", job_id, table=invocation.table)
            return show_live(answers, job_id, invocation.format, sys.stdout, invocation.rows, invocation.timeout_s)
        _show(invocation)
    except BrokenPipeError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql tail: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        sys.stdout.flush()
        print(f"flowsql tail: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _show(invocation: TailInvocation) -> None:
    started = time.monotonic()
    configuration = command_line_configuration(invocation.settings, invocation.format, warn)
    environment = TableEnvironment.of_configuration(configuration)
    if invocation.init is not None:
        environment.define(Source(read_script(invocation.init), invocation.init))
    # Whatever the script runs: the newest rows are looked for as a stream, in this process.
    for key, value in ((RUNTIME_MODE.key, "streaming"), (EXECUTION_TARGET.key, "local")):
        environment.configuration.set(key, value)
    source = Source(f"SELECT * FROM {_reference(invocation.table)}", "<table>")
    (statement,) = environment.statements(source)
    rows = NewestRows(
        invocation.table,
        environment.job_of(statement, source),
        invocation.last,
        invocation.follow,
        LAST_ROWS,
        session_zone(environment.configuration),
        environment.configuration.get(MAX_COLUMN_WIDTH),
    )
    deadline = None if invocation.timeout_s is None else started + invocation.timeout_s
    FORMS[invocation.format](sys.stdout, False).answer(rows, Limits(invocation.rows, deadline), started)


def _reference(table: str) -> str:
    """The table in a query: its name, or a file by its path in quotes."""
    if table.startswith("'"):
        return table
    if os.path.isfile(table) or _NAME.fullmatch(table) is None:
        return "'" + table.replace("'", "''") + "'"
    return table
