"""A sample of random queries: FlowSQL's own runtime, Spark and DuckDB give one table."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load(name: str) -> ModuleType:
    """A module that stands beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


machine = load("spark_machine")
pytestmark = machine.ON_SPARK
COUNT = 12


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [11, 12])
def test_random_queries_have_one_answer(tmp_path: Path, seed: int) -> None:
    machine.hurry()
    queries = load("random_queries")
    answered = 0
    for answers in queries.parity_runner().Parity().run(queries.script(tmp_path, COUNT, seed)):
        assert not answers.differences(), answers.sql
        answered += len(answers.rows) > 1
    # Most queries are answered twice at least: a sample that nobody answers shows nothing.
    assert answered > COUNT // 2
