"""Places of a Kafka job where it, or its broker, is killed: before, in and after each step of a transaction.

``CHAOS_PLACE=VICTIM:PLACE:NUMBER`` strikes the NUMBER-th time a client comes by. A broker is struck by its process id,
which ``CHAOS_BROKER_PID`` names; ``in`` is a moment after the call has begun.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import Any, Final

import confluent_kafka as ck

#: Calls of a producer, in the order in which a commit makes them.
CALLS: Final = ("init_transactions", "begin_transaction", "send_offsets_to_transaction", "commit_transaction")
PLACES: Final = tuple(f"{when}-{call}" for call in CALLS for when in ("before", "in", "after"))
#: From the begin of a call to a blow that falls into it, seconds; a call takes about so long.
_INTO_S: Final = 0.008


def install(text: str) -> None:
    """Arm the place that ``CHAOS_PLACE`` names."""
    victim, place, number = text.split(":")
    when, _, struck = place.partition("-")
    left = int(number)
    pid = int(os.environ["CHAOS_BROKER_PID"]) if victim == "broker" else os.getpid()

    def strike() -> None:
        os.kill(pid, signal.SIGKILL)

    original = getattr(ck.Producer, struck)

    def called(self: Any, *args: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            strike()
        if left == 0 and when == "in":
            threading.Timer(random.uniform(0, _INTO_S), strike).start()
        found = original(self, *args)
        if left == 0 and when == "after":
            strike()
        return found

    ck.Producer = type("Producer", (ck.Producer,), {struck: called})
