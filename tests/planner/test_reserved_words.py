"""Reserved words in place of names: Flink's verdicts, and errors that write the word as a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, FlowSqlError, ParseError
from flowsql_core.span import Source
from flowsql_grammar.reserved import RESERVED
from flowsql_grammar.script import parse_statement
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement

_LINES = [
    line
    for line in Path(__file__).with_name("reserved_words.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
POSITIONS = {_LINES[at]: frozenset(_LINES[at + 1].split()) for at in range(0, len(_LINES), 2)}
_LIKELY = (
    "ALL AT BEGIN COLUMN COMMENT COUNT CURRENT_USER DATE DAY DEFAULT END FROM GROUP HOUR INTERVAL LANGUAGE LEFT METHOD",
    "MONTH NULL ONE ORDER PRIMARY RANK ROW SECOND STREAM TABLE TIME TIMESTAMP TO TRUE USER VALUE VALUES YEAR",
)


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    columns = ", ".join(f"`{word.lower()}` STRING" for word in [*sorted(RESERVED), "a"])
    made.execute_sql(f"CREATE TABLE t ({columns}) WITH ('connector' = 'datagen')")
    return made


def refusal(tables: TableEnvironment, text: str) -> FlowSqlError | None:
    source = Source(text)
    try:
        bind_statement(parse_statement(source), BindContext(tables.catalogs, Configuration(), source))
    except FlowSqlError as error:
        return error
    return None


def wrong(tables: TableEnvironment, text: str, words: list[str], taken: frozenset[str]) -> list[str]:
    found = []
    for word in words:
        error = refusal(tables, text.replace("@", word.lower()))
        if (error is None) != (word in taken):
            found.append(f"{word}: {error}")
        elif isinstance(error, ParseError) and f"`{word.lower()}`" not in f"{error.hint}":
            found.append(f"{word} is not written as a name: {error} {error.hint}")
    return found


@pytest.mark.parametrize("text", POSITIONS)
def test_likely_words(tables: TableEnvironment, text: str) -> None:
    assert not wrong(tables, text, " ".join(_LIKELY).split(), POSITIONS[text])


@pytest.mark.nightly
@pytest.mark.parametrize("text", POSITIONS)
def test_all_reserved_words(tables: TableEnvironment, text: str) -> None:
    assert not wrong(tables, text, sorted(RESERVED), POSITIONS[text])


def test_all_words_of_a_statement_are_named(tables: TableEnvironment) -> None:
    error = refusal(tables, "SELECT date, MAX(at) AS value FROM t GROUP BY date")
    assert isinstance(error, ParseError)
    assert error.hint == "DATE, AT, VALUE are reserved words: as names they are written `date`, `at`, `value`"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT User FROM t", "Column 'User' not found in any table"),
        ("SELECT user", "Column 'user' not found in any table"),
        ("SELECT t.`a` FROM t JOIN t AS u ON user = 'a'", "Column 'user' is ambiguous"),
        (
            "CREATE TABLE c (`user` STRING, x AS UPPER(user)) WITH ('connector' = 'datagen')",
            "Unknown identifier 'USER'",
        ),
    ],
)
def test_columns_of_such_names_follow_the_rules_of_columns(tables: TableEnvironment, text: str, found: str) -> None:
    error = refusal(tables, text)
    assert isinstance(error, BindError)
    assert found in error.message


def test_words_that_flink_takes_for_columns(tables: TableEnvironment) -> None:
    for text in (
        "SELECT user.a, user.`a` FROM (VALUES (CAST(ROW(1) AS ROW<a INT>))) AS v(`user`)",
        "SELECT user[1] FROM (VALUES (ARRAY[1])) AS v(`user`)",
        "SELECT -user, user + 1, user IS NULL, CASE user WHEN 1 THEN 2 END FROM (VALUES (1)) AS v(`user`)",
        "SELECT COUNT(user), MAX(current_user) FROM t WHERE session_user LIKE 'a%' GROUP BY GROUPING SETS ((user), ())",
        "SELECT x FROM (SELECT user AS x, ROW_NUMBER() OVER (PARTITION BY user ORDER BY user) AS n FROM t) WHERE n = 1",
        "SELECT user AS x FROM t ORDER BY current_role LIMIT 3",
        "SELECT user FROM t WHERE system_user IN (SELECT current_path FROM t)",
    ):
        error = refusal(tables, text)
        assert error is None, f"{text}: {error}"
