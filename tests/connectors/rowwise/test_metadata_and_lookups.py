"""Metadata columns and lookups of connectors in plain Python."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from flowsql.connectors import At, BatchSink, RowSource, register
from flowsql.errors import BindError, ConnectorError, FlowSqlError
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors import registry

MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


class Readings(RowSource):
    metadata: ClassVar[Mapping[str, str]] = {"offset": "BIGINT", "seen-at": "TIMESTAMP_LTZ(3)", "n": "INT"}
    asked: ClassVar[list[tuple[str, ...]]] = []

    def read(self, split: str, position: Any) -> Iterator[Any]:
        self.asked.append(self.table.metadata)
        yield At((1, "a"), metadata={"offset": 7, "seen-at": MOMENT})
        yield (2, "b")
        rows = pa.RecordBatch.from_pydict({"n": [3, 4], "x": ["c", "d"], "offset": [8, 9]})
        yield At(rows, metadata={"seen-at": MOMENT})


class People(RowSource):
    """Looked up only."""

    calls: ClassVar[list[list[dict[str, Any]]]] = []
    arrow = False

    def lookup(self, keys: pa.RecordBatch) -> Iterable[Any] | pa.RecordBatch:
        self.calls.append(sorted(keys.to_pylist(), key=str))
        found = [{"id": 2, "name": "Bo"}, {"id": 1, "name": "Ann"}, {"id": 9, "name": "Nobody"}, (1, "Anna")]
        if self.arrow:
            return pa.RecordBatch.from_pydict({"name": ["Bo", "Ann", "Anna"], "id": [2, 1, 1]})
        return found


class PeopleOfArrow(People):
    arrow = True


class Broken(RowSource):
    def lookup(self, keys: pa.RecordBatch) -> Iterable[Any]:
        raise OSError("the line is dead")


class Both(RowSource):
    def read(self, split: str, position: Any) -> Iterator[Any]:
        yield (1, "read")

    def lookup(self, keys: pa.RecordBatch) -> Iterable[Any]:
        return [(key, "found") for key in keys.column("id").to_pylist()]


class Kept(BatchSink):
    metadata: ClassVar[Mapping[str, str]] = {"priority": "INT"}
    rows: ClassVar[list[Any]] = []

    def write(self, rows: pa.RecordBatch, kinds: pa.StringArray | None) -> None:
        self.rows += [(self.table.metadata, row) for row in rows.to_pylist()]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    register("readings", source=Readings)
    register("people", source=People)
    register("people-of-arrow", source=PeopleOfArrow)
    register("broken", source=Broken)
    register("both", source=Both)
    register("kept", sink=Kept)
    for kept in (Readings.asked, People.calls, Kept.rows):
        kept.clear()
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def answer(environment: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with environment.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


def test_metadata_is_read(environment: TableEnvironment) -> None:
    environment.execute_sql(
        "CREATE TABLE r (n INT, x STRING, o BIGINT METADATA FROM 'offset', "
        "`seen-at` TIMESTAMP_LTZ(3) METADATA, m INT METADATA FROM 'n' VIRTUAL) WITH ('connector' = 'readings')"
    )
    seen = MOMENT.astimezone().replace(tzinfo=None)
    rows = answer(environment, "SELECT n, x, o, CAST(`seen-at` AS TIMESTAMP(3)), m FROM r")
    assert [row[:3] for row in rows] == [(1, "a", 7), (2, "b", None), (3, "c", 8), (4, "d", 9)]
    assert [row[3] for row in rows] == [seen, None, seen, seen]
    # A column of the table is not metadata of the same name.
    assert [row[4] for row in rows] == [None] * 4
    assert answer(environment, "SELECT o, x FROM r WHERE n > 2") == [(8, "c"), (9, "d")]
    assert answer(environment, "SELECT x FROM r WHERE n = 1") == [("a",)]
    assert ("offset",) in Readings.asked
    assert () in Readings.asked


def test_metadata_that_is_none(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE r (n INT, k INT METADATA) WITH ('connector' = 'readings')")
    with pytest.raises(FlowSqlError, match="metadata column 'k'") as raised:
        answer(environment, "SELECT * FROM r")
    assert "offset" in raised.value.render()


def test_metadata_is_written(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE k (id INT, p INT METADATA FROM 'priority') WITH ('connector' = 'kept')")
    environment.execute_sql("INSERT INTO k VALUES (1, 5), (2, CAST(NULL AS INT))").wait()
    assert Kept.rows == [
        (("priority",), {"id": 1, "priority": 5}),
        (("priority",), {"id": 2, "priority": None}),
    ]


JOIN = (
    "SELECT o.k, p.name "
    "FROM (SELECT k, PROCTIME() AS pt FROM (VALUES (1), (2), (3), (1), (CAST(NULL AS INT))) AS t(k)) AS o "
    "LEFT JOIN p FOR SYSTEM_TIME AS OF o.pt AS p ON o.k = p.id"
)
FOUND = [(1, "Ann"), (1, "Ann"), (1, "Anna"), (1, "Anna"), (2, "Bo"), (3, None), (None, None)]


@pytest.mark.parametrize("connector", ["people", "people-of-arrow"])
@pytest.mark.parametrize("cache", ["", ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '9'"])
def test_rows_are_looked_up(environment: TableEnvironment, connector: str, cache: str) -> None:
    environment.execute_sql(f"CREATE TABLE p (id BIGINT, name STRING) WITH ('connector' = '{connector}'{cache})")
    assert sorted(answer(environment, JOIN), key=str) == FOUND
    asked = [key["id"] for call in People.calls for key in call]
    assert sorted(asked) == [1, 2, 3] if cache else set(asked) == {1, 2, 3}
    narrow = JOIN.replace("o.k, p.name", "o.k, p.id")
    assert sorted(answer(environment, narrow), key=str)[0] == (1, 1)


def test_a_table_may_be_read_and_looked_up(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE p (id INT, name STRING) WITH ('connector' = 'both')")
    assert answer(environment, "SELECT * FROM p") == [(1, "read")]
    assert sorted(answer(environment, JOIN), key=str)[0] == (1, "found")


def test_failures(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE p (id INT, name STRING) WITH ('connector' = 'broken')")
    with pytest.raises(ConnectorError, match="'broken' failed while it looked up rows: OSError: the line is dead"):
        answer(environment, JOIN)
    with pytest.raises(ConnectorError, match=r"can only be looked up: its connector has no read\(\)"):
        answer(environment, "SELECT * FROM p")
    environment.execute_sql(
        "CREATE TABLE cached (n INT, x STRING) WITH ('connector' = 'readings', 'lookup.cache' = 'PARTIAL')"
    )
    with pytest.raises(BindError, match="Could not parse value 'PARTIAL' for key"):
        answer(environment, "SELECT * FROM cached")
    with pytest.raises(TypeError, match=r"has neither read\(\) nor lookup\(\)"):
        register("nothing", source=type("Nothing", (RowSource,), {}))
