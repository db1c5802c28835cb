"""Hints that Flink takes or refuses (``asked_hints.txt``); ``o`` has columns id and c, ``d`` has c and r."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.errors import FlowSqlError

ASKED = Path(__file__).with_name("asked_hints.txt")


def asked(mode: str) -> list[tuple[str, str]]:
    """Return the queries that Flink was asked in a mode, each with its verdict."""
    place = ("streaming", "batch").index(mode)
    lines = [line.split(maxsplit=2) for line in ASKED.read_text().splitlines() if not line.startswith("#")]
    return [(line[2], line[place]) for line in lines if line[place] != "-"]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_flinks_verdict(mode: str) -> None:
    settings = EnvironmentSettings.in_batch_mode() if mode == "batch" else EnvironmentSettings.in_streaming_mode()
    session = TableEnvironment.create(settings)
    session.execute_sql("CREATE TEMPORARY VIEW o AS SELECT id, c FROM (VALUES (1, 'x'), (2, 'y')) AS v(id, c)")
    session.execute_sql("CREATE TEMPORARY VIEW d AS SELECT c, r FROM (VALUES ('x', 1)) AS v(c, r)")
    found = []
    for query, _ in asked(mode):
        try:
            session.explain_sql(query)
        except FlowSqlError:
            found.append((query, "refused"))
        else:
            found.append((query, "taken"))
    assert found == asked(mode)


def test_an_unknown_name_is_pointed_at() -> None:
    session = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    session.execute_sql("CREATE TEMPORARY VIEW orders AS SELECT 1 AS id")
    session.execute_sql("CREATE TEMPORARY VIEW rates AS SELECT 1 AS id")
    with pytest.raises(FlowSqlError) as caught:
        session.explain_sql(
            "SELECT /*+ LOOKUP('table' = 'rate') */ orders.id FROM orders JOIN rates ON orders.id = rates.id"
        )
    assert caught.value.hint == "did you mean 'rates'?"
    assert caught.value.at is not None
    assert caught.value.at.end - caught.value.at.start == len("'table' = 'rate'")
