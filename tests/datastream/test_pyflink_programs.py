"""Programs in the style of PyFlink's documentation print what they printed under PyFlink."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pyflink_programs", Path(__file__).with_name("pyflink_programs.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()
ANSWERS: dict[str, list[str]] = json.loads(TOOL.ANSWERS.read_text(encoding="utf-8"))


def test_every_program_was_asked() -> None:
    assert set(ANSWERS) == set(TOOL.programs())
    assert len(ANSWERS) >= 40


@pytest.mark.parametrize("name", ANSWERS)
def test_a_program_prints_what_it_printed_under_pyflink(name: str) -> None:
    assert TOOL.run_flowsql(name) == ANSWERS[name]
