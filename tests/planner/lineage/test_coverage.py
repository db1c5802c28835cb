"""Every node has lineage, and all statements of the suites beside the checkout have one that fits their tables."""

from __future__ import annotations

import ast
import inspect
import typing
from pathlib import Path

import pytest

from flowsql.configuration import command_line_configuration
from flowsql.table import TableEnvironment
from flowsql.table.session.lineage import LineageExecutor
from flowsql_core.catalog import ObjectPath
from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Source
from flowsql_planner.bind import operations as op
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.catalog.schema import CatalogTable
from flowsql_planner.lineage import flow
from flowsql_planner.lineage.flow import lineage_of
from flowsql_planner.lineage.model import Influence, Lineage
from flowsql_planner.lineage.statements import lineage_of_operation
from flowsql_planner.logical import nodes
from flowsql_planner.logical.rewrite import walk
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.planner import Planner
from tests.planner.bind.bind_script import Session

SHARED = Path(__file__).resolve().parents[4] / "shared"
CASES, NEXMARK = SHARED / "conformance" / "cases", SHARED / "nexmark"


def test_every_node_has_a_case() -> None:
    """mypy says so too, where it runs."""
    found = [node.cls for node in ast.walk(ast.parse(inspect.getsource(flow))) if isinstance(node, ast.MatchClass)]
    cases = {name.id for name in found if isinstance(name, ast.Name)}
    assert {kind.__name__ for kind in typing.get_args(nodes.Rel)} - cases == set()


TABLES = """
CREATE TABLE a (k STRING, n BIGINT, m BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE b (k STRING, n BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE c (k STRING, n BIGINT) WITH ('connector' = 'datagen')
"""


@pytest.mark.parametrize(
    ("node", "sql"),
    [
        (nodes.Rank, "SELECT k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY m) r FROM a) WHERE r < 3"),
        (nodes.Expand, "SELECT k, n, SUM(m) FROM a GROUP BY GROUPING SETS ((k), (k, n))"),
        (nodes.MultiJoin, "SELECT a.k, b.n, c.n FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k"),
    ],
)
def test_nodes_of_the_optimizer_keep_lineage(node: type, sql: str) -> None:
    session = Session()
    list(session.run(TABLES))
    session.config.set("table.optimizer.multi-join.enabled", "true")
    operation = session.last(sql)
    assert isinstance(operation, op.Query)
    optimized = Planner(session.config).optimized(operation.rel, PlanContext(session.config))
    assert node in {type(rel) for rel in walk(optimized)}
    bound, made = lineage_of(operation.rel), lineage_of(optimized)
    assert direct(made) == direct(bound)
    assert made.sources == bound.sources


def direct(lineage: Lineage) -> list[set[Influence]]:
    return [{each for each in columns if each.how.direct} for _, columns in lineage.columns]


def scripts() -> list[Path]:
    return [*sorted(CASES.rglob("*.sql")), *sorted((NEXMARK / "queries").glob("*.sql"))]


def text_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.parent.parent == NEXMARK:
        text = (NEXMARK / "ddl.sql").read_text(encoding="utf-8") + text
    places = {"FORMAT": "'format' = 'json'", "SINK": "'connector' = 'print'", "DATA": "data", "OUT": "out"}
    for place, value in places.items():
        text = text.replace(f"${{{place}}}", value)
    return text


def check(lineage: Lineage, catalogs: CatalogManager) -> None:
    """Columns that values come from are columns of their tables, and tables of the statement."""
    direct = {each.source for _, columns in lineage.columns for each in columns if each.how.direct}
    indirect = {each.source for each in lineage.rows}
    assert all(not each.how.direct for each in lineage.rows)
    assert {source.dataset for source in direct | indirect} <= set(lineage.sources)
    for source in direct:
        found = catalogs.lookup(ObjectPath(*source.dataset.path)) if len(source.dataset.path) == 3 else None
        if found is not None:
            assert isinstance(found.value, CatalogTable)
            assert source.column in {column.name for column in found.value.columns}


@pytest.mark.shared
@pytest.mark.parametrize("path", scripts(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_statements_have_lineage(path: Path) -> None:
    text = text_of(path)
    settings = [("execution.runtime-mode", "batch")] if text.startswith("-- batch") else []
    environment = TableEnvironment.of_configuration(command_line_configuration(settings, "tableau", print))
    executor = LineageExecutor(environment.catalogs, environment.configuration)
    source = Source(text)
    found: list[Lineage] = []
    statements = environment.statements(source)
    while True:
        try:
            statement = next(statements, None)
            if statement is None:
                break
            operation = executor.bind(statement, source)
        except FlowSqlError:
            # Statements of these suites may be wrong: their own tests see to that.
            continue
        if isinstance(operation, op.Query | op.Insert | op.StatementSet | op.CreateTableAs):
            made = lineage_of_operation(operation)
            roots = operation.inserts if isinstance(operation, op.StatementSet) else (operation,)
            assert len(made) == len(roots)
            for lineage, root in zip(made, roots, strict=True):
                rel = root.insert.rel if isinstance(root, op.CreateTableAs) else root.rel
                assert len(lineage.columns) == len(rel.schema)
                check(lineage, environment.catalogs)
            found += made
        if not isinstance(operation, op.Query | op.Insert | op.StatementSet):
            try:
                executor.run(operation)
            except FlowSqlError:
                continue
    assert found or path.parent.parent != NEXMARK
