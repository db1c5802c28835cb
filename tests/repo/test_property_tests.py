"""Property tests draw the same examples in every run of the suite, and others in every run of ``make fuzz``."""

from __future__ import annotations

import pytest
from hypothesis import settings


def test_a_run_of_the_suite_repeats_its_examples(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--hypothesis-profile") is None:
        assert settings().derandomize
        assert settings().deadline is None


def test_fuzzing_looks_for_new_ones() -> None:
    fuzz = settings.get_profile("fuzz")
    assert not fuzz.derandomize
    assert fuzz.max_examples > 5 * settings.get_profile("ci").max_examples
