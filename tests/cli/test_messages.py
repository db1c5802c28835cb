"""The first line of each error is Flink's own text, as Flink 2.3.0 printed it: people search the web for it."""

from __future__ import annotations

import pytest

from flowsql.cli.main import main

TABLES = """
CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole');
CREATE TABLE foreign_one (a INT) WITH ('connector' = 'nosuch');
CREATE TABLE made (a INT) WITH ('connector' = 'datagen', 'nosuch' = '1');
CREATE TABLE pathless (a INT) WITH ('connector' = 'filesystem', 'format' = 'csv');
CREATE TABLE formatless (a INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'nosuch');
CREATE TABLE files (k INT, c BIGINT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
CREATE TABLE moments (k INT, t TIMESTAMP(3)) WITH ('connector' = 'datagen', 'number-of-rows' = '1');
"""
MISSING = "in any of the catalogs [default_catalog], nor as a temporary table."
FETCH = "FETCH is missed, which on streaming table is not supported currently."
HOLE = "Connector 'blackhole' can only be used as a sink. It cannot be used as a source."
PLUS = "'. Supported form(s): '<NUMERIC> + <NUMERIC>'"
SINK = (
    "Table sink 'default_catalog.default_database.files' doesn't support consuming update changes "
    "which is produced by node"
)
TUMBLED = (
    "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE moments, DESCRIPTOR({}), INTERVAL '1' MINUTE)) "
    "GROUP BY window_start, window_end"
)

MESSAGES = [
    # Syntax.
    ("SELECT a::INT FROM hole", 'SQL parse failed. Encountered ":" at line 9, column 9.'),
    ("SELECT 1 WHERE FALSE", 'SQL parse failed. Encountered "WHERE" at line 9, column 10.'),
    # Names.
    ("SELECT nosuch FROM hole", "Column 'nosuch' not found in any table"),
    ("SELECT t.nosuch FROM (VALUES 1) t(k)", "Column 'nosuch' not found in table 't'"),
    ("SELECT u.k FROM (VALUES 1) t(k)", "Table 'u' not found"),
    ("SELECT k FROM (VALUES 1) t(k) GROUP BY nosuch", "Column 'nosuch' not found in any table"),
    ("SELECT * FROM nosuch", "Object 'nosuch' not found"),
    (
        "INSERT INTO nosuch SELECT 1",
        f"Cannot find table '`default_catalog`.`default_database`.`nosuch`' {MISSING}",
    ),
    ("SELECT NOSUCH(1)", "No match found for function signature NOSUCH(<NUMERIC>)"),
    (TUMBLED.format("nope"), "Unknown identifier 'nope'"),
    # Types.
    ("SELECT 1 + 'a'", "Cannot apply '+' to arguments of type '<INTEGER> + <CHAR(1)>" + PLUS),
    (
        "SELECT b + s FROM (SELECT CAST(1 AS BIGINT) b, CAST('a' AS STRING) s)",
        "Cannot apply '+' to arguments of type '<BIGINT> + <VARCHAR(2147483647)>" + PLUS,
    ),
    ("SELECT TRUE + 1", "Cannot apply '+' to arguments of type '<BOOLEAN> + <INTEGER>" + PLUS),
    (
        "SELECT ABS('x')",
        "Cannot apply 'ABS' to arguments of type 'ABS(<CHAR(1)>)'. Supported form(s): 'ABS(<NUMERIC>)'",
    ),
    ("SELECT ABS(1, 2)", "Invalid number of arguments to function 'ABS'. Was expecting 1 arguments"),
    ("SELECT CAST(TRUE AS DATE)", "Cast function cannot convert value of type BOOLEAN to type DATE"),
    ("SELECT * FROM (VALUES 1) t(k) WHERE k", "WHERE clause must be a condition"),
    ("SELECT k, COUNT(*) FROM (VALUES 1) t(k)", "Expression 'k' is not being grouped"),
    ("SELECT 1 UNION SELECT 1, 2", "Column count mismatch in UNION"),
    ("SELECT 99999999999999999999", "Numeric literal '99999999999999999999' out of range"),
    ("SELECT 1e500", "Numeric literal '1E500' out of range"),
    ("SELECT -1e309", "Numeric literal '-1E309' out of range"),
    ("SELECT CAST(1 AS DECIMAL(38, 39))", "Decimal scale must be between 0 and the precision 38 (both inclusive)."),
    ("SELECT CAST(1 AS DECIMAL(0, 0))", "Decimal precision must be between 1 and 38 (both inclusive)."),
    (
        "INSERT INTO hole SELECT 'x'",
        "Column types of query result and sink for 'default_catalog.default_database.hole' do not match.",
    ),
    # Connectors.
    (
        "SELECT * FROM foreign_one",
        "Could not find any factory for identifier 'nosuch' that implements "
        "'org.apache.flink.table.factories.DynamicTableFactory' in the classpath.",
    ),
    ("SELECT * FROM made", "Unsupported options found for 'datagen'."),
    ("SELECT * FROM pathless", "One or more required options are missing."),
    ("SELECT * FROM formatless", "Could not find any format factory for identifier 'nosuch' in the classpath."),
    ("SELECT * FROM hole", HOLE),
    ("CREATE VIEW v AS SELECT a FROM hole", HOLE),
    # Plans.
    (
        "INSERT INTO files SELECT k, COUNT(*) FROM files GROUP BY k",
        f"{SINK} GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS EXPR$1])",
    ),
    (
        TUMBLED.format("t"),
        "The window function requires the timecol is a time attribute type, but is TIMESTAMP(3).",
    ),
    ("SELECT * FROM (VALUES 1, 2) t(k) OFFSET 1", FETCH),
    ("SELECT * FROM (VALUES 1, 2) t(k) ORDER BY k OFFSET 1", FETCH),
    # Rows.
    ("SELECT CAST(s AS INT) FROM (VALUES 'x') t(s)", "For input string: 'x'. Invalid character found."),
    ("SELECT CAST(s AS TINYINT) FROM (VALUES '1000') t(s)", "For input string: '1000'. Overflow."),
    ("SELECT CAST(s AS BOOLEAN) FROM (VALUES 'x') t(s)", "Cannot parse 'x' as BOOLEAN."),
    ("SELECT CAST(s AS DATE) FROM (VALUES 'x') t(s)", "For input string: 'x'."),
    ("SELECT 5 / k FROM (VALUES 1, 0) t(k)", "/ by zero"),
    *(
        (f"SELECT JSON_VALUE('{document}', 'strict {path}' ERROR ON ERROR)", message)
        for document, path, message in (
            ("{}", "$.b", "No results for path: $['b']"),
            ('{"a":{}}', "$.a.b", "No results for path: $['a']['b']"),
            ('{"a":{}}', "$.a.b.c", "Missing property in path $['a']['b']"),
            ('{"a":[1]}', "$.a[3]", "No results for path: $['a'][3]"),
            ('{"a":[{"b":1}]}', "$.a[1].b", "No results for path: $['a'][1]['b']"),
            ('{"a":1}', "$.a[0]", "Filter: [0] can only be applied to arrays. Current context is: 1"),
            # Flink goes on with the name of a class of its JSON library.
            (
                '{"a":1}',
                "$.a.b",
                "Expected to find an object with property ['b'] in path $['a'] but found 'java.lang.Integer'.",
            ),
        )
    ),
    ("SELECT ELEMENT(ARRAY[1, 2])", "Array has more than one element."),
]


@pytest.mark.parametrize(("statement", "first_line"), MESSAGES, ids=[statement for statement, _ in MESSAGES])
def test_the_first_line_is_flinks(
    statement: str, first_line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    assert main(["-c", TABLES + statement]) == 1
    head, line, *rest = capsys.readouterr().err.splitlines()
    assert head == "[ERROR] Could not execute SQL statement. Reason:"
    assert line == first_line
    assert len(rest) < 40


@pytest.mark.parametrize(
    ("written", "type_"), [("DECIMAL(40, 2)", "DECIMAL(38, 2)"), ("DECIMAL(39)", "DECIMAL(38, 0)")]
)
def test_more_digits_than_there_are_mean_the_most(
    written: str, type_: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    assert main(["-c", f"CREATE TABLE t (a {written}) WITH ('connector' = 'datagen'); DESCRIBE t"]) == 0
    assert type_ in capsys.readouterr().out
