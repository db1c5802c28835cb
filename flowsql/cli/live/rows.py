"""Rows of a running job as an answer that renderers write, and what is told behind it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK
from flowsql.cli.render.base import Limits
from flowsql.cli.render.forms import FORMS
from flowsql.configuration import command_line_configuration
from flowsql.jobs.sampling import decoded_columns, decoded_rows
from flowsql.session_zone import session_zone
from flowsql.table.table_result import AnswerKind, TableResult
from flowsql.table.values.tableau import MAX_COLUMN_WIDTH
from flowsql_runtime.sampling.tap import ROWS_PER_BATCH

if TYPE_CHECKING:
    from flowsql_core.batch import ChangelogBatch


class LiveRows(TableResult):
    """The answers to a request for rows, which begin at the one that tells the columns.

    Attributes:
        passed: rows that went by so far.
        taken: those of them that were taken; the others came faster than they were read.
        status: how the job ended; None: it runs.
    """

    def __init__(self, answers: Iterator[Mapping[str, Any]], deadline: float | None, settings: Any) -> None:
        self._answers = answers
        self.passed = self.taken = 0
        self.status: str | None = None
        self._first: Mapping[str, Any] | None = None
        for answer in answers:
            self._note(answer)
            if "columns" in answer or self.status is not None or _is_late(deadline):
                self._first = answer
                break
        known = self._first is not None and "columns" in self._first
        super().__init__(
            AnswerKind.QUERY,
            decoded_columns(self._first) if known and self._first is not None else (),
            streaming=True,
            max_column_width=settings.get(MAX_COLUMN_WIDTH),
            zone=session_zone(settings),
        )

    def batches(self, deadline: float | None = None) -> Iterator[ChangelogBatch]:
        """The rows as they come, until the job ends or ``deadline`` (``time.monotonic()``) has come."""
        if self._first is not None:
            yield from self._rows(self._first)
        while self.status is None and not _is_late(deadline):
            answer = next(self._answers, None)
            if answer is None:
                return
            self._note(answer)
            yield from self._rows(answer)

    def _note(self, answer: Mapping[str, Any]) -> None:
        self.passed, self.taken = answer["passed"], answer["taken"]
        self.status = answer.get("status")

    def _rows(self, answer: Mapping[str, Any]) -> Iterator[ChangelogBatch]:
        batch = decoded_rows(answer)
        if batch is not None:
            self.rows_given += batch.num_rows
            yield batch


def _is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def show_live(
    answers: Iterator[Mapping[str, Any]], job_id: str, form: str, out: TextIO, rows: int | None, timeout_s: float | None
) -> int:
    """Write rows of a job until there are so many, the time is over, or the job ends; the exit code.

    What was left out, and the end of the job, is told on standard error.
    """
    started = time.monotonic()
    deadline = None if timeout_s is None else started + timeout_s
    configuration = command_line_configuration((), form, lambda text: None)
    with contextlib.ExitStack() as stack:
        close = getattr(answers, "close", None)
        if close is not None:
            stack.callback(close)
        live = LiveRows(answers, deadline, configuration)
        try:
            FORMS[form](out, False).answer(live, Limits(rows, deadline), started)
        finally:
            out.flush()
            _tell(live, job_id)
    return EXIT_FAILED if live.status in ("FAILED", "CANCELED") else EXIT_OK


def _tell(live: LiveRows, job_id: str) -> None:
    lines = []
    left_out = live.passed - live.taken
    if left_out:
        one = left_out == 1
        lines.append(
            f"[INFO] {left_out:,} of {live.passed:,} rows that passed {'was' if one else 'were'} left out: at most "
            f"{ROWS_PER_BATCH} of a batch are taken, and none while the reader is behind."
        )
    if live.status is not None:
        lines.append(f"[INFO] Job {job_id} has ended: {live.status}.")
    if lines:
        print("\n".join(lines), file=sys.stderr, flush=True)
