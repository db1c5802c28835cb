"""Aggregate functions of pandas in tasks that get all rows of a key: the answers that the local engine gives."""

from __future__ import annotations

from typing import Any

import pytest

from flowsql.table import TableEnvironment
from flowsql_core.errors import FlowSqlError
from tests.spark.spark_machine import ON_SPARK, hurry
from tests.udf import test_pandas_in_batch as groups
from tests.udf import test_pandas_over_in_batch as windows
from tests.udf import test_pandas_texts as texts

pytestmark = ON_SPARK


def on_spark(environment: TableEnvironment) -> TableEnvironment:
    hurry()
    environment.get_config().set("execution.batch.engine", "spark")
    return environment


@pytest.mark.parametrize(("query", "answer"), groups.QUERIES)
def test_groups(query: str, answer: list[tuple[Any, ...]]) -> None:
    assert groups.rows(on_spark(groups.session()).execute_sql(query)) == answer


def test_group_windows() -> None:
    session = on_spark(groups.session())
    tumbling = "SELECT k, pu(n), head_of(n) FROM w GROUP BY k, TUMBLE(ts, INTERVAL '2' SECOND)"
    assert groups.rows(session.execute_sql(tumbling)) == [(1, 3.0, 3), (1, 4.5, 7), (2, 5.0, 5)]


def test_groups_of_an_answer_of_spark() -> None:
    session = on_spark(groups.session())
    query = "SELECT a.k, pu(b.n) FROM w AS a JOIN w AS b ON a.k = b.k GROUP BY a.k HAVING pu(b.n) < 5"
    assert groups.rows(session.execute_sql(query)) == [(1, 4.0)]


@pytest.mark.parametrize(("window", "wanted"), windows.FRAMES)
def test_frames(window: str, wanted: list[str]) -> None:
    assert windows.answers(on_spark(windows.session()), f"seen(id) OVER ({window})") == wanted


@pytest.mark.parametrize(("query", "answer"), texts.AGGREGATES)
def test_null_is_none_in_aggregates(query: str, answer: list[tuple[Any, ...]]) -> None:
    assert texts.rows(texts.with_listed(on_spark(texts.session())).execute_sql(query)) == answer


def test_texts_of_scalar_functions() -> None:
    session = on_spark(texts.with_concatenated(texts.with_seen(texts.session())))
    found = texts.rows(session.execute_sql("SELECT k, seen(s), concatenated(s) FROM w"))
    assert found == [(1, "'a'", "a"), (1, "None", None), (2, "'b'", "b")]


def test_what_is_refused() -> None:
    with pytest.raises(FlowSqlError, match="Python UDAF and Java/Scala UDAF cannot be used together"):
        on_spark(groups.session()).explain_sql("SELECT k, pu(n), SUM(n) FROM w GROUP BY k")
    with pytest.raises(FlowSqlError, match="functions of pandas with GROUPING SETS on Spark"):
        on_spark(groups.session()).explain_sql("SELECT k, pu(n) FROM w GROUP BY ROLLUP (k)")
    with pytest.raises(FlowSqlError, match="the Python aggregate function total in batch mode"):
        on_spark(windows.session()).explain_sql("SELECT k, total(v) FROM s GROUP BY k")


def test_explain_shows_the_operator() -> None:
    text = on_spark(groups.session()).explain_sql("SELECT k, pu(n) FROM w GROUP BY k")
    assert "pu" in text.partition("== FlowSQL Readers ==")[2].partition("== Spark SQL ==")[0]
