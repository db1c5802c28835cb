"""The sort-merge join: the answers of the hash join, whatever the keys are and however little memory there is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError
from flowsql_runtime.operators.bounded import base, sort_merge_join

KINDS = ("", "LEFT", "RIGHT", "FULL")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few keys with many rows each, NULLs among them, and keys that one side alone has."""
    folder = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(3)
    for name, rows, keys in (("a", 3000, 40), ("b", 900, 60)):
        numbers = random.integers(0, keys, rows)
        # Every third row is of one key.
        numbers[::3] = 7
        columns = {
            "k": pa.array(numbers, mask=random.random(rows) < 0.05),
            "s": pa.array([f"key {number}" for number in numbers], mask=random.random(rows) < 0.05),
            "n": pa.array(random.integers(0, 50, rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=300)
    return folder


def _session(tables: Path, **options: str) -> TableEnvironment:
    environment = TableEnvironment.create()
    given = {"execution.runtime-mode": "batch", "execution.batch.engine": "local", "parallelism.default": "1"}
    for key, value in {**given, "flowsql.source.batch-rows": "300", **options}.items():
        environment.get_config().set(key, value)
    for name in ("a", "b"):
        environment.execute_sql(
            f"CREATE TABLE {name} (k BIGINT, s STRING, n BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{tables}/{name}.parquet', 'format' = 'parquet')"
        )
    return environment


def _rows(environment: TableEnvironment, query: str) -> Counter[tuple[Any, ...]]:
    columns = [[column.to_pylist() for column in batch.columns] for batch in environment.execute_sql(query).batches()]
    return Counter(row for batch in columns for row in zip(*batch, strict=True))


def _both(environment: TableEnvironment, query: str) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """Answers by hash and by sort and merge."""
    by_hash = _rows(environment, query)
    environment.get_config().set("table.exec.disabled-operators", "HashJoin, NestedLoopJoin")
    assert "SortMergeJoin(" in environment.explain_sql(query)
    return by_hash, _rows(environment, query)


QUERIES = {
    **{f"{kind} by number": f"SELECT a.n, b.n FROM a {kind} JOIN b ON a.k = b.k AND a.n > b.n + 40" for kind in KINDS},
    **{f"{kind} by two": f"SELECT a.s, b.n FROM a {kind} JOIN b ON a.s = b.s AND a.n = b.n" for kind in KINDS},
    "null safe": "SELECT a.n, b.n FROM a JOIN b ON a.s IS NOT DISTINCT FROM b.s AND a.n = b.n + 30",
    "semi": "SELECT n FROM a WHERE s IN (SELECT s FROM b WHERE n > 20)",
    "semi with more": "SELECT n FROM a WHERE EXISTS (SELECT * FROM b WHERE a.k = b.k AND a.n > b.n + 45)",
    "anti": "SELECT n FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE a.k = b.k)",
    "anti with more": "SELECT n FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE a.k = b.k AND a.n > b.n + 45)",
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("share", [None, 12_000])
def test_the_answer_is_that_of_the_hash_join(
    name: str, share: int | None, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys_in_files: list[int] = []
    in_file = sort_merge_join.SortMergeJoinOperator._join_in_files

    def counted(operator: sort_merge_join.SortMergeJoinOperator, ends: Any) -> None:
        keys_in_files.append(1)
        in_file(operator, ends)

    if share is not None:
        # The rows of one key take more than this.
        monkeypatch.setattr(base.BoundedOperator, "share_bytes", share)
        monkeypatch.setattr(sort_merge_join.SortMergeJoinOperator, "_join_in_files", counted)
    by_hash, merged = _both(_session(tables), QUERIES[name])
    assert by_hash == merged
    assert len(merged) > 3
    if share is not None and "by two" not in name and name != "null safe":
        assert keys_in_files


@pytest.mark.parametrize("kind", KINDS)
def test_keys_meet_in_one_subtask(kind: str, tables: Path) -> None:
    query = QUERIES[f"{kind} by two"]
    by_hash, merged = _both(_session(tables, **{"parallelism.default": "3"}), query)
    assert by_hash == merged


def test_a_join_needs_an_operator(tables: Path) -> None:
    environment = _session(tables, **{"table.exec.disabled-operators": "HashJoin,SortMergeJoin,NestedLoopJoin"})
    with pytest.raises(FlowSqlError, match="a join has no operator"):
        environment.explain_sql(QUERIES["anti"])


@pytest.mark.parametrize(
    ("disabled", "operator"),
    [
        ("ShuffleHashJoin", "HashJoin(isBroadcast=[true]"),
        ("HashJoin", "SortMergeJoin("),
        ("HashJoin,SortMergeJoin", "NestedLoopJoin("),
        ("SortMergeJoin", "HashJoin("),
    ],
)
def test_what_is_disabled_is_not_planned(disabled: str, operator: str, tables: Path) -> None:
    environment = _session(tables, **{"table.exec.disabled-operators": disabled})
    hint = "/*+ SHUFFLE_MERGE(a) */" if disabled == "SortMergeJoin" else ""
    plan = environment.explain_sql(f"SELECT {hint} 1 FROM a JOIN b ON a.k = b.k")
    assert operator.split("(")[0] + "(" in plan
    assert ("isBroadcast=[true]" in plan) is ("isBroadcast" in operator)
