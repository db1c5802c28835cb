"""Hashes, strings and lists of a Redis server as tables, by the jobs of SQL."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
import redis

from flowsql.errors import FlowSqlError
from flowsql.table.session.environment import TableEnvironment
from tests.connectors.jdbc.databases import answer, insert, session

from .conftest import KINDS

both = pytest.mark.parametrize("server", KINDS, indirect=True)

COLUMNS = (
    "id INT, s SMALLINT, r FLOAT, d DOUBLE, n DECIMAL(20, 5), b BOOLEAN, c STRING, y BYTES, dt DATE, tm TIME(3), "
    "ts TIMESTAMP(6), l TIMESTAMP_LTZ(3), a ARRAY<INT>, m MAP<STRING, INT>, w ROW<x INT, y STRING>"
)
ROW = (
    "(1, CAST(-1 AS SMALLINT), CAST(0.1 AS FLOAT), 1E100, 12345.60000, TRUE, 'té: {}*', X'00FF', DATE '1956-02-28', "
    "TIME '23:59:58', TIMESTAMP '1956-01-02 03:04:05.678901', TO_TIMESTAMP_LTZ(1, 3), ARRAY[1, 2, CAST(NULL AS INT)], "
    "MAP['k', 1], ROW(1, 'z'))"
)
TEXTS = {
    b"s": b"-1", b"r": b"0.1", b"d": b"1.0E100", b"n": b"12345.60000", b"b": b"true", b"c": "té: {}*".encode(),
    b"y": b"\x00\xff", b"dt": b"1956-02-28", b"tm": b"23:59:58", b"ts": b"1956-01-02 03:04:05.678901",
    b"l": b"1970-01-01 00:00:00.001Z", b"a": b"[1,2,null]", b"m": b'{"k":1}', b"w": b'{"x":1,"y":"z"}',
}  # fmt: skip
READ = (
    1, -1, pytest.approx(0.1, rel=1e-7), 1e100, Decimal("12345.60000"), True, "té: {}*", b"\x00\xff",
    datetime.date(1956, 2, 28), datetime.time(23, 59, 58), datetime.datetime(1956, 1, 2, 3, 4, 5, 678901),
    datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, datetime.UTC), [1, 2, None], {"k": 1},
)  # fmt: skip


class Place:
    """A session and the tables of a server."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.port = client.connection_pool.connection_kwargs["port"]
        self.session: TableEnvironment = session()

    def table(self, name: str, columns: str, options: str = "") -> None:
        url = f"redis://127.0.0.1:{self.port}/0"
        self.session.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'redis', 'url' = '{url}'{options})"
        )

    def insert(self, statement: str, keyed: bool = True) -> None:
        insert(self.session, f"{statement} ON CONFLICT DO DEDUPLICATE" if keyed else statement)

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        return answer(self.session, query)


@pytest.fixture
def place(server: redis.Redis) -> Place:
    return Place(server)


KEYED = ", PRIMARY KEY (id) NOT ENFORCED"


@both
def test_all_types_go_in_and_come_back(place: Place) -> None:
    place.table("t", COLUMNS + KEYED, ", 'key' = 't:{id}'")
    place.insert(f"INSERT INTO t VALUES {ROW}")
    place.insert("INSERT INTO t (id, s) VALUES (2, CAST(7 AS SMALLINT))")
    assert place.client.hgetall("t:1") == TEXTS
    assert place.client.hgetall("t:2") == {b"s": b"7"}
    first, second = sorted(place.answer("SELECT * FROM t"))
    assert first[:-1] == READ
    assert tuple(first[-1]) == (1, "z")
    assert second == (2, 7, *[None] * 13)


@both
def test_updates_and_deletes_go_by_key(place: Place) -> None:
    place.table("t", "id INT, total BIGINT, last STRING" + KEYED)
    place.client.hset("1", "more", "stays")
    place.insert("INSERT INTO t VALUES (1, 5, 'a'), (2, 7, 'b')")
    assert place.client.hgetall("1") == {b"more": b"stays", b"total": b"5", b"last": b"a"}
    place.insert("INSERT INTO t VALUES (1, 6, CAST(NULL AS STRING))")
    assert place.client.hgetall("1") == {b"more": b"stays", b"total": b"6"}
    place.insert(
        "INSERT INTO t SELECT id, SUM(v), MAX(s) FROM (VALUES (1, 1, 'x'), (2, 2, 'y'), (2, 3, 'z')) AS g (id, v, s) "
        "GROUP BY id HAVING SUM(v) < 3"
    )
    assert place.client.keys() == [b"1"], "a sum that grew out of the condition takes its key away"


@pytest.mark.parametrize(
    ("options", "content"),
    [
        ("", {b"1": b"5"}),
        (", 'key' = 'x[{id}]*'", {b"x[1]*": b"5"}),
        (", 'format' = 'json'", {b"1": b'{"v":5}'}),
        (", 'format' = 'csv'", {b"1": b"5"}),
    ],
)
@both
def test_strings(place: Place, options: str, content: dict[bytes, bytes]) -> None:
    place.table("t", "id INT, v INT" + KEYED, f", 'structure' = 'string'{options}")
    place.client.set("other:x", "no key of the table")
    place.insert("INSERT INTO t VALUES (1, 5)")
    assert {key: place.client.get(key) for key in content} == content
    place.client.delete("other:x")
    assert place.answer("SELECT * FROM t") == [(1, 5)]
    place.insert("INSERT INTO t VALUES (1, 6)")
    assert place.answer("SELECT v FROM t WHERE id = 1") == [(6,)]


@both
def test_lists_are_appended_to_and_cut(place: Place) -> None:
    place.table("t", "id INT, v STRING", ", 'structure' = 'list', 'key' = 'l:{id}', 'sink.max-length' = '2'")
    place.insert("INSERT INTO t VALUES (1, 'a'), (1, 'b'), (2, 'x'), (1, 'c')", keyed=False)
    assert place.client.lrange("l:1", 0, -1) == [b"b", b"c"]
    assert place.answer("SELECT * FROM t") == [(1, "b"), (1, "c"), (2, "x")]


@both
def test_keys_live_as_long_as_it_is_said(place: Place) -> None:
    for structure in ("hash", "string"):
        options = f", 'structure' = '{structure}', 'sink.ttl' = '1 h', 'key' = '{structure}:{{id}}'"
        place.table(f"a_{structure}", "id INT, v INT" + KEYED, options)
        place.insert(f"INSERT INTO a_{structure} VALUES (1, 5)")
        assert 3_500_000 < place.client.pttl(f"{structure}:1") <= 3_600_000


def joined(place: Place, condition: str, columns: str = "k, t.v") -> list[tuple[Any, ...]]:
    place.session.execute_sql(
        "CREATE TABLE o (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'fields.k.kind' = 'sequence', "
        "'fields.k.start' = '1', 'fields.k.end' = '4')"
    )
    found = place.answer(f"SELECT {columns} FROM o LEFT JOIN t FOR SYSTEM_TIME AS OF o.p ON o.k = t.id {condition}")
    return sorted(found, key=repr)


@both
def test_lookups_of_hashes(place: Place) -> None:
    place.table("t", "id INT, v INT, w STRING" + KEYED, ", 'key' = 't:{id}'")
    place.client.hset("t:1", mapping={"v": "10", "w": "a"})
    place.client.hset("t:2", mapping={"w": "b"})
    assert joined(place, "") == [(1, 10), (2, None), (3, None), (4, None)]
    assert place.answer("SELECT k FROM o JOIN t FOR SYSTEM_TIME AS OF o.p ON o.k = t.id") == [(1,), (2,)]
    assert place.answer("SELECT k FROM o JOIN t FOR SYSTEM_TIME AS OF o.p ON o.k = t.id AND t.w = 'b'") == [(2,)]


@both
def test_lookups_of_strings_and_lists(place: Place) -> None:
    place.table("t", "id INT, v INT", ", 'key' = 't:{id}', 'structure' = 'list'")
    place.client.rpush("t:2", "1", "2")
    assert joined(place, "") == [(1, None), (2, 1), (2, 2), (3, None), (4, None)]
    place.table("s", "id INT, v INT, w STRING", ", 'key' = 's:{id}', 'structure' = 'string', 'format' = 'json'")
    place.client.set("s:2", '{"v": 5, "w": "x"}')
    assert place.answer("SELECT k, w FROM o JOIN s FOR SYSTEM_TIME AS OF o.p ON o.k = s.id") == [(2, "x")]


@pytest.mark.parametrize("server", KINDS[1:], indirect=True)
def test_lookups_keep_what_they_found(place: Place) -> None:
    place.table("t", "id INT, v INT", ", 'key' = 't:{id}', 'structure' = 'string', 'lookup.cache' = 'PARTIAL', "
                "'lookup.partial-cache.max-rows' = '10'")  # fmt: skip
    place.client.set("t:1", "7")
    place.session.execute_sql(
        "CREATE TABLE o (n INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        "'fields.n.start' = '1', 'fields.n.end' = '5000')"
    )
    place.client.config_resetstat()
    found = place.answer("SELECT COUNT(*) FROM o JOIN t FOR SYSTEM_TIME AS OF o.p ON MOD(o.n, 1) + 1 = t.id")
    assert found[-1] == (5000,)
    assert place.client.info("commandstats")["cmdstat_mget"]["calls"] == 1


@pytest.mark.parametrize(
    ("columns", "options", "statement", "words"),
    [
        ("id INT, v INT", "", "SELECT * FROM t", "neither 'key' nor a primary key"),
        ("id INT, v INT", ", 'key' = '{ID}'", "SELECT * FROM t", "has no column 'ID'"),
        ("id INT, v INT" + KEYED, ", 'key' = '{v}'", "SELECT * FROM t", "each row has one key only where"),
        ("id INT" + KEYED, "", "SELECT * FROM t", "none is left for its values"),
        ("id INT, v INT, w INT" + KEYED, ", 'structure' = 'string'", "SELECT * FROM t", "holds one column"),
        ("id INT, v INT" + KEYED, ", 'structure' = 'list'", "INSERT INTO t VALUES (1, 2)", "rows at its end"),
        ("id INT, v INT" + KEYED, ", 'format' = 'json'", "SELECT * FROM t", "'format' has no effect"),
        ("id INT, v INT" + KEYED, ", 'scan.bounded.mode' = 'latest'", "SELECT * FROM t", "has no effect"),
        ("id INT, v INT" + KEYED, ", 'structur' = 'list'", "SELECT * FROM t", "Unsupported options"),
        ("id INT, v INT" + KEYED, ", 'structure' = 'tree'", "SELECT * FROM t", "expected one of hash"),
        ("id ARRAY<INT>, v INT", ", 'key' = '{id}'", "SELECT * FROM t", "which has no key"),
        ("id INT, v INT", ", 'key' = '{id}'", "INSERT INTO t VALUES (CAST(NULL AS INT), 2)", "'id' is NULL in a row"),
    ],
)  # fmt: skip
@both
def test_what_cannot_be_is_said(place: Place, columns: str, options: str, statement: str, words: str) -> None:
    place.table("t", columns, options)
    with pytest.raises(FlowSqlError, match=words):
        place.answer(statement) if statement.startswith("SELECT") else place.insert(statement, "KEY" in columns)


@both
def test_values_of_another_type_are_errors(place: Place) -> None:
    place.table("t", "id INT, v INT" + KEYED)
    place.client.hset("1", "v", "seven")
    with pytest.raises(FlowSqlError, match=r"A value, column 'v', is no INT: For input string: \"seven\""):
        place.answer("SELECT * FROM t")
    place.client.set("2", "x")
    place.client.delete("1")
    with pytest.raises(FlowSqlError, match="WRONGTYPE"):
        place.insert("INSERT INTO t VALUES (2, 2)")


@both
def test_nobody_there(place: Place) -> None:
    retries = ", 'sink.max-retries' = '0', 'lookup.max-retries' = '0'"
    place.session.execute_sql(
        "CREATE TABLE gone (id INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'redis', "
        f"'url' = 'redis://no-such-host.invalid:1/0'{retries})"
    )
    with pytest.raises(FlowSqlError, match=r"The Redis server at no-such-host.invalid:1 does not answer: "):
        place.answer("SELECT * FROM gone")
    with pytest.raises(FlowSqlError, match=r"no-such-host.invalid:1 does not answer"):
        place.insert("INSERT INTO gone VALUES (1, 2)")


@pytest.mark.parametrize("server", KINDS[1:], indirect=True)
def test_wrong_logins(place: Place) -> None:
    place.client.acl_setuser("ann", enabled=True, passwords=["+right"], keys=["*"], commands=["+@all"])
    place.table("t", "id INT, v INT" + KEYED, ", 'username' = 'ann', 'password' = 'wrong-one'")
    with pytest.raises(FlowSqlError, match="refused the login") as refused:
        place.answer("SELECT * FROM t")
    assert "wrong-one" not in refused.value.render()
    assert "wrong-one" not in place.answer("SHOW CREATE TABLE t")[0][0]
    place.table("u", "id INT, v INT" + KEYED, ", 'username' = 'ann', 'password' = 'right'")
    place.insert("INSERT INTO u VALUES (1, 2)")
    assert place.answer("SELECT * FROM u") == [(1, 2)]
