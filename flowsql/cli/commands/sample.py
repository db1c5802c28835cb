"""``flowsql sample``: live rows of an operator of a running job, or the operators that there are."""

from __future__ import annotations

import sys
import time

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK
from flowsql.cli.arguments.sample import SampleInvocation
from flowsql.cli.live.rows import show_live
from flowsql.cli.render.base import Limits
from flowsql.cli.render.forms import FORMS
from flowsql.cli.start import use_utf8
from flowsql.jobs.everywhere import act_on, follow, resolved_id
from flowsql.table.table_result import listing
from flowsql_core.errors import FlowSqlError
from flowsql_core.types.logical import BIGINT, STRING, Column

_EDGES = (
    Column("id", BIGINT),
    Column("uid", STRING),
    Column("operator", STRING),
    Column("to", STRING),
    Column("columns", STRING),
)


def run(invocation: SampleInvocation) -> int:
    """Show what the words behind ``flowsql sample`` ask for; the exit code."""
    use_utf8()
    try:
        job_id = resolved_id(invocation.job)
        if invocation.edge is None:
            _list(job_id, invocation.format)
            return EXIT_OK
        answers = follow("sample", job_id, operator=invocation.edge)
        return show_live(answers, job_id, invocation.format, sys.stdout, invocation.rows, invocation.timeout_s)
    except FlowSqlError as error:
        sys.stdout.flush()
        print(f"flowsql sample: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED


def _list(job_id: str, form: str) -> None:
    rows = []
    for edge in act_on("edges", job_id)["edges"]:
        columns = ", ".join(f"{name} {type_}" for name, type_ in edge["columns"])
        ways = ", ".join(f"{way} -> {receiver}" for way, receiver in edge["ways"])
        rows.append((edge["node"], edge["uid"], edge["name"], ways, columns))
    FORMS[form](sys.stdout, False).answer(listing(_EDGES, rows), Limits(), time.monotonic())
