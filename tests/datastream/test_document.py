"""The programs of ``docs/datastream.md`` run, in their order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "datastream.md"


def test_programs_of_the_document_run(capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"(?s)```python\n(.*?)```", DOCUMENT.read_text())
    assert len(programs) == 3
    names: dict[str, object] = {}
    for program in programs:
        exec(compile(program, DOCUMENT.name, "exec"), names)
    output = capsys.readouterr().out
    counts, rest = output[: output.index("{")], output[output.index("{") :]
    assert counts.split() == ["(to,1)", "(be,1)", "(or,1)", "(not,1)", "(to,2)", "(be,2)"]
    plan, end = json.JSONDecoder().raw_decode(rest)
    assert {edge["chaining"] for node in plan["nodes"] for edge in node.get("predecessors", ())} == {
        "not chained (parallelism 1 against 2)",
        "not chained (parallelism 2 against 1)",
    }
    assert rest[end:].split("\n")[2:6] == ["+I[ann,12.5]", "+I[bob,3.0]", "-U[ann,12.5]", "+U[ann,19.5]"]
