"""A method of the Table API plans what its SQL twin plans, or is refused with it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from flowsql.table import TableEnvironment
from flowsql.table.expressions import col
from flowsql_core.errors import FlowSqlError


def _twins() -> Any:
    spec = importlib.util.spec_from_file_location("twins", Path(__file__).with_name("twins.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TWINS = _twins()


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    made: TableEnvironment = TWINS.environment_with_tables()
    return made


def optimized(plan: str) -> str:
    return plan[plan.index("== Optimized Physical Plan ==") :]


def answer(make: Any) -> str:
    """The optimized plans, or the construct that is refused."""
    try:
        return optimized(make())
    except FlowSqlError as error:
        return f"{type(error).__name__}: {error.message}"


@pytest.mark.parametrize("name", TWINS.METHODS)
def test_method_plans_what_sql_plans(environment: TableEnvironment, name: str) -> None:
    program, sql = TWINS.METHODS[name]
    tables = [environment.from_path(path) for path in ("orders", "customers", "archive")]
    wanted = answer(lambda: environment.explain_sql(sql))
    assert answer(lambda: program(*tables).explain()) == wanted
    assert "NotSupportedYet" in wanted or "== Optimized" in wanted, wanted


@pytest.mark.parametrize("name", TWINS.METHODS)
def test_method_has_the_lineage_of_sql(environment: TableEnvironment, name: str) -> None:
    program, sql = TWINS.METHODS[name]
    tables = [environment.from_path(path) for path in ("orders", "customers", "archive")]
    assert program(*tables).lineage() == environment.lineage_sql(sql)


@pytest.mark.parametrize("name", TWINS.EXPRESSIONS)
def test_expression_plans_what_sql_plans(environment: TableEnvironment, name: str) -> None:
    program, sql = TWINS.EXPRESSIONS[name]
    table = environment.from_path("orders").select(program().alias("x"))
    assert optimized(table.explain()) == optimized(environment.explain_sql(f"SELECT {sql} AS x FROM orders"))


def test_inserts_plan_what_sql_plans(environment: TableEnvironment) -> None:
    table = environment.from_path("archive").where(col("id") > 1)
    wanted = optimized(environment.explain_sql("INSERT INTO sink SELECT * FROM archive WHERE id > 1"))
    pipeline = table.insert_into("sink")
    assert optimized(pipeline.explain()) == wanted
    together = environment.create_statement_set().add_insert("sink", table)
    together.add_insert_sql("INSERT INTO sink SELECT id, amount FROM orders")
    twin = """STATEMENT SET BEGIN INSERT INTO sink SELECT * FROM archive WHERE id > 1;
        INSERT INTO sink SELECT id, amount FROM orders; END"""
    assert optimized(together.explain()) == optimized(environment.explain_sql(twin))


def test_the_whole_plan_is_the_same_where_the_query_is_one_select(environment: TableEnvironment) -> None:
    table = environment.from_path("orders").group_by(col("customer")).select(col("customer"), col("n").sum.alias("s"))
    assert table.explain() == environment.explain_sql("SELECT customer, SUM(n) AS s FROM orders GROUP BY customer")


def test_twins_cover_every_method_that_builds_a_query() -> None:
    from flowsql.table.table import Table

    source = Path(__file__).with_name("twins.py").read_text()
    aside = {"to_arrow", "to_pandas", "to_spark", "as_operand", "aggregate", "flat_aggregate", "lineage"}
    aside |= {name for name in vars(Table) if re.match("get_|print_|execute|explain|insert_into", name)}
    methods = [name for name in vars(Table) if not name.startswith("_") and name not in aside | {"source"}]
    assert not [name for name in methods if f".{name}(" not in source]
