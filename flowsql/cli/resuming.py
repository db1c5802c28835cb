"""``--resume DIR``: the folder from which the jobs of a script go on by themselves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flowsql_core.errors import BindError, FlowSqlError

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql_core.config import Configuration


def holds(folder: str) -> bool:
    """Take the folder for this process, before anything runs; False if that failed, which was printed."""
    from flowsql_runtime.checkpoint.resume_folder import ResumeFolder

    try:
        ResumeFolder.hold(folder)
    except FlowSqlError as error:
        print(f"[ERROR] The script cannot run. Reason:\n{error.render()}", file=sys.stderr)
        return False
    return True


def check_still_resumes(configuration: Configuration, folder: str) -> None:
    """Refuse a script that sets what ``--resume`` decides.

    Raises:
        BindError: it names the option.
    """
    for key, value in (("execution.state-recovery.path", "latest"), ("execution.checkpointing.dir", folder)):
        found = configuration.text(key)
        if found != value:
            raise BindError(
                "conflicting-options",
                f"The script sets '{key}' to '{found}', and --resume {folder} to '{value}'.",
                hint="leave it out of the script, or run it without --resume",
            )


def tell_start(job: JobClient) -> None:
    """Print where a job goes on, in one line on standard error."""
    if job.ended_before():
        line = f"Job {job.get_job_name()} has ended before: it does not run again."
    elif job.started_from() is not None:
        line = f"Job {job.get_job_name()} goes on from {job.started_from()}"
    else:
        line = f"Job {job.get_job_name()} starts from its beginning."
    print(f"[INFO] {line}", file=sys.stderr, flush=True)
