"""Random well-typed expressions, see ``random_expressions``; ``make fuzz`` runs 10,000 of them."""

from __future__ import annotations

import random
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsql_compute.eval.context import EvalContext

# The generator is a module beside the tests.
sys.path.insert(0, str(Path(__file__).parent))
random_expressions = import_module("random_expressions")


@pytest.mark.parametrize("seed", range(3))
def test_answers_do_not_depend_on_how_rows_come(seed: int) -> None:
    outcome = random_expressions.run(70, seed)
    assert outcome.faults == []
    # Most expressions are well-typed, and most of those have values.
    assert outcome.refused < 40
    assert outcome.evaluated > outcome.failed


@given(rng=st.randoms(use_true_random=False), zone=st.sampled_from(random_expressions.ZONES))
def test_any_expression_has_one_answer(rng: random.Random, zone: str) -> None:
    node = random_expressions.grammar().expression(rng)
    assert random_expressions.fault_of(node, EvalContext(zone=zone), 0) is None, node.text


def test_every_function_is_among_the_productions() -> None:
    from flowsql_compute.functions.registry import definitions

    grammar = random_expressions.grammar()
    left_out = import_module("random_expressions_grammar").LEFT_OUT
    assert {definition.name for definition in definitions()} - set(grammar.by_name) <= left_out
