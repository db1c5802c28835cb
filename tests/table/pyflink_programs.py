"""Small programs of the Table API, the same text under PyFlink and under FlowSQL: they print the same lines.

    python tests/table/pyflink_programs.py [NAME...]            run under FlowSQL, compare with what PyFlink printed
    python tests/table/pyflink_programs.py --record [NAME...]   ask PyFlink ($FLINK_PYTHON) and keep its answers

The tool of the DataStream programs (``tests/datastream/pyflink_programs.py``) over ``programs/*.txt`` beside this file.
What stands before the first program of a file stands before each of them.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).with_name("programs")


def programs() -> dict[str, str]:
    """All programs by name."""
    found: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.txt")):
        prelude, *parts = re.split(r"^=== ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for part in parts:
            name, _, text = part.partition("\n")
            found[name.strip()] = prelude + text
    return found


def tool() -> ModuleType:
    """The tool, over this folder's programs."""
    path = Path(__file__).parent.parent / "datastream" / "pyflink_programs.py"
    spec = importlib.util.spec_from_file_location("pyflink_programs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module).update(FOLDER=FOLDER, ANSWERS=FOLDER / "answers.json", programs=programs, __file__=__file__)
    return module


if __name__ == "__main__":
    sys.exit(tool().main())
