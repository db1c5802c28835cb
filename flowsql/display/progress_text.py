"""How far a job is, in a line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from flowsql.table.values.answer_kind import AnswerKind

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.table.table_result import TableResult


class ProgressText:
    """What is told of one job: the seconds, how far it is or how many rows came, how many a second, its watermark."""

    def __init__(self, result: TableResult, job: JobClient) -> None:
        self._result = result
        self._job = job
        self._started = time.monotonic()
        self._last = (self._started, 0)

    def text(self) -> str:
        """The line."""
        now = time.monotonic()
        parts = [f"{now - self._started:.0f} s"]
        if self._result.kind is AnswerKind.CHANGE or self._job.is_computing():
            parts.append(self._job.progress_text())
            return f"[{', '.join(parts)}]"
        rows = self._result.rows_given
        before, rows_before = self._last
        self._last = (now, rows)
        rate = (rows - rows_before) / max(now - before, 0.001)
        parts += [f"{rows:,} {'row' if rows == 1 else 'rows'}", f"{rate:,.0f} rows/s"]
        parts += filter(None, [self._job.progress_text(), watermark_text(self._job)])
        return f"[{', '.join(parts)}]"


def watermark_text(job: JobClient) -> str:
    """How far event time is, in the notation of timestamps; nothing where there is none."""
    reached_ms = job.watermark_ms()
    if reached_ms is None:
        return ""
    import datetime

    try:
        moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=reached_ms)
    except OverflowError:
        return "watermark at the end"
    return f"watermark {moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"
