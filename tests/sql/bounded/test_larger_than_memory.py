"""Batch mode over more rows than memory holds: the same answers, through files that are gone afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_runtime.operators.bounded import base, held_rows

ROWS = 60_000
KEYS = 9_000
QUERIES = {
    "group": "SELECT k, COUNT(*), SUM(n), MAX(s), COUNT(DISTINCT n) FROM t GROUP BY k",
    "group in order": "SELECT k, FIRST_VALUE(s), LAST_VALUE(n) FROM t GROUP BY k",
    "sorted groups": "SELECT k, LISTAGG(s), COUNT(*), MAX(s) FROM t GROUP BY k",
    "join": "SELECT a.n, b.s FROM t a JOIN u b ON a.k = b.k",
    "left join": "SELECT a.n, b.s FROM t a LEFT JOIN u b ON a.k = b.k AND a.n > b.n",
    "full join": "SELECT a.n, b.s FROM u a FULL JOIN t b ON a.k = b.k AND a.n < b.n",
    "merge join": "SELECT /*+ SHUFFLE_MERGE(a) */ a.n, b.s FROM t a JOIN u b ON a.k = b.k",
    "left merge join": "SELECT /*+ SHUFFLE_MERGE(a) */ a.n, b.s FROM t a LEFT JOIN u b ON a.k = b.k AND a.n > b.n",
    "right merge join": "SELECT /*+ SHUFFLE_MERGE(a) */ a.n, b.s FROM u a RIGHT JOIN t b ON a.k = b.k AND a.n > b.n",
    "full merge join": "SELECT /*+ SHUFFLE_MERGE(a) */ a.n, b.s FROM u a FULL JOIN t b ON a.k = b.k AND a.n < b.n",
    "semi": "SELECT n FROM t WHERE k IN (SELECT k FROM u WHERE n > 100)",
    "anti": "SELECT n FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = t.k)",
    "over": "SELECT k, n, SUM(n) OVER (PARTITION BY k ORDER BY n, s), RANK() OVER (PARTITION BY k ORDER BY n) FROM t",
}
SORTED = {
    "sort": "SELECT k, n, s FROM t ORDER BY n DESC, s, k",
    "limit": "SELECT k, n, s FROM t ORDER BY s, n, k LIMIT 20000 OFFSET 5",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(7)
    for name, rows in (("t", ROWS), ("u", ROWS // 4)):
        keys = random.integers(0, KEYS, rows)
        numbers = random.integers(0, 1_000_000, rows)
        texts = [f"some text of row {number}" for number in numbers]
        columns = {"k": pa.array(keys, mask=keys == 5), "n": pa.array(numbers), "s": pa.array(texts)}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def _answer(tables: Path, files: Path, query: str, more: Mapping[str, str] | None = None) -> list[tuple[Any, ...]]:
    environment = TableEnvironment.create()
    options = {
        "execution.runtime-mode": "batch",
        "execution.batch.engine": "local",
        "parallelism.default": "1",
        "io.tmp.dirs": str(files),
        "flowsql.source.batch-rows": "4096",
    }
    for key, value in {**options, **(more or {})}.items():
        environment.get_config().set(key, value)
    for name in ("t", "u"):
        environment.execute_sql(
            f"CREATE TABLE {name} (k BIGINT, n BIGINT, s STRING) WITH ('connector' = 'filesystem', "
            f"'path' = '{tables}/{name}.parquet', 'format' = 'parquet')"
        )
    return [row for batch in environment.execute_sql(query).batches() for row in zip(*_lists(batch), strict=True)]


def _lists(batch: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in batch.columns]


@pytest.mark.parametrize("name", [*QUERIES, *SORTED])
def test_rows_that_memory_cannot_hold_wait_in_files(
    name: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {**QUERIES, **SORTED}[name]
    whole = _answer(tables, tmp_path, query)
    written: list[int] = []
    spilled = held_rows.SpillFile.append

    def counted(file: held_rows.SpillFile, batch: Any) -> None:
        written.append(batch.num_rows)
        spilled(file, batch)

    monkeypatch.setattr(held_rows.SpillFile, "append", counted)
    # Small enough that parts of the first level are dealt out once more.
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 100_000)
    in_parts = _answer(tables, tmp_path, query)
    assert written, "nothing was written to files"
    if name in SORTED:
        assert in_parts == whole
    else:
        assert Counter(in_parts) == Counter(whole)
    assert not list(tmp_path.rglob("*.arrows")), "files are left"


def test_a_small_budget_suffices(tables: Path, tmp_path: Path) -> None:
    query = "SELECT a.k, COUNT(*) AS n, MAX(b.s) FROM t a JOIN u b ON a.k = b.k GROUP BY a.k ORDER BY n DESC, a.k"
    assert _answer(tables, tmp_path, query, {"flowsql.memory": "6 mb"}) == _answer(tables, tmp_path, query)
