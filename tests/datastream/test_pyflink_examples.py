"""PyFlink's own examples, with only the import changed, print what they printed under PyFlink."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pyflink_examples", Path(__file__).with_name("pyflink_examples.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()
FOLDER = TOOL.examples_folder()
ANSWERS = json.loads(TOOL.ANSWERS.read_text())


def test_at_least_twelve_examples_are_the_same() -> None:
    assert len(TOOL.PASSING) >= 12
    assert set(TOOL.PASSING) <= set(ANSWERS)


def test_only_imports_are_changed() -> None:
    text = 'from pyflink.table import x\n    import pyflink\nprint("pyflink", pyflink.y)\n'
    assert TOOL.rewritten(text) == 'from flowsql.table import x\n    import flowsql\nprint("pyflink", pyflink.y)\n'


def test_lines_are_compared_without_order_and_subtasks() -> None:
    assert TOOL.data_lines("datastream/x.py", "2> b\n\n12> a\n> c\n") == ["> c", "a", "b"]


@pytest.mark.skipif(FOLDER is None, reason="needs PyFlink's examples: PYFLINK_EXAMPLES or FLINK_PYTHON")
@pytest.mark.parametrize("name", TOOL.PASSING)
def test_an_example_prints_what_pyflink_printed(name: str) -> None:
    ran = TOOL.run_flowsql(FOLDER, name)
    assert ran.returncode == 0, ran.stderr
    assert TOOL.data_lines(name, ran.stdout) == ANSWERS[name]
