"""``table.optimizer.agg-phase-strategy`` in batch mode: Flink's plans, one answer in one phase and in two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.batch import ChangelogBatch
from flowsql_runtime.operators.bounded import base, distinct_rows
from flowsql_runtime.operators.bounded.distinct import DistinctGroups
from flowsql_runtime.operators.bounded.distinct_sets import SeenValues
from flowsql_runtime.operators.bounded.groups import Groups

#: Queries (and SET lines), each with the plan that Flink 2.3.0 printed for them.
PLANS = Path(__file__).parent / "aggregate_phases.txt"
STRATEGY = "table.optimizer.agg-phase-strategy"
ROWS = 20_000
#: Every function that merges, keys with NULL, -0.0 and NaN, FILTER, no rows, more groups than rows of a batch.
QUERIES = (
    "SELECT k, COUNT(*), COUNT(n), SUM(n), AVG(n), MIN(n), MAX(n) FROM t GROUP BY k",
    "SELECT f, COUNT(*), SUM(e), AVG(e), MIN(e) FROM t GROUP BY f",
    "SELECT s, COUNT(*), MAX(s), MIN(d), SUM(d), AVG(d) FROM t GROUP BY s",
    "SELECT k, MAX(s), MIN(s), SUM(n) FILTER (WHERE n > 500), COUNT(*) FILTER (WHERE s = 'none') FROM t GROUP BY k",
    "SELECT k, ROUND(STDDEV_POP(e), 6), ROUND(VAR_SAMP(e), 6) FROM t GROUP BY k",
    "SELECT i, COUNT(*), SUM(n) FROM t GROUP BY i",
    "SELECT DISTINCT k, s FROM t",
    "SELECT k, s, SUM(n) FROM t GROUP BY ROLLUP (k, s)",
    "SELECT COUNT(*), SUM(n), MAX(s), AVG(d) FROM t",
    "SELECT COUNT(*), SUM(n), MAX(s), AVG(d) FROM t WHERE n < 0",
    "SELECT k, COUNT(*) FROM t WHERE n < 0 GROUP BY k",
    "SELECT k, COUNT(DISTINCT n), SUM(n) FROM t GROUP BY k",
    "SELECT k, COUNT(DISTINCT n) FROM t GROUP BY k",
    "SELECT k, COUNT(DISTINCT i), COUNT(DISTINCT s), SUM(DISTINCT n), AVG(n), MAX(s) FROM t GROUP BY k",
    "SELECT k, COUNT(DISTINCT n) FILTER (WHERE e > 60), COUNT(DISTINCT n), COUNT(n) FILTER (WHERE e > 60) FROM t "
    "GROUP BY k",
    "SELECT COUNT(DISTINCT i) FILTER (WHERE e > 60), SUM(DISTINCT i) FILTER (WHERE e > 60) FROM t",
    "SELECT COUNT(DISTINCT i), COUNT(DISTINCT f), COUNT(*), COUNT(DISTINCT s) FROM t",
    "SELECT COUNT(DISTINCT i), COUNT(*), MIN(s) FROM t WHERE n < 0",
    "SELECT k, COUNT(DISTINCT n), COUNT(*) FROM t WHERE n < 0 GROUP BY k",
    "SELECT k, COUNT(DISTINCT k), COUNT(DISTINCT d), SUM(DISTINCT d) FROM t GROUP BY k",
    "SELECT f, COUNT(DISTINCT s), COUNT(DISTINCT f) FROM t GROUP BY f",
    "SELECT k, s, COUNT(DISTINCT n), SUM(n) FROM t GROUP BY CUBE (k, s)",
    "SELECT k, ROUND(VAR_POP(DISTINCT e), 6), COUNT(*) FROM t GROUP BY k",
    "SELECT k, COUNT(DISTINCT n), CARDINALITY(COLLECT(n)) FROM t GROUP BY k",
    "SELECT k, COUNT(DISTINCT i), CARDINALITY(ARRAY_AGG(DISTINCT s)) FROM t GROUP BY k",
    "SELECT window_start, COUNT(DISTINCT n), COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
    "GROUP BY window_start, window_end",
    "SELECT k, SUM(n), CARDINALITY(COLLECT(n)) FROM t GROUP BY k",
    "SELECT window_start, SUM(n) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
    "GROUP BY window_start, window_end",
    "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), k, COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), k",
)


def planned() -> Iterator[tuple[list[str], str, str]]:
    """Options in force, a query and its plan."""
    options: list[str] = []
    query, lines = "", []
    for line in [*PLANS.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("SET "):
            options = [*options, line]
        elif line.startswith("    "):
            lines.append(line[4:])
        elif not line and query:
            yield options, query, "\n".join(lines)
            query, lines = "", []
        elif line and not line.startswith("#"):
            query = line


def session(**options: str) -> TableEnvironment:
    environment = TableEnvironment.create()
    given = {"execution.runtime-mode": "batch", "execution.batch.engine": "local", "table.local-time-zone": "UTC"}
    for key, value in {**given, **options}.items():
        environment.get_config().set(key, value)
    return environment


def test_plans_are_flinks(tmp_path: Path) -> None:
    wrong = []
    count = 0
    for options, query, wanted in planned():
        environment = session()
        environment.execute_sql(
            "CREATE TABLE t (k INT, g INT, n INT, b BIGINT, d DOUBLE, de DECIMAL(10,2), s STRING, ts TIMESTAMP(3)) "
            f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
        )
        for option in options:
            environment.execute_sql(option)
        text = environment.explain_sql(query)
        got = text.partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0]
        count += 1
        if got != wanted:
            wrong.append(f"{query}\nFlink:\n{wanted}\nFlowSQL:\n{got}")
    assert not wrong, "\n".join(wrong)
    assert count > 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(11)
    numbers = random.integers(0, 1000, ROWS)
    for part in range(3):
        own = slice(part * ROWS // 3, (part + 1) * ROWS // 3)
        n = numbers[own]
        odd = np.where(n % 7 == 0, np.nan, np.where(n % 5 == 0, -0.0, np.where(n % 5 == 1, 0.0, n % 3)))
        table = {
            "k": pa.array(n % 37, pa.int32(), mask=n % 37 == 3),
            "n": pa.array(n, pa.int32(), mask=n % 11 == 0),
            "i": pa.array(np.arange(own.start, own.stop) % 9001),
            "e": pa.array(n / 8.0),
            "f": pa.array(odd),
            "d": pa.array([f"{value}.25" for value in n.tolist()]).cast(pa.decimal128(10, 2)),
            "s": pa.array([f"text {value % 9}" for value in n.tolist()], mask=n % 9 == 8),
            "ts": pa.array(n.astype(np.int64) * 60_000, pa.timestamp("ms")),
        }
        pq.write_table(pa.table(table), made / f"part-{part}.parquet")
    return made


def answer(folder: Path, query: str, **options: str) -> list[str]:
    environment = session(**{"flowsql.source.batch-rows": "1024", **options})
    environment.execute_sql(
        "CREATE TABLE t (k INT, n INT, i BIGINT, e DOUBLE, f DOUBLE, d DECIMAL(10, 2), s STRING, ts TIMESTAMP(3)) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet')"
    )
    rows: list[str] = []
    for batch in environment.execute_sql(query).batches():
        columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
        rows.extend(map(repr, zip(*columns, strict=True)))
    return sorted(rows)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("disabled", ["", "HashAgg"])
def test_two_phases_answer_as_one(
    query: str, disabled: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"table.exec.disabled-operators": disabled, "io.tmp.dirs": str(tmp_path)}
    whole = answer(folder, query, **{"parallelism.default": "1", STRATEGY: "ONE_PHASE", **more})
    for parallelism in ("2", "3"):
        assert answer(folder, query, **{"parallelism.default": parallelism, STRATEGY: "TWO_PHASE", **more}) == whole
    # Local groups leave many times, and merged ones, and values of one group, are dealt out to files.
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 20_000)
    for parallelism in ("1", "2"):
        assert answer(folder, query, **{"parallelism.default": parallelism, STRATEGY: "AUTO", **more}) == whole
    assert not list(tmp_path.rglob("*.arrows")), "files are left"


def test_rows_are_folded_before_they_travel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: dict[bool, int] = {True: 0, False: 0}
    fold = Groups.fold

    def counted(groups: Groups, batch: ChangelogBatch, only_known: bool) -> ChangelogBatch | None:
        taken[groups._merges] += batch.num_rows
        return fold(groups, batch, only_known)

    monkeypatch.setattr(Groups, "fold", counted)
    query = "SELECT k, SUM(n) FROM t GROUP BY k"
    two = answer(folder, query, **{"parallelism.default": "2", STRATEGY: "TWO_PHASE"})
    assert taken[False] == ROWS
    assert 0 < taken[True] <= 2 * 37
    taken.update({True: 0, False: 0})
    assert answer(folder, query, **{"parallelism.default": "2", STRATEGY: "ONE_PHASE"}) == two
    assert taken == {True: 0, False: ROWS}


def test_one_group_has_more_values_than_memory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT n < 0, COUNT(DISTINCT i), COUNT(DISTINCT n), SUM(DISTINCT i), COUNT(*) FROM t GROUP BY n < 0"
    largest = 0
    whole = answer(folder, query)
    first_rows = SeenValues.first_rows

    def measured(seen: SeenValues, *args: Any) -> Any:
        nonlocal largest
        found = first_rows(seen, *args)
        largest = max(largest, seen.nbytes)
        return found

    monkeypatch.setattr(SeenValues, "first_rows", measured)
    answer(folder, query, **{"parallelism.default": "1"})
    all_values, largest = largest, 0
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 40_000)
    monkeypatch.setattr(distinct_rows, "SAMPLED_ROWS", 2000)
    for parallelism in ("2", "1"):
        largest = 0
        options = {"parallelism.default": parallelism, "io.tmp.dirs": str(tmp_path)}
        assert answer(folder, query, **options) == whole
    assert largest < all_values / 3
    assert not list(tmp_path.rglob("*.arrows")), "files are left"


def test_values_of_one_group_are_taken_by_all_tasks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    batches = DistinctGroups.batches

    def counted(groups: DistinctGroups, partial: bool) -> Iterator[ChangelogBatch]:
        for batch in batches(groups, partial):
            counts.extend(batch.columns[-1].to_pylist())
            yield batch

    monkeypatch.setattr(DistinctGroups, "batches", counted)
    assert answer(folder, "SELECT COUNT(DISTINCT i) FROM t", **{"parallelism.default": "2"}) == ["(9001,)"]
    assert len(counts) == 2
    assert sum(counts) == 9001
    assert min(counts) > 4000


def test_explain_says_what_runs() -> None:
    def notes(parallelism: str, query: str) -> str:
        environment = session(**{"parallelism.default": parallelism})
        environment.execute_sql(
            "CREATE TABLE v (k INT, s STRING, ts TIMESTAMP(3)) WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
        )
        return environment.explain_sql(query).partition("== FlowSQL Execution ==\n")[2].partition("\n\n")[0]

    alone = notes("1", "SELECT k, SUM(k) FROM v GROUP BY k")
    assert alone.startswith("LocalHashAggregate runs inside of HashAggregate(isMerge=[false], groupBy=[k]")
    assert notes("2", "SELECT k, SUM(k) FROM v GROUP BY k") == ""
    distinct = "SELECT k, COUNT(DISTINCT s), SUM(k) FROM v GROUP BY k"
    values, rows = notes("2", distinct).splitlines()
    assert values.startswith("Calc, LocalHashAggregate run inside of HashAggregate(isMerge=[true], groupBy=[k, s, $e]")
    assert rows.startswith("Expand runs inside of LocalHashAggregate(groupBy=[k, s, $e]")
    alone = notes("1", distinct)
    assert alone.startswith("LocalHashAggregate, Calc, HashAggregate, LocalHashAggregate, Expand run inside of ")
    sorted_ = notes("2", "SELECT k, MAX(s) FROM v GROUP BY k")
    assert "Sort runs inside of SortAggregate(isMerge=[true], groupBy=[k]" in sorted_
    assert "LocalSortAggregate(groupBy=[k], select=[k, Partial_MAX(s) AS max$0]) finds groups by hash" in sorted_
    window = "SELECT k, COUNT(*) FROM v GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), k"
    assert notes("1", window).startswith("HashWindowAggregate, LocalHashWindowAggregate run as HashAggregate(")
    assert notes("2", window).endswith(" over WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])")
    assert notes("2", "SELECT k, VAR_POP(k) FROM v GROUP BY k").startswith("VAR_POP of SortAggregate(")
