"""Ids of jobs: 32 hexadecimal digits."""

from __future__ import annotations

import re

from flowsql_core.errors import BindError, ExecutionError

_JOB_ID = re.compile(r"[0-9a-fA-F]{32}")


def checked_id(text: object) -> str:
    """A job's id in its one spelling.

    Raises:
        BindError: it is none.
    """
    if not isinstance(text, str) or _JOB_ID.fullmatch(text) is None:
        raise BindError(
            "bad-job-id",
            f'Cannot parse JobID from "{text}". The expected format is [0-9a-fA-F]{{32}}, e.g. '
            "fd72014d4c864993a2e5a9287b4a9c5d.",
        )
    return text.lower()


def job_not_found(job_id: str) -> ExecutionError:
    """No process knows the job."""
    return ExecutionError(
        "job-not-found", f"Could not find Flink job ({job_id})", hint="SHOW JOBS and 'flowsql job list' name them"
    )
