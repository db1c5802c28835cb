"""File sinks: what the files hold is what Flink 2.3 wrote for the same rows; nothing shows before it is committed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.batch import single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.errors import BindError, ConnectorError
from tests.connectors.tables import batch_of, files_table, insert, scan, writer_of

_WIDE = (
    "a INT, b STRING, c DOUBLE, d DECIMAL(10,3), e TIMESTAMP(3), f TIMESTAMP(6), g TIMESTAMP_LTZ(3), h DATE, "
    "i TIME(3), j BOOLEAN, k BYTES, l ARRAY<INT>, m ROW<x INT, y STRING>, n FLOAT"
)
_UTC = dt.UTC
_ROWS: list[tuple[Any, ...]] = [
    (
        1, "x", 1.5, Decimal("1.5"), dt.datetime(2020, 1, 2, 3, 4, 5), dt.datetime(2020, 1, 2, 3, 4, 5, 123400),
        dt.datetime(2020, 1, 2, 3, 4, 5, 500000, _UTC), dt.date(2020, 1, 2), dt.time(10, 0, 0, 500000), True, b"hi",
        [1, 2], {"x": 1, "y": "z"}, 1.1,
    ),
    (None,) * 14,
    (
        2, "a b", 1e10, Decimal(0), dt.datetime(2020, 1, 2, 3, 0, 0, 100000), dt.datetime(2020, 1, 2, 3),
        dt.datetime(2020, 1, 2, 3, 4, 5, 0, _UTC), dt.date(1, 1, 2), dt.time(10), False, b"\xff\x00", [None, 3],
        {"x": None, "y": None}, 1e10,
    ),
]  # fmt: skip


def _text(folder: Path) -> str:
    return "".join(path.read_bytes().decode() for path in sorted(folder.rglob("part-*")))


def test_csv_text_is_flinks(tmp_path: Path) -> None:
    insert(files_table(_WIDE, tmp_path / "t", "csv"), _ROWS)
    assert _text(tmp_path / "t") == (
        '1,x,1.5,1.5,"2020-01-02 03:04:05","2020-01-02 03:04:05.123400","2020-01-02 03:04:05.500Z",2020-01-02,'
        "10:00:00.5,true,aGk=,1;2,1;z,1.1\n"
        ",,,,,,,,,,,,,\n"
        '2,"a b",1.0E10,0,"2020-01-02 03:00:00.100","2020-01-02 03:00:00","2020-01-02 03:04:05Z",0001-01-02,10:00:00,'
        "false,/wA=,;3,;,1.0E10\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("x,y", '"x,y"'), ('a"b', '"a""b"'), ("", ""), (" lead", '" lead"'), ("a;b", "a;b"), ("#c", '"#c"'), ("é", "é"),
        ("tab\tx", '"tab\tx"'), ("a'b", '"a\'b"'), ("nl\nx", '"nl\nx"'), ("-1", "-1"), ("a.b-c_d", "a.b-c_d"),
        ("~", "~"), ("a/b", "a/b"), ("a\\b", '"a\\b"'), ("+1", '"+1"'), ("a[b", "a[b"), ("|", "|"),
        ("abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwx"),
        ("abcdefghijklmnopqrstuvwxy", '"abcdefghijklmnopqrstuvwxy"'),
    ],
)  # fmt: skip
def test_csv_quotes_what_flink_quotes(tmp_path: Path, text: str, written: str) -> None:
    insert(files_table("b STRING", tmp_path / "t", "csv"), [(text,)])
    assert _text(tmp_path / "t") == written + "\n"


def test_csv_dialect_of_the_writer(tmp_path: Path) -> None:
    options = {
        "csv__null_literal": "n/a", "csv__field_delimiter": "|", "csv__array_element_delimiter": ":",
        "csv__quote_character": "'", "csv__escape_character": "\\",
    }  # fmt: skip
    rows = [
        (1, "x|y", ["a", "b"]),
        (None, None, None),
        (2, "it's", ["a:b", "c|d", "e'f", None]),
        (3, "n/a", ["back\\slash"]),
    ]
    insert(files_table("a INT, b STRING, c ARRAY<STRING>", tmp_path / "t", "csv", **options), rows)
    assert _text(tmp_path / "t") == (
        "1|'x|y'|'a:b'\nn/a|n/a|n/a\n2|'it''s'|'a:b:c|d:e''f:n/a'\n3|'n/a'|'back\\\\slash'\n"
    )


def test_decimals_in_csv(tmp_path: Path) -> None:
    rows = [(Decimal("1e-10"), Decimal(100)), (Decimal(1000000), Decimal("1.1")), (Decimal(0), Decimal(0))]
    insert(files_table("a DECIMAL(20,10), b DECIMAL(5,2)", tmp_path / "t", "csv"), rows)
    assert _text(tmp_path / "t") == "1E-10,1E+2\n1E+6,1.1\n0,0\n"
    plain = {"csv__write_bigdecimal_in_scientific_notation": "false"}
    insert(files_table("a DECIMAL(20,10), b DECIMAL(5,2)", tmp_path / "p", "csv", **plain), rows)
    assert _text(tmp_path / "p") == "0.0000000001,100\n1000000,1.1\n0,0\n"


@pytest.mark.parametrize(
    ("micros", "written"),
    [(0, ""), (200_000, ".200"), (250_000, ".250"), (123_400, ".123400"), (123_456, ".123456"), (5, ".000005")],
)
def test_csv_timestamps_have_fractions_in_groups_of_three_digits(tmp_path: Path, micros: int, written: str) -> None:
    insert(files_table("a TIMESTAMP(6)", tmp_path / "t", "csv"), [(dt.datetime(2026, 1, 1, 23, 50, 0, micros),)])
    assert _text(tmp_path / "t") == f'"2026-01-01 23:50:00{written}"\n'


def test_json_text_is_flinks(tmp_path: Path) -> None:
    table = files_table(_WIDE + ", o MAP<STRING,INT>", tmp_path / "t", "json")
    insert(table, [(1, 'x"é\t/\\', *_ROWS[0][2:11], [1, None], {"x": 1, "y": "z"}, 1.1, [("k", 1)])])
    assert _text(tmp_path / "t") == (
        '{"a":1,"b":"x\\"é\\t/\\\\","c":1.5,"d":1.5,"e":"2020-01-02 03:04:05","f":"2020-01-02 03:04:05.1234",'
        '"g":"2020-01-02 03:04:05.5Z","h":"2020-01-02","i":"10:00:00.5","j":true,"k":"aGk=","l":[1,null],'
        '"m":{"x":1,"y":"z"},"n":1.1,"o":{"k":1}}\n'
    )


def test_json_options_of_the_writer(tmp_path: Path) -> None:
    options = {
        "json__timestamp_format__standard": "ISO-8601", "json__encode__decimal_as_plain_number": "true",
        "json__encode__ignore_null_fields": "true",
    }  # fmt: skip
    ddl = "e TIMESTAMP(3), g TIMESTAMP_LTZ(3), d DECIMAL(20,10), c DOUBLE, i INT"
    rows = [
        (_ROWS[0][4], _ROWS[0][6], Decimal("1e-10"), 1e-7, None),
        (
            dt.datetime(2020, 1, 2, 3, 4, 0, 120000),
            dt.datetime(2020, 1, 2, 3, 4, tzinfo=_UTC),
            Decimal(100),
            123456789.0,
            4,
        ),
    ]
    insert(files_table(ddl, tmp_path / "t", "json", **options), rows)
    assert _text(tmp_path / "t") == (
        '{"e":"2020-01-02T03:04:05","g":"2020-01-02T03:04:05.5Z","d":0.0000000001,"c":1.0E-7}\n'
        '{"e":"2020-01-02T03:04:00.12","g":"2020-01-02T03:04:00Z","d":100.0000000000,"c":1.23456789E8,"i":4}\n'
    )


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_round_trip(tmp_path: Path, format_: str) -> None:
    ddl = _WIDE if format_ != "csv" else _WIDE.replace(", l ARRAY<INT>, m ROW<x INT, y STRING>", "")
    rows = [row if format_ != "csv" else (*row[:11], row[13]) for row in _ROWS]
    options = {"csv__null_literal": "N"} if format_ == "csv" else {}
    table = files_table(ddl, tmp_path / "t", format_, **options)
    insert(table, rows)
    read = scan(table)
    assert [row[0] for row in read] == [1, None, 2]
    assert read[0][:8] == [
        1, "x", 1.5, "1.500", "2020-01-02 03:04:05", "2020-01-02 03:04:05.123400", "2020-01-02 03:04:05.500Z",
        "2020-01-02",
    ]  # fmt: skip
    assert read[1] == [None] * len(rows[1])


def test_partition_folders_are_flinks(tmp_path: Path) -> None:
    table = files_table("a INT, dt STRING, hm INT", tmp_path / "t", "csv", ("dt", "hm"))
    values = [("2020-01-01", 5), ("a/b:c%d=e f", 6), (None, None), ("", 7), ('é?"#*', 8), ("{x}[y]^", 9)]
    insert(table, [(n, *value) for n, value in enumerate(values)])
    folders = sorted(str(path.parent.relative_to(tmp_path / "t")) for path in tmp_path.rglob("part-*"))
    assert folders == sorted(
        [
            "dt=2020-01-01/hm=5",
            "dt=a%2Fb%3Ac%25d%3De f/hm=6",
            "dt=__DEFAULT_PARTITION__/hm=__DEFAULT_PARTITION__",
            "dt=__DEFAULT_PARTITION__/hm=7",
            "dt=é%3F%22%23%2A/hm=8",
            "dt=%7Bx%7D%5By%5D%5E/hm=9",
        ]
    )
    read = sorted(scan(table), key=lambda row: row[0])
    assert read == [[n, value[0] or None, value[1]] for n, value in enumerate(values)]
    assert scan(table, select=["hm"], limit=1)[0][0] in {5, 6, 7, 8, 9, None}


def test_rows_of_a_partition_keep_their_order(tmp_path: Path) -> None:
    table = files_table("a INT, p STRING", tmp_path / "t", "csv", ("p",))
    insert(table, [(n, "xyz"[n * 7 % 3]) for n in range(1000)])
    for letter in "xyz":
        written = [int(line) for line in _text(tmp_path / "t" / f"p={letter}").split()]
        assert written == [n for n in range(1000) if "xyz"[n * 7 % 3] == letter]


def test_nothing_is_visible_before_the_commit(tmp_path: Path) -> None:
    table = files_table("a INT", tmp_path / "t", "parquet")
    writer, committer = writer_of(table)
    assert committer is not None
    writer.write(batch_of(table, [(1,)]))
    committables = writer.prepare_commit()
    writer.write(batch_of(table, [(2,)]))
    assert scan(table) == []
    committer.commit(committables, end_of_input=False)
    assert scan(table) == [[1]]
    committer.commit(committables, end_of_input=False)
    assert scan(table) == [[1]]
    writer.close()
    assert [path.name for path in (tmp_path / "t").iterdir() if path.name.startswith(".")] == []
    assert scan(table) == [[1]]


def test_abort_removes_what_was_prepared(tmp_path: Path) -> None:
    table = files_table("a INT", tmp_path / "t", "csv")
    writer, committer = writer_of(table)
    assert committer is not None
    writer.write(batch_of(table, [(1,)]))
    writer.flush(end_of_input=True)
    committer.abort(writer.prepare_commit())
    writer.close()
    assert list((tmp_path / "t").iterdir()) == []


def test_parts_roll_by_size_and_age(tmp_path: Path) -> None:
    clock = ManualClock(0)
    table = files_table(
        "a INT", tmp_path / "t", "csv", sink__rolling_policy__file_size="100b",
        sink__rolling_policy__rollover_interval="1 min", sink__rolling_policy__check_interval="10 s",
    )  # fmt: skip
    writer, committer = writer_of(table, clock=clock)
    assert committer is not None
    for _ in range(3):
        writer.write(batch_of(table, [(n,) for n in range(60)]))
    writer.write(batch_of(table, [(1,)]))
    clock.advance(61_000)
    writer.write(batch_of(table, [(2,)]))
    writer.write(batch_of(table, [(3,)]))
    writer.flush(end_of_input=True)
    committer.commit(writer.prepare_commit(), end_of_input=True)
    writer.close()
    sizes = sorted(path.stat().st_size for path in (tmp_path / "t").glob("part-*"))
    # As in Flink a part takes no further row once it is larger; the last two were closed by age and by the end.
    assert [100 < size <= 103 for size in sizes] == [False, False, True, True, True, True, True]
    assert len(scan(table)) == 183


def _partitioned(tmp_path: Path, trigger: str) -> Any:
    return files_table(
        "a INT, dt STRING, hm STRING", tmp_path / "t", "csv", ("dt", "hm"),
        sink__partition_commit__trigger=trigger, sink__partition_commit__delay="1 min",
        sink__partition_commit__policy__kind="success-file",
        partition__time_extractor__timestamp_pattern="$dt $hm:00",
    )  # fmt: skip


def _marked(tmp_path: Path) -> list[str]:
    return sorted(path.parent.name for path in tmp_path.rglob("_SUCCESS"))


def test_partition_time_commits_when_the_watermark_passes(tmp_path: Path) -> None:
    table = _partitioned(tmp_path, "partition-time")
    writer, committer = writer_of(table)
    assert committer is not None
    at = int(dt.datetime(2024, 1, 1, 10, 1, 30, tzinfo=_UTC).timestamp() * 1000)
    batch = batch_of(table, [(1, "2024-01-01", "10:00"), (2, "2024-01-01", "10:01")])
    writer.write(batch.with_track(single_watermark(2, at)))
    committer.commit(writer.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == ["hm=10%3A00"]
    assert len(scan(table)) == 1, "the part of the other partition goes on"
    writer.flush(end_of_input=True)
    committer.commit(writer.prepare_commit(), end_of_input=True)
    assert _marked(tmp_path) == ["hm=10%3A00", "hm=10%3A01"]
    writer.close()


def test_slowest_writer_decides_about_partition_time(tmp_path: Path) -> None:
    table = _partitioned(tmp_path, "partition-time")
    at = int(dt.datetime(2024, 1, 1, 12, tzinfo=_UTC).timestamp() * 1000)
    first, committer = writer_of(table, parallelism=2)
    second, _ = writer_of(table, subtask=1, parallelism=2)
    assert committer is not None
    first.write(batch_of(table, [(1, "2024-01-01", "10:00")]))
    first.on_watermark(at)
    committer.commit(first.prepare_commit() + second.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == []
    second.on_watermark(at)
    committer.commit(first.prepare_commit() + second.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == ["hm=10%3A00"]


def test_process_time_commits_by_the_clock_and_survives_a_restore(tmp_path: Path) -> None:
    clock = ManualClock(1_000)
    table = _partitioned(tmp_path, "process-time")
    writer, committer = writer_of(table, clock=clock)
    assert committer is not None
    writer.write(batch_of(table, [(1, "d", "h")]))
    committer.commit(writer.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == []
    again, committer = writer_of(table, clock=clock)
    assert committer is not None
    again.restore([writer.snapshot()])
    clock.advance(60_000)
    committer.commit(again.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == [], "Flink waits until the delay has passed"
    clock.advance(1)
    committer.commit(again.prepare_commit(), end_of_input=False)
    assert _marked(tmp_path) == ["hm=h"]


def test_overwrite_in_batch(tmp_path: Path) -> None:
    batch = {"execution.runtime-mode": "batch"}
    table = files_table("a INT, p STRING", tmp_path / "t", "csv", ("p",))
    insert(table, [(1, "x"), (2, "y")], configuration=batch)
    insert(table, [(3, "x")], configuration=batch, overwrite=True, static_partition=(("p", "x"),))
    assert sorted(scan(table)) == [[2, "y"], [3, "x"]]
    insert(table, [(4, "z")], configuration=batch, overwrite=True)
    assert sorted(scan(table)) == [[2, "y"], [3, "x"], [4, "z"]]
    insert(table, [], configuration=batch, overwrite=True, static_partition=(("p", "x"),))
    assert sorted(scan(table)) == [[2, "y"], [4, "z"]]
    with pytest.raises(BindError, match="Streaming mode not support overwrite"):
        writer_of(table, overwrite=True)


def test_header_is_written_and_skipped(tmp_path: Path) -> None:
    table = files_table("a INT, the+name STRING", tmp_path / "t", "csv", csv__header="true")
    insert(table, [(1, "x")])
    assert _text(tmp_path / "t") == 'a,"the+name"\n1,x\n'
    assert scan(table) == [[1, "x"]]


def test_many_tiny_partitions(tmp_path: Path) -> None:
    table = files_table("a INT, p INT", tmp_path / "t", "csv", ("p",))
    insert(table, [(n, n % 2000) for n in range(4000)])
    assert len(list((tmp_path / "t").iterdir())) == 2000
    assert sorted(scan(table, select=["a"])) == [[n] for n in range(4000)]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("metastore,success-file", "only configure 'metastore' partition commit policy for a hive table"),
        ("custom", "needs 'sink.partition-commit.policy.class'"),
        ("later", "Unsupported policy: later"),
    ],
)
def test_policies_that_cannot_be(tmp_path: Path, kind: str, message: str) -> None:
    with pytest.raises(BindError, match=message):
        writer_of(files_table("a INT", tmp_path / "t", "csv", sink__partition_commit__policy__kind=kind))


def test_a_file_in_the_folders_place(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("")
    with pytest.raises(ConnectorError, match="is a file"):
        writer_of(files_table("a INT", tmp_path / "t", "csv"))
