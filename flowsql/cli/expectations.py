"""What a script's user hears of rows that broke an expectation: one line each on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql_core.graph.expectation import ExpectationCounts


def tell_expectations(job: JobClient) -> None:
    """Expectations that left rows out, or let rows pass that break them; nothing of those that all rows kept."""
    told = [line for line in map(broken_text, job.expectations()) if line is not None]
    if told:
        sys.stdout.flush()
        print("\n".join(f"[WARNING] {line}" for line in told), file=sys.stderr, flush=True)


def broken_text(counts: ExpectationCounts) -> str | None:
    """``Expectation 'a' of table 'c.d.t': 2 rows dropped, 5 passed``; None where no row broke it."""
    broken = [
        f"{number:,} {_rows(number)} {word}"
        for number, word in ((counts.dropped, "dropped"), (counts.warned, "warned of"))
        if number
    ]
    if not broken:
        return None
    return f"Expectation '{counts.name}' of table '{counts.table}': {', '.join(broken)}, {counts.passed:,} passed"


def _rows(number: int) -> str:
    return "row" if number == 1 else "rows"
