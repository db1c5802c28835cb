"""A project runs on Spark as it does in the process, in one application."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from flowsql.cli.main import main
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline"


def run(project: Path, engine: str) -> list[tuple[object, ...]]:
    report = project.parent / "report.json"
    assert main(["run", "--engine", engine, "--report", str(report), str(project)]) == 0
    keys = ("node", "status", "rows", "expectations")
    return [tuple(str(each[key]) for key in keys) for each in json.loads(report.read_text())["nodes"]]


def test_the_example_on_both_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry()
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    ignored = shutil.ignore_patterns("out", ".flowsql")
    local, spark = tmp_path / "local", tmp_path / "spark"
    for project in (local, spark):
        shutil.copytree(EXAMPLE, project, ignore=ignored)
    assert run(spark, "spark") == run(local, "local")
    for table in ("customers", "best"):
        found = [
            sorted(
                line
                for file in (project / "out" / table).iterdir()
                if not file.name.startswith((".", "_"))
                for line in file.read_text().splitlines()
            )
            for project in (spark, local)
        ]
        assert found[0] == found[1] != []
    # Which engine made the rows does not change them.
    assert {node[1] for node in run(spark, "local")} == {"unchanged"}
