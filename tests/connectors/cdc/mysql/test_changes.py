"""Rows that are there and then changes of a real server: nothing missing, nothing twice, wherever reading stops."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from flowsql_connectors.cdc.mysql import log, server
from flowsql_core.types import logical as t

from .place import Place, Scan, until
from .writer import Writer

pytestmark = pytest.mark.servers

COLUMNS = {"id": t.INT, "k": t.INT, "x": t.STRING}


@pytest.fixture(params=["snapshot", "positions"])
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether a server tells the position of a snapshot, as MariaDB does, or its positions alone, as MySQL."""
    if request.param == "positions":
        monkeypatch.setattr(server.Server, "begin_snapshot", lambda self: None)
        monkeypatch.setattr(log, "_COMMIT_S", 0.01)
    return str(request.param)


def rows_of(place: Place, tables: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter(row for table in tables for row in place.rows(f"SELECT id, k, x, '{table}' FROM {table}"))


def scan_of(place: Place, id_type: t.LogicalType = t.INT, **options: str) -> Scan:
    return place.scan(
        {**COLUMNS, "id": id_type}, ("id",), {"table_name": t.STRING}, table_name="p_[0-9]+",
        scan__incremental__snapshot__chunk__size="40", **options,
    )  # fmt: skip


@pytest.mark.parametrize("keys", ["integers", "texts", pytest.param("moments", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("parallelism", [pytest.param(1, marks=pytest.mark.nightly), 3])
def test_copies_are_equal_wherever_jobs_stop(place: Place, told: str, keys: str, parallelism: int) -> None:
    tables = ["p_1", "p_2"]
    spelled, make, type_ = {
        "integers": ("int", lambda number: number * 7, t.INT),
        # The order of the collation is none that bytes have.
        "texts": ("varchar(20) COLLATE utf8mb4_general_ci", lambda number: f"{'aBcDé'[number % 5]}{number}", t.STRING),
        "moments": ("datetime(3)", lambda number: f"2026-01-01 00:{number // 60:02}:{number % 60:02}.500",
                    t.TimestampType(precision=3)),
    }[keys]  # fmt: skip
    for table in tables:
        place.execute(f"CREATE TABLE {table} (id {spelled} PRIMARY KEY, k int, x text)")
        with closing(place.connect()) as connection, connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} VALUES (%s, %s, 'first')", [(make(number), number) for number in range(0, 400, 2)]
            )
    draw = random.Random(3)
    scan = scan_of(place, type_, server_id="7000-7010")
    with Writer(place, tables, make, 7):
        for _ in range(8):
            scan.open(parallelism)
            scan.batches(draw.randrange(30), draw)
            scan.splits, kept = scan.reader.snapshot() if scan.reader else None, list(scan.changes)
            # What is polled behind the checkpoint is lost with the job.
            scan.batches(draw.randrange(5), draw)
            scan.close()
            scan.changes = kept
        scan.open(parallelism)
        until(lambda: (scan.poll(), any(change[0] == "-D" for change in scan.changes))[1], lambda: "no change")
        scan.batches(50, draw)
    expected = rows_of(place, tables)
    until(
        lambda: (scan.poll(), scan.table() == expected)[1], lambda: (scan.table() - expected, expected - scan.table())
    )
    scan.close()
