"""One memory budget for the process: state, network and readers reserve from it, and a breach is refused politely."""

from __future__ import annotations

import os
import threading
from functools import cache
from pathlib import Path

from flowsql_core.config import option, parse_memory_bytes
from flowsql_core.errors import ExecutionError

#: Part of the machine's memory that FlowSQL takes when nothing is configured.
DEFAULT_SHARE = 0.75

MEMORY = option(
    "flowsql.memory",
    parse_memory_bytes,
    0,
    "Memory of the process for state, exchange and readers; 0 takes 75% of the machine's (or the container's).",
)


@cache
def machine_memory_bytes() -> int:
    """What this process may use at most: RAM, or the container's limit where that is lower. Looked up once."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(place).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


class MemoryBudget:
    """Bytes that the whole process may hold. Any thread."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._reserved = 0
        self._lock = threading.Lock()

    @staticmethod
    def of_option(configured_bytes: int) -> MemoryBudget:
        """The budget of ``flowsql.memory``."""
        return MemoryBudget(configured_bytes or int(machine_memory_bytes() * DEFAULT_SHARE))

    @property
    def reserved_bytes(self) -> int:
        """What is taken now."""
        return self._reserved

    def try_reserve(self, size_bytes: int) -> bool:
        """Take ``size_bytes`` if there is room."""
        with self._lock:
            if self._reserved + size_bytes > self.total_bytes:
                return False
            self._reserved += size_bytes
            return True

    def release(self, size_bytes: int) -> None:
        """Give back."""
        with self._lock:
            self._reserved -= size_bytes


#: For operators outside a cluster.
UNLIMITED = MemoryBudget(1 << 62)


class OperatorMemory:
    """One operator's account at the budget."""

    __slots__ = ("_budget", "_name", "held_bytes")

    def __init__(self, budget: MemoryBudget, name: str) -> None:
        self._budget = budget
        self._name = name
        self.held_bytes = 0

    def reserve(self, size_bytes: int) -> None:
        """Take ``size_bytes`` more before allocating them.

        Raises:
            ExecutionError: ``memory-exceeded`` with operator, bytes and option.
        """
        if not self._budget.try_reserve(size_bytes):
            raise ExecutionError(
                "memory-exceeded",
                f"Operator '{self._name}' holds {self.held_bytes} bytes and needs {size_bytes} more, but "
                f"{self._budget.reserved_bytes} of the {self._budget.total_bytes} bytes of '{MEMORY.key}' are taken.",
                hint=f"raise '{MEMORY.key}', or let state expire with 'table.exec.state.ttl'",
            ).in_operator(self._name)
        self.held_bytes += size_bytes

    def try_reserve(self, size_bytes: int) -> bool:
        """Take ``size_bytes`` more if the budget has room."""
        if not self._budget.try_reserve(size_bytes):
            return False
        self.held_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        """Give back ``size_bytes``."""
        self._budget.release(size_bytes)
        self.held_bytes -= size_bytes

    def resize(self, size_bytes: int) -> None:
        """Hold exactly ``size_bytes``: reserve or release the difference."""
        difference = size_bytes - self.held_bytes
        if difference > 0:
            self.reserve(difference)
        elif difference < 0:
            self.release(-difference)

    def try_resize(self, size_bytes: int) -> bool:
        """Hold exactly ``size_bytes`` if the budget has room."""
        if size_bytes > self.held_bytes:
            return self.try_reserve(size_bytes - self.held_bytes)
        self.resize(size_bytes)
        return True

    def close(self) -> None:
        """Give everything back."""
        self.release(self.held_bytes)
