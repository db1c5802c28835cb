"""``flowsql tail``: the newest rows of files and tables, what is added to them, and tables of running jobs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flowsql.cli.arguments.parser import UsageError
from flowsql.cli.arguments.tail import parse
from flowsql_connectors.filesystem.splits import FileSplit
from flowsql_connectors.spi.tail import TableTail
from tests.connectors.tables import files_table, source_of

from .conftest import Command, Script

INIT = """
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE clicks (n INT, t STRING, d AS n * 2)
    WITH ('connector' = 'filesystem', 'path' = 'clicks', 'format' = 'csv');
CREATE TABLE found (n INT, t STRING) WITH ('connector' = 'filesystem', 'path' = 'clicks', 'format' = 'csv',
    'source.monitor-interval' = '50 ms');
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1',
    'fields.n.end' = '100', 'number-of-rows' = '100');
CREATE TABLE forever (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');
CREATE VIEW grouped AS SELECT t, COUNT(*) AS c FROM clicks GROUP BY t;
CREATE TABLE copied WITH ('connector' = 'filesystem', 'path' = 'copied', 'format' = 'csv') AS SELECT n FROM clicks;
INSERT INTO clicks SELECT 1, 'x';
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "init.sql").write_text(INIT)
    (tmp_path / "clicks").mkdir()
    # The one that was changed last comes last.
    write(tmp_path / "clicks/b.csv", range(1, 31), changed=1000)
    write(tmp_path / "clicks/a.csv", range(31, 34), changed=2000)
    return tmp_path


def write(path: Path, numbers: range, changed: int | None = None) -> None:
    path.write_text("".join(f"{n},t{n}\n" for n in numbers))
    if changed is not None:
        os.utime(path, (changed, changed))


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (("clicks",), [[n, f"t{n}", 2 * n] for n in range(24, 34)]),
        (("-n", "2", "clicks"), [[32, "t32", 64], [33, "t33", 66]]),
        (("-n", "0", "clicks"), []),
        (("-n", "99", "clicks"), [[n, f"t{n}", 2 * n] for n in range(1, 34)]),
        (("-n", "4", "--rows", "1", "clicks"), [[30, "t30", 60]]),
        (("-n", "3", "numbers"), [[98], [99], [100]]),
        (("-n", "1", "`default_database`.numbers"), [[100]]),
        (("-n", "1", "clicks/a.csv"), [[33, "t33"]]),
        (("-n", "1", "'clicks/a.csv'"), [[33, "t33"]]),
    ],
)
def test_the_last_rows(command: Command, words: tuple[str, ...], rows: list[list[object]]) -> None:
    _, *found = command.lines("tail", "-i", "init.sql", *words)
    assert [row["row"] for row in found] == rows
    assert {row["op"] for row in found} <= {"+I"}
    # The script was read for its definitions alone.
    assert not Path("copied").exists()
    assert sorted(os.listdir("clicks")) == ["a.csv", "b.csv"]


def test_a_view_that_computes(command: Command) -> None:
    _, *found = command.lines("tail", "-i", "init.sql", "-n", "3", "grouped")
    assert [row["row"][1] for row in found] == [1, 1, 1]


def test_the_end_of_a_large_file_is_read_alone(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from flowsql_connectors.formats import rows_in_bytes

    write(Path("clicks/c.csv"), range(1, 400_000))
    read: list[int] = []
    plain = os.preadv

    def counted(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        read.append(offset)
        return plain(descriptor, buffers, offset)

    monkeypatch.setattr(rows_in_bytes.os, "preadv", counted)
    _, *found = command.lines("tail", "-i", "init.sql", "-n", "2", "clicks")
    assert [row["row"][0] for row in found] == [399_998, 399_999]
    assert read
    assert min(read) > Path("clicks/c.csv").stat().st_size - (2 << 20)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("nothing",), 1, "Object 'nothing' not found"),
        (("no/such.csv",), 1, "no/such.csv"),
        (("-f", "numbers"), 1, "Table 'numbers' has an end, and nothing is added to it."),
        (("-n", "5", "forever"), 1, "Table 'forever' has no end, and therefore no last rows."),
        (("-n", "x", "clicks"), 2, "expected a number of rows, got 'x'"),
    ],
)
def test_what_cannot_be_shown(command: Command, words: tuple[str, ...], code: int, told: str) -> None:
    found, output, errors = command("tail", "-i", "init.sql", *words)
    assert (found, output) == (code, "")
    assert told in errors


def test_words_that_do_not_fit_together() -> None:
    for words in (["--job", "j", "-n", "3", "t"], ["--job", "j", "-i", "init.sql", "t"], []):
        with pytest.raises(UsageError):
            parse(words)


def test_an_unbounded_table_goes_on(command: Command) -> None:
    _, *found = command.lines("tail", "-i", "init.sql", "--rows", "7", "forever")
    assert len(found) == 7
    code, output, _ = command("tail", "-i", "init.sql", "--timeout", "0.4", "--format", "csv", "forever")
    assert code == 0
    assert len(output.splitlines()) > 2


@pytest.mark.parametrize("words", [("-f", "clicks"), ("found",), ("-f", "clicks/a.csv")])
def test_lines_and_files_that_are_added(command: Command, words: tuple[str, ...]) -> None:
    """A table that looks for files by itself goes on without being told to."""

    def add() -> None:
        time.sleep(0.5)
        with open("clicks/a.csv", "a") as stream:
            stream.write("34,t34\n35,t3")
            stream.flush()
            time.sleep(0.01)
            stream.write("5\n")
        write(Path("clicks/z.csv"), range(36, 38))

    adding = threading.Thread(target=add)
    adding.start()
    wanted = [[32, "t32"], [33, "t33"], [34, "t34"], [35, "t35"]]
    if words[-1] != "clicks/a.csv":
        wanted += [[36, "t36"], [37, "t37"]]
    _, *found = command.lines(
        "tail", "-i", "init.sql", "-n", "2", "--rows", str(len(wanted)), "--timeout", "30", *words
    )
    adding.join()
    assert [row["row"][:2] for row in found] == wanted


def test_tables_of_a_running_job(grouped: Script, command: Command) -> None:
    head, *rows = command.lines("tail", "--job", grouped.id[:10], "--rows", "20", "clicks")
    assert head == {"columns": [["n", "BIGINT"]]}
    assert {row["op"] for row in rows} == {"+I"}
    head, *rows = command.lines("tail", "--job", grouped.id, "--rows", "20", "default_database.counts")
    assert head == {"columns": [["k", "BIGINT"], ["c", "BIGINT"]]}
    assert {row["op"] for row in rows} == {"-U", "+U"}
    code, _, errors = command("tail", "--job", grouped.id, "nothing")
    assert code == 1
    assert "The job neither reads nor writes a table 'nothing'." in errors
    code, _, errors = command("tail", "--job", "nothing", "clicks")
    assert code == 1
    assert "'nothing' is not a running job." in errors


# -- files


def looked(tail: TableTail) -> list[tuple[str, int, int]]:
    """What was added: names of files and ranges."""
    splits = map(FileSplit.decode, tail.added())
    return [(Path(one.file.path).name, one.ranges[0].start, one.ranges[-1].stop) for one in splits]


@pytest.fixture
def tail_of(tmp_path: Path) -> Callable[[str], TableTail]:
    (tmp_path / "t").mkdir()

    def made(format_: str) -> TableTail:
        tail = source_of(files_table("a INT", tmp_path / "t", format_))[0].tail()
        assert tail is not None
        return tail

    return made


def test_what_is_added_to_files(tail_of: Callable[[str], TableTail], tmp_path: Path) -> None:
    file = tmp_path / "t/a.csv"
    file.write_text("1\n2\n")
    tail = tail_of("csv")
    assert tail.interval_ms is None
    assert len(tail.parts(100)) == 1
    assert looked(tail) == []
    with file.open("a") as stream:
        stream.write("3\n4")
    assert looked(tail) == [("a.csv", 4, 6)]
    # Nobody ended the last line: it is taken as it is.
    assert looked(tail) == [("a.csv", 6, 7)]
    assert looked(tail) == []
    # Behind it a line ends that has been given away; the next one is new.
    with file.open("a") as stream:
        stream.write("\n5\n")
    assert looked(tail) == [("a.csv", 7, 10)]
    # A file that has become shorter is another one.
    file.write_text("7\n")
    assert looked(tail) == [("a.csv", 0, 2)]
    (tmp_path / "t/b.csv").write_text("8")
    assert looked(tail) == []
    assert looked(tail) == [("b.csv", 0, 1)]
    file.unlink()
    (tmp_path / "t/b.csv").unlink()
    (tmp_path / "t").rmdir()
    assert looked(tail) == []


def test_files_that_do_not_grow(tail_of: Callable[[str], TableTail], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = tail_of("parquet")
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "t/a.parquet")
    assert len(tail.parts(100)) == 1
    (tmp_path / "t/b.parquet").write_bytes(b"PAR1 half of it")
    assert looked(tail) == []
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "t/b.parquet")
    assert looked(tail) == [("b.parquet", 0, 1)]
    assert looked(tail) == []
