"""Programs in the style of PyFlink's guide to the Table API print what they printed under PyFlink."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


def _tool() -> ModuleType:
    path = Path(__file__).with_name("pyflink_programs.py")
    spec = importlib.util.spec_from_file_location("table_programs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: ModuleType = module.tool()
    return made


TOOL = _tool()
ANSWERS: dict[str, list[str]] = json.loads(TOOL.ANSWERS.read_text(encoding="utf-8"))


def test_every_program_was_asked() -> None:
    assert set(ANSWERS) == set(TOOL.programs())
    assert len(ANSWERS) >= 30


@pytest.mark.parametrize("name", ANSWERS)
def test_a_program_prints_what_it_printed_under_pyflink(name: str) -> None:
    assert TOOL.run_flowsql(name) == ANSWERS[name]
