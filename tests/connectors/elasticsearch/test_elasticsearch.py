"""Documents of Elasticsearch and OpenSearch, by the jobs of SQL, over HTTP."""

from __future__ import annotations

import uuid

import pytest

from flowsql.errors import FlowSqlError
from flowsql.table.session.environment import TableEnvironment
from tests.connectors.jdbc.databases import answer, insert, session

from .conftest import KINDS, Place

servers = pytest.mark.parametrize("place", KINDS, indirect=True)
PAIRS = "v (k, n) AS (VALUES (1, 10), (2, 20), (1, 11))"


def table(
    place: Place, columns: str, index: str, options: str = "", name: str = "t", connector: str = "elasticsearch-7"
) -> TableEnvironment:
    made = session({"table.local-time-zone": "Europe/Berlin"})
    made.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = '{connector}', 'hosts' = '{place.url}', "
        f"'index' = '{index}'{options})"
    )
    return made


def named(name: str) -> str:
    """An index that no other test has."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


@servers
@pytest.mark.parametrize("connector", ["elasticsearch-7", "elasticsearch-8", "opensearch", "opensearch-2"])
def test_all_types_are_those_of_json(place: Place, connector: str) -> None:
    index = named("types")
    columns = (
        "b BOOLEAN, i BIGINT, d DOUBLE, n DECIMAL(10, 3), c STRING, y BYTES, dt DATE, ts TIMESTAMP(3), "
        "l TIMESTAMP_LTZ(3), a ARRAY<INT>, m MAP<STRING, INT>, w ROW<x INT, y STRING>"
    )
    made = table(place, columns, index, connector=connector)
    insert(
        made,
        "INSERT INTO t VALUES (TRUE, 7, 1.5E0, 12.500, 'té \"x\"', X'00FF', DATE '2026-01-31', "
        "TIMESTAMP '2026-01-31 12:00:00.25', TO_TIMESTAMP_LTZ(1, 3), ARRAY[1, CAST(NULL AS INT)], "
        "MAP['k', 1], ROW(1, 'z'))",
    )
    (document,) = place.documents(index).values()
    assert document == {
        "b": True, "i": 7, "d": 1.5, "n": 12.5, "c": 'té "x"', "y": "AP8=", "dt": "2026-01-31",
        "ts": "2026-01-31 12:00:00.25", "l": "1970-01-01 00:00:00.001Z", "a": [1, None], "m": {"k": 1},
        "w": {"x": 1, "y": "z"},
    }  # fmt: skip


@servers
def test_changes_go_by_id(place: Place) -> None:
    index = named("sums")
    made = table(place, "k INT, s BIGINT, c STRING, PRIMARY KEY (k) NOT ENFORCED", index)
    insert(made, f"INSERT INTO t WITH {PAIRS} SELECT k, CAST(SUM(n) AS BIGINT), MAX('x') FROM v GROUP BY k")
    assert place.documents(index) == {"1": {"k": 1, "s": 21, "c": "x"}, "2": {"k": 2, "s": 20, "c": "x"}}
    insert(made, f"INSERT INTO t WITH {PAIRS} SELECT k, CAST(SUM(n) AS BIGINT), CAST(NULL AS STRING) FROM v "
           "GROUP BY k HAVING SUM(n) < 15")  # fmt: skip
    assert place.documents(index) == {"2": {"k": 2, "s": 20, "c": "x"}}


@servers
@pytest.mark.parametrize(
    ("keys", "value", "options", "wanted"),
    [
        ("a INT, b STRING", "1, 'x y'", "", "1_x y"),
        ("a INT, b STRING", "1, '\"'", ", 'document-id.key-delimiter' = '$'", '1$"'),
        ("a DECIMAL(5, 2), b DOUBLE", "1.50, 1.0E0", "", "1.50_1.0"),
        ("a DATE, b TIME(0)", "DATE '2026-01-31', TIME '12:00:00'", "", "2026-01-31_12:00"),
        ("a TIMESTAMP(3), b BOOLEAN", "TIMESTAMP '2026-01-31 12:30:00.250', TRUE", "", "2026-01-31T12:30:00.250_true"),
        ("a TIMESTAMP(3), b TIMESTAMP_LTZ(3)", "TIMESTAMP '2026-01-31 12:30:00', TO_TIMESTAMP_LTZ(0, 3)", "",
         "2026-01-31T12:30_1970-01-01T00:00:00Z"),
    ],
)  # fmt: skip
def test_ids_are_the_texts_of_keys(place: Place, keys: str, value: str, options: str, wanted: str) -> None:
    index = named("ids")
    made = table(place, f"{keys}, v INT, PRIMARY KEY (a, b) NOT ENFORCED", index, options)
    insert(made, f"INSERT INTO t VALUES ({value}, 7) ON CONFLICT DO DEDUPLICATE")
    assert list(place.documents(index)) == [wanted]


@servers
def test_indexes_by_row(place: Place) -> None:
    base = named("logs")
    columns = "ts TIMESTAMP(3), l TIMESTAMP_LTZ(3), dt DATE, k INT"
    row = "INSERT INTO t VALUES (TIMESTAMP '2026-01-31 12:00:00', TO_TIMESTAMP_LTZ(0, 3), DATE '2026-02-03', 7)"
    for template, wanted in [
        ("{ts|yyyy-MM-dd}", "2026-01-31"), ("{ts|}", "2026_01_31_12_00_00"), ("{l|yyyy-MM-dd-HH}", "1970-01-01-01"),
        ("{dt|yyyy}-{k}", "2026-7"), ("{dt}", "2026-02-03"),
    ]:  # fmt: skip
        insert(table(place, columns, f"{base}-{template}"), row)
        assert len(place.documents(f"{base}-{wanted}")) == 1, template


def test_indexes_of_now(own: Place) -> None:
    insert(table(own, "k INT", "logs-{now()|yyyy}"), "INSERT INTO t VALUES (1)")
    (index,) = own.server.indexes
    assert index.removeprefix("logs-").isdigit()


def test_requests_are_as_large_as_it_is_said(own: Place) -> None:
    values = ", ".join(f"({number}, '{'x' * 100}')" for number in range(100))
    for options, sizes in [
        (", 'sink.bulk-flush.max-actions' = '30'", {30, 10}),
        (", 'sink.bulk-flush.max-actions' = '0', 'sink.bulk-flush.max-size' = '2 kb'", {14, 2}),
        ("", {100}),
    ]:
        own.server.requests.clear()
        insert(table(own, "k INT, c STRING", "sizes", options), f"INSERT INTO t VALUES {values}")
        assert {len(lines) // 2 for lines in own.server.requests} == sizes
    assert len(own.server.indexes["sizes"]) == 300


def test_documents_wait_or_not(own: Place) -> None:
    """A checkpoint waits for documents unless the guarantee is none; the end of the input always does."""
    for guarantee, waits in (("at-least-once", True), ("none", False)):
        own.server.requests.clear()
        options = f", 'sink.delivery-guarantee' = '{guarantee}', 'sink.bulk-flush.interval' = '0'"
        made = table(own, "k BIGINT", "waits", options)
        made.get_config().set("execution.checkpointing.interval", "20 ms")
        made.execute_sql(
            "CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.k.kind' = "
            "'sequence', 'fields.k.start' = '1', 'fields.k.end' = '20')"
        )
        insert(made, "INSERT INTO t SELECT k FROM g")
        assert (len(own.server.requests) > 1) == waits


@pytest.mark.parametrize("strategy", ["CONSTANT", "EXPONENTIAL"])
def test_what_fails_for_a_time_is_sent_again(own: Place, strategy: str) -> None:
    backoff = (
        f", 'sink.bulk-flush.backoff.strategy' = '{strategy}', 'sink.bulk-flush.backoff.max-retries' = '3', "
        "'sink.bulk-flush.backoff.delay' = '10 ms'"
    )
    own.server.request_statuses = [503, 429]
    own.server.document_statuses = [200, 429, 200]
    insert(table(own, "k INT", "again", backoff), "INSERT INTO t VALUES (1), (2), (3)")
    assert sorted(document["k"] for document in own.server.indexes["again"].values()) == [1, 2, 3]
    assert [len(lines) // 2 for lines in own.server.requests] == [3, 1], "what was taken is not sent again"
    own.server.request_statuses = [503] * 4
    with pytest.raises(FlowSqlError, match=r"refused a request: 503 too busy"):
        insert(table(own, "k INT", "again", backoff), "INSERT INTO t VALUES (1)")


def test_documents_that_are_refused(own: Place) -> None:
    own.server.document_statuses = [200, 400]
    with pytest.raises(FlowSqlError, match=r"Index 'bad' refused 1 document, the first is \"2\": mapper"):
        insert(table(own, "k INT, PRIMARY KEY (k) NOT ENFORCED", "bad"), "INSERT INTO t VALUES (1), (2) "
               "ON CONFLICT DO DEDUPLICATE")  # fmt: skip
    own.server.document_statuses = [200, 400, 200]
    insert(table(own, "k INT", "kept", ", 'failure-handler' = 'ignore'"), "INSERT INTO t VALUES (1), (2), (3)")
    assert [document["k"] for document in own.server.indexes["kept"].values()] == [1, 3]
    own.server.document_statuses = [429, 429, 429, 429]
    rejected = ", 'failure-handler' = 'retry-rejected'"
    insert(table(own, "k INT", "rejected", rejected), "INSERT INTO t VALUES (1), (2)")
    assert sorted(document["k"] for document in own.server.indexes["rejected"].values()) == [1, 2]


@pytest.mark.servers
def test_what_the_server_says(opensearch_server: object) -> None:
    place = Place(opensearch_server.port)  # type: ignore[attr-defined]
    index = named("typed")
    insert(table(place, "v INT", index), "INSERT INTO t VALUES (1)")
    with pytest.raises(FlowSqlError, match=rf"Index '{index}' refused 1 document.*failed to parse field \[v\]"):
        insert(table(place, "v STRING", index), "INSERT INTO t VALUES ('seven')")
    with pytest.raises(FlowSqlError, match=r"Index 'absent' refused 1 document.*index_not_found_exception"):
        insert(table(place, "v STRING", "absent"), "INSERT INTO t VALUES ('seven')")
    with pytest.raises(FlowSqlError, match=r"invalid_index_name_exception.*must be lowercase"):
        insert(table(place, "v STRING", "Upper"), "INSERT INTO t VALUES ('seven')")


def test_logins_prefixes_and_hosts(own: Place) -> None:
    own.server.login = "ann:right"
    for password in ("wrong-one", None):
        login = "" if password is None else f", 'username' = 'ann', 'password' = '{password}'"
        made = table(own, "k INT", "login", login)
        with pytest.raises(FlowSqlError, match="refused the login: 401 unable to authenticate") as refused:
            insert(made, "INSERT INTO t VALUES (1)")
        assert "wrong-one" not in refused.value.render() + answer(made, "SHOW CREATE TABLE t")[0][0]
    login = ", 'username' = 'ann', 'password' = 'right', 'connection.path-prefix' = '/v1'"
    own.server.prefix = "/v1"
    insert(table(own, "k INT", "login", login), "INSERT INTO t VALUES (1)")
    own.server.prefix = ""
    own.server.login = None
    two = Place(0)
    two.url = f"http://127.0.0.1:1;{own.url}"
    for _ in range(2):
        insert(table(two, "k INT", "login"), "INSERT INTO t VALUES (1)")
    assert len(own.server.indexes["login"]) == 3


def test_nobody_there(own: Place) -> None:
    place = Place(1)
    with pytest.raises(FlowSqlError, match=r"Elasticsearch at http://127.0.0.1:1 does not answer: "):
        insert(table(place, "k INT", "x"), "INSERT INTO t VALUES (1)")
    place.url = "http://no-such-host.invalid:9200"
    with pytest.raises(FlowSqlError, match=r"OpenSearch at http://no-such-host.invalid:9200 does not answer: "):
        insert(table(place, "k INT", "x", connector="opensearch"), "INSERT INTO t VALUES (1)")


@pytest.mark.parametrize(
    ("columns", "index", "options", "words"),
    [
        ("k INT", "", "", "'index' must not be empty"),
        ("k INT", "{K}", "", "Unknown field 'K' in index pattern"),
        ("k INT", "x-{k|yyyy}", "", "only DATE, TIME and TIMESTAMP have a pattern"),
        ("k INT, b BYTES", "x-{b}", "", "no part of a name"),
        ("k INT, PRIMARY KEY (k) NOT ENFORCED", "x-{now()|yyyy}", "", "only works on append only stream"),
        ("k ARRAY<INT>, PRIMARY KEY (k) NOT ENFORCED", "x", "", r"illegal types: \[ARRAY<INT>"),
        ("k INT", "x", ", 'username' = 'ann'", "must be set at the same time"),
        ("k INT", "x", ", 'sink.delivery-guarantee' = 'exactly-once'", "a bulk request is no transaction"),
        ("k INT", "x", ", 'sink.bulk-flush.backoff.delay' = '1 s'", "has no effect without"),
        ("k INT", "x", ", 'failure-handler' = 'com.acme.Handler'", "classes of Java are not run here"),
        ("k INT", "x", ", 'format' = 'debezium-json'", "'format' = 'debezium-json' is of changes"),
        ("k INT", "x", ", 'document-type' = 'x'", "Unsupported options"),
        ("k INT", "x", ", 'hosts2' = 'x'", "Unsupported options"),
    ],
)
def test_what_cannot_be_is_said(columns: str, index: str, options: str, words: str) -> None:
    made = table(Place(1), columns, index, options)
    with pytest.raises(FlowSqlError, match=words):
        insert(made, f"INSERT INTO t (k) VALUES (CAST(NULL AS {columns.split()[1].rstrip(',')}))")


def test_hosts_have_a_form() -> None:
    place = Place(1)
    place.url = "localhost"
    with pytest.raises(FlowSqlError, match="It should follow the format 'http://host_name:port'"):
        insert(table(place, "k INT", "x"), "INSERT INTO t VALUES (1)")
    with pytest.raises(FlowSqlError, match="only be used as a sink"):
        answer(table(Place(1), "k INT", "x"), "SELECT * FROM t")
