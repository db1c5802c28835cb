"""What PyFlink 2.3 said to ``asked_program.py``. Which key's timer fires first at one time is nobody's promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .asked_program import answers

ASKED: dict[str, list[str]] = json.loads((Path(__file__).parent / "asked.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    return answers("flowsql")


def test_every_branch_was_asked(found: dict[str, list[str]]) -> None:
    assert set(found) == set(ASKED)


@pytest.mark.parametrize("branch", ASKED)
def test_a_branch_emits_what_it_emits_in_pyflink(found: dict[str, list[str]], branch: str) -> None:
    assert sorted(found[branch]) == sorted(ASKED[branch])
