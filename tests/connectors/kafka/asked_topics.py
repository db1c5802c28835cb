"""Scripts over topics that Flink was asked: how the files of cases are read, and run here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flowsql.table import EnvironmentSettings, TableEnvironment, TableResult
from tests.connectors.kafka.broker import Broker


def cases_of(path: Path) -> dict[str, str]:
    """The text of each case by its name, which stands behind ``===``."""
    return dict(case.split("\n", 1) for case in path.read_text(encoding="utf-8").split("=== ")[1:])


def run(script: str, prefix: str, broker: Broker, options: Mapping[str, str] | None = None) -> TableResult | None:
    """The result of the last statement; those before it have ended."""
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    given = {"table.local-time-zone": "UTC", "restart-strategy.type": "none", **(options or {})}
    for key, value in given.items():
        made.get_config().set(key, value)
    result: TableResult | None = None
    for statement in script.replace("${TOPIC_PREFIX}", prefix).replace("${KAFKA}", broker.address).split(";\n"):
        if result is not None and statement.strip():
            result.wait()
        if statement.startswith("SET "):
            key, value = statement.removeprefix("SET ").replace("'", "").split(" = ")
            made.get_config().set(key, value)
        elif statement.strip():
            result = made.execute_sql(statement)
    return result
