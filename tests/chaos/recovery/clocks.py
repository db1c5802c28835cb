"""A wall clock that steps: hours ahead, hours back, as when a machine is set right. Monotonic clocks go on."""

from __future__ import annotations

import random
import time
from typing import Final

#: A step every so many readings.
READINGS_A_STEP: Final = 40
LARGEST_STEP_NS: Final = 5 * 3600 * 10**9


def install(seed: int) -> None:
    """From here on ``time.time`` and ``time.time_ns`` jump."""
    draw = random.Random(seed)
    real_ns = time.time_ns
    offset_ns = readings = 0

    def time_ns() -> int:
        nonlocal offset_ns, readings
        readings += 1
        if readings % READINGS_A_STEP == 0:
            offset_ns = draw.randrange(-LARGEST_STEP_NS, LARGEST_STEP_NS)
        return real_ns() + offset_ns

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9
