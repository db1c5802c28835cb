from __future__ import annotations

import time

import pytest

from flowsql_core.errors import InternalError, ParseError
from flowsql_core.span import Source
from flowsql_grammar.formatting import comments_of, format_script
from flowsql_grammar.formatting.script import Script


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", ""),
        ("  \n\n", ""),
        ("-- alone", "-- alone\n"),
        ("-- one\n\n\n\n-- two\n", "-- one\n\n-- two\n"),
        (";", ";\n"),
        ("select 1;;", "SELECT 1;\n;\n"),
        ("\ufeffselect 1\r\n;\r\n-- c\r\n", "SELECT 1;\n-- c\n"),
        ("select 'a\r\nb'", "SELECT 'a\nb'\n"),
        ("SET a=b=c; sEt 'k'='v' ; reset x.y ; Quit", "SET a=b = c;\nSET 'k' = 'v';\nRESET x.y;\nQUIT\n"),
        ("select count ( * ) , Count(a)", "SELECT COUNT(*), COUNT(a)\n"),
        (
            "create function split as 'a'; select split(a), lower(b)",
            "CREATE FUNCTION split AS 'a';\nSELECT split(a), LOWER(b)\n",
        ),
        ("select a.lpad(b), `lpad`(b), lpad(b), lpad", "SELECT a.lpad(b), `lpad`(b), LPAD(b), lpad\n"),
        ("select * /* c */ from t", "SELECT * /* c */ FROM t\n"),
        ("select - -1, -(-1), +x", "SELECT - -1, -(-1), +x\n"),
        ("begin statement set;", "BEGIN STATEMENT SET;\n"),
        (
            "select ${a},count(*) from ${db}.${a}_t where ${c.d} and x='${q}' -- ${c}\n group by ${a}",
            "SELECT ${a}, COUNT(*)\nFROM ${db}.${a}_t\nWHERE ${c.d} AND x = '${q}' -- ${c}\nGROUP BY ${a}\n",
        ),
    ],
)
def test_small_scripts(text: str, made: str) -> None:
    assert format_script(text) == made
    assert format_script(made) == made


def test_what_is_no_sql_is_told_with_its_place() -> None:
    with pytest.raises(ParseError) as caught:
        format_script(Source("\ufeffselect 1;\r\nselect from", "job.sql"))
    assert "--> job.sql:2:8" in caught.value.render()


def test_a_variable_that_stands_where_no_name_may() -> None:
    with pytest.raises(ParseError) as caught:
        format_script(Source("select 1;\nselect * from t limit ${n}", "job.sql"))
    assert 'Encountered "${n}" at line 2, column 23' in caught.value.render()
    assert "2 | select * from t limit ${n}\n  |                       ^^^^" in caught.value.render()


def test_a_builder_refuses_what_the_tables_accept() -> None:
    with pytest.raises(ParseError, match="DEFAULT"):
        format_script("select default + 1")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("SELECT a FROM t", "lose or move a comment"),
        ("-- one\nSELECT b FROM t -- two", "change a statement"),
        ("-- two\nSELECT a FROM t -- one", "lose or move a comment"),
    ],
)
def test_a_fault_of_the_formatter_is_found(text: str, fault: str) -> None:
    script = Script(Source("-- one\nselect a from t -- two", "job.sql"))
    with pytest.raises(InternalError, match=f"'job.sql' would {fault}"):
        script.check(Script(Source(text)))


def test_comments_are_found_where_they_are() -> None:
    text = "-- a\nSELECT '-- b', `/* c */`, x /* d */ FROM t /*+ e('f' = 'g') */ -- h\n; // i"
    assert comments_of(text) == ["-- a", "/* d */", "-- h", "// i"]


def test_long_chains_and_lists_take_linear_time() -> None:
    started = time.perf_counter()
    chain = " or ".join(f"x = {number}" for number in range(3000))
    values = ", ".join(str(number) for number in range(3000))
    made = format_script(f"select {values} from t where {chain} and x in ({values})")
    assert made.count("\n") > 3000
    assert time.perf_counter() - started < 30


def test_deep_brackets_need_no_deep_python() -> None:
    text = "SELECT " + "(" * 150 + "1" + ")" * 150
    assert format_script(text).startswith("SELECT (")
    calls = "SELECT " + "ABS(" * 150 + "1" + ")" * 150
    assert format_script(format_script(calls)) == format_script(calls)
