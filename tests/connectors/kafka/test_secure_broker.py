"""Logins, TLS and rights against a real broker: what gets in, and what is said to who does not."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import admin as ck_admin

from tests.connectors.kafka.broker import real_broker
from tests.connectors.kafka.secure_broker import PASSWORDS, SCRAM, SecureBroker, login, secure_broker

pytestmark = pytest.mark.servers
SECRETS = [*PASSWORDS.values(), *SCRAM.values()]
#: How long a start or a record may wait, and how long a process may take on a busy machine.
_TIMEOUT_MS, _LONGEST_S = 10_000, 60.0


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("secure")) as made:
        yield made


def statement(script: str) -> tuple[int, str]:
    """Exit code, and everything that is printed; no secret is."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "flowsql.cli", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    text = done.stdout + done.stderr
    assert not [secret for secret in SECRETS if secret in text], "a secret is shown"
    assert "Traceback" not in text, text
    assert time.monotonic() - began < _LONGEST_S, text
    return done.returncode, text


def table(name: str, address: str, topic: str, properties: dict[str, str]) -> str:
    given = {
        "connector": "kafka", "topic": topic, "format": "json", "properties.bootstrap.servers": address,
        "scan.startup.mode": "earliest-offset", "scan.bounded.mode": "latest-offset",
        "properties.default.api.timeout.ms": str(_TIMEOUT_MS), **properties,
    }  # fmt: skip
    options = ", ".join(f"'{key}' = '{text}'" for key, text in given.items())
    return f"CREATE TABLE {name} (a INT) WITH ({options});\n"


def way_in(secure: SecureBroker, name: str) -> tuple[str, dict[str, str]]:
    """An address, and the properties that get in there."""
    trust = {"properties.ssl.truststore.type": "PEM", "properties.ssl.truststore.location": str(secure.ca)}
    match name:
        case "plain login":
            return secure.sasl, login("alice")
        case "scram":
            return secure.sasl, login("carol", mechanism="SCRAM-SHA-256")
        case "tls":
            return secure.tls, {"properties.security.protocol": "SSL", **trust}
        case "tls by librdkafka's name":
            return secure.tls, {"properties.security.protocol": "SSL", "properties.ssl.ca.location": str(secure.ca)}
    return secure.sasl_tls, {**login("alice"), "properties.security.protocol": "SASL_SSL", **trust}


WAYS = ("plain login", "scram", "tls", "tls by librdkafka's name", "login over tls")


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("name", WAYS)
def test_rows_are_written_and_read(secure: SecureBroker, name: str, guarantee: str) -> None:
    topic = real_broker(secure.plain).made_topic("secure")
    address, properties = way_in(secure, name)
    once = {"sink.delivery-guarantee": guarantee, "sink.transactional-id-prefix": topic}
    written = table("t", address, topic, {**properties, **(once if guarantee == "exactly-once" else {})})
    script = f"{written}SHOW CREATE TABLE t; EXPLAIN SELECT * FROM t;\nINSERT INTO t VALUES (1), (2);\nSELECT * FROM t;"
    code, text = statement(f"SET 'table.dml-sync' = 'true';\n{script}")
    assert code == 0, text
    assert sorted(re.findall(r"\| \+I \| +(\d) \|", text)) == ["1", "2"]


def refused(secure: SecureBroker, name: str) -> tuple[str, dict[str, str], str]:
    """An address, properties, and what is said."""
    tls = {"properties.security.protocol": "SSL"}
    match name:
        case "wrong password":
            return secure.sasl, login("alice", "no"), "refused the login"
        case "wrong scram password":
            return secure.sasl, login("carol", "no", "SCRAM-SHA-256"), "refused the login"
        case "nobody of that name":
            return secure.sasl, login("mallory", "no"), "refused the login"
        case "mechanism that the broker has not":
            return secure.sasl, login("carol", mechanism="SCRAM-SHA-512"), "refused the login"
        case "unknown authority":
            other = {**tls, "properties.ssl.ca.location": str(secure.other_ca)}
            return secure.tls, other, "cannot be trusted"
        case "no authority":
            return secure.tls, tls, "cannot be trusted"
        case "plaintext to a tls port":
            return secure.tls, {}, "'PLAINTEXT' what that port speaks?"
        case "tls to a plaintext port":
            return secure.plain, {**tls, "properties.ssl.ca.location": str(secure.ca)}, "'SSL' what that port speaks?"
        case "no login to a port that wants one":
            return secure.sasl, {}, "'PLAINTEXT' what that port speaks?"
    store = {**tls, "properties.ssl.truststore.location": "/t.jks", "properties.ssl.truststore.password": "secret-1"}
    return secure.tls, store, "properties.ssl.ca.location"


REFUSED = (
    "wrong password", "wrong scram password", "nobody of that name", "mechanism that the broker has not",
    "unknown authority", "no authority", "plaintext to a tls port", "tls to a plaintext port",
    "no login to a port that wants one", "truststore of java",
)  # fmt: skip


@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_one_sentence(secure: SecureBroker, name: str, writes: bool) -> None:
    topic = real_broker(secure.plain).made_topic("secure")
    address, properties, wanted = refused(secure, name)
    given = {**properties, "properties.delivery.timeout.ms": str(_TIMEOUT_MS)}
    query = "INSERT INTO t VALUES (1);" if writes else "SELECT * FROM t;"
    code, text = statement(f"SET 'table.dml-sync' = 'true';\n{table('t', address, topic, given)}{query}")
    assert code != 0
    assert wanted in text
    assert "secret-1" not in text


def test_rights_that_are_missing(secure: SecureBroker) -> None:
    topic = real_broker(secure.plain).made_topic("rights")

    def told(guarantee: str, query: str) -> str:
        once = {"sink.delivery-guarantee": guarantee, "sink.transactional-id-prefix": topic}
        properties = {**login("bob"), **(once if guarantee == "exactly-once" else {})}
        script = f"SET 'table.dml-sync' = 'true';\n{table('t', secure.sasl, topic, properties)}{query}"
        code, text = statement(script)
        assert bool(code) == ("[ERROR]" in text)
        return text.partition("[ERROR]")[2]

    read, write = "SELECT * FROM t;", "INSERT INTO t VALUES (1);"
    assert f"does not let this job use topic '{topic}': Broker: Topic authorization failed" in told("none", read)
    assert f"does not let this job use topic '{topic}': Broker: Topic authorization failed" in told("none", write)
    assert "Broker: Transactional Id authorization failed" in told("exactly-once", write)
    operation, kind = ck_admin.AclOperation, ck_admin.ResourceType
    secure.allow("bob", kind.TOPIC, topic, operation.READ)
    assert not told("none", read)
    secure.allow("bob", kind.TOPIC, topic, operation.WRITE)
    assert not told("none", write)
    secure.allow("bob", kind.TRANSACTIONAL_ID, topic, operation.WRITE)
    assert "Group authorization failed" in told("exactly-once", write)
    secure.allow("bob", kind.GROUP, f"{topic}-committed", operation.READ)
    assert not told("exactly-once", write)
    assert len(real_broker(secure.plain).read(topic)) == 2
