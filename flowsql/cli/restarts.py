"""What a script's user sees of restarts: one line each on standard error."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowsql_core.errors import FlowSqlError
    from flowsql_core.span import Source
    from flowsql_runtime.cluster.job import Restart

#: Where the engine tells of restarts in programs.
LOGGER = "flowsql_runtime.cluster.master.restarts"


def tell_restart(restart: Restart, source: Source) -> None:
    """Which job (or part), the wait, the how many-th, why and where; ``source``: the text that the job comes from."""
    restart.cause.within(source)
    # A terminal may show how far the job is in this line.
    fresh = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(
        f"{fresh}[WARNING] {restart.headline}: {restart.cause.message.partition(chr(10))[0]}{_place(restart.cause)}",
        file=sys.stderr,
        flush=True,
    )


@contextlib.contextmanager
def restarts_told_here() -> Iterator[None]:
    """While the block runs, the log leaves restarts out: :func:`tell_restart` says them."""
    logger = logging.getLogger(LOGGER)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _place(cause: FlowSqlError) -> str:
    parts = []
    if cause.at is not None and cause.source is not None:
        line, column = cause.source.position(cause.at.start)
        parts.append(f"at {cause.source.name}:{line}:{column}")
    if cause.operator:
        parts.append(f"in operator {cause.operator[:80]}")
    return f" ({', '.join(parts)})" if parts else ""
