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
from tests.connectors.formats.test_asked_options import form
from tests.connectors.kafka.asked_topics import cases_of, run
from tests.connectors.kafka.broker import PARTITIONS, Broker, as_bytes

PATH = Path(__file__).with_name("asked_reading.txt")
CASES = cases_of(PATH)
TYPES = Path(__file__).resolve().parents[4] / "shared" / "conformance_connectors" / "data" / "protobuf" / "types.desc"


def data_of(text: str | None) -> bytes | None:
    if text is not None and text.startswith("\\x"):
        return bytes.fromhex(text.removeprefix("\\x"))
    return as_bytes(text)


def rows_of(script: str, prefix: str, broker: Broker) -> list[str]:
    result = run(script, prefix, broker, {"protobuf.descriptor-files": str(TYPES)})
    assert result is not None
    with result.collect() as rows:
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
            broker.write(topic, data_of(value), partition=partition % PARTITIONS, key=data_of(key))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.shared] if name.startswith("protobuf") else []) for name in CASES],
)
def test_reading(name: str, broker: Broker) -> None:
    if name.startswith("protobuf") and not TYPES.exists():
        pytest.skip("the types of the messages are not beside the checkout")
    prefix, case = broker.topic("r") + "-", parts_of(CASES[name])
    write(broker, f"{prefix}t", case["messages"])
    expected = case.get("here", case.get("rows"))
    if expected is None or expected.startswith("ERROR "):
        said = (expected or case["error"]).strip().removeprefix("ERROR ")
        with pytest.raises(FlowSqlError) as caught:
            rows_of(case["sql"], prefix, broker)
        assert said in " ".join(caught.value.message.split())
        return
    rows = rows_of(case["sql"], prefix, broker)
    wanted = [line for line in expected.splitlines() if line]
    if len({json.loads(line)[0] for line in case["messages"].splitlines() if line}) > 1:
        # Partitions are read side by side.
        rows, wanted = sorted(rows), sorted(wanted)
    assert rows == wanted
