"""Errors of connectors and names bear a place, and constants of any year can be explained."""

from __future__ import annotations

import pytest

from flowsql.table.environment_settings import EnvironmentSettings
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError
from flowsql_core.types import logical as t
from flowsql_planner.logical.expression_text import literal_text

TABLES = """
CREATE TABLE good (a INT) WITH ('connector' = 'datagen');
CREATE TABLE odd (a INT) WITH ('connector' = 'datagen', 'no-such' = '1');
CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole');
CREATE TABLE odd_hole (a INT) WITH ('connector' = 'blackhole', 'no-such' = '1')
"""


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        ("SELECT a FROM odd", "unsupported-option", "odd"),
        ("SELECT g.a FROM good AS g JOIN hole AS h ON g.a = h.a", "connector-is-sink-only", "hole"),
        ("INSERT INTO odd_hole SELECT a FROM good", "unsupported-option", "odd_hole"),
        ("SELECT a FROM good /*+ OPTIONS('rows-per-second' = 'many') */", "invalid-option-value", "good"),
        ("SELECT /*+ STATE_TTL('good' = 'soon') */ a, COUNT(*) FROM good GROUP BY a", "bad-hint", "'soon'"),
        ("DESCRIBE w.x.y.z", "bad-identifier", "w.x.y.z"),
        ("SELECT 1 FROM w.x.y.z", "table-not-found", "w.x.y.z"),
    ],
)
def test_the_place_is_where_the_table_is_named(text: str, code: str, marked: str) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for statement in TABLES.split(";"):
        env.execute_sql(statement)
    for run in (env.execute_sql, env.explain_sql):
        if run == env.explain_sql and not text.startswith(("SELECT", "INSERT")):
            continue
        with pytest.raises(FlowSqlError) as caught:
            run(text)
        assert caught.value.code == code
        assert caught.value.at is not None
        assert caught.value.source is not None
        assert marked in caught.value.source.text[caught.value.at.start : caught.value.at.end]
        assert "^" in caught.value.render()


@pytest.mark.parametrize(
    ("days", "shown"),
    [
        (0, "1970-01-01"),
        (-719_162, "0001-01-01"),
        (-719_163, "0000-12-31"),
        (2_932_896, "9999-12-31"),
        (2_932_897, "10000-01-01"),
        (2_932_897 + 146_097 * 3 + 59, "11200-02-29"),
    ],
)
def test_constants_of_any_year_have_a_text(days: int, shown: str) -> None:
    assert literal_text(days, t.DateType()) == shown
    moment = days * 86_400 * 10**9 + (3 * 3600 + 62) * 10**9 + 5 * 10**8
    assert literal_text(moment, t.TimestampType(precision=9)) == f"{shown} 03:01:02.5"
