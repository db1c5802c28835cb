"""SHOW JOBS, DESCRIBE JOB, STOP JOB: of the jobs of this process and of the user's other ones on this machine."""

from __future__ import annotations

import logging
from typing import assert_never

from flowsql.jobs.everywhere import act_on, known_jobs
from flowsql.jobs.job_id import checked_id
from flowsql.jobs.job_info import JobInfo
from flowsql.session_zone import session_zone
from flowsql.table import table_result as answers
from flowsql.table.table_result import TableResult
from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError
from flowsql_core.types.logical import STRING, Column, TimestampLtzType
from flowsql_planner.bind import operations as op

logger = logging.getLogger(__name__)

_JOB = (
    Column("job id", STRING),
    Column("job name", STRING),
    Column("status", STRING),
    Column("start time", TimestampLtzType(precision=6)),
)


def run_job_statement(
    statement: op.ShowJobs | op.DescribeJob | op.StopJob, configuration: Configuration
) -> TableResult:
    """Carry a statement about jobs out.

    Raises:
        FlowSqlError: no process knows the job, or it cannot be stopped so; with Flink's texts.
    """
    match statement:
        case op.ShowJobs():
            return _listing(_known(), configuration)
        case op.DescribeJob(job_id):
            wanted = checked_id(job_id)
            found = [info for info in _known() if info.id == wanted]
            if not found:
                raise ExecutionError(
                    "job-not-found", f"Described job {job_id} does not exist in the cluster.", statement.span
                )
            return _listing(found, configuration)
        case op.StopJob(job_id, savepoint, drain):
            if not savepoint:
                act_on("cancel", job_id)
                return answers.done()
            from flowsql_runtime.checkpoint.settings import SAVEPOINT_DIRECTORY

            directory = configuration.get(SAVEPOINT_DIRECTORY) or None
            path = act_on("stop", job_id, drain=drain, directory=directory)["path"]
            return answers.listing((Column("savepoint path", STRING),), [(path,)])
        case _:
            assert_never(statement)


def _known() -> list[JobInfo]:
    known = known_jobs()
    for trouble in known.troubles:
        logger.warning("Jobs are missing: %s", trouble)
    return list(known.jobs)


def _listing(jobs: list[JobInfo], configuration: Configuration) -> TableResult:
    rows = [(info.id, info.name, info.status, info.started_ms * 1000) for info in jobs]
    return answers.listing(_JOB, rows, session_zone(configuration))
