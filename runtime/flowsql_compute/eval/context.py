"""What an expression may ask of the world: session zone, clock, randomness, the start of the query."""

from __future__ import annotations

import random
from dataclasses import field

from flowsql_compute.eval.java.regex_limit import DEFAULT_LIMIT_S
from flowsql_core.clock import Clock, SystemClock
from flowsql_core.record import record


@record
class EvalContext:
    """Injected into compiled expressions; everything that is not a function of the rows.

    ``zone``: IANA name or offset of ``table.local-time-zone``. ``query_start_ms``: what CURRENT_TIMESTAMP answers in
    batch mode; None in streaming mode, where each batch asks ``clock``. ``regex_limit_s``: how long a regular
    expression may look at one text, seconds.
    """

    zone: str = "UTC"
    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.Random)
    query_start_ms: int | None = None
    regex_limit_s: float = DEFAULT_LIMIT_S

    def now_ms(self) -> int:
        """Epoch milliseconds that CURRENT_TIMESTAMP and its kin answer."""
        return self.clock.now_ms() if self.query_start_ms is None else self.query_start_ms
