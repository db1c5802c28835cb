"""``scan.watermark.*`` of tables over real files: when watermarks leave, and which sources wait for others."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.errors import BindError

START = datetime(2024, 1, 1)
ROWS = 20_000
ALIGNED = "'scan.watermark.alignment.group'='g', 'scan.watermark.alignment.max-drift'='1 min'"


def environment() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set("parallelism.default", "1")
    return made


def table(env: TableEnvironment, name: str, path: Path, options: str) -> None:
    env.execute_sql(
        f"CREATE TABLE {name} (i INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='filesystem', "
        f"'path'='{path}', 'format'='csv', {options})"
    )


def rows(env: TableEnvironment, query: str) -> list[tuple[object, ...]]:
    with env.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


def fast_and_slow(env: TableEnvironment, folder: Path, options: str) -> None:
    """Rows of ``fast`` are a second apart, those of ``slow`` a millisecond."""
    for name, step in (("fast", timedelta(seconds=1)), ("slow", timedelta(milliseconds=1))):
        path = folder / f"{name}.csv"
        path.write_text("".join(f"{i},{(START + i * step).isoformat(' ', 'milliseconds')}\n" for i in range(ROWS)))
        table(env, name, path, options)


BOTH = "SELECT 'fast' AS s, i, ts FROM fast UNION ALL SELECT 'slow', i, ts FROM slow"


def fast_before_half_of_slow(found: list[tuple[object, ...]]) -> int:
    half = next(place for place, row in enumerate(found) if row[:2] == ("slow", ROWS // 2))
    return sum(row[0] == "fast" for row in found[:half])


def test_a_source_far_ahead_waits_for_its_group(tmp_path: Path) -> None:
    env = environment()
    fast_and_slow(env, tmp_path, f"{ALIGNED}, 'scan.watermark.alignment.update-interval'='5 ms'")
    found = rows(env, BOTH)
    # One batch of the fast source is as far ahead as the other one never gets; the rest comes when that has ended.
    assert fast_before_half_of_slow(found) <= 1_024
    assert len(found) == 2 * ROWS


def test_a_source_alone_in_its_group_waits_for_nobody(tmp_path: Path) -> None:
    env = environment()
    path = tmp_path / "alone.csv"
    path.write_text("".join(f"{i},{(START + timedelta(hours=i)).isoformat(' ')}\n" for i in range(3_000)))
    table(env, "alone", path, ALIGNED)
    assert len(rows(env, "SELECT i, ts FROM alone")) == 3_000


def test_aligned_sources_make_the_same_windows(tmp_path: Path) -> None:
    env = environment()
    fast_and_slow(env, tmp_path, f"{ALIGNED}, 'scan.watermark.alignment.update-interval'='5 ms'")
    env.execute_sql(f"CREATE TEMPORARY VIEW v AS {BOTH}")
    found = rows(
        env,
        "SELECT window_start, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
        "GROUP BY window_start, window_end",
    )
    assert sorted(count for _, count in found) == [2_000, 3_600, 3_600, 3_600, 3_600, 3_600 + ROWS]


def test_group_and_drift_belong_together(tmp_path: Path) -> None:
    env = environment()
    table(env, "t", tmp_path / "t.csv", "'scan.watermark.alignment.group'='g'")
    with pytest.raises(BindError, match=r"'scan\.watermark\.alignment\.max-drift' must be set"):
        env.execute_sql("SELECT * FROM t")


@pytest.mark.parametrize(("strategy", "kept"), [("on-periodic", 3), ("on-event", 2)])
def test_a_late_row_is_judged_by_the_strategy(tmp_path: Path, strategy: str, kept: int) -> None:
    # 110 ms are less than the interval by which watermarks leave; 20 ms is late behind a watermark of 120 ms.
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{i},{START.isoformat(' ')}.{ms:03}\n" for i, ms in enumerate((10, 120, 20))))
    env = environment()
    table(env, "t", path, f"'scan.watermark.emit.strategy'='{strategy}'")
    window = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0.05' SECOND))"
    found = rows(env, f"SELECT window_start, COUNT(*) AS c FROM {window} GROUP BY window_start, window_end")
    assert sum(count for _, count in found) == kept
