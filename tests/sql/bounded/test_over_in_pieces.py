"""OVER over partitions larger than memory: the answers of one that fits, without the partition in memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.batch import ChangelogBatch
from flowsql_runtime.operators.bounded import base
from flowsql_runtime.operators.bounded.over.large_partition import LargePartition
from flowsql_runtime.operators.bounded.over.operator import BoundedOverOperator

ROWS = 12_000
#: ``p``: three rows of four are of one partition. ``i``: different in each row; ``k``: with equals and NULLs; ``d``:
#: doubles with NaN; ``e``: one value but for some rows, so that peers go on for many pieces.
FUNCTIONS = {
    "row numbers": "ROW_NUMBER() OVER ({p} ORDER BY i), NTILE(7) OVER ({p} ORDER BY i)",
    "ranks": "RANK() OVER ({p} ORDER BY k), DENSE_RANK() OVER ({p} ORDER BY k), PERCENT_RANK() OVER ({p} ORDER BY k)",
    "shares": "CUME_DIST() OVER ({p} ORDER BY k DESC)",
    "ranks of long peers": "RANK() OVER ({p} ORDER BY e), DENSE_RANK() OVER ({p} ORDER BY e)",
    "offsets": "LAG(n) OVER ({p} ORDER BY i), LEAD(s, 3, 'none') OVER ({p} ORDER BY i), "
    "LAG(n, 5000, -1) OVER ({p} ORDER BY i), LEAD(n, 20000) OVER ({p} ORDER BY i)",
    "running rows": "SUM(n) OVER ({p} ORDER BY i ROWS UNBOUNDED PRECEDING), MAX(s) OVER ({p} ORDER BY i "
    "ROWS UNBOUNDED PRECEDING), LISTAGG(CAST(k AS STRING)) OVER ({p} ORDER BY i ROWS 3 PRECEDING)",
    "running peers": "SUM(n) OVER ({p} ORDER BY k), COUNT(*) OVER ({p} ORDER BY e), AVG(n) OVER ({p} ORDER BY k DESC)",
    "running away": "SUM(n) OVER ({p} ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING), "
    "MIN(s) OVER ({p} ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 900 FOLLOWING)",
    "running distance": "COUNT(*) OVER ({p} ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING), "
    "SUM(n) OVER ({p} ORDER BY k DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING)",
    "whole": "SUM(n) OVER ({p}), COUNT(s) OVER ({p}), MAX(s) OVER ({p} ORDER BY i "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "to the end": "SUM(n) OVER ({p} ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), "
    "COUNT(n) OVER ({p} ORDER BY i ROWS BETWEEN 4 FOLLOWING AND UNBOUNDED FOLLOWING), "
    "MIN(s) OVER ({p} ORDER BY k RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "to the end by distance": "SUM(n) OVER ({p} ORDER BY k RANGE BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "distances from NULL": "COUNT(*) OVER ({p} ORDER BY k RANGE BETWEEN 2 FOLLOWING AND 9 FOLLOWING), "
    "COUNT(*) OVER ({p} ORDER BY k NULLS LAST RANGE BETWEEN UNBOUNDED PRECEDING AND 40 PRECEDING), "
    "COUNT(*) OVER ({p} ORDER BY k DESC RANGE BETWEEN 40 FOLLOWING AND UNBOUNDED FOLLOWING), "
    "COUNT(*) OVER ({p} ORDER BY k DESC RANGE BETWEEN 60 PRECEDING AND 5 PRECEDING)",
    "bounded rows": "SUM(n) OVER ({p} ORDER BY i ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING), FIRST_VALUE(s) OVER "
    "({p} ORDER BY i ROWS BETWEEN 700 PRECEDING AND 699 PRECEDING), LAST_VALUE(n) OVER ({p} ORDER BY i "
    "ROWS BETWEEN 1 FOLLOWING AND 5 FOLLOWING)",
    "bounded values": "SUM(n) OVER ({p} ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW), COUNT(*) OVER "
    "({p} ORDER BY i DESC RANGE BETWEEN 30 PRECEDING AND 10 PRECEDING), COUNT(n) OVER ({p} ORDER BY d RANGE "
    "BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "several": "SUM(n) OVER ({p} ORDER BY i), ROW_NUMBER() OVER ({p} ORDER BY i), LAG(k) OVER ({p} ORDER BY i), "
    "COUNT(*) OVER ({p} ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), SUM(n) OVER ({p} ORDER BY i DESC)",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("over") / "t.parquet"
    k = random.integers(0, 1500, ROWS)
    n = random.integers(0, 10**6, ROWS)
    d = np.where(k % 50 == 0, np.nan, k / 4.0)
    columns = {
        "p": pa.array(np.where(random.integers(0, 4, ROWS) > 0, 7, random.integers(0, 300, ROWS))),
        "i": pa.array(random.permutation(ROWS)),
        "k": pa.array(k, mask=k % 20 == 3),
        "n": pa.array(n, mask=n % 9 == 0),
        "s": pa.array([f"text of {number}" for number in n.tolist()]),
        "d": pa.array(d),
        "e": pa.array(np.where(random.integers(0, 100, ROWS) == 0, k, 77)),
    }
    pq.write_table(pa.table(columns), path)
    return path


def answer(table: Path, files: Path, query: str) -> list[tuple[Any, ...]]:
    environment = TableEnvironment.create()
    for key, value in {
        "execution.runtime-mode": "batch",
        "execution.batch.engine": "local",
        "parallelism.default": "1",
        "io.tmp.dirs": str(files),
        "flowsql.source.batch-rows": "1024",
    }.items():
        environment.get_config().set(key, value)
    environment.execute_sql(
        "CREATE TABLE t (p BIGINT, i BIGINT, k BIGINT, n BIGINT, s STRING, d DOUBLE, e BIGINT) "
        f"WITH ('connector' = 'filesystem', 'path' = '{table}', 'format' = 'parquet')"
    )
    rows: list[tuple[Any, ...]] = []
    for batch in environment.execute_sql(query).batches():
        columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
        rows.extend(zip(*columns, strict=True))
    return rows


@pytest.mark.parametrize("partition", ["", "PARTITION BY p"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pieces_answer_as_the_whole(
    name: str, partition: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"SELECT p, i, {FUNCTIONS[name].format(p=partition)} FROM t"
    whole = answer(table, tmp_path, query)
    pieces: list[int] = []
    together: list[int] = []
    add, answered = LargePartition._add, BoundedOverOperator._answer

    def counted(partition: LargePartition, piece: ChangelogBatch) -> None:
        pieces.append(piece.num_rows)
        add(partition, piece)

    def seen(operator: BoundedOverOperator, batch: ChangelogBatch) -> None:
        together.append(batch.num_rows)
        answered(operator, batch)

    monkeypatch.setattr(LargePartition, "_add", counted)
    monkeypatch.setattr(BoundedOverOperator, "_answer", seen)
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 60_000)
    in_pieces = answer(table, tmp_path, query)
    assert Counter(in_pieces) == Counter(whole)
    assert len(pieces) > 30
    assert max(together, default=0) < ROWS // 3
    if not partition:
        assert not together
    assert not list(tmp_path.rglob("*.arrows")), "files are left"


def test_frames_that_see_nothing(table: Path, tmp_path: Path) -> None:
    query = "SELECT COUNT(n) OVER (ORDER BY i ROWS BETWEEN 20000 FOLLOWING AND 20001 FOLLOWING) FROM t"
    assert answer(table, tmp_path, query) == [(0,)] * ROWS
