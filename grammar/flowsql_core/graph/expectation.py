"""Words of expectations: the option that holds them, what becomes of rows that break one, and how many did."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

#: The option of a table that holds its expectations as text: a list of CONSTRAINT clauses.
EXPECTATIONS: Final = "flowsql.expectations"


class ViolationAction(enum.Enum):
    """What becomes of a row that breaks an expectation, and of the job that writes it."""

    FAIL = "FAIL"
    DROP = "DROP"
    WARN = "WARN"

    def __str__(self) -> str:
        return self.value


@dataclass(slots=True)
class ExpectationCounts:
    """Rows that an expectation of a table judged: ``+I`` and ``+U``; what is taken back is not counted again."""

    table: str
    name: str
    passed: int = 0
    dropped: int = 0
    warned: int = 0

    def add(self, other: ExpectationCounts) -> None:
        """Count what another task counted."""
        self.passed += other.passed
        self.dropped += other.dropped
        self.warned += other.warned
