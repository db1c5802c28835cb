"""The time that a partition stands for, told by a class of the user."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from flowsql_connectors.filesystem.partitions.time_extractor import PartitionTimeExtractor
from flowsql_connectors.spi.sink import Committer, SinkWriter
from flowsql_core.batch import single_watermark
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import batch_of, files_table, writer_of

_DAY_MS = 86_400_000


class DayOfYear(PartitionTimeExtractor):
    """``year=2024/day=31`` is the 31st day of 2024."""

    def extract(self, partition_keys: list[str], partition_values: list[str]) -> datetime.datetime:
        assert partition_keys == ["year", "day"]
        year, day = map(int, partition_values)
        return datetime.datetime(year, 1, 1) + datetime.timedelta(days=day - 1)


class Undecided(PartitionTimeExtractor):
    """Answers no time."""

    def extract(self, partition_keys: list[str], partition_values: list[str]) -> datetime.datetime:
        return None  # type: ignore[return-value]


class Demanding(DayOfYear):
    """Wants what nobody gives it."""

    def __init__(self, wanted: str) -> None:
        pass


def _table(folder: Path, **options: str) -> TableSpec:
    return files_table(
        "a INT, `year` INT, `day` INT", folder / "t", "csv", ("year", "day"),
        **{
            "sink__partition_commit__trigger": "partition-time",
            "sink__partition_commit__policy__kind": "success-file",
            "partition__time_extractor__kind": "custom",
            **options,
        },
    )  # fmt: skip


def _made(table: TableSpec) -> tuple[SinkWriter, Committer]:
    writer, committer = writer_of(table)
    assert committer is not None
    return writer, committer


def _marked(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.rglob("_SUCCESS"))


@pytest.mark.parametrize(("zone", "ahead_h"), [("UTC", 0), ("Asia/Tokyo", 9)])
def test_a_class_of_the_user_tells_the_time(tmp_path: Path, zone: str, ahead_h: int) -> None:
    table = _table(
        tmp_path,
        partition__time_extractor__class=f"{__name__}.DayOfYear",
        sink__partition_commit__watermark_time_zone=zone,
    )
    writer, committer = _made(table)
    began_ms = int(datetime.datetime(2024, 1, 31, tzinfo=datetime.UTC).timestamp() * 1000) - ahead_h * 3_600_000
    rows = batch_of(table, [(1, 2024, 31), (2, 2024, 32)])
    writer.write(rows.with_track(single_watermark(2, began_ms)))
    committer.commit(writer.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == []
    writer.on_watermark(began_ms + 1)
    committer.commit(writer.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == ["day=31"]
    writer.on_watermark(began_ms + _DAY_MS + 1)
    committer.commit(writer.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == ["day=31", "day=32"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("Undecided", r"Undecided\.extract.* answered None"), ("DayOfYear", "failed: ValueError: invalid literal")],
)
def test_a_class_that_fails_is_named_with_the_partition(tmp_path: Path, name: str, message: str) -> None:
    table = files_table(
        "a INT, `year` STRING, `day` STRING", tmp_path / "t", "csv", ("year", "day"),
        sink__partition_commit__trigger="partition-time", sink__partition_commit__policy__kind="success-file",
        partition__time_extractor__kind="custom", partition__time_extractor__class=f"{__name__}.{name}",
    )  # fmt: skip
    writer, _ = _made(table)
    writer.write(batch_of(table, [(1, "2024", "x")]))
    with pytest.raises(ExecutionError, match=message) as failed:
        writer.prepare_commit()
    assert "['2024', 'x']" in str(failed.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "'custom' needs 'partition.time-extractor.class'"),
        ({"partition__time_extractor__class": "org.example.MyExtractor"}, "No module named 'org'"),
        ({"partition__time_extractor__class": "NoModule"}, "Can not create new instance"),
        ({"partition__time_extractor__class": "pathlib.Path"}, "Class pathlib.Path is no PartitionTimeExtractor"),
        ({"partition__time_extractor__class": f"{__name__}.Demanding"}, "missing 1 required positional argument"),
        ({"partition__time_extractor__kind": "later"}, "Unsupported extractor kind: later"),
        (
            {"partition__time_extractor__kind": "default", "partition__time_extractor__class": "x.Y"},
            "counts with 'partition.time-extractor.kind' = 'custom' only",
        ),
    ],
)
def test_extractors_that_cannot_be(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(BindError, match=message):
        _made(_table(tmp_path, **options))
