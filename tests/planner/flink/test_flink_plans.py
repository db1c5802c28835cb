"""Plans against Flink's own: the ``.test`` files hold what Flink 2.3.0 answered to EXPLAIN CHANGELOG_MODE.

A file starts with a ``tables`` block; each ``plan`` block is settings (``SET``), one statement, and below ``----`` the
physical plan that Flink shows. Compared are the operators as a multiset, each with distribution, keys, join type and
changelog mode, and lines of partial and final aggregates as they are. The answers are Flink's, so there is nothing to
update.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from flowsql_planner.bind import operations as op
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.planner import Planner
from tests.planner.bind.bind_script import Session

_FOLDER = Path(__file__).parent
_COMPARED = re.compile(r"(distribution|groupBy|joinType|changelogMode)=\[((?:[^\[\]]|\[[^\]]*\])*)\]")
#: Lines of split distinct aggregates: their accumulators have Flink's names.
_AS_IT_IS = re.compile(r"partialFinalType=|partialAggGrouping=")


@dataclass(frozen=True)
class Block:
    file: str
    name: str
    tables: str
    script: str
    expected: str


def blocks() -> Iterator[Block]:
    for path in sorted(_FOLDER.glob("*.test")):
        head, *rest = re.split(r"(?m)^plan\n", path.read_text(encoding="utf-8"))
        tables = head.partition("tables\n")[2]
        for number, text in enumerate(rest, 1):
            script, _, expected = text.partition("\n----\n")
            yield Block(path.name, f"{path.stem}-{number}", tables, script.strip(), expected.strip())


def operators(plan: str) -> Counter[tuple[str, ...]]:
    """Operators of a plan's lines with their compared attributes."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in plan.splitlines():
        bare = line.lstrip(" :+-")
        if _AS_IT_IS.search(bare):
            found[(bare.replace(", netChanges=[true]", ""),)] += 1
        elif bare:
            found[(bare.partition("(")[0], *(f"{key}={value}" for key, value in _COMPARED.findall(bare)))] += 1
    return found


def physical_plan(text: str) -> str:
    return text.partition("== Optimized Physical Plan ==\n")[2].partition("\n== ")[0]


@lru_cache
def catalogs(file: str, tables: str) -> CatalogManager:
    """The tables of a file; its blocks only add some of their own."""
    session = Session()
    for _ in session.run(tables):
        pass
    return session.catalogs


@pytest.mark.parametrize("block", list(blocks()), ids=lambda block: block.name)
def test_operators_and_changelogs_are_flinks(block: Block) -> None:
    session = Session(catalogs=catalogs(block.file, block.tables))
    operation = session.last(block.script)
    assert isinstance(operation, op.Query | op.Insert)
    answer = Planner(session.config).explain(operation, ("CHANGELOG_MODE",))
    assert operators(physical_plan(answer)) == operators(block.expected), physical_plan(answer)


def test_blocks_are_found() -> None:
    assert len(list(blocks())) > 60
