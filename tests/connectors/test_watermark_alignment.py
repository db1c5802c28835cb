"""Watermark alignment of tables of files: the splits of one reader, several sources, restarts while something waits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from flowsql.table import DataTypes, EnvironmentSettings, TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.clock import ManualClock
from flowsql_core.errors import ConnectorError
from flowsql_runtime.cluster.job import Job
from flowsql_runtime.cluster.local import LocalCluster
from tests.runtime.checkpoint.job_bench import WAIT_S, eventually
from tests.runtime.fake_connector import FakeStore, install
from tests.sql.test_cut import Session

START = datetime(2024, 1, 1)
ROWS = 20_000
#: Rows that a source reads before it looks at the others.
AT_ONCE = 1_024
#: These, and rows within the drift and what the slow file has behind it at its half.
MOST = 71 + AT_ONCE
ALIGNED = {
    "scan.watermark.alignment.group": "g",
    "scan.watermark.alignment.max-drift": "1 min",
    "scan.watermark.alignment.update-interval": "5 ms",
}
SECOND, MILLISECOND = timedelta(seconds=1), timedelta(milliseconds=1)
Rows = list[tuple[object, ...]]


def environment(parallelism: int = 1) -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set("parallelism.default", str(parallelism))
    return made


def written(options: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())


def declare(env: TableEnvironment, name: str, path: Path, options: dict[str, str], format_: str = "csv") -> None:
    env.execute_sql(
        f"CREATE TABLE {name} (s STRING, i INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH "
        f"({written({'connector': 'filesystem', 'path': str(path), 'format': format_} | options)})"
    )


def write(path: Path, step: timedelta, rows: int = ROWS, format_: str = "csv", first: datetime = START) -> None:
    """Rows that are ``step`` apart, with the file's name in them."""
    path.parent.mkdir(exist_ok=True)
    made = [(path.name, i, (first + i * step).isoformat(" ", "milliseconds")) for i in range(rows)]
    if format_ == "json":
        lines = [json.dumps(dict(zip(("s", "i", "ts"), row, strict=True))) for row in made]
    else:
        lines = [f"{name},{i},{ts}" for name, i, ts in made]
    path.write_text("\n".join(lines) + "\n")


def rows(env: TableEnvironment, query: str) -> Rows:
    with env.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


def before_half(found: Rows, ahead: str, behind: str = "slow") -> int:
    half = next(place for place, row in enumerate(found) if row[:2] == (behind, ROWS // 2))
    return sum(row[0] == ahead for row in found[:half])


ALL = "SELECT s, i, ts FROM t"


@pytest.mark.parametrize("format_", ["csv", "json"])
@pytest.mark.parametrize("chained", ["true", "false"])
def test_a_split_far_ahead_waits_for_the_others_of_its_reader(tmp_path: Path, format_: str, chained: str) -> None:
    env = environment()
    env.get_config().set("pipeline.operator-chaining.enabled", chained)
    write(tmp_path / "t" / "fast", SECOND, format_=format_)
    write(tmp_path / "t" / "slow", MILLISECOND, format_=format_)
    declare(env, "t", tmp_path / "t", ALIGNED, format_)
    found = rows(env, ALL)
    # A row that tells where the split begins, and one batch that is as far ahead as the other one never gets.
    assert before_half(found, "fast") <= MOST
    assert Counter(row[0] for row in found) == {"fast": ROWS, "slow": ROWS}
    for name in ("fast", "slow"):
        assert [row[1] for row in found if row[0] == name] == list(range(ROWS))


def test_alignment_may_be_asked_for_in_a_hint(tmp_path: Path) -> None:
    env = environment()
    write(tmp_path / "t" / "fast", SECOND)
    write(tmp_path / "t" / "slow", MILLISECOND)
    declare(env, "t", tmp_path / "t", {})
    assert before_half(rows(env, ALL), "fast") == ROWS
    assert before_half(rows(env, f"{ALL} /*+ OPTIONS({written(ALIGNED)}) */"), "fast") <= MOST


def test_drift_is_judged_over_sources_and_splits(tmp_path: Path) -> None:
    env = environment()
    write(tmp_path / "t" / "fast", SECOND)
    write(tmp_path / "t" / "slow", MILLISECOND)
    write(tmp_path / "other" / "other", SECOND)
    declare(env, "t", tmp_path / "t", ALIGNED)
    declare(env, "o", tmp_path / "other", ALIGNED)
    # In the order of reading: behind an exchange the order of two sources is open.
    read: Rows = []

    def seen(name: str, number: int) -> str:
        read.append((name, number))
        return name

    env.create_temporary_function("seen", udf(seen, result_type=DataTypes.STRING(), deterministic=False))
    found = rows(env, "SELECT seen(s, i), i, ts FROM t UNION ALL SELECT seen(s, i), i, ts FROM o")
    assert before_half(read, "fast") <= MOST
    assert before_half(read, "other") <= MOST
    assert Counter(row[0] for row in found) == {"fast": ROWS, "slow": ROWS, "other": ROWS}


def test_another_group_waits_for_nobody_of_this_one(tmp_path: Path) -> None:
    env = environment()
    write(tmp_path / "t" / "fast", SECOND)
    write(tmp_path / "other" / "slow", MILLISECOND)
    declare(env, "t", tmp_path / "t", ALIGNED | {"scan.watermark.alignment.update-interval": "1 h"})
    declare(env, "o", tmp_path / "other", ALIGNED | {"scan.watermark.alignment.group": "another"})
    assert len(rows(env, f"{ALL} UNION ALL SELECT s, i, ts FROM o")) == 2 * ROWS


def widest(found: Rows, names: Sequence[str]) -> timedelta:
    """How far a row was ahead of the last one of the file that was furthest behind and not at its end."""
    total = Counter(row[0] for row in found)
    seen: Counter[object] = Counter()
    reached: dict[object, datetime] = {}
    most = timedelta(0)
    for name, _, ts in found:
        assert isinstance(ts, datetime)
        begun = [reached[other] for other in names if other in reached and seen[other] < total[other]]
        if len(reached) == len(names) and begun:
            most = max(most, ts - min(begun))
        seen[name] += 1
        reached[name] = ts
    return most


@pytest.mark.parametrize("parallelism", [1, 2])
def test_more_files_than_stay_open_move_through_time_together(tmp_path: Path, parallelism: int) -> None:
    env = environment(parallelism)
    env.get_config().set("flowsql.source.batch-rows", "16")
    names = [f"f{number:02}" for number in range(40)]
    for place, name in enumerate(names):
        write(tmp_path / "t" / name, (1 + place % 3) * SECOND, 120)
    declare(env, "t", tmp_path / "t", ALIGNED | {"scan.watermark.alignment.max-drift": "10 s"})
    found = rows(env, ALL)
    assert sorted(row[:2] for row in found) == sorted((name, i) for name in names for i in range(120))
    for name in names:
        assert [row[1] for row in found if row[0] == name] == list(range(120))
    if parallelism == 1:
        # The drift, and a batch of the fastest.
        assert widest(found, names) <= timedelta(seconds=10 + 16 * 3)


def test_nothing_is_late_and_windows_are_whole_at_parallelism_two(tmp_path: Path) -> None:
    env = environment(2)
    for folder in ("t", "o"):
        for number, step in enumerate((SECOND, 100 * MILLISECOND, 10 * MILLISECOND, MILLISECOND)):
            write(tmp_path / folder / f"f{number}", step, 5_000)
        declare(env, folder, tmp_path / folder, ALIGNED)
    env.execute_sql(f"CREATE TEMPORARY VIEW v AS {ALL} UNION ALL SELECT s, i, ts FROM o")
    found = rows(
        env,
        "SELECT window_start, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) "
        "GROUP BY window_start, window_end",
    )
    assert sum(count for _, count in found) == 2 * 4 * 5_000  # type: ignore[misc]
    assert len(found) == 9


def test_bounded_inputs_of_a_join_end_whoever_waits(tmp_path: Path) -> None:
    env = environment(2)
    for name, step in (("fast", SECOND), ("slow", MILLISECOND)):
        write(tmp_path / name / name, step, 3_000)
        declare(env, name, tmp_path / name, ALIGNED)
    joined = (
        "SELECT COUNT(*) FROM fast JOIN slow ON fast.i = slow.i "
        "AND fast.ts BETWEEN slow.ts AND slow.ts + INTERVAL '1' HOUR"
    )
    assert rows(env, joined)[-1] == (3_000,)
    assert len(rows(env, "SELECT i FROM fast LIMIT 7")) == 7
    assert len(rows(env, "SELECT * FROM (SELECT i FROM slow LIMIT 3) UNION ALL SELECT i FROM fast")) == 3_003


def test_batch_mode_reads_as_it_likes(tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for name, step in (("fast", SECOND), ("slow", MILLISECOND)):
        write(tmp_path / name / name, step, 3_000)
        declare(env, name, tmp_path / name, ALIGNED | {"scan.watermark.alignment.update-interval": "1 h"})
    assert rows(env, "SELECT COUNT(*) FROM fast JOIN slow ON fast.i = slow.i") == [(3_000,)]


def test_a_table_without_a_watermark_so_far_holds_nobody_back(tmp_path: Path) -> None:
    env = environment()
    write(tmp_path / "t" / "fast", SECOND)
    write(tmp_path / "never" / "never", SECOND)
    declare(env, "t", tmp_path / "t", ALIGNED)
    env.execute_sql(
        "CREATE TABLE o (s STRING, i INT, ts TIMESTAMP(3), WATERMARK FOR ts AS CASE WHEN i < 0 THEN ts END) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path / 'never'}', 'format' = 'csv', {written(ALIGNED)})"
    )
    assert len(rows(env, f"{ALL} UNION ALL SELECT s, i, ts FROM o")) == 2 * ROWS


@pytest.mark.parametrize("allowed", [False, True])
def test_a_reader_that_cannot_pause_a_split_is_aligned_as_a_whole_if_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    env = environment()
    env.get_config().set("pipeline.watermark-alignment.allow-unaligned-source-splits", str(allowed).lower())
    split = [("split", i, START + i * SECOND) for i in range(3_000)]
    types = (pa.string(), pa.int32(), pa.timestamp("ms"))
    install(monkeypatch, FakeStore({"a": split, "b": split}, types))  # type: ignore[dict-item]
    declare(env, "t", tmp_path / "t", ALIGNED)
    if allowed:
        assert len(rows(env, ALL)) == 6_000
        return
    with pytest.raises(ConnectorError, match="cannot pause one of its splits") as refused:
        rows(env, ALL)
    assert "allow-unaligned-source-splits" in refused.value.render()


class Arriving:
    """Two folders that are looked at, into one of results, with time in the test's hands."""

    def __init__(self, folder: Path, more: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.session = Session(folder, {})
        self.clock = ManualClock(1_000_000)
        files = {"connector": "filesystem", "format": "csv", "source.monitor-interval": "1 s"}
        for name in ("ahead", "behind"):
            (folder / name).mkdir()
            options = files | {"path": str(folder / name)} | ALIGNED | (more or {})
            self.session.execute(
                f"CREATE TABLE {name} (s STRING, i INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH "
                f"({written(options)})"
            )
        # Its input ends.
        (folder / "ended").mkdir()
        options = {"connector": "filesystem", "format": "csv", "path": str(folder / "ended")} | ALIGNED
        self.session.execute(
            f"CREATE TABLE ended (s STRING, i INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({written(options)})"
        )
        kept = {"connector": "filesystem", "format": "csv", "path": str(folder / "kept")}
        kept |= {"sink.rolling-policy.inactivity-interval": "2 s", "sink.rolling-policy.check-interval": "1 s"}
        self.session.execute(f"CREATE TABLE kept (s STRING, i INT) WITH ({written(kept)})")

    def start(self, parallelism: int, path: str | None = None, beside: str = "behind") -> Job:
        options = {"execution.checkpointing.interval": "1 s", "execution.checkpointing.mode": "EXACTLY_ONCE"}
        if path is not None:
            options["execution.state-recovery.path"] = path
        insert = f"INSERT INTO kept SELECT s, i FROM ahead UNION ALL SELECT s, i FROM {beside}"
        return LocalCluster(self.clock).submit(self.session.graph(insert, parallelism, **options))

    def seen(self) -> Counter[object]:
        lines = [line.rstrip() for path in (self.folder / "kept").glob("part-*") for line in path.open()]
        found = Counter[object](line.split(",")[0] for line in lines)
        assert len(set(lines)) == len(lines), "doubled"
        return found

    def until(self, wanted: dict[str, int]) -> None:
        eventually(lambda: self.clock.advance(1_000) or self.seen() == wanted, f"{wanted}, not {self.seen()}")


@pytest.mark.parametrize("parallelism", [1, 2])
def test_checkpoints_hold_what_waits_and_a_job_goes_on_from_them(tmp_path: Path, parallelism: int) -> None:
    stream = Arriving(tmp_path)
    for number in range(2):
        write(tmp_path / "ahead" / f"a{number}", SECOND, 3_000)
        write(tmp_path / "behind" / f"b{number}", MILLISECOND, 100)
    job = stream.start(parallelism)
    # Those of the folder that is behind stand at 99 ms; a minute further the others wait, each behind one batch.
    waiting = {"a0": 1 + AT_ONCE, "a1": 1 + AT_ONCE, "b0": 100, "b1": 100}
    if parallelism == 2:
        waiting |= {"a0": AT_ONCE, "a1": AT_ONCE}
    stream.until(waiting)
    path = job.savepoint(str(tmp_path / "savepoints")).result(WAIT_S)
    job.cancel_and_wait()
    job = stream.start(3 - parallelism, path)
    # Forty minutes further, less than a batch before their ends, the others go on.
    for name in ("b2", "b3"):
        write(tmp_path / f".{name}", SECOND, 100, first=START + timedelta(minutes=40))
        (tmp_path / f".{name}").rename(tmp_path / "behind" / name)
    stream.until({"a0": 3_000, "a1": 3_000, "b0": 100, "b1": 100, ".b2": 100, ".b3": 100})
    job.cancel_and_wait()


def test_a_source_that_had_ended_before_a_restart_holds_nobody_back(tmp_path: Path) -> None:
    stream = Arriving(tmp_path)
    write(tmp_path / "ended" / "e0", MILLISECOND, 100)
    write(tmp_path / "ahead" / "a0", SECOND, 3_000)
    job = stream.start(1, beside="ended")
    stream.until({"a0": 3_000, "e0": 100})
    path = job.savepoint(str(tmp_path / "savepoints")).result(WAIT_S)
    job.cancel_and_wait()
    job = stream.start(1, path, beside="ended")
    write(tmp_path / ".a1", SECOND, 3_000, first=START + timedelta(hours=1))
    (tmp_path / ".a1").rename(tmp_path / "ahead" / "a1")
    stream.until({"a0": 3_000, "e0": 100, ".a1": 3_000})
    job.cancel_and_wait()


def test_a_reader_without_a_file_holds_nobody_back(tmp_path: Path) -> None:
    stream = Arriving(tmp_path)
    write(tmp_path / "ahead" / "a0", SECOND, 3_000)
    job = stream.start(2)
    stream.until({"a0": 3_000})
    job.cancel_and_wait()


def test_an_idle_reader_holds_nobody_back(tmp_path: Path) -> None:
    stream = Arriving(tmp_path, {"scan.watermark.idle-timeout": "20 s"})
    write(tmp_path / "ahead" / "a0", SECOND, 3_000)
    write(tmp_path / "behind" / "b0", MILLISECOND, 100)
    job = stream.start(1)
    stream.until({"a0": 3_000, "b0": 100})
    job.cancel_and_wait()
