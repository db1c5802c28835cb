"""File sinks over checkpoints: what a part of each format does at one, restores, leftovers, compaction, partitions."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import orjson
import pytest

from flowsql_connectors.filesystem import durable
from flowsql_connectors.filesystem.partitions.policy import PartitionCommitPolicy, PartitionContext
from flowsql_connectors.spi.sink import Committable, Committer, SinkWriter
from flowsql_core.batch import single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.element import MAX_WATERMARK
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import batch_of, files_table, scan, writer_of


def _made(table: TableSpec, **options: Any) -> tuple[SinkWriter, Committer]:
    writer, committer = writer_of(table, **options)
    assert committer is not None
    return writer, committer


def _checkpoint(writer: SinkWriter) -> tuple[list[Committable], bytes]:
    writer.flush(end_of_input=False)
    return writer.prepare_commit(), writer.snapshot()


def _end(writer: SinkWriter) -> list[Committable]:
    writer.flush(end_of_input=True)
    committables = writer.prepare_commit()
    writer.close()
    return committables


def _hidden(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob(".*") if path.is_file())


@pytest.mark.parametrize(("format_", "seen"), [("csv", []), ("json", []), ("parquet", [[1]])])
def test_row_formats_go_on_behind_a_checkpoint_and_bulk_formats_do_not(
    tmp_path: Path, format_: str, seen: list[list[int]]
) -> None:
    table = files_table("a INT", tmp_path / "t", format_)
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1,)]))
    committer.commit(_checkpoint(writer)[0], end_of_input=False)
    assert scan(table) == seen
    writer.write(batch_of(table, [(2,)]))
    committer.commit(_end(writer), end_of_input=True)
    assert scan(table) == [[1], [2]]
    assert len(list((tmp_path / "t").glob("part-*"))) == 1 + len(seen)
    assert not _hidden(tmp_path)


def test_a_part_above_the_rolling_size_ends_with_the_checkpoint(tmp_path: Path) -> None:
    table = files_table("a INT", tmp_path / "t", "csv", sink__rolling_policy__file_size="1b")
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1,)]))
    committer.commit(_checkpoint(writer)[0], end_of_input=False)
    assert scan(table) == [[1]]


def test_an_idle_part_ends_with_the_checkpoint_after_the_check_interval(tmp_path: Path) -> None:
    clock = ManualClock(0)
    table = files_table(
        "a INT", tmp_path / "t", "csv", sink__rolling_policy__inactivity_interval="5 s",
        sink__rolling_policy__check_interval="10 s",
    )  # fmt: skip
    writer, committer = _made(table, clock=clock)
    writer.write(batch_of(table, [(1,)]))
    clock.advance(9_000)
    committer.commit(_checkpoint(writer)[0], end_of_input=False)
    assert scan(table) == []
    clock.advance(1_000)
    committer.commit(_checkpoint(writer)[0], end_of_input=False)
    assert scan(table) == [[1]]


def test_a_restored_part_is_cut_to_the_checkpoint_and_continued(tmp_path: Path) -> None:
    table = files_table("a INT, b STRING", tmp_path / "t", "csv", csv__header="true")
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1, "x")]))
    committables, state = _checkpoint(writer)
    committer.commit(committables, end_of_input=False)
    writer.write(batch_of(table, [(2, "lost")]))
    _checkpoint(writer)
    writer.close()
    (part,) = _hidden(tmp_path)
    assert b"lost" in part.read_bytes(), "a checkpoint counts on the file: it outlives its writer"
    again, committer = _made(table)
    committer.restore(b"")
    committer.commit(committables, end_of_input=False)
    again.restore([state])
    again.write(batch_of(table, [(3, "y")]))
    committer.commit(_end(again), end_of_input=True)
    (shown,) = (tmp_path / "t").glob("part-*")
    assert shown.read_text() == "a,b\n1,x\n3,y\n"
    assert not _hidden(tmp_path)


def test_two_parts_of_one_partition_meet_in_one_writer(tmp_path: Path) -> None:
    table = files_table("a INT, p STRING", tmp_path / "t", "json", ("p",))
    states = []
    for subtask in range(2):
        writer, _ = _made(table, subtask=subtask, parallelism=2, lineage="job")
        writer.write(batch_of(table, [(subtask, "x"), (subtask + 10, "yz"[subtask])]))
        states.append(_checkpoint(writer)[1])
        writer.close()
    again, committer = _made(table, lineage="job")
    again.restore(states)
    again.write(batch_of(table, [(5, "x"), (6, "y"), (7, "z")]))
    committer.commit(_end(again), end_of_input=True)
    assert sorted(scan(table)) == [[0, "x"], [1, "x"], [5, "x"], [6, "y"], [7, "z"], [10, "y"], [11, "z"]]
    assert len(list((tmp_path / "t" / "p=x").iterdir())) == 2
    assert len(list((tmp_path / "t" / "p=y").iterdir())) == 1
    assert not _hidden(tmp_path)


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_a_part_that_a_checkpoint_counts_on_must_be_there(tmp_path: Path, damage: str) -> None:
    table = files_table("a INT", tmp_path / "t", "csv")
    writer, _ = _made(table)
    writer.write(batch_of(table, [(1,)]))
    _, state = _checkpoint(writer)
    (part,) = _hidden(tmp_path)
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes(b"1")
    again, _ = _made(table)
    with pytest.raises(ConnectorError, match=r"is gone|has 1 bytes; the checkpoint counts on 2") as raised:
        again.restore([state])
    assert raised.value.code == "lost-part"


@pytest.mark.parametrize("restored", [False, True])
def test_a_file_that_is_gone_matters_unless_it_was_committed_before(tmp_path: Path, restored: bool) -> None:
    table = files_table("a INT", tmp_path / "t", "parquet")
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1,)]))
    committables, _ = _checkpoint(writer)
    for part in _hidden(tmp_path):
        part.unlink()
    if restored:
        committer.restore(b"")
        committer.commit(committables, end_of_input=False)
    else:
        with pytest.raises(ConnectorError, match="is gone before it was committed"):
            committer.commit(committables, end_of_input=False)


def test_leftovers_of_dead_attempts_go_with_the_first_new_checkpoint(tmp_path: Path) -> None:
    table = files_table("a INT, p STRING", tmp_path / "t", "csv", ("p",))
    first, _ = _made(table, lineage="job/1")
    first.write(batch_of(table, [(1, "x")]))
    committables, state = _checkpoint(first)
    # An attempt at another parallelism that dies before its first checkpoint; its writers are never heard of again.
    for subtask in range(3):
        dead, _ = _made(table, subtask=subtask, parallelism=3, lineage="job/1")
        dead.restore([state] if subtask == 0 else [])
        dead.write(batch_of(table, [(2, "x"), (3, f"new-{subtask}")]))
        dead.prepare_commit()
    strange = tmp_path / "t" / "p=x" / f".part-{uuid.uuid4()}-0-0.inprogress.job%2F2"
    strange.write_text("of another job")
    own = tmp_path / "t" / ".keep"
    own.write_text("of the user")
    writers = [_made(table, subtask=subtask, parallelism=2, lineage="job/1")[0] for subtask in range(2)]
    _, committer = _made(table, lineage="job/1")
    committer.restore(b"")
    committer.commit(committables, end_of_input=False)
    writers[0].restore([state])
    made = []
    for writer in writers:
        writer.write(batch_of(table, [(4, "x")]))
        made += _checkpoint(writer)[0]
    assert len(_hidden(tmp_path)) == 2 + 2 + 5
    committer.commit(made, end_of_input=False)
    left = [path for path in _hidden(tmp_path) if path not in (strange, own)]
    assert len(left) == 2, "only what the two writers go on with"
    assert strange.exists()
    assert own.exists()
    committer.commit([one for writer in writers for one in _end(writer)], end_of_input=True)
    assert sorted(scan(table)) == [[1, "x"], [4, "x"], [4, "x"]]
    assert _hidden(tmp_path) == sorted([own, strange])


# -- partitions


def _hours(tmp_path: Path, **options: str) -> TableSpec:
    return files_table(
        "a INT, h STRING", tmp_path / "t", "csv", ("h",), sink__partition_commit__trigger="partition-time",
        sink__partition_commit__delay="1 h",
        partition__time_extractor__timestamp_pattern="2024-01-01 $h:00:00",
        **{"sink__partition_commit__policy__kind": "success-file"} | options,
    )  # fmt: skip


_DAY_MS = 1_704_067_200_000
_HOUR_MS = 3_600_000


def _marked(tmp_path: Path) -> list[str]:
    return sorted(path.parent.name for path in tmp_path.rglob("_SUCCESS"))


def test_a_partition_is_complete_behind_its_time_not_at_it(tmp_path: Path) -> None:
    table = _hours(tmp_path)
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1, "00"), (2, "01")]).with_track(single_watermark(2, _DAY_MS + _HOUR_MS)))
    committer.commit(_checkpoint(writer)[0], end_of_input=False)
    assert _marked(tmp_path) == []
    assert scan(table) == []
    writer.on_watermark(_DAY_MS + _HOUR_MS + 1)
    committer.commit(_checkpoint(writer)[0], end_of_input=False)
    assert _marked(tmp_path) == ["h=00"]
    assert scan(table) == [[1, "00"]], "the parts of a complete partition are closed, the others go on"


def test_behind_the_last_watermark_everything_is_shown(tmp_path: Path) -> None:
    """A savepoint that drains the job is no end of the input, but nothing comes behind it."""
    table = files_table(
        "a INT, h STRING", tmp_path / "t", "csv", ("h",), sink__partition_commit__delay="1 h",
        sink__partition_commit__policy__kind="success-file",
    )  # fmt: skip
    writers = [_made(table, subtask=subtask, parallelism=2) for subtask in range(2)]
    committer = writers[0][1]
    for number, (writer, _) in enumerate(writers):
        writer.write(batch_of(table, [(number, "00")]))
    writers[0][0].on_watermark(MAX_WATERMARK)
    committer.commit([one for writer, _ in writers for one in _checkpoint(writer)[0]], end_of_input=False)
    assert (scan(table), _marked(tmp_path)) == ([[0, "00"]], [])
    writers[1][0].on_watermark(MAX_WATERMARK)
    committer.commit([one for writer, _ in writers for one in _checkpoint(writer)[0]], end_of_input=False)
    assert (sorted(scan(table)), _marked(tmp_path)) == ([[0, "00"], [1, "00"]], ["h=00"])
    assert not _hidden(tmp_path)


def test_late_rows_mark_a_partition_again(tmp_path: Path) -> None:
    table = _hours(tmp_path)
    writer, committer = _made(table)
    for a in range(2):
        writer.write(batch_of(table, [(a, "00")]).with_track(single_watermark(1, _DAY_MS + 2 * _HOUR_MS)))
        committer.commit(_checkpoint(writer)[0], end_of_input=False)
        assert _marked(tmp_path) == ["h=00"]
        next(tmp_path.rglob("_SUCCESS")).unlink()
    assert scan(table) == [[0, "00"], [1, "00"]]


def test_partitions_that_wait_survive_a_restore(tmp_path: Path) -> None:
    table = _hours(tmp_path, sink__rolling_policy__file_size="1b")
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1, "00")]))
    committer.commit(_checkpoint(writer)[0], end_of_input=False)
    committables, state = _checkpoint(writer)
    assert scan(table) == [[1, "00"]]
    again, after = _made(table)
    after.restore(committer.snapshot())
    after.commit(committables, end_of_input=False)
    again.restore([state])
    again.on_watermark(_DAY_MS + 2 * _HOUR_MS)
    after.commit(_checkpoint(again)[0], end_of_input=False)
    assert _marked(tmp_path) == ["h=00"]


def test_nothing_grows_with_the_number_of_partitions(tmp_path: Path) -> None:
    clock = ManualClock(0)
    table = files_table(
        "a INT, day INT", tmp_path / "t", "csv", ("day",), sink__partition_commit__policy__kind="success-file",
        sink__partition_commit__delay="1 d",
    )  # fmt: skip
    writer, committer = _made(table, clock=clock)
    sizes = []
    for day in range(40):
        writer.write(batch_of(table, [(day, day)]))
        clock.advance(86_400_000)
        committables, state = _checkpoint(writer)
        committer.commit(committables, end_of_input=False)
        sizes.append(len(state) + len(committables[0].data) + len(committer.snapshot()))
    assert max(sizes) - sizes[3] < 40, "digits of the numbers only"
    assert len(_marked(tmp_path)) >= 38


class RecordingPolicy(PartitionCommitPolicy):
    """Writes what it is told of to a file."""

    def __init__(self, path: str, prefix: str) -> None:
        self._path = path
        self._prefix = prefix

    def commit(self, context: PartitionContext) -> None:
        with open(self._path, "a") as file:
            named = dict(zip(context.keys, context.values, strict=True))
            file.write(f"{self._prefix} {context.table} {named} {context.path}\n")


def test_a_policy_of_the_user_is_told_of_complete_partitions(tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    table = _hours(
        tmp_path,
        sink__partition_commit__policy__kind="success-file,custom",
        sink__partition_commit__policy__class=f"{__name__}.RecordingPolicy",
        sink__partition_commit__policy__class__parameters=f"{told};told",
    )
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1, "0")]))
    committer.commit(_end(writer), end_of_input=True)
    assert told.read_text() == f"told t {{'h': '0'}} {tmp_path}/t/h=0\n"
    assert _marked(tmp_path) == ["h=0"]


# -- compaction


def _small_files(table: TableSpec, writers: int = 3) -> tuple[list[Committable], Committer]:
    made: list[Committable] = []
    for subtask in range(writers):
        writer, committer = _made(table, subtask=subtask, parallelism=writers, lineage="job")
        writer.write(batch_of(table, [(subtask, "x"), (subtask + 10, "y")]))
        made += _checkpoint(writer)[0]
        writer.close()
    return made, committer


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_small_files_of_a_checkpoint_become_one(tmp_path: Path, format_: str) -> None:
    options = {"csv__header": "true"} if format_ == "csv" else {}
    table = files_table("a INT, p STRING", tmp_path / "t", format_, ("p",), auto_compaction="true", **options)
    made, committer = _small_files(table)
    assert scan(table) == []
    committer.commit(made, end_of_input=False)
    wanted = [[0, "x"], [1, "x"], [2, "x"], [10, "y"], [11, "y"], [12, "y"]]
    assert sorted(scan(table)) == wanted
    names = sorted(path.name for path in (tmp_path / "t").rglob("*part-*"))
    assert len(names) == 2
    assert all(name.startswith("compacted-part-") for name in names)
    assert not _hidden(tmp_path)
    committer.restore(committer.snapshot())
    committer.commit(made, end_of_input=False)
    assert sorted(scan(table)) == wanted, "what was merged is not merged again"


def test_merged_parquet_keeps_its_values(tmp_path: Path) -> None:
    table = files_table("a INT, b TIMESTAMP(6), c DECIMAL(30, 2)", tmp_path / "t", "parquet", auto_compaction="true")
    rows: list[tuple[Any, ...]] = [(n, dt.datetime(year, 1, 1), None) for n, year in enumerate((1, 1970, 9999))]
    made: list[Committable] = []
    for subtask, row in enumerate(rows):
        writer, committer = _made(table, subtask=subtask, parallelism=3)
        writer.write(batch_of(table, [row]))
        made += _checkpoint(writer)[0]
    committer.commit(made, end_of_input=False)
    assert scan(table) == [[n, f"{year:04}-01-01 00:00:00", None] for n, year in enumerate((1, 1970, 9999))]


def test_files_are_merged_up_to_the_target_size(tmp_path: Path) -> None:
    table = files_table(
        "a INT, p STRING", tmp_path / "t", "csv", ("p",), auto_compaction="true", compaction__file_size="4b"
    )
    made, committer = _small_files(table, 5)
    committer.commit(made, end_of_input=False)
    # Two bytes a file below x, three below y.
    assert [len(list((tmp_path / "t" / folder).iterdir())) for folder in ("p=x", "p=y")] == [3, 5]


def test_a_merge_that_was_begun_is_ended_before_new_files_join(tmp_path: Path) -> None:
    table = files_table("a INT, p STRING", tmp_path / "t", "csv", ("p",), auto_compaction="true")
    made, committer = _small_files(table)
    kept = {path: path.read_bytes() for path in _hidden(tmp_path)}
    committer.commit(made, end_of_input=False)
    # As if the process had died before the inputs were removed: the plan and the inputs are still there.
    plan = [
        [str(path.parent), path.name, [inner.name for inner in kept if inner.parent == path.parent], "job"]
        for path in (tmp_path / "t").rglob("compacted-*")
    ]
    for path, data in kept.items():
        path.write_bytes(data)
    (tmp_path / "t" / ".compaction.job").write_bytes(orjson.dumps(plan))
    late, _ = _made(table, subtask=0, parallelism=3, lineage="job")
    late.write(batch_of(table, [(99, "x")]))
    _, again = _made(table, lineage="job")
    again.restore(b"")
    again.commit([*made, *_checkpoint(late)[0]], end_of_input=False)
    assert sorted(row[0] for row in scan(table)) == [0, 1, 2, 10, 11, 12, 99]
    assert not _hidden(tmp_path)


def test_abort_keeps_what_the_last_checkpoint_goes_on_writing(tmp_path: Path) -> None:
    table = files_table("a INT", tmp_path / "t", "csv")
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1,)]))
    committables, state = _checkpoint(writer)
    committer.commit(committables, end_of_input=False)
    writer.write(batch_of(table, [(2,)]))
    committer.abort(_end(writer))
    again, committer = _made(table)
    committer.restore(b"")
    committer.commit(committables, end_of_input=False)
    again.restore([state])
    committer.abort(_end(again))
    third, committer = _made(table)
    third.restore([state])
    committer.commit(_end(third), end_of_input=True)
    assert scan(table) == [[1]]


def test_a_checkpoint_syncs_what_was_written_since_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(durable, "_sync", synced.append)
    table = files_table("a INT, p STRING", tmp_path / "t", "csv", ("p",))
    writer, committer = _made(table)
    writer.write(batch_of(table, [(1, "x"), (2, "y")]))
    _checkpoint(writer)
    names = [path.removeprefix(str(tmp_path)).partition(".")[0] for path in synced]
    assert sorted(names) == ["", "/t", "/t/p=x", "/t/p=x/", "/t/p=y", "/t/p=y/"]
    synced.clear()
    writer.write(batch_of(table, [(3, "x")]))
    _checkpoint(writer)
    assert [Path(path).parent.name for path in synced] == ["p=x"]
    synced.clear()
    _checkpoint(writer)
    assert not synced
    committer.commit(_end(writer), end_of_input=True)
    assert sorted(Path(path).name for path in synced) == ["p=x", "p=y"], "the new names"
