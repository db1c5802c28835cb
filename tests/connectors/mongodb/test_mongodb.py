"""Collections as tables, by the jobs of SQL, over a server of MongoDB's protocol; what is said where there is none.

FerretDB knows neither Decimal128 nor ``$sample``, ``splitVector`` and ``noCursorTimeout``.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from typing import Any

import pymongo
import pytest

from flowsql.errors import FlowSqlError
from flowsql.table.session.environment import TableEnvironment
from tests.connectors.jdbc.databases import answer, insert, session
from tests.local_servers import LocalServer

SINK = "'sink.max-retries' = '0'"
READ = "'scan.cursor.no-timeout' = 'false', 'scan.partition.strategy' = 'single'"


class Place:
    """A database of one test."""

    def __init__(self, port: int) -> None:
        self.uri = f"mongodb://127.0.0.1:{port}"
        self.name = f"t{uuid.uuid4().hex[:8]}"
        self.client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(self.uri)
        self.database = self.client[self.name]
        self.session: TableEnvironment = session({"parallelism.default": "2"})

    def table(self, name: str, columns: str, options: str = READ, collection: str = "c", more: str = "") -> None:
        self.session.execute_sql(
            f"CREATE TABLE {name} ({columns}) {more} WITH ('connector' = 'mongodb', 'uri' = '{self.uri}', "
            f"'database' = '{self.name}', 'collection' = '{collection}', {options})"
        )

    def insert(self, statement: str, keyed: bool = True) -> None:
        insert(self.session, f"{statement} ON CONFLICT DO DEDUPLICATE" if keyed else statement)

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(answer(self.session, query), key=repr)


@pytest.fixture
def place(mongodb_server: LocalServer) -> Iterator[Place]:
    made = Place(mongodb_server.port)
    yield made
    made.client.drop_database(made.name)
    made.client.close()


@pytest.mark.servers
def test_rows_go_in_and_come_back(place: Place) -> None:
    place.table(
        "t",
        "_id INT, b BOOLEAN, g BIGINT, d DOUBLE, c STRING, y BYTES, ts TIMESTAMP(3), l TIMESTAMP_LTZ(3), a ARRAY<INT>, "
        "m MAP<STRING, INT>, w ROW<x INT, y STRING>, PRIMARY KEY (_id) NOT ENFORCED",
    )
    place.insert(
        "INSERT INTO t VALUES (1, TRUE, 7, 1.5E0, 'té', X'00FF', TIMESTAMP '2020-01-02 03:04:05.678', "
        "TO_TIMESTAMP_LTZ(1, 3), ARRAY[1, CAST(NULL AS INT)], MAP['k', 1], ROW(1, 'z'))"
    )
    place.insert("INSERT INTO t (_id) VALUES (2)")
    assert place.database["c"].find_one({"_id": 1}) == {
        "_id": 1, "b": True, "g": 7, "d": 1.5, "c": "té", "y": b"\0\xff",
        "ts": datetime.datetime(2020, 1, 2, 3, 4, 5, 678000), "l": datetime.datetime(1970, 1, 1, 0, 0, 0, 1000),
        "a": [1, None], "m": {"k": 1}, "w": {"x": 1, "y": "z"},
    }  # fmt: skip
    first, second = place.answer("SELECT * FROM t")
    assert first[:-1] == (
        1, True, 7, 1.5, "té", b"\0\xff", datetime.datetime(2020, 1, 2, 3, 4, 5, 678000),
        datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, datetime.UTC), [1, None], {"k": 1},
    )  # fmt: skip
    assert tuple(first[-1]) == (1, "z")
    assert second == (2, *[None] * 10)
    assert place.answer("SELECT c FROM t WHERE _id = 1") == [("té",)]


@pytest.mark.servers
def test_changes_go_by_id(place: Place) -> None:
    place.table("t", "k INT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED")
    place.database["c"].insert_one({"_id": 2, "more": "stays"})
    pairs = "WITH v (k, n) AS (VALUES (1, 10), (2, 20), (1, 11)) SELECT k, CAST(SUM(n) AS BIGINT) FROM v GROUP BY k"
    place.insert(f"INSERT INTO t {pairs}", keyed=False)
    documents = list(place.database["c"].find(sort=[("_id", 1)]))
    assert documents == [{"_id": 1, "k": 1, "s": 21}, {"_id": 2, "more": "stays", "k": 2, "s": 20}]
    place.insert(f"INSERT INTO t {pairs} HAVING SUM(n) < 15", keyed=False)
    assert [document["_id"] for document in place.database["c"].find()] == [2]
    place.table("two_keys", "k INT, c STRING, v INT, PRIMARY KEY (k, c) NOT ENFORCED", collection="both")
    place.insert("INSERT INTO two_keys VALUES (1, 'x', 5)")
    assert list(place.database["both"].find()) == [{"_id": {"k": 1, "c": "x"}, "k": 1, "c": "x", "v": 5}]
    place.table("sharded", "_id INT, c STRING, v INT, PRIMARY KEY (_id) NOT ENFORCED", READ, "sh", "PARTITIONED BY (c)")
    place.insert("INSERT INTO sharded VALUES (1, 'x', 5)")
    place.insert("INSERT INTO sharded VALUES (1, 'x', 6)")
    assert list(place.database["sh"].find()) == [{"_id": 1, "c": "x", "v": 6}]


@pytest.mark.servers
def test_object_ids_are_texts(place: Place) -> None:
    made = place.database["c"].insert_one({"v": 1}).inserted_id
    place.table("t", "_id STRING, v INT, PRIMARY KEY (_id) NOT ENFORCED")
    assert place.answer(f"SELECT * FROM t WHERE _id = '{made}'") == [(str(made), 1)]
    place.insert(f"INSERT INTO t VALUES ('{made}', 2), ('x', 3)")
    assert place.answer("SELECT * FROM t") == sorted([(str(made), 2), ("x", 3)], key=repr)
    assert place.database["c"].count_documents({}) == 2
    place.table("keyless", "v INT", collection="k")
    place.insert("INSERT INTO keyless VALUES (1), (1)", keyed=False)
    assert place.answer("SELECT * FROM keyless") == [(1,), (1,)]


@pytest.mark.servers
@pytest.mark.parametrize("strategy", ["'pagination', 'scan.partition.record-size' = '300'", "'single'", "'default'"])
def test_parts_hold_each_document_once(place: Place, strategy: str) -> None:
    """Also where ids have several types."""
    documents: list[dict[str, Any]] = [{"_id": number, "v": number} for number in range(1000)]
    documents += [{"_id": f"text {number}", "v": 1000 + number} for number in range(500)]
    place.database["c"].insert_many(documents)
    options = f"'scan.cursor.no-timeout' = 'false', 'scan.fetch-size' = '100', 'scan.partition.strategy' = {strategy}"
    place.table("t", "_id STRING, v INT", options)
    assert [row[0] for row in sorted(place.answer("SELECT v FROM t"))] == list(range(1500))
    assert len(place.answer("SELECT v FROM t LIMIT 7")) == 7
    assert max(row[0] for row in place.answer("SELECT COUNT(*) FROM t")) == 1500


@pytest.mark.servers
@pytest.mark.parametrize("policy", ["always", "never"])
@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("v > 3", [4, 5]), ("v <> 3", [1, 2, 4, 5]), ("v IN (1, 5, 9)", [1, 5]), ("v IS NULL", [None]),
        ("v IS NOT NULL AND (c = 'b' OR 5 <= v)", [2, 5]), ("c < 'b'", [1]), ("d >= 2.5E0", [3, 4, 5]),
        ("CHAR_LENGTH(c) = 1 AND v < 3", [1, 2]),
    ],
)  # fmt: skip
def test_conditions(place: Place, policy: str, condition: str, wanted: list[Any]) -> None:
    place.database["c"].insert_many([{"v": at, "c": "abcde"[at - 1], "d": at - 0.5} for at in range(1, 6)])
    place.database["c"].insert_one({"c": "none"})
    place.table("t", "v INT, c STRING, d DOUBLE", f"{READ}, 'filter.handling.policy' = '{policy}'")
    query = f"SELECT v FROM t WHERE {condition}"
    assert sorted((row[0] for row in place.answer(query)), key=repr) == wanted
    plan = answer(place.session, f"EXPLAIN {query}")[0][0]
    assert ("filter=[]" not in plan and "filter=[" in plan) == (policy == "always")


@pytest.mark.servers
def test_lookups(place: Place) -> None:
    place.database["c"].insert_many([{"_id": 1, "v": "a"}, {"_id": 2, "v": "b"}, {"_id": 9, "v": None, "k": 2}])
    options = f"{READ}, 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '10'"
    place.table("t", "_id INT, v STRING, k INT", options)
    place.session.execute_sql(
        "CREATE TABLE o (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'fields.k.kind' = 'sequence', "
        "'fields.k.start' = '1', 'fields.k.end' = '3')"
    )
    join = "FROM o LEFT JOIN t FOR SYSTEM_TIME AS OF o.p ON"
    assert place.answer(f"SELECT o.k, v {join} o.k = t._id") == [(1, "a"), (2, "b"), (3, None)]
    assert place.answer(f"SELECT o.k, _id {join} o.k = t.k") == [(1, None), (2, 9), (3, None)]
    assert place.answer(f"SELECT o.k, v {join} o.k = t._id AND t.v = 'b'") == [(1, None), (2, "b"), (3, None)]


@pytest.mark.servers
def test_what_the_server_refuses(place: Place) -> None:
    place.database["c"].insert_one({"v": "seven"})
    place.table("t", "v INT")
    with pytest.raises(FlowSqlError, match=rf"\"seven\"\nin field 'v' of a document of '{place.name}.c'"):
        place.answer("SELECT * FROM t")
    place.table("s", "v INT", "'scan.cursor.no-timeout' = 'false', 'scan.partition.strategy' = 'split-vector'")
    with pytest.raises(FlowSqlError, match=r"MongoDB at 127.0.0.1:\d+ says: no such command: 'splitVector'"):
        place.answer("SELECT * FROM s")
    place.session.execute_sql(
        "CREATE TABLE login (v INT) WITH ('connector' = 'mongodb', 'database' = 'd', 'collection' = 'c', "
        f"'uri' = 'mongodb://ann:wrong-one@{place.uri.removeprefix('mongodb://')}', {READ})"
    )
    with pytest.raises(FlowSqlError, match=r"MongoDB at 127.0.0.1:\d+ (says|refused)") as refused:
        place.answer("SELECT * FROM login")
    assert "wrong-one" not in refused.value.render()
    assert "wrong-one" not in answer(place.session, "SHOW CREATE TABLE login")[0][0]


NOBODY = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100"


def table(columns: str, options: str = "", uri: str = NOBODY) -> TableEnvironment:
    made = session()
    made.execute_sql(
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'mongodb', 'uri' = '{uri}', 'database' = 'd', "
        f"'collection' = 'c'{options})"
    )
    return made


def test_nobody_there() -> None:
    with pytest.raises(FlowSqlError, match=r"MongoDB at 127.0.0.1:1 does not answer: .*refused"):
        answer(table("k INT"), "SELECT * FROM t")
    made = table("k INT", ", 'sink.max-retries' = '0'", "mongodb://no-such-host.invalid/?serverSelectionTimeoutMS=100")
    with pytest.raises(FlowSqlError, match=r"MongoDB at no-such-host.invalid does not answer"):
        insert(made, "INSERT INTO t VALUES (1)")
    shown = answer(table("k INT", uri="mongodb://ann:wrong-one@host:27017"), "SHOW CREATE TABLE t")[0][0]
    assert "'uri' = 'mongodb://******@host:27017'" in shown


@pytest.mark.parametrize(
    ("columns", "options", "statement", "words"),
    [
        ("k DATE", "", "SELECT", "Unsupported type: DATE"),
        ("k MAP<INT, INT>", "", "SELECT", "keys of documents are texts|Unsupported type: MAP"),
        ("_id INT, k INT, PRIMARY KEY (k) NOT ENFORCED", "", "INSERT", "Ambiguous keys being used"),
        ("_id INT, k INT", "", "INSERT", "Ambiguous keys being used"),
        ("k ARRAY<INT>, PRIMARY KEY (k) NOT ENFORCED", "", "INSERT", "illegal types: ARRAY<INT>"),
        ("k INT", ", 'sink.delivery-guarantee' = 'exactly-once'", "INSERT", "expected 'at-least-once' or 'none'"),
        ("k INT", ", 'scan.partition.samples' = '5', 'scan.partition.strategy' = 'single'", "SELECT", "has no effect"),
        ("k INT", ", 'scan.partition.strategy' = 'pagination'", "SELECT", "needs 'scan.partition.record-size'"),
        ("k INT", ", 'scan.partition.strategy' = 'random'", "SELECT", "Supported values are"),
        ("k INT", ", 'scan.size' = '1'", "SELECT", "Unsupported options"),
    ],
)
def test_what_cannot_be_is_said(columns: str, options: str, statement: str, words: str) -> None:
    made = table(columns, options)
    made.execute_sql(f"CREATE TABLE s ({columns.partition(', PRIMARY')[0]}) WITH ('connector' = 'print')")
    made.execute_sql(f"CREATE TABLE g ({columns.partition(', PRIMARY')[0]}) WITH ('connector' = 'datagen')")
    conflict = "ON CONFLICT DO DEDUPLICATE" if "PRIMARY" in columns else ""
    planned = "INSERT INTO s SELECT * FROM t" if statement == "SELECT" else f"INSERT INTO t SELECT * FROM g {conflict}"
    with pytest.raises(FlowSqlError, match=words):
        made.explain_sql(planned)


def test_addresses_have_a_form() -> None:
    with pytest.raises(FlowSqlError, match="expected mongodb://"):
        answer(table("k INT", uri="localhost"), "SELECT * FROM t")
    with pytest.raises(FlowSqlError, match="'uri' is no connection string"):
        answer(table("k INT", uri="mongodb://a:b:c@x"), "SELECT * FROM t")
