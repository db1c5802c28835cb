from __future__ import annotations

import pytest

from flowsql_core.errors import ParseError
from flowsql_core.span import Source
from flowsql_grammar import parse_expression, parse_statement


def failure(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_statement(Source(text, "job.sql"))
    return caught.value


def test_the_frame_shows_place_and_suggestion() -> None:
    assert failure("SELECT 1,\n  FROM t").render().splitlines()[0] == (
        'SQL parse failed. Encountered "FROM" at line 2, column 3.'
    )
    assert failure("SELEC 1").render().splitlines()[-4:] == [
        " --> job.sql:1:1",
        "  |",
        "1 | SELEC 1",
        "  | ^^^^^ did you mean 'SELECT'?",
    ]


def test_the_end_of_the_text_is_eof() -> None:
    error = failure("SELECT a FROM")
    assert error.message.startswith('SQL parse failed. Encountered "<EOF>" at line 1, column 13.')
    assert "<IDENTIFIER>" in error.message


def test_the_report_stays_short() -> None:
    for text in ("SELECT", "SELECT a b c", "CREATE", "SELECT (1", "SELECT * FROM t WHERE"):
        assert len(failure(text).render().splitlines()) < 15
        assert len(failure(text).message) < 400


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT a FORM t", "did you mean 'FROM'?"),
        ("SELECT a FROM t WHRE a > 1", "did you mean 'WHERE'?"),
        ("CRATE TABLE t (a INT)", "did you mean 'CREATE'?"),
        ("SELECT 1 AS value", "VALUE is a reserved word: as a name it is written `value`"),
        ('SELECT "a"', "strings stand in single quotes, names in back-ticks"),
        ("SELECT a::INT FROM t", "write CAST(value AS type)"),
        ("SELECT a FROM t WHERE a != 1", "inequality is '<>'"),
        ("SELECT a FROM t WHERE a == 1", "equality is a single '='"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    assert failure(text).hint == hint


@pytest.mark.parametrize("word", ["method", "prev", "raw", "ln", "one", "running", "none", "returns"])
def test_surprising_reserved_words(word: str) -> None:
    assert "reserved" in (failure(f"SELECT 1 AS {word}").hint or "")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT 'abc", "unterminated-string"),
        ("SELECT `abc", "unterminated-quoted-name"),
        ("SELECT 1 /* abc", "unterminated-comment"),
        ("SELECT DATE '2020-02-30'", "bad-literal"),
        ("SELECT TIME '25:00:00'", "bad-literal"),
        ("SELECT TIMESTAMP '2020-01-01 00:61:00'", "bad-literal"),
        ("SELECT INTERVAL '1 x' DAY", "bad-interval"),
        ("SELECT INTERVAL '1' DAY TO MONTH", "bad-interval"),
        ("SELECT INTERVAL '1-13' YEAR TO MONTH", "bad-interval"),
        ("SELECT INTERVAL '1000' DAY(2)", "bad-interval"),
        ("SELECT X'0g'", "bad-binary-literal"),
        ("SELECT U&'\\00'", "bad-unicode-escape"),
        ("SELECT a + DEFAULT FROM t", "misplaced-default"),
        ("SELECT EXTRACT(NONSENSE FROM a) FROM t", "bad-time-unit"),
        ("CREATE TABLE t (a INT, WATERMARK FOR a AS a, WATERMARK FOR a AS a)", "two-watermarks"),
        ("", "empty"),
        ("SELECT 1; SELECT 2", "several-statements"),
    ],
)
def test_codes(text: str, code: str) -> None:
    assert failure(text).code == code


def test_the_first_fault_is_reported_not_the_first_odd_character() -> None:
    assert 'Encountered "x"' in failure("SELECT 1 FROM t t2 x @ 'open").message


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "1" + ")" * 3000,
        "f(" * 3000 + "1" + ")" * 3000,
        "- " * 3000 + "1",
        "NOT " * 3000 + "TRUE",
        "CASE WHEN " * 2000 + "x",
        "ARRAY[" * 2000,
        "x" + "[1]" * 3000,
        " + ".join(["1"] * 5000),
        " OR ".join(["x = 1"] * 5000),
        "(SELECT " * 500 + "1" + ")" * 500,
        "x IN (" * 500 + "1" + ")" * 500,
    ],
    ids=lambda text: text[:12],
)
def test_deep_nesting_is_refused_or_parsed_never_a_crash(text: str) -> None:
    codes = ["parsed", "nested-too-deeply", "syntax"]
    assert outcome(text) in codes


def outcome(text: str) -> str:
    try:
        parse_expression(text)
    except ParseError as error:
        return error.code
    return "parsed"


def test_long_lists_take_linear_time() -> None:
    rows = ", ".join(f"({i}, 'v{i}')" for i in range(5000))
    parse_statement(f"INSERT INTO t VALUES {rows}")
