"""Texts in functions of pandas: NULL is None in every version of pandas, results may be of any of its text types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from flowsql.table import TableEnvironment
from flowsql.table.udf import udaf, udf

SOURCE = "(VALUES (1, 'a'), (1, CAST(NULL AS STRING)), (2, 'b')) AS v (k, s)"


def session(mode: str = "batch") -> TableEnvironment:
    environment = TableEnvironment.create()
    environment.get_config().set("execution.runtime-mode", mode)
    environment.execute_sql(f"CREATE TEMPORARY VIEW w AS SELECT k, s FROM {SOURCE}")
    return environment


def seen(texts: Any) -> Any:
    return pd.Series([repr(value) for value in texts], dtype=object)


def with_seen(environment: TableEnvironment) -> TableEnvironment:
    environment.create_temporary_function("seen", udf(seen, result_type="STRING", func_type="pandas"))
    return environment


def rows(result: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in result.collect()), key=repr)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_null_is_none_in_scalar_functions(mode: str) -> None:
    environment = with_seen(session(mode))
    assert rows(environment.execute_sql("SELECT k, seen(s) FROM w")) == [(1, "'a'"), (1, "None"), (2, "'b'")]


def test_null_is_none_for_whole_rows() -> None:
    def whole(frame: Any) -> Any:
        return pd.concat([frame["k"], seen(frame["s"])], axis=1)

    function = udf(whole, result_type="ROW<k INT, s STRING>", func_type="pandas")
    made = session().from_path("w").map(function)
    assert rows(made.execute()) == [(1, "'a'"), (1, "None"), (2, "'b'")]


def test_null_is_none_between_functions() -> None:
    environment = with_seen(session())
    environment.create_temporary_function(
        "inferred", udf(lambda s: pd.Series(list(s)), result_type="STRING", func_type="pandas")
    )
    assert rows(environment.execute_sql("SELECT seen(inferred(s)) FROM w")) == [("'a'",), ("'b'",), ("None",)]


AGGREGATES = [
    ("SELECT k, listed(s) FROM w GROUP BY k", [(1, "'a', None"), (2, "'b'")]),
    ("SELECT k, listed(s) OVER (PARTITION BY k) FROM w", [(1, "'a', None"), (1, "'a', None"), (2, "'b'")]),
]


@pytest.mark.parametrize(("query", "answer"), AGGREGATES)
def test_null_is_none_in_aggregates(query: str, answer: list[tuple[Any, ...]]) -> None:
    assert rows(with_listed(session()).execute_sql(query)) == answer


def with_listed(environment: TableEnvironment) -> TableEnvironment:
    listed = udaf(lambda s: ", ".join(sorted(seen(s), key=len)), result_type="STRING", func_type="pandas")
    environment.create_temporary_function("listed", listed)
    return environment


RESULTS: list[Callable[[Any], Any]] = [
    lambda s: pd.concat([s.iloc[:1], s.iloc[1:]]),
    lambda s: pd.concat([pd.Series(list(s.iloc[:1])), pd.Series(list(s.iloc[1:]))]),
    lambda s: s.astype("string[pyarrow]"),
    lambda s: s.astype("string[python]"),
    lambda s: pd.concat([s.iloc[:1].astype(pd.ArrowDtype(pa.string())), s.iloc[1:].astype(pd.ArrowDtype(pa.string()))]),
    lambda s: s.astype(pd.ArrowDtype(pa.large_string())),
    lambda s: s.astype("category"),
]


@pytest.mark.parametrize("place", range(len(RESULTS)))
def test_results_of_every_text_type(place: int) -> None:
    environment = session()
    environment.create_temporary_function("f", udf(RESULTS[place], result_type="STRING", func_type="pandas"))
    assert rows(environment.execute_sql("SELECT f(s) FROM w")) == [("a",), ("b",), (None,)]


def test_shifted_texts() -> None:
    assert rows(with_shifted(session()).execute_sql("SELECT shifted(s) FROM w")) == [("a",), (None,), (None,)]


def with_shifted(environment: TableEnvironment) -> TableEnvironment:
    shifted = udf(lambda s: pd.Series(list(s)).shift(1), result_type="STRING", func_type="pandas")
    environment.create_temporary_function("shifted", shifted)
    return environment


def test_numbers_in_chunks() -> None:
    def doubled(n: Any) -> Any:
        kept = n.astype(pd.ArrowDtype(pa.int64()))
        return pd.concat([kept.iloc[:1], kept.iloc[1:]]) * 2

    environment = session()
    environment.create_temporary_function("f", udf(doubled, result_type="BIGINT", func_type="pandas"))
    assert rows(environment.execute_sql("SELECT f(k) FROM w")) == [(2,), (2,), (4,)]


def with_concatenated(environment: TableEnvironment) -> TableEnvironment:
    """A function whose texts come in two chunks with pandas 3."""

    def concatenated(s: Any) -> Any:
        return pd.concat([pd.Series(list(s.iloc[:1])), pd.Series(list(s.iloc[1:]))])

    environment.create_temporary_function("concatenated", udf(concatenated, result_type="STRING", func_type="pandas"))
    return environment
