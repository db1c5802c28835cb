"""``http``: polls, pages, lookups and posts against a server in this process."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors import registry
from flowsql_connectors.http.json_path import part_of
from flowsql_core.errors import BindError, ConnectorError, ExecutionError, FlowSqlError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import batch_of, poll, reader_of, rows_of, scan, source_of, table_of, writer_of

from .web import Asked, Said, Web, serving


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Asked], Said]], Web]]:
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(serving(answer))


def json_of(value: Any, **headers: str) -> Said:
    return Said(json.dumps(value).encode(), headers={"Content-Type": "application/json", **headers})


def table(web: Web, ddl: str, **options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    first = {"connector": "http", "url": f"{web.url}/items", "format": "json", "reconnect.initial-delay": "1 ms"}
    return table_of(ddl, {**first, **named})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_TEST_KEY", "geheim5")


def session() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


@pytest.mark.parametrize(
    ("text", "path", "part"),
    [
        ('{"a": {"b": [1.10, {"c": "}"}]}}', "a.b", '[1.10, {"c": "}"}]'),
        (' { "x" : "\\"a", "a" : 12345678901234567890.5 , "b":1}', "a", "12345678901234567890.5"),
        ('{"a": null}', "a", None),
        ('{"a": 1}', "b", None),
        ("{}", "a", None),
        ("[1]", "a", None),
        ('{"\\u00e9": [2]}', "é", "[2]"),
    ],
)
def test_a_part_of_a_document(text: str, path: str, part: str | None) -> None:
    assert part_of(text, path.split(".")) == part


@pytest.mark.parametrize("text", ["", "{", '{"a"', '{"a" 1}', '{"x": 1 "a": 2}', '{"a": tru}'])
def test_no_document(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        part_of(text, ["a"])


def test_one_poll_is_bounded(serve: Any) -> None:
    web = serve(lambda asked: json_of({"data": {"items": [{"id": 1, "x": "a"}, {"id": 2}]}}))
    made = table(web, "id INT, x STRING", response_path="data.items", headers__X_Who="me", token="geheim")
    assert source_of(made)[0].bounded
    assert scan(made) == [[1, "a"], [2, None]]
    (asked,) = web.asked
    assert (asked.method, asked.path) == ("GET", "/items")
    assert asked.headers["Authorization"] == "Bearer geheim"
    assert asked.headers["X-Who"] == "me"


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"items": null}', b'{"other": 1}'])
def test_answers_without_records(serve: Any, body: bytes) -> None:
    web = serve(lambda asked: Said(body))
    more = {"response_path": "items"} if body.startswith(b"{") or body == b"null" else {}
    assert scan(table(web, "id INT", **more)) == []


def test_lines(serve: Any) -> None:
    web = serve(lambda asked: Said(b"1,a\r\n2,b\n\n3,c"))
    assert scan(table(web, "id INT, x STRING", format="csv")) == [[1, "a"], [2, "b"], [3, "c"]]
    web.answer = lambda asked: Said(b'{"id": 1}\n{"id": 2}\n', headers={"Content-Type": "application/x-ndjson"})
    assert scan(table(web, "id INT")) == [[1], [2]]
    web.answer = lambda asked: Said(b"whole\nbody")
    assert scan(table(web, "x STRING", format="raw")) == [["whole\nbody"]]
    assert scan(table(web, "x STRING", format="raw", scan__records="lines")) == [["whole"], ["body"]]


def test_pages_by_number(serve: Any) -> None:
    def answer(asked: Asked) -> Said:
        page = int(dict(asked.parameters)["p"])
        return json_of([{"id": page * 10 + n} for n in range(2)] if page < 3 else [])

    web = serve(answer)
    made = table(web, "id INT", scan__pagination="page", scan__page__parameter="p", scan__page__first="0")
    assert scan(made) == [[0], [1], [10], [11], [20], [21]]


def test_pages_by_link(serve: Any) -> None:
    def answer(asked: Asked) -> Said:
        page = int(dict(asked.parameters).get("at", "0"))
        links = {"Link": f'</items?at={page + 1}>; rel="next", </items?at=0>; rel="first"'} if page < 2 else {}
        return json_of([{"id": page}], **links)

    assert scan(table(serve(answer), "id INT", scan__pagination="link")) == [[0], [1], [2]]


def cursors(asked: Asked) -> Said:
    """Three pages of two records each."""
    page = int(dict(asked.parameters).get("cursor", "0"))
    following = {"next": str(page + 1)} if page < 2 else {}
    return json_of({"items": [{"id": page * 2}, {"id": page * 2 + 1}], "meta": following})


CURSOR = {"response_path": "items", "scan__pagination": "cursor", "scan__cursor__path": "meta.next"}


def test_pages_by_cursor_go_on_exactly(serve: Any) -> None:
    made = table(serve(cursors), "id INT", **CURSOR)
    assert scan(made) == [[n] for n in range(6)]
    for cut in range(6):
        source, schema = source_of(made)
        assert source.guarantee() is None
        reader = reader_of(source)
        reader.add_splits(source.create_enumerator().initial_splits(1)[0])
        rows: list[Any] = []
        while len(rows) < cut:
            polled = poll(reader, 1)
            assert polled is not None
            rows += rows_of(polled.batch, schema)
        kept = reader.snapshot()
        reader.close()
        again = reader_of(source)
        again.add_splits(kept)
        again.no_more_splits()
        while (polled := poll(again, 1)) is not None:
            rows += rows_of(polled.batch, schema)
        again.close()
        assert rows == [[n] for n in range(6)], cut


def test_polls_go_on_behind_the_last_cursor(serve: Any) -> None:
    log = [{"id": n} for n in range(3)]

    def answer(asked: Asked) -> Said:
        since = int(dict(asked.parameters).get("cursor", "0"))
        found = log[since : since + 2]
        return json_of({"items": found, "meta": {"next": str(since + len(found))}})

    web = serve(answer)
    made = table(web, "id INT", **CURSOR, scan__interval="1 ms", scan__cursor__continue="true")
    source, schema = source_of(made)
    assert not source.bounded
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    rows: list[Any] = []
    while len(rows) < 3:
        polled = poll(reader)
        assert polled is not None
        rows += rows_of(polled.batch, schema)
    log.append({"id": 3})
    while len(rows) < 4:
        polled = poll(reader)
        assert polled is not None
        rows += rows_of(polled.batch, schema)
    kept = reader.snapshot()
    reader.close()
    log.append({"id": 4})
    again = reader_of(source)
    again.add_splits(kept)
    polled = poll(again)
    again.close()
    assert polled is not None
    assert rows + rows_of(polled.batch, schema) == [[0], [1], [2], [3], [4]]


def test_a_run_takes_what_is_there_and_the_next_one_goes_on(serve: Any, tmp_path: Path) -> None:
    log = [{"id": n} for n in range(5)]

    def answer(asked: Asked) -> Said:
        since = int(dict(asked.parameters).get("cursor", "0"))
        found = log[since : since + 2]
        return json_of({"items": found, "meta": {"next": str(since + len(found))}})

    web = serve(answer)
    given = table(web, "id INT", **CURSOR, scan__interval="1 h", scan__cursor__continue="true").options
    savepoint = None
    for first, last in ((0, 5), (5, 7)):
        made = session()
        made.execute_sql("SET 'flowsql.trigger' = 'available-now'")
        made.execute_sql(f"SET 'execution.checkpointing.savepoint-dir' = '{tmp_path / 'savepoints'}'")
        if savepoint is not None:
            made.execute_sql(f"SET 'execution.state-recovery.path' = '{savepoint}'")
        made.execute_sql(
            "CREATE TABLE items (id INT) WITH (" + ", ".join(f"'{key}' = '{value}'" for key, value in given) + ")"
        )
        out = tmp_path / f"out{first}"
        made.execute_sql(
            f"CREATE TABLE kept (id INT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')"
        )
        result = made.execute_sql("INSERT INTO kept SELECT id FROM items")
        result.wait()
        rows = [int(line) for file in out.glob("[!.]*") for line in file.read_text().split()]
        assert sorted(rows) == list(range(first, last))
        client = result.get_job_client()
        assert client is not None
        savepoint = client.stopped_with()
        log += [{"id": 5}, {"id": 6}]


def test_a_cursor_is_needed_to_go_on(serve: Any) -> None:
    made = table(serve(cursors), "id INT", **CURSOR, scan__interval="1 ms", scan__cursor__continue="true")
    source, _ = source_of(made)
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    for _ in range(2):
        poll(reader)
    with pytest.raises(ExecutionError, match=r"has no cursor at 'meta.next': 'scan.cursor.continue' needs one in each"):
        poll(reader)
    reader.close()


def test_each_poll_gives_its_rows_unless_nothing_changed(serve: Any) -> None:
    versions = iter([1, 1, 1, 2, 2, 3])

    def answer(asked: Asked) -> Said:
        version = next(versions, 3)
        if asked.headers.get("If-None-Match") == f'"{version}"':
            return Said(status=304)
        return json_of([{"id": version}], ETag=f'"{version}"')

    made = table(serve(answer), "id INT", scan__interval="1 ms", scan__skip_unchanged="true")
    source, schema = source_of(made)
    assert source.guarantee() == "at least once: a poll that was not through is made again"
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    rows: list[Any] = []
    while len(rows) < 3:
        polled = poll(reader, 1)
        assert polled is not None
        rows += rows_of(polled.batch, schema)
    reader.close()
    assert rows == [[1], [2], [3]]


def test_a_server_that_is_away_is_asked_again(serve: Any) -> None:
    answers = iter([Said(b"later", 500), Said(b"", 429, {"Retry-After": "0"}), Said(b"", 503)])
    web = serve(lambda asked: next(answers, json_of([{"id": 1}])))
    assert scan(table(web, "id INT")) == [[1]]
    assert len(web.asked) == 4


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (Said(b"no <b>such</b>\n page", 404), "/items answered GET with 404: no <b>such</b> page"),
        (Said(b"", 401), "/items answered GET with 401."),
        (Said(b"a" * 999, 400), "with 400: " + "a" * 200 + "$"),
    ],
)
def test_refusals(serve: Any, said: Said, message: str) -> None:
    web = serve(lambda asked: said)
    with pytest.raises(ConnectorError, match=message):
        scan(table(web, "id INT", url=f"{web.url}/items?key=geheim"))


def test_failures_name_the_place(serve: Any) -> None:
    web = serve(lambda asked: Said(b'{"items": oops'))
    with pytest.raises(ExecutionError, match=r"The answer of .*/items is no JSON: Expecting value"):
        scan(table(web, "id INT", response_path="items"))
    web.answer = lambda asked: Said(b'[{"id": "x"}]')
    with pytest.raises(ExecutionError, match=r"in http://127.0.0.1:.*/items, message 1"):
        scan(table(web, "id INT"))
    with pytest.raises(ConnectorError, match=r"The host 'nowhere.invalid' is not known"):
        scan(table(web, "id INT", url="http://nowhere.invalid/x"))
    with pytest.raises(ConnectorError, match=r"http://127.0.0.1:9/ cannot be asked: Connection refused"):
        scan(table(web, "id INT", url="http://127.0.0.1:9/", reconnect__max_attempts="0"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://x"}, "begins with http"),
        ({"scan__body": "{}"}, "'scan.body' has no meaning without 'scan.method' = 'POST'"),
        ({"scan__pagination": "cursor"}, "needs 'scan.cursor.path'"),
        ({"scan__page__first": "2"}, "'scan.page.first' has no meaning without"),
        ({"scan__skip_unchanged": "true"}, "no meaning without 'scan.interval'"),
        (
            {"scan__pagination": "cursor", "scan__cursor__path": "a", "scan__cursor__continue": "true"},
            "'scan.interval'",
        ),
        ({"username": "u"}, "both or none"),
        ({"username": "u", "password": "p", "token": "t"}, "two ways to log in"),
        ({"format": "csv", "response_path": "a"}, "leads through JSON"),
        ({"lookup__ignored_response_codes": "x"}, "For input string"),
    ],
)
def test_options_that_do_not_fit(serve: Any, options: dict[str, str], message: str) -> None:
    web = Web("http://127.0.0.1:9", lambda asked: Said())
    with pytest.raises(BindError, match=message):
        source_of(table(web, "id INT", **options))


def test_metadata_and_a_body(serve: Any) -> None:
    web = serve(lambda asked: json_of([{"id": 1}]))
    made = table(web, "id INT", scan__method="POST", scan__body='{"q": 1}', url=f"{web.url}/items?key=geheim")
    assert scan(made, metadata=("url",)) == [[1, f"{web.url}/items"]]
    assert (web.asked[0].method, web.asked[0].body) == ("POST", b'{"q": 1}')
    assert web.asked[0].headers["Content-Type"] == "application/json"


def test_requests_go_through_a_proxy(serve: Any) -> None:
    web = serve(lambda asked: json_of([{"id": 1}]))
    place = web.url.removeprefix("http://")
    made = table(web, "id INT", url="http://elsewhere.invalid/items", proxy=f"http://ann:p%40ss@{place}")
    assert scan(made) == [[1]]
    (asked,) = web.asked
    assert (asked.path, asked.headers["Host"]) == ("/items", "elsewhere.invalid")
    assert asked.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"ann:p@ss").decode()
    with pytest.raises(ConnectorError, match=r"http://elsewhere.invalid/x cannot be asked"):
        scan(table(web, "id INT", url="http://elsewhere.invalid/x", proxy="http://127.0.0.1:9",
                   reconnect__max_attempts="0"))  # fmt: skip


USERS = {"1": {"id": 1, "name": "Ann"}, "2": {"id": 2, "name": "Bo"}}


def joined(web: Web, ddl: str, hint: str = "", **options: str) -> list[tuple[Any, ...]]:
    made = session()
    made.execute_sql(
        f"CREATE TABLE users ({ddl}) WITH ("
        + ", ".join(f"'{key}' = '{value}'" for key, value in table(web, "id INT", **options).options)
        + ")"
    )
    query = made.sql_query(
        f"SELECT {hint} o.k, u.name "
        "FROM (SELECT k, PROCTIME() AS pt FROM (VALUES (1), (2), (3), (1), (CAST(NULL AS INT))) "
        "AS t(k)) AS o LEFT JOIN users FOR SYSTEM_TIME AS OF o.pt AS u ON o.k = u.id"
    )
    with query.execute().collect() as rows:
        return [tuple(row) for row in rows]


WANTED = [(1, "Ann"), (2, "Bo"), (3, None), (1, "Ann"), (None, None)]


def test_lookups_by_path(serve: Any) -> None:
    def answer(asked: Asked) -> Said:
        user = USERS.get(asked.path.rpartition("/")[2])
        return Said(status=404) if user is None else json_of({"name": user["name"]})

    web = serve(answer)
    kept = {"lookup__cache": "PARTIAL", "lookup__partial-cache__max-rows": "9"}
    assert joined(web, "id INT, name STRING", url=f"{web.url}/users/{{id}}", **kept) == WANTED
    assert sorted(asked.path for asked in web.asked) == ["/users/1", "/users/2", "/users/3"]


def test_lookups_by_parameter_and_by_body(serve: Any) -> None:
    def answer(asked: Asked) -> Said:
        key = dict(asked.parameters).get("id") or str(json.loads(asked.body)["id"])
        return json_of({"found": [USERS[key]] if key in USERS else []})

    web = serve(answer)
    assert joined(web, "id INT, name STRING", response_path="found") == WANTED
    assert joined(web, "id INT, name STRING", response_path="found", lookup_method="POST") == WANTED
    assert web.asked[-1].method == "POST"
    hint = "/*+ LOOKUP('table'='u', 'async'='true') */"
    assert joined(web, "id INT, name STRING", hint, response_path="found", lookup__concurrency="2") == WANTED


def test_lookups_of_many_keys(serve: Any) -> None:
    def answer(asked: Asked) -> Said:
        keys = [value for _, value in asked.parameters] or [str(one["id"]) for one in json.loads(asked.body)]
        return json_of([USERS[key] for key in reversed(keys) if key in USERS])

    web = serve(answer)
    assert joined(web, "id INT, name STRING", lookup__batch_size="10") == WANTED
    assert joined(web, "id INT, name STRING", lookup__batch_size="2", lookup_method="POST") == WANTED
    assert [len(asked.parameters) for asked in web.asked if asked.method == "GET"] == [3]
    assert [len(json.loads(asked.body)) for asked in web.asked if asked.method == "POST"] in ([2, 1], [1, 2])


def test_lookups_that_fail(serve: Any) -> None:
    web = serve(lambda asked: Said(b"broken", 400))
    with pytest.raises(FlowSqlError, match="answered GET with 400: broken"):
        joined(web, "id INT, name STRING")
    with pytest.raises(FlowSqlError, match=r"holds \{name\}, which the join does not give: its keys are id"):
        joined(web, "id INT, name STRING", url=f"{web.url}/{{name}}")
    with pytest.raises(FlowSqlError, match=r"holds \{id\}: such a table can only be looked up"):
        scan(table(web, "id INT", url=f"{web.url}/{{id}}"))


def test_posts_in_batches_with_retries(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql_connectors.messages.sink.sleep", lambda seconds: None)
    said = iter([Said(), Said(b"", 503)])
    web = serve(lambda asked: next(said, Said(status=204)))
    made = table(web, "id INT, x STRING", sink__batch__max_size="2", sink__buffer_flush__interval="0")
    writer, _ = writer_of(made)
    writer.write(batch_of(made, [[1, "a"], [2, "b"], [3, None]]))
    writer.flush(False)
    writer.close()
    bodies = [json.loads(asked.body) for asked in web.asked]
    assert bodies == [[{"id": 1, "x": "a"}, {"id": 2, "x": "b"}], [{"id": 3, "x": None}], [{"id": 3, "x": None}]]
    keys = [asked.headers["Idempotency-Key"] for asked in web.asked]
    assert keys[0] != keys[1] == keys[2]
    assert {asked.headers["Content-Type"] for asked in web.asked} == {"application/json"}


def test_posts_of_single_rows_changes_and_lines(serve: Any) -> None:
    web = serve(lambda asked: Said())
    options = {"sink__request_mode": "single", "insert_method": "PUT", "sink__idempotency_header": ""}
    made = session()
    for name, more in (
        ("single", options),
        ("lines", {"format": "csv"}),
        ("changes", {"format": "debezium-json"}),
    ):
        given = table(web, "k INT, n BIGINT", url=f"{web.url}/{name}", **more).options
        made.execute_sql(
            f"CREATE TABLE {name} (k INT, n BIGINT) WITH ("
            + ", ".join(f"'{key}' = '{value}'" for key, value in given if not key.startswith("reconnect"))
            + ")"
        )
    made.execute_sql("INSERT INTO single VALUES (1, 2), (3, 4)").wait()
    made.execute_sql("INSERT INTO lines VALUES (1, 2), (3, 4)").wait()
    made.execute_sql("INSERT INTO changes SELECT k, COUNT(*) FROM (VALUES (1), (1)) AS t(k) GROUP BY k").wait()
    by_path: dict[str, list[Asked]] = {}
    for asked in web.asked:
        by_path.setdefault(asked.path, []).append(asked)
    assert [(a.method, a.body) for a in by_path["/single"]] == [("PUT", b'{"k":1,"n":2}'), ("PUT", b'{"k":3,"n":4}')]
    assert "Idempotency-Key" not in by_path["/single"][0].headers
    assert b"".join(a.body for a in by_path["/lines"]) == b"1,2\n3,4\n"
    assert [e["op"] for a in by_path["/changes"] for e in json.loads(a.body)] == ["c", "d", "c"]


def test_posts_that_are_refused(serve: Any) -> None:
    web = serve(lambda asked: Said(b"bad row", 422))
    made = table(web, "id INT")
    writer, _ = writer_of(made)
    writer.write(batch_of(made, [[1]]))
    with pytest.raises(ConnectorError, match="/items answered POST with 422: bad row"):
        writer.flush(False)
    writer.close()
    with pytest.raises(BindError, match="cannot stand together in one request"):
        writer_of(table(web, "id INT", format="avro"))


def test_the_client_library_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "urllib3", None)
    web = Web("http://127.0.0.1:9", lambda asked: Said())
    with pytest.raises(ConnectorError, match="needs the Python module 'urllib3'") as raised:
        scan(table(web, "id INT"))
    assert raised.value.hint == "pip install 'flowsql[http]'"


def test_secrets_are_not_shown(serve: Any) -> None:
    web = serve(lambda asked: Said(b"no", 403))
    made = session()
    given = table(
        web, "id INT", url=f"{web.url}/x?key=${{env:HTTP_TEST_KEY}}", token="geheim1", headers__X_Api_Key="geheim2",
        headers__Cookie="geheim3", headers__Proxy_Authorization="geheim4",
    )  # fmt: skip
    made.execute_sql("CREATE TABLE t (id INT) WITH (" + ", ".join(f"'{k}' = '{v}'" for k, v in given.options) + ")")
    with made.execute_sql("SHOW CREATE TABLE t").collect() as rows:
        shown = str(list(rows)) + made.explain_sql("SELECT * FROM t")
    with pytest.raises(FlowSqlError, match="answered GET with 403: no") as raised:
        list(made.execute_sql("SELECT * FROM t").collect())
    shown += raised.value.render()
    assert "geheim" not in shown
    assert web.asked[0].parameters == [("key", "geheim5")]


def test_it_is_listed() -> None:
    assert {"http", "socket"} <= set(registry.identifiers())
