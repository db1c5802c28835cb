from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

# The fuzzers and the corpus are modules beside the tests.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "grammar")]
fuzz_plan, corpus = import_module("fuzz_plan"), import_module("corpus_files")


@pytest.mark.shared
@pytest.mark.skipif(not corpus.shared_scripts(), reason="the conformance suite is not beside the checkout")
def test_mutated_scripts_are_planned_or_refused_with_a_place() -> None:
    """FLOWSQL_FUZZ sets the number of mutations; 10,000 is the full run."""
    scripts = [corpus.pieces(corpus.script_text(file)) for file in corpus.shared_scripts()]
    outcome = fuzz_plan.run(scripts, int(os.environ.get("FLOWSQL_FUZZ", "400")), seed=21)
    assert outcome.faults == []
    assert outcome.refused > outcome.planned > 0
