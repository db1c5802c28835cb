"""Names of Kafka's Java clients for librdkafka."""

from __future__ import annotations

import pytest

from flowsql_connectors.kafka.properties import client_properties, given_properties
from flowsql_core.errors import BindError
from tests.connectors.tables import table_of

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

TRANSLATED = {
    "as it is": ({"client.id": "x"}, {"client.id": "x"}),
    "renamed": ({"fetch.max.wait.ms": "5"}, {"fetch.wait.max.ms": "5"}),
    "bytes": ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": 32768}),
    "own": ({"commit.offsets.on.checkpoint": "false"}, {}),
    "plain": (
        {"sasl.jaas.config": f'{_PLAIN} required username="u" password="p\\"w;";'},
        {"sasl.username": "u", "sasl.password": 'p"w;'},
    ),
    "scram": (
        {"sasl.jaas.config": "a.b.ScramLoginModule required\n  username='u'\n  password=secret;"},
        {"sasl.username": "u", "sasl.password": "secret"},
    ),
    "truststore": (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
        {"ssl.ca.location": "/ca.pem"},
    ),
    "host names": ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
}


@pytest.mark.parametrize(("given", "made"), TRANSLATED.values(), ids=TRANSLATED)
def test_translated(given: dict[str, str], made: dict[str, object]) -> None:
    assert client_properties(given) == made


REFUSED = {
    "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;",
    "ssl.truststore.location": "/trust.jks",
    "ssl.keystore.type": "JKS",
    "interceptor.classes": "a.B",
    "transactional.id": "x",
    "buffer.memory": "much",
}


@pytest.mark.parametrize(("name", "text"), REFUSED.items(), ids=REFUSED)
def test_refused(name: str, text: str) -> None:
    with pytest.raises(BindError, match=name):
        client_properties({name: text})


@pytest.mark.parametrize("name", ["ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password"])
def test_stores_of_java_are_refused_with_what_to_name_instead(name: str) -> None:
    with pytest.raises(BindError, match=r"properties\.ssl\.ca\.location"):
        client_properties({name: "JKS"})


def test_secrets_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hush")
    table = table_of("a INT", {"properties.sasl.password": "${env:KAFKA_PASSWORD}"})
    assert given_properties(table) == {"sasl.password": "hush"}


def test_a_login_without_a_password_does_not_show_what_it_has() -> None:
    with pytest.raises(BindError, match="it has no 'password'") as refused:
        client_properties({"sasl.jaas.config": f'{_PLAIN} required username="geheim";'})
    assert "geheim" not in refused.value.render()
