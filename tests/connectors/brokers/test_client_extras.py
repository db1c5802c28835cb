"""Connectors whose client library is not installed say which extra brings it."""

from __future__ import annotations

import sys

import pytest

from flowsql.errors import FlowSqlError
from tests.connectors.jdbc.databases import insert, session


@pytest.mark.parametrize(
    ("connector", "options", "modules", "extra"),
    [
        ("redis", "'url' = 'redis://h', 'key' = '{k}'", ["redis", "redis.exceptions"], "redis"),
        ("elasticsearch-7", "'hosts' = 'http://h:1', 'index' = 'x'", ["opensearchpy"], "elasticsearch"),
        ("opensearch", "'hosts' = 'http://h:1', 'index' = 'x'", ["opensearchpy"], "opensearch"),
        ("mongodb", "'uri' = 'mongodb://h', 'database' = 'd', 'collection' = 'c'", ["pymongo"], "mongodb"),
        ("mqtt", "'url' = 'mqtt://h', 'topic' = 't', 'format' = 'json'", ["paho.mqtt.client"], "mqtt"),
        ("nats", "'url' = 'nats://h', 'subject' = 's', 'format' = 'json'", ["nats"], "nats"),
    ],
)
def test_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, connector: str, options: str, modules: list[str], extra: str
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    made = session()
    made.execute_sql(f"CREATE TABLE t (k INT, v INT) WITH ('connector' = '{connector}', {options})")
    with pytest.raises(FlowSqlError, match=rf"Connector '{connector}' needs the Python module '{modules[0]}'") as error:
        insert(made, "INSERT INTO t VALUES (1, 2)")
    assert f"pip install 'flowsql[{extra}]'" in error.value.render()
