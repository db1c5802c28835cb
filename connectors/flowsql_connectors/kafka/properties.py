"""``properties.*``: the names of Kafka's Java clients, as the tables of Flink have them, for librdkafka.

Most names are the same. Others are translated here, or refused with what stands in their place; names of librdkafka's
own are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from flowsql_connectors.kafka.options import PROPERTIES
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec

#: Java's name -> librdkafka's, where the value means the same.
_RENAMED: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
#: Read by the connector itself, not by the library.
COMMIT_ON_CHECKPOINT: Final = "commit.offsets.on.checkpoint"
AUTO_OFFSET_RESET: Final = "auto.offset.reset"
API_TIMEOUT: Final = "default.api.timeout.ms"
MAX_POLL_RECORDS: Final = "max.poll.records"
DISCOVERY: Final = "partition.discovery.interval.ms"
_OWN: Final = {COMMIT_ON_CHECKPOINT, AUTO_OFFSET_RESET, API_TIMEOUT, MAX_POLL_RECORDS}
_RESETS: Final = ("latest", "earliest", "none")
#: Names without a counterpart, and what is to be said of each.
_REFUSED: Final = {
    "key.deserializer": "keys are read by 'key.format'",
    "value.deserializer": "values are read by 'value.format'",
    "key.serializer": "keys are written by 'key.format'",
    "value.serializer": "values are written by 'value.format'",
    "interceptor.classes": "interceptors are Java classes",
    "partitioner.class": "'sink.partitioner' chooses partitions",
    "partition.assignment.strategy": "partitions are dealt out by the scan",
    "metric.reporters": "reporters are Java classes",
    "transactional.id": "'sink.transactional-id-prefix' names transactions",
    "ssl.truststore.password": "truststores are PEM files: 'properties.ssl.ca.location'",
    "ssl.engine.factory.class": "it is a Java class",
    "sasl.login.callback.handler.class": "it is a Java class",
    "sasl.client.callback.handler.class": "it is a Java class",
    "sasl.login.class": "it is a Java class",
    "security.providers": "they are Java classes",
    "config.providers": "they are Java classes",
    DISCOVERY: "'scan.topic-partition-discovery.interval' says how often to look for partitions",
}
_STORE_TYPE: Final = re.compile(r"ssl\.(truststore|keystore)\.type")
_JAAS: Final = re.compile(r"^\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*$", re.DOTALL)
_JAAS_ENTRY: Final = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|(\S+))")
_LOGIN_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")


def given_properties(table: TableSpec) -> dict[str, str]:
    """The table's ``properties.*`` without that prefix, with the secrets that they refer to."""
    filled = table.filled_options()
    return {key.removeprefix(PROPERTIES): text for key, text in filled.items() if key.startswith(PROPERTIES)}


def client_properties(given: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    """What librdkafka is told.

    Raises:
        BindError: a property means nothing outside of Java.
    """
    made: dict[str, str | int | float | bool] = {}
    for name, text in given.items():
        if name in _OWN:
            continue
        if name in _REFUSED:
            raise _refusal(name, _REFUSED[name])
        if name == "sasl.jaas.config":
            made.update(_login(text))
        elif name == "buffer.memory":
            made["queue.buffering.max.kbytes"] = max(1, _number(name, text) // 1024)
        elif name == "ssl.endpoint.identification.algorithm":
            made[name] = text.strip().lower() or "none"
        elif _STORE_TYPE.fullmatch(name):
            _check_store(name, text)
        elif name == "ssl.truststore.location":
            if given.get("ssl.truststore.type", "").upper() != "PEM":
                raise _refusal(
                    name, "a truststore is a PEM file: add 'properties.ssl.truststore.type' = 'PEM', or name the file "
                    "as 'properties.ssl.ca.location'",
                )  # fmt: skip
            made["ssl.ca.location"] = text
        elif name == "ssl.truststore.certificates":
            made["ssl.ca.pem"] = text
        elif name == "ssl.keystore.certificate.chain":
            made["ssl.certificate.pem"] = text
        elif name == "ssl.keystore.key":
            made["ssl.key.pem"] = text
        elif name == "ssl.keystore.location" and given.get("ssl.keystore.type", "").upper() == "PEM":
            made["ssl.certificate.location"] = made["ssl.key.location"] = text
        else:
            made[_RENAMED.get(name, name)] = text
    return made


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise BindError(
            "invalid-option-value", f"Could not parse value '{text}' for key '{PROPERTIES}{name}': expected a number"
        ) from error


def number_of(given: Mapping[str, str], name: str, default: int) -> int:
    """A property that the connector reads itself."""
    return _number(name, given[name]) if name in given else default


def reset_policy(given: Mapping[str, str]) -> str:
    """Where a group without offsets begins: ``earliest``, ``latest``, or ``none``: nowhere.

    Raises:
        BindError: it is another word.
    """
    written = given.get(AUTO_OFFSET_RESET, "none")
    if written.lower() not in _RESETS:
        raise BindError(
            "invalid-option-value",
            f"{AUTO_OFFSET_RESET} can not be set to {written}. Valid values: [{','.join(_RESETS)}]",
        )
    return written.lower()


def _check_store(name: str, text: str) -> None:
    taken = ("PEM",) if "trust" in name else ("PEM", "PKCS12")
    if text.strip().upper() not in taken:
        instead = "; 'properties.ssl.ca.location' names a PEM file" if "trust" in name else ""
        raise _refusal(name, f"stores are of type {' or '.join(taken)} outside of Java, not '{text}'{instead}")


def _login(text: str) -> dict[str, str | int | float | bool]:
    """User and password of the usual login modules."""
    found = _JAAS.match(text)
    module = found[1].rpartition(".")[2] if found else ""
    if found is None or module not in _LOGIN_MODULES:
        raise _refusal(
            "sasl.jaas.config",
            f"of login modules only {' and '.join(_LOGIN_MODULES)} have a meaning outside of Java; "
            "'properties.sasl.username' and 'properties.sasl.password', or librdkafka's other 'sasl.*' name the rest",
        )
    values = {
        name: re.sub(r"\\(.)", r"\1", double or single or bare)
        for name, double, single, bare in _JAAS_ENTRY.findall(found[2])
    }
    if missing := [name for name in ("username", "password") if name not in values]:
        raise _refusal("sasl.jaas.config", f"it has no '{missing[0]}'")
    return {"sasl.username": values["username"], "sasl.password": values["password"]}


def _refusal(name: str, why: str) -> BindError:
    return BindError("kafka-property", f"'{PROPERTIES}{name}' cannot be used: {why}.")
