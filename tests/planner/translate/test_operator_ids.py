"""Ids of operators: a golden file of scripts, many of them small edits of one another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from flowsql_core.graph import aggregate_specs, specs
from flowsql_core.graph.job import OperatorNode
from flowsql_planner.bind import operations as op
from flowsql_planner.planner import Planner
from tests.planner.bind.bind_script import Session
from tests.planner.translate.test_graph import TABLES

FILE: Final = Path(__file__).parent / "operator_ids.txt"
STATEFUL: Final = (
    specs.GroupAggregateSpec,
    specs.GlobalGroupAggregateSpec,
    aggregate_specs.IncrementalGroupAggregateSpec,
    specs.WindowAggregateSpec,
    specs.JoinSpec,
    specs.WindowJoinSpec,
    specs.SinkMaterializerSpec,
    specs.SinkConflictsSpec,
)


@dataclass(frozen=True)
class Script:
    """A statement, the ids in the file, and the script that it is an edit of."""

    name: str
    keeps: str
    loses: str
    options: dict[str, str]
    sql: str
    ids: list[str]


def _read(block: str) -> Script:
    head, *lines = block.splitlines()
    words, _, options = head.partition("; ")
    name, *edit = words.split()
    pairs = [pair.partition("=") for pair in options.split(", ") if pair]
    return Script(
        name,
        edit[1] if edit[:1] == ["keeps"] else "",
        edit[1] if edit[:1] == ["loses"] else "",
        {key: value for key, _, value in pairs},
        "\n".join(line for line in lines if not line.startswith("=> ")),
        [line[3:] for line in lines if line.startswith("=> ")],
    )


SCRIPTS: Final = {
    script.name: script
    for script in (
        _read(block) for block in FILE.read_text(encoding="utf-8").strip().split("\n\n") if not block.startswith("#")
    )
}


@pytest.fixture(scope="module")
def tables() -> Session:
    session = Session()
    for _ in session.run(TABLES + "CREATE TABLE texts (k STRING, n BIGINT) WITH ('connector' = 'blackhole');"):
        pass
    return session


def _operators(tables: Session, script: Script) -> list[OperatorNode]:
    operation = tables.last(script.sql)
    planner = Planner(tables.config.with_layer(script.options))
    if isinstance(operation, op.Query):
        graph = planner.plan_query(operation, "the collector")
    else:
        assert isinstance(operation, op.Insert)
        graph = planner.plan_inserts((operation,))
    return [node for vertex in graph.vertices for node in vertex.operators]


def _stateful(tables: Session, script: Script) -> set[str]:
    return {node.uid for node in _operators(tables, script) if isinstance(node.spec, STATEFUL)}


def test_there_are_scripts_enough() -> None:
    assert len(SCRIPTS) >= 30


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=lambda script: script.name)
def test_ids_stay_what_they_are(tables: Session, script: Script) -> None:
    nodes = _operators(tables, script)
    assert [f"{node.uid}{' *' if isinstance(node.spec, STATEFUL) else ''}" for node in nodes] == script.ids


@pytest.mark.parametrize(
    "script", [script for script in SCRIPTS.values() if script.keeps or script.loses], ids=lambda script: script.name
)
def test_small_edits_keep_the_ids_of_what_has_state(tables: Session, script: Script) -> None:
    before = _stateful(tables, SCRIPTS[script.keeps or script.loses])
    after = _stateful(tables, script)
    assert before
    assert after
    if script.keeps:
        assert after == before
    else:
        assert not after & before
