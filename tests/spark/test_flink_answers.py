"""Queries with the answers that Flink gave: Spark gives the same, or FlowSQL refuses."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flowsql.cli.main import main
from tests.nightly import by_night

ANSWERS = Path(__file__).with_name("flink_answers.txt")


def load(name: str) -> ModuleType:
    """A module that stands beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load("spark_machine")
pytestmark = machine.ON_SPARK


@dataclass(frozen=True)
class Question:
    """A query, the view that it reads, and what Flink said."""

    view: str
    sql: str
    answer: tuple[str, ...]
    refused: bool


def questions() -> Iterator[Question]:
    view = ""
    for block in ANSWERS.read_text(encoding="utf-8").split("\n\n"):
        head, *rest = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if head == "view":
            view = rest[0]
        elif head:
            yield Question(view, head, tuple(line for line in rest if line != "refused"), "refused" in rest)


def run(question: Question, folder: Path, engine: str = "spark") -> list[dict[str, Any]]:
    """The lines that FlowSQL prints."""
    machine.hurry()
    script = folder / "question.sql"
    script.write_text(f"{question.view};\n{question.sql};\n", encoding="utf-8")
    options = {
        "execution.runtime-mode": "batch",
        "execution.batch.engine": engine,
        "table.local-time-zone": "UTC",
    }
    settings = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        main(["--format", "jsonl", *settings, "-f", str(script)])
    return [json.loads(line) for line in printed.getvalue().splitlines()]


def near(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)


def same_rows(ours: list[list[Any]], flinks: list[list[Any]], ordered: bool) -> bool:
    if not ordered:
        ours, flinks = sorted(ours, key=str), sorted(flinks, key=str)
    return len(ours) == len(flinks) and all(
        len(a) == len(b) and all(map(near, a, b)) for a, b in zip(ours, flinks, strict=True)
    )


#: Questions with several sketches take seconds each; one has one sketch.
SLOW = "APPROX_COUNT_DISTINCT"


@pytest.mark.parametrize(
    "question",
    by_night(questions(), lambda question: question.sql.count(SLOW) < 2),
    ids=lambda question: question.sql[:60],
)
def test_spark_answers_as_flink(question: Question, tmp_path: Path) -> None:
    lines = run(question, tmp_path)
    expected = [json.loads(line) for line in question.answer]
    if question.refused:
        assert "not supported yet" in lines[-1]["error"]
        return
    if "error" in expected[-1]:
        assert "error" in lines[-1]
        assert "not supported yet" not in lines[-1]["error"]
        return
    assert "error" not in lines[-1], lines[-1]["error"]
    assert lines[0] == expected[0]
    ours, flinks = ([line["row"] for line in answer[1:]] for answer in (lines, expected))
    assert same_rows(ours, flinks, "ORDER BY" in question.sql.rpartition(")")[2])
