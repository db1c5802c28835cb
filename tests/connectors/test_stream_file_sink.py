"""Sinks of streams into files, over checkpoints: rolling by the row, folders by the clock, merges that wait."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from flowsql_connectors.filesystem import compact
from flowsql_connectors.spi.sink import Committable, Committer, SinkWriter
from flowsql_core.clock import ManualClock
from flowsql_core.errors import BindError, ConnectorError, ExecutionError, NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import batch_of, table_of, writer_of

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _lines(folder: Path, **options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return table_of("line STRING", {"connector": "file-sink", "path": str(folder), "format": "lines", **named})


def _made(table: TableSpec, **options: Any) -> tuple[SinkWriter, Committer]:
    writer, committer = writer_of(table, lineage="job", **options)
    assert committer is not None
    return writer, committer


def _write(writer: SinkWriter, table: TableSpec, *texts: str) -> None:
    writer.write(batch_of(table, [(text,) for text in texts]))


def _checkpoint(writer: SinkWriter, ended: bool = False) -> list[Committable]:
    writer.flush(end_of_input=ended)
    return writer.prepare_commit()


def _seen(folder: Path) -> dict[str, str]:
    """Visible files, ``U`` for ids of writers, and their contents."""
    return {
        _UUID.sub("U", str(path.relative_to(folder))): path.read_text()
        for path in sorted(folder.rglob("*"), key=lambda path: _UUID.sub("U", str(path)))
        if path.is_file() and not path.name.startswith(".")
    }


def _contents(folder: Path) -> list[str]:
    return sorted(path.read_text() for path in folder.rglob("[!.]*") if path.is_file())


def _hidden(folder: Path) -> list[str]:
    return sorted(_UUID.sub("U", path.name) for path in folder.rglob(".*"))


ROLLING = {"sink__rolling_policy__file_size": "10 b"}


@pytest.mark.parametrize("batch_rows", [1, 5, 12])
def test_a_part_takes_no_row_once_it_is_larger(tmp_path: Path, batch_rows: int) -> None:
    """What PyFlink 2.3 wrote of these twelve texts with ``part_size=10``, however they arrive."""
    table = _lines(tmp_path, **ROLLING)
    writer, committer = _made(table)
    texts = [f"{number:03}" for number in range(12)]
    for start in range(0, 12, batch_rows):
        _write(writer, table, *texts[start : start + batch_rows])
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    assert _seen(tmp_path) == {
        f"part-U-{number}": "".join(f"{text}\n" for text in texts[3 * number : 3 * number + 3]) for number in range(4)
    }


def test_a_row_that_is_larger_than_a_part_stands_alone(tmp_path: Path) -> None:
    table = _lines(tmp_path, **ROLLING)
    writer, committer = _made(table)
    _write(writer, table, "long" * 5, "a", "long" * 5, "b")
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    assert _contents(tmp_path) == ["a\n" + "long" * 5 + "\n", "b\n", "long" * 5 + "\n"]


def test_folders_follow_the_clock(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000_000)
    table = _lines(tmp_path, bucket__pattern="yyyy/MM/dd'T'HH-EEE", bucket__zone="America/Los_Angeles")
    writer, committer = _made(table, clock=clock)
    _write(writer, table, "a")
    clock.advance(3_600_000)
    _write(writer, table, "b")
    clock.advance(-3_600_000)
    _write(writer, table, "c")
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    # The second file of the first folder: the first one was older than half an hour.
    assert _seen(tmp_path) == {
        "2023/11/14T14-Tue/part-U-0": "a\n",
        "2023/11/14T14-Tue/part-U-2": "c\n",
        "2023/11/14T15-Tue/part-U-1": "b\n",
    }


@pytest.mark.parametrize(
    ("options", "closed_s"),
    [
        ({"sink__rolling_policy__inactivity_interval": "20 s"}, [25]),
        ({"sink__rolling_policy__rollover_interval": "15 s"}, [15]),
        (
            {"rolling_policy__on_checkpoint": "true", "sink__rolling_policy__rollover_interval": "15 s"},
            [5, 10, 15, 20, 25],
        ),
    ],
)
def test_files_close_by_their_age(tmp_path: Path, options: dict[str, str], closed_s: list[int]) -> None:
    """A row after 0 and 5 seconds, a checkpoint every 5 seconds; ages are looked at each time."""
    clock = ManualClock(0)
    table = _lines(tmp_path, sink__rolling_policy__check_interval="5 s", **options)
    writer, committer = _made(table, clock=clock)
    _write(writer, table, "a")
    seen = []
    for second in range(5, 30, 5):
        clock.advance(5_000)
        if second == 5:
            _write(writer, table, "b")
        elif "true" in options.values():
            _write(writer, table, "c")
        before = len(_contents(tmp_path))
        committer.commit(_checkpoint(writer), end_of_input=False)
        seen += [second] if len(_contents(tmp_path)) > before else []
    assert seen == closed_s


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"bucket__pattern": "bogus"}, ExecutionError, "Unknown pattern letter: b"),
        ({"bucket__pattern": "yyyy VV"}, NotSupportedYetError, "letters of zones"),
        ({"bucket__pattern": "yyyy", "bucket__zone": "Nowhere/X"}, BindError, "'Nowhere/X'"),
        ({"part__prefix": "a/b"}, BindError, "without '/'"),
        ({"charset": "no-such"}, BindError, "no character set 'no-such'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_job(
    tmp_path: Path, options: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        _made(_lines(tmp_path, **options))


@pytest.mark.parametrize(
    ("charset", "data"),
    [
        ("UTF-8", "é€\nx\n".encode()),
        ("ISO-8859-1", b"\xe9?\nx\n"),
        ("US-ASCII", b"??\nx\n"),
        ("UTF-16", b"\xfe\xff\x00\xe9\x20\xac\n\xfe\xff\x00x\n"),
        ("UTF-16LE", b"\xe9\x00\xac\x20\nx\x00\n"),
    ],
)
def test_character_sets_are_javas(tmp_path: Path, charset: str, data: bytes) -> None:
    """Asked of PyFlink 2.3: a line feed is one byte, each text in UTF-16 begins with its mark."""
    table = _lines(tmp_path, charset=charset)
    writer, committer = _made(table)
    _write(writer, table, "é€", "x")
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [data]


def test_names_have_the_prefix_and_the_suffix_and_leftovers_are_known_by_them(tmp_path: Path) -> None:
    own = "6f1c8f0e-0000-0000-0000-000000000001"
    strange = tmp_path / f".part-{own}-0.inprogress.job"
    dead = tmp_path / f".pre-{own}-3.txt.inprogress.job"
    strange.write_text("of another sink")
    dead.write_text("of a dead attempt")
    table = _lines(tmp_path, part__prefix="pre", part__suffix=".txt")
    writer, committer = _made(table)
    committer.restore(b"")
    _write(writer, table, "a")
    prepared = _checkpoint(writer)
    assert _hidden(tmp_path) == [
        ".part-U-0.inprogress.job",
        ".pre-U-0.txt.inprogress.job",
        ".pre-U-3.txt.inprogress.job",
    ]
    committer.commit([], end_of_input=False)
    committer.commit(prepared, end_of_input=False)
    assert (strange.exists(), dead.exists()) == (True, False)
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    assert _seen(tmp_path) == {"pre-U-0.txt": "a\n"}


# -- merges that wait

BY_CHECKPOINTS = {"rolling_policy__on_checkpoint": "true", "compaction__checkpoints": "3"}
BY_SIZE = {"rolling_policy__on_checkpoint": "true", "compaction__size": "5"}


def _steps(writer: SinkWriter, committer: Committer, table: TableSpec, folder: Path, texts: str) -> list[list[str]]:
    """One checkpoint a text; what is visible behind each."""
    seen = []
    for text in texts:
        _write(writer, table, text)
        committer.commit(_checkpoint(writer), end_of_input=False)
        seen.append(_contents(folder))
    return seen


def test_files_wait_for_the_nth_checkpoint(tmp_path: Path) -> None:
    table = _lines(tmp_path, **BY_CHECKPOINTS)
    writer, committer = _made(table)
    first, second = "a\nb\nc\n", "d\ne\nf\n"
    assert _steps(writer, committer, table, tmp_path, "abcdefg") == [
        [], [], [first], [first], [first], [first, second], [first, second],
    ]  # fmt: skip
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    assert _seen(tmp_path) == {"compacted-part-U-0": first, "compacted-part-U-3": second, "compacted-part-U-6": "g\n"}
    assert _hidden(tmp_path) == []


def test_files_wait_for_their_size_folder_by_folder(tmp_path: Path) -> None:
    clock = ManualClock(0)
    table = _lines(tmp_path, bucket__pattern="HH", bucket__zone="UTC", **BY_SIZE)
    writer, committer = _made(table, clock=clock)
    _steps(writer, committer, table, tmp_path, "ab")
    clock.advance(3_600_000)
    _steps(writer, committer, table, tmp_path, "xyz")
    assert _seen(tmp_path) == {"01/compacted-part-U-2": "x\ny\nz\n"}
    clock.advance(-3_600_000)
    _steps(writer, committer, table, tmp_path, "c")
    assert _seen(tmp_path) == {"00/compacted-part-U-0": "a\nb\nc\n", "01/compacted-part-U-2": "x\ny\nz\n"}


@pytest.mark.parametrize("options", [BY_CHECKPOINTS, BY_SIZE])
@pytest.mark.parametrize("cut", range(1, 7))
@pytest.mark.parametrize("committed", [True, False])
def test_files_that_wait_survive_a_restore(tmp_path: Path, options: dict[str, str], cut: int, committed: bool) -> None:
    """``cut``: the checkpoint that is restored, before or after it was committed."""
    table = _lines(tmp_path, **options)
    writer, committer = _made(table)
    _steps(writer, committer, table, tmp_path, "abcdef"[: cut - 1])
    _write(writer, table, "abcdef"[cut - 1])
    prepared, state, remembered = _checkpoint(writer), writer.snapshot(), committer.snapshot()
    if committed:
        committer.commit(prepared, end_of_input=False)
    again, after = _made(table)
    after.restore(remembered)
    after.commit(prepared, end_of_input=False)
    again.restore([state])
    _steps(again, after, table, tmp_path, "abcdef"[cut:])
    after.commit(_checkpoint(again, ended=True), end_of_input=True)
    assert _contents(tmp_path) == ["a\nb\nc\n", "d\ne\nf\n"]
    assert _hidden(tmp_path) == []


@pytest.mark.parametrize("place", ["write_atomically", "_rename", "remove"])
def test_a_merge_that_a_crash_interrupts_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    table = _lines(tmp_path, **BY_CHECKPOINTS)
    writer, committer = _made(table)
    _steps(writer, committer, table, tmp_path, "ab")
    _write(writer, table, "c")
    prepared, state, remembered = _checkpoint(writer), writer.snapshot(), committer.snapshot()
    original = getattr(compact, place)

    def crash(*args: Any) -> None:
        original(*args)
        if not str(args[0]).endswith(".new"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(compact, place, crash)
        with pytest.raises(KeyboardInterrupt):
            committer.commit(prepared, end_of_input=False)
    again, after = _made(table)
    after.restore(remembered)
    after.commit(prepared, end_of_input=False)
    again.restore([state])
    _write(again, table, "d")
    after.commit(_checkpoint(again, ended=True), end_of_input=True)
    assert _contents(tmp_path) == ["a\nb\nc\n", "d\n"]
    assert _hidden(tmp_path) == []


def test_files_that_wait_are_no_leftovers_and_are_shown_by_a_sink_that_does_not_merge(tmp_path: Path) -> None:
    merging = _lines(tmp_path, **BY_CHECKPOINTS)
    writer, committer = _made(merging)
    _steps(writer, committer, merging, tmp_path, "a")
    _write(writer, merging, "b")
    prepared, state = _checkpoint(writer), writer.snapshot()
    # An attempt that goes on merging cleans up behind the first of its own checkpoints, and keeps them.
    again, after = _made(merging)
    after.restore(committer.snapshot())
    after.commit(prepared, end_of_input=False)
    again.restore([state])
    _write(again, merging, "c")
    next_prepared, next_state, remembered = _checkpoint(again), again.snapshot(), after.snapshot()
    plain = _lines(tmp_path, rolling_policy__on_checkpoint="true")
    last, shows = _made(plain)
    shows.restore(remembered)
    shows.abort([])
    shows.commit(next_prepared, end_of_input=False)
    last.restore([next_state])
    shows.commit(_checkpoint(last, ended=True), end_of_input=True)
    assert _contents(tmp_path) == ["a\n", "b\n", "c\n"]


@pytest.mark.parametrize("threads", ["1", "4"])
def test_merges_run_side_by_side(tmp_path: Path, threads: str) -> None:
    table = _lines(tmp_path, compaction__size="8", compaction__threads=threads, sink__rolling_policy__file_size="1 b")
    writer, committer = _made(table)
    _write(writer, table, *(f"{number:03}" for number in range(40)))
    committer.commit(_checkpoint(writer), end_of_input=False)
    wanted = {f"compacted-part-U-{number}": f"{number:03}\n{number + 1:03}\n" for number in range(0, 40, 2)}
    assert _seen(tmp_path) == wanted


def test_a_delimiter_stands_behind_each_file(tmp_path: Path) -> None:
    table = _lines(tmp_path, compaction__delimiter=b"--\n".hex(), **BY_CHECKPOINTS)
    writer, committer = _made(table)
    _steps(writer, committer, table, tmp_path, "abcd")
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    assert _contents(tmp_path) == ["a\n--\nb\n--\nc\n--\n", "d\n--\n"]


def test_the_identical_compactor_takes_one_file(tmp_path: Path) -> None:
    table = _lines(tmp_path, compaction__by="identical", **BY_CHECKPOINTS)
    writer, committer = _made(table)
    with pytest.raises(ExecutionError, match="can only copy one input file, not 3"):
        _steps(writer, committer, table, tmp_path, "abc")
    assert all("inprogress" in name for name in _hidden(tmp_path)), "no plan of a merge is left"
    single = _lines(tmp_path / "single", compaction__by="identical", compaction__size="1", **ROLLING)
    writer, committer = _made(single)
    _write(writer, single, "a")
    committer.commit(_checkpoint(writer, ended=True), end_of_input=True)
    assert _seen(tmp_path / "single") == {"compacted-part-U-0": "a\n"}


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(ConnectorError, match="is a file"):
        _made(_lines(tmp_path / "f"))
