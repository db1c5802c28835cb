"""Pauses between tries: each is twice the last one, up to a limit."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.options import ConnectorOption, OptionValues, optional, parse_natural
from flowsql_core.config import parse_duration_ms
from flowsql_core.record import record

INITIAL_DELAY_MS = ConnectorOption(
    "reconnect.initial-delay", parse_duration_ms, 1_000, "How long to wait before a lost connection is made again."
)
MAX_DELAY_MS = ConnectorOption(
    "reconnect.max-delay", parse_duration_ms, 30_000, "Each pause is twice the last one, up to this."
)
MAX_ATTEMPTS: ConnectorOption[int | None] = ConnectorOption(
    "reconnect.max-attempts",
    optional(parse_natural),
    None,
    "After so many failures one behind the other the job fails; by default it goes on trying.",
)
RECONNECT_OPTIONS: Final = (INITIAL_DELAY_MS, MAX_DELAY_MS, MAX_ATTEMPTS)


@record
class Backoff:
    """``attempts`` None: there is no end."""

    initial_ms: int = 1_000
    max_ms: int = 30_000
    attempts: int | None = None

    @staticmethod
    def of(values: OptionValues) -> Backoff:
        """By the ``reconnect.*`` options."""
        initial_ms = values.get(INITIAL_DELAY_MS)
        return Backoff(initial_ms, max(initial_ms, values.get(MAX_DELAY_MS)), values.get(MAX_ATTEMPTS))

    def pause_s(self, failures: int) -> float | None:
        """Seconds to wait behind so many failures, of which there is at least one; None: it is given up."""
        if self.attempts is not None and failures > self.attempts:
            return None
        return min(self.initial_ms * 2.0 ** min(failures - 1, 30), self.max_ms) / 1000
