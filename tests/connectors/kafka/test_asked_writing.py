"""Tables of topics that are written as Flink 2.3 writes them (``asked_writing.txt``).

A case is a script with what Flink left in the topics, or how its error begins; ``--- here: WHY`` is FlowSQL's error
where that is another one. Of ``upsert-kafka`` the newest record of each key counts: Flink writes each change, FlowSQL
one a key and batch, and Flink's buffer writes keys in the order of a hash table. Records are compared in any order,
unless the case names partitions, which are as many as the mock has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowsql.errors import FlowSqlError
from tests.connectors.kafka.asked_topics import cases_of, run
from tests.connectors.kafka.broker import Broker

PATH = Path(__file__).with_name("asked_writing.txt")
CASES = cases_of(PATH)


def written(script: str, prefix: str, broker: Broker) -> None:
    result = run(script, prefix, broker)
    assert result is not None
    result.wait()


def _text(data: bytes | None) -> str | None:
    """As the cases have bytes: a text that can be printed, else its hexadecimal digits."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"x{data.hex()}"
    return text if text.isprintable() else f"x{data.hex()}"


def _shown(message: Any, field: str) -> Any:
    match field:
        case "partition":
            return message.partition()
        case "key":
            return _text(message.key())
        case "value":
            return _text(message.value())
        case "timestamp":
            return message.timestamp()[1]
        case "headers":
            return [[name, _text(value)] for name, value in message.headers() or ()]
    raise AssertionError(field)


def _newest(records: list[Any], key: int) -> list[Any]:
    return list({record[key]: record for record in records}.values())


@pytest.mark.parametrize("name", CASES)
def test_writing(name: str, broker: Broker) -> None:
    prefix = broker.topic("w") + "-"
    script, *parts = CASES[name].split("--- ")
    kind, _, said = parts[-1].partition("\n")
    if kind.startswith(("error", "here")):
        with pytest.raises(FlowSqlError) as caught:
            written(script, prefix, broker)
        assert said.strip().replace("${TOPIC_PREFIX}", prefix) in " ".join(caught.value.message.split())
        return
    written(script, prefix, broker)
    for part in parts:
        kind, _, rows = part.partition("\n")
        topic, _, names = kind.removeprefix("topic ").partition(": ")
        fields = names.split(", ")
        wanted = [json.loads(line) for line in rows.splitlines() if line]
        found = (
            [[_shown(message, field) for field in fields] for message in broker.read(prefix + topic)] if wanted else []
        )
        if name.startswith("upsert"):
            key = fields.index("key")
            wanted, found = _newest(wanted, key), _newest(found, key)
        if "partition" not in fields or name.startswith("upsert"):
            wanted, found = sorted(wanted, key=repr), sorted(found, key=repr)
        assert found == wanted
