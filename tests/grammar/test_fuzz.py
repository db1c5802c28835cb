from __future__ import annotations

import os

import fuzz
from corpus_files import own_statements


def test_mutated_statements_parse_or_raise_parse_error() -> None:
    """FLOWSQL_FUZZ sets the number of mutations; 10,000 is the full run."""
    outcome = fuzz.run(own_statements(), int(os.environ.get("FLOWSQL_FUZZ", "1500")), seed=11)
    assert outcome.faults == []
    assert outcome.refused > outcome.parsed > 0
