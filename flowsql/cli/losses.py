"""What a job's user hears of rows that got lost on their way: one line a table or operator on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flowsql_core.secrets.hidden import hidden

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient


def tell_losses(job: JobClient) -> None:
    """Rows that were skipped or came too late, and fields that became NULL; nothing where all was well."""
    told = job.lost_rows()
    if told:
        sys.stdout.flush()
        print(hidden("\n".join(f"[WARNING] {lost}" for lost in told)), file=sys.stderr, flush=True)
