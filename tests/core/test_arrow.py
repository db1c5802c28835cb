"""The lazy ``compute`` calls what ``pyarrow.compute`` calls."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

from flowsql_core.arrow import compute as pc

TEXTS = pa.array(["b", None, "ab"])
NUMBERS = pa.array([3, 1, None], pa.int64())
ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    "call",
    [
        lambda pc: pc.cast(NUMBERS, pa.string()),
        lambda pc: pc.cast(NUMBERS, "float64"),
        lambda pc: pc.cast(pa.array([1.5]), pa.int64(), safe=False),
        lambda pc: pc.cast(pa.array([1.5]), options=pc.CastOptions(pa.int64(), allow_float_truncate=True)),
        lambda pc: pc.take(TEXTS, pa.array([2, None, 0])),
        lambda pc: pc.fill_null(TEXTS, "x"),
        lambda pc: pc.fill_null(NUMBERS, pa.scalar(7, pa.int8())),
        lambda pc: pc.fill_null(NUMBERS, pa.array([7, 8, 9])),
        lambda pc: pc.add(NUMBERS, 1),
        lambda pc: pc.and_(pa.array([True, None]), True),
        lambda pc: pc.or_kleene(pa.array([True, None]), True),
        lambda pc: pc.if_else(pa.array([True, False, None]), NUMBERS, 0),
        lambda pc: pc.binary_join_element_wise(TEXTS, "c", "-"),
        lambda pc: pc.binary_join_element_wise(TEXTS, "c", "-", null_handling="skip"),
        lambda pc: pc.match_substring(TEXTS, "B", ignore_case=True),
        lambda pc: pc.replace_substring(TEXTS, "b", "c"),
        lambda pc: pc.utf8_slice_codeunits(TEXTS, 0, 1),
        lambda pc: pc.min(NUMBERS),
        lambda pc: pc.min(NUMBERS, skip_nulls=False),
        lambda pc: pc.is_in(TEXTS, value_set=pa.array(["b"])),
        lambda pc: pc.index(TEXTS, "ab"),
        lambda pc: pc.filter(TEXTS, pa.array([True, True, False])),
        lambda pc: pc.sort_indices(NUMBERS, sort_keys=[("", "descending")]),
    ],
)
def test_answers_are_those_of_the_module(call: Callable[[Any], Any]) -> None:
    mine, theirs = call(pc), call(pyarrow.compute)
    assert mine == theirs
    assert mine.type == theirs.type


def test_mistakes_are_refused() -> None:
    with pytest.raises(TypeError, match="add takes 2 arguments"):
        pc.add(NUMBERS)
    with pytest.raises(TypeError, match="match_substring takes 1 arguments"):
        pc.match_substring()
    with pytest.raises(TypeError, match="not both"):
        pc.match_substring(TEXTS, "b", options=pyarrow.compute.MatchSubstringOptions("b"))
    with pytest.raises(pa.ArrowIndexError):
        pc.take(TEXTS, pa.array([5]))
    with pytest.raises(pa.ArrowInvalid):
        pc.cast(pa.array([1.5]), pa.int64())
    with pytest.raises(AttributeError, match="no_such_function"):
        pc.no_such_function  # noqa: B018


def test_all_names_in_use_need_no_import_of_the_module() -> None:
    used = set()
    for part in ("flowsql", "grammar", "planner", "runtime", "connectors"):
        for file in (ROOT / part).rglob("*.py"):
            used.update(re.findall(r"\bpc\.([A-Za-z_0-9]+)", file.read_text()))
    assert len(used) > 80
    program = (
        "import sys\nfrom flowsql_core.arrow import compute as pc\n"
        f"for name in {sorted(used - {'index'})}:\n    getattr(pc, name)\n"
        "assert 'pyarrow.compute' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
