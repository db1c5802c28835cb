"""Regular expressions beside Flink 2.3's answers: 373 patterns over 38 texts each.

``regex_grid.jsonl``: the texts, then a pattern a line: what Flink answers where it found something (text ->
answers of ``FUNCTIONS``), or that it is malformed. None: Flink counts empty matches inside of surrogate pairs, FlowSQL
does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql_compute.eval.context import EvalContext
from flowsql_compute.functions.registry import Invocation
from flowsql_compute.functions.text import regex, regex_search
from flowsql_core.types import logical as t

FIRST, *PATTERNS = map(json.loads, (Path(__file__).parent / "regex_grid.jsonl").read_text().splitlines())
TEXTS: list[str] = FIRST["texts"]
FUNCTIONS = (
    (regex.regexp, ()),
    (regex.regexp_extract, ()),
    (regex.regexp_extract, (1,)),
    (regex_search.regexp_count, ()),
    (regex_search.regexp_instr, ()),
    (regex_search.regexp_extract_all, (0,)),
    (regex_search.regexp_extract_all, ()),
    (regex.regexp_replace, ("<>",)),
)


def call(n: int) -> Invocation:
    return Invocation(n, EvalContext(), (), t.STRING)


def flink(asked: dict[str, Any], number: int) -> list[Any] | None:
    if asked.get("malformed"):
        return [False, *[None] * 7]
    none: list[Any] = [False, None, None, 0, 0, [], [] if asked["groups"] else None, TEXTS[number]]
    found: list[Any] | None = asked["found"].get(str(number), none)
    return found


def answers(pattern: Any) -> Iterator[list[Any]]:
    text = pa.array(TEXTS, pa.string())
    for function, rest in FUNCTIONS:
        extra = [pa.scalar(one, pa.int32() if isinstance(one, int) else pa.string()) for one in rest]
        made = function(call(len(TEXTS)), text, pattern, *extra)
        yield made.to_pylist()


@pytest.mark.parametrize("by_column", [False, True])
def test_as_flink(by_column: bool) -> None:
    wrong = []
    for asked in PATTERNS:
        java = asked["pattern"]
        pattern = pa.array([java] * len(TEXTS), pa.string()) if by_column else pa.scalar(java, pa.string())
        for number, ours in enumerate(zip(*answers(pattern), strict=True)):
            theirs = flink(asked, number)
            if theirs is not None and theirs != list(ours):
                wrong.append((java, TEXTS[number], theirs, list(ours)))
    assert not wrong, wrong[:3]


def test_texts_by_themselves_are_searched_as_in_columns() -> None:
    """A text that is ASCII alone takes another way than one beside others."""
    wrong = []
    for asked in PATTERNS:
        java = asked["pattern"]
        for number, text in enumerate(TEXTS):
            theirs = flink(asked, number)
            if theirs is None or not text.isascii():
                continue
            one = pa.array([text], pa.string())
            ours = [
                regex.regexp(call(1), one, pa.scalar(java)).to_pylist()[0],
                regex.regexp_extract(call(1), one, pa.scalar(java)).to_pylist()[0],
                regex_search.regexp_count(call(1), one, pa.scalar(java)).to_pylist()[0],
            ]
            if ours != [theirs[0], theirs[1], theirs[3]]:
                wrong.append((java, text, theirs, ours))
    assert not wrong, wrong[:3]
