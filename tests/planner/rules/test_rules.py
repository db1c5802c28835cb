"""Optimizer rules as data: each ``<rule>.test`` holds queries with their optimized plan, and the rule must have fired.

``plan`` blocks compare (SQL, then below ``----`` the logical plan after all rules), ``same`` blocks are queries in
which the rule must not fire. ``FLOWSQL_UPDATE=1`` writes the plans anew: review the diff.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flowsql_compute.eval.context import EvalContext
from flowsql_planner.bind import operations as op
from flowsql_planner.logical import nodes as n
from flowsql_planner.optimize import programs
from flowsql_planner.optimize.driver import Trace
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.planner import Planner
from tests.planner.bind.bind_script import Session, _node, expr_text

_FOLDER = Path(__file__).parent
_TABLES = (_FOLDER.parent / "rule_tables.sql").read_text(encoding="utf-8")


@dataclass
class Block:
    kind: str
    sql: str
    expected: str


def read(path: Path) -> list[Block]:
    found = []
    for text in path.read_text(encoding="utf-8").strip().split("\n\n"):
        kind, _, rest = text.strip().partition("\n")
        sql, _, expected = rest.partition("\n----\n")
        found.append(Block(kind, sql, expected.strip()))
    return found


def write(path: Path, blocks: list[Block]) -> None:
    texts = [f"{b.kind}\n{b.sql}\n----\n{b.expected}" if b.kind == "plan" else f"{b.kind}\n{b.sql}" for b in blocks]
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def dump(rel: n.Rel, indent: int = 0) -> str:
    return "\n".join([" " * indent + line(rel), *(dump(child, indent + 2) for child in n.inputs(rel))])


def line(rel: n.Rel) -> str:
    match rel:
        case n.Scan():
            names = [column.name for column in rel.table.columns]
            text = f"Scan({rel.table.path[-1]}: {', '.join(column.name for column in rel.schema)}"
            if rel.filters:
                text += f", filters={[expr_text(part) for part in rel.filters]} of {names}"
            return text + (f", limit={rel.limit})" if rel.limit is not None else ")")
        case n.Expand():
            rows = ("(" + ", ".join(expr_text(expr) for expr in row) + ")" for row in rel.projections)
            return f"Expand({', '.join(rows)})"
        case _:
            return _node(rel)


def optimized(sql: str) -> tuple[str, set[str]]:
    session = Session()
    for _ in session.run(_TABLES):
        pass
    operation = session.last(sql)
    assert isinstance(operation, op.Query | op.Insert)
    trace = Trace()
    rel = Planner(session.config).optimized(operation.rel, PlanContext(session.config), trace)
    return dump(rel), {name for _, name in trace.steps}


def cases() -> Iterator[tuple[Path, int]]:
    for path in sorted(_FOLDER.rglob("*.test")):
        for number in range(len(read(path))):
            yield path, number


@pytest.mark.parametrize(("path", "number"), list(cases()), ids=lambda value: getattr(value, "stem", value))
def test_rule(path: Path, number: int) -> None:
    blocks = read(path)
    block = blocks[number]
    plan, fired = optimized(block.sql)
    if block.kind == "same":
        assert path.stem not in fired, plan
        return
    assert path.stem in fired, plan
    if os.environ.get("FLOWSQL_UPDATE"):
        block.expected = plan
        write(path, blocks)
    assert plan == block.expected


def test_every_rule_of_the_program_has_cases() -> None:
    class Nothing:
        def __getattr__(self, name: str) -> object:
            return lambda *_: False

    stages = programs.streaming(Nothing(), EvalContext())  # type: ignore[arg-type]
    names = {rule.__name__ for stage in stages for rule in (*stage.rules, *stage.tree_rules)}
    assert names == {path.stem for path in _FOLDER.rglob("*.test")}
