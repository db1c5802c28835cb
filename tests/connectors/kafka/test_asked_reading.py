"""Messages that are read as Flink 2.3 reads them (``asked_reading.txt``): changes, upserts, protobuf, empty ones.

A case has messages (partition, key, value; ``\\x`` and digits: bytes), a table and a query, and the changes that it
gives, or how Flink's error begins. ``--- here: WHY`` stands where FlowSQL does something else. Types of protobuf's
messages are those of ``../shared/conformance_connectors``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowsql.errors import FlowSqlError
from flowsql.table import EnvironmentSettings, TableEnvironment
from tests.connectors.formats.test_asked_options import form
from tests.connectors.kafka.broker import PARTITIONS, Broker

PATH = Path(__file__).with_name("asked_reading.txt")
CASES = dict(case.split("\n", 1) for case in PATH.read_text(encoding="utf-8").split("=== ")[1:])
TYPES = Path(__file__).resolve().parents[4] / "shared" / "conformance_connectors" / "data" / "protobuf" / "types.desc"


def as_bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    return bytes.fromhex(text.removeprefix("\\x")) if text.startswith("\\x") else text.encode()


def rows_of(script: str) -> list[str]:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in (
        ("table.local-time-zone", "UTC"), ("restart-strategy.type", "none"), ("protobuf.descriptor-files", str(TYPES)),
    ):  # fmt: skip
        made.get_config().set(key, value)
    *before, query = [statement for statement in script.split(";\n") if statement.strip()]
    for statement in before:
        if statement.startswith("SET "):
            key, value = statement.removeprefix("SET ").replace("'", "").split(" = ")
            made.get_config().set(key, value)
        else:
            made.execute_sql(statement).wait()
    with made.execute_sql(query).collect() as rows:
        return [json.dumps([str(row.get_row_kind()), *form(row)], ensure_ascii=False) for row in rows]


def parts_of(case: str) -> dict[str, str]:
    found = {}
    for part in case.split("--- "):
        kind, _, text = part.partition("\n")
        found[kind.partition(":")[0].strip()] = text
    return found


def write(broker: Broker, topic: str, messages: str) -> None:
    for line in messages.splitlines():
        if line:
            partition, key, value = json.loads(line)
            broker.write(topic, as_bytes(value), partition=partition % PARTITIONS, key=as_bytes(key))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.shared] if name.startswith("protobuf") else []) for name in CASES],
)
def test_reading(name: str, broker: Broker) -> None:
    if name.startswith("protobuf") and not TYPES.exists():
        pytest.skip("the types of the messages are not beside the checkout")
    prefix, case = broker.topic("r") + "-", parts_of(CASES[name])
    write(broker, f"{prefix}t", case["messages"])
    script = case["sql"].replace("${TOPIC_PREFIX}", prefix).replace("${KAFKA}", broker.address)
    expected = case.get("here", case.get("rows"))
    if expected is None or expected.startswith("ERROR "):
        said = (expected or case["error"]).strip().removeprefix("ERROR ")
        with pytest.raises(FlowSqlError) as caught:
            rows_of(script)
        assert said in " ".join(caught.value.message.split())
        return
    rows, wanted = rows_of(script), [line for line in expected.splitlines() if line]
    if len({json.loads(line)[0] for line in case["messages"].splitlines() if line}) > 1:
        # Partitions are read side by side.
        rows, wanted = sorted(rows), sorted(wanted)
    assert rows == wanted
