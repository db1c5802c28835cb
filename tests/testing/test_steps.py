"""Steps of tests of SQL, and what is said where one is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.testing.files import parse_tests
from flowsql.testing.run import Outcome, run_file
from flowsql_core.errors import ParseError
from flowsql_core.span import Source

TABLES = """
CREATE TABLE t (k INT, s STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  pt AS PROCTIME(), topic STRING METADATA VIRTUAL) WITH ('connector' = 'kafka');
CREATE TABLE o (k INT, n BIGINT) WITH ('connector' = 'upsert-kafka');
CREATE TABLE appended (k INT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'csv');
"""
COUNTED = "INSERT INTO o SELECT k, COUNT(*) FROM t GROUP BY k;\n"


def run(text: str, folder: Path, **options: str) -> list[Outcome]:
    source = Source(TABLES + text, str(folder / "x.test.sql"))
    return run_file(parse_tests(source), {key.replace("_", "."): value for key, value in options.items()})


def passes(text: str, folder: Path, **options: str) -> None:
    assert [outcome.error for outcome in run(text, folder, **options)] == [None]


def failure(text: str, folder: Path, **options: str) -> str:
    (outcome,) = run(text, folder, **options)
    assert outcome.error is not None
    return outcome.error


def test_columns_may_be_left_out_and_metadata_given(tmp_path: Path) -> None:
    passes(
        "CREATE VIEW v AS SELECT k, s, topic FROM t; TEST 'a';\n"
        "GIVEN t\n| topic | k | ts |\n| a\\|b | 1 | 2024-01-01 00:00:00 |\n"
        "EXPECT v\n| k | s | topic |\n| 1 | NULL | a\\|b |\n",
        tmp_path,
    )


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE c WITH ('connector' = 'kafka') AS SELECT k, COUNT(*) AS n FROM t GROUP BY k",
        "CREATE TABLE c (PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka') "
        "AS SELECT COALESCE(k, 0) AS k, COUNT(*) AS n FROM t GROUP BY COALESCE(k, 0)",
        "CREATE TABLE c (n, k) WITH ('connector' = 'kafka') AS SELECT k, COUNT(*) AS n FROM t GROUP BY k",
    ],
)
def test_a_table_that_is_created_as_a_query(table: str, tmp_path: Path) -> None:
    passes(
        f"{table};\nTEST 'a';\nGIVEN t\n| k | ts |\n| 1 | 2024-01-01 00:00:00 |\n| 1 | 2024-01-01 00:00:01 |\n"
        "| 2 | 2024-01-01 00:00:02 |\nEXPECT c\n| k | n |\n| 1 | 2 |\n| 2 | 1 |\n",
        tmp_path,
    )


def test_rows_of_files(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('k,s,ts\n1,"a, b",2024-01-01 00:00:00\n')
    (tmp_path / "more.jsonl").write_text(
        '{"k": 1, "ts": "2024-01-01 00:00:01"}\n{"k": 2, "ts": "2024-01-01 00:00:01"}\n'
    )
    (tmp_path / "out.csv").write_text("k,n\n1,2\n2,1\n")
    passes(COUNTED + "TEST 'a'; GIVEN t FROM 'rows.csv'; GIVEN t FROM 'more.jsonl'; EXPECT o FROM 'out.csv';", tmp_path)


def test_a_table_may_keep_what_its_connector_has(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("1,one\n2,two\n")
    names = (
        f"CREATE TABLE names (k INT, name STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/names.csv', "
        "'format' = 'csv');\nCREATE TABLE endless (k INT) WITH ('connector' = 'datagen');\n"
        "CREATE VIEW v AS SELECT t.k, name FROM t JOIN names FOR SYSTEM_TIME AS OF t.pt ON t.k = names.k;\n"
        "CREATE VIEW e AS SELECT k FROM endless;\nTEST 'a';\n"
    )
    given = "GIVEN names FROM TABLE;\nGIVEN t\n| k | ts |\n| 2 | 2024-01-01 00:00:00 |\n"
    passes(names + given + "EXPECT v\n| k | name |\n| 2 | two |\n", tmp_path)
    passes(names + given + "ADVANCE TIME BY INTERVAL '1' SECOND;\nEXPECT v\n| name |\n| two |\n", tmp_path)
    assert "The rows of 'endless' never end" in failure(names + "GIVEN endless FROM TABLE; EXPECT e NOTHING;", tmp_path)


def test_expected_values_are_of_the_columns_types(tmp_path: Path) -> None:
    passes(
        COUNTED + "TEST 'a'; GIVEN t (k, ts) VALUES (1, TIMESTAMP '2024-01-01 00:00:00');\n"
        "EXPECT o\n| n | k |\n| 01 | +1 |\n",
        tmp_path,
    )
    passes(
        COUNTED + "TEST 'a'; GIVEN t (k, ts) VALUES (1, TIMESTAMP '2024-01-01 00:00:00'); EXPECT o VALUES (1, 1);",
        tmp_path,
    )


def test_the_clock_moves(tmp_path: Path) -> None:
    passes(
        "CREATE VIEW v AS SELECT k, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(pt), "
        "INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end;\n"
        "TEST 'a';\nADVANCE TIME TO TIMESTAMP '2024-01-01 10:30:00';\n"
        "GIVEN t\n| k | ts |\n| 1 | 2024-01-01 00:00:00 |\n"
        "ADVANCE TIME BY INTERVAL '29' MINUTE;\nEXPECT v NOTHING;\nADVANCE TIME BY INTERVAL '1' MINUTE;\n"
        "EXPECT v\n| k | window_end | n |\n| 1 | 2024-01-01 11:00:00 | 1 |\n",
        tmp_path,
    )


def test_inputs_end_by_themselves_one_by_one_or_at_once(tmp_path: Path) -> None:
    window = (
        "CREATE VIEW v AS SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), "
        "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;\nTEST 'a';\n"
        "GIVEN t\n| k | ts |\n| 1 | 2024-01-01 10:00:00 |\n"
    )
    told = "EXPECT v\n| n |\n| 1 |\n"
    passes(window + told, tmp_path)
    passes(window + "END INPUT OF t;\n" + told, tmp_path)
    passes(
        window + "ADVANCE WATERMARK FOR t TO TIMESTAMP '2024-01-01 10:00:30'; EXPECT v NOTHING; END INPUT;\n" + told,
        tmp_path,
    )
    assert "have ended already" in failure(window + "END INPUT; GIVEN t (k) VALUES (1); EXPECT v NOTHING;", tmp_path)


def test_jobs_that_read_what_others_write(tmp_path: Path) -> None:
    passes(
        COUNTED + "CREATE TABLE last (n BIGINT, ks BIGINT) WITH ('connector' = 'upsert-kafka');\n"
        "INSERT INTO last SELECT n, COUNT(*) FROM o GROUP BY n;\n"
        "TEST 'a';\nGIVEN t\n| k | ts |\n"
        "| 1 | 2024-01-01 00:00:00 |\n| 2 | 2024-01-01 00:00:00 |\n| 2 | 2024-01-01 00:00:00 |\n"
        "EXPECT last\n| n | ks |\n| 1 | 1 |\n| 2 | 1 |\n",
        tmp_path,
    )


def test_batch_mode_and_statement_sets(tmp_path: Path) -> None:
    both = (
        "EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT k, COUNT(*) FROM t GROUP BY k; "
        "INSERT INTO appended SELECT k, 1 FROM t; END;\n"
        "TEST 'a';\nGIVEN t\n| k | ts |\n| 1 | 2024-01-01 00:00:00 |\n| 1 | 2024-01-01 00:00:00 |\n"
        "EXPECT o\n| k | n |\n| 1 | 2 |\nEXPECT appended\n| k | n |\n| 1 | 1 |\n| 1 | 1 |\n"
    )
    passes(both, tmp_path)
    passes(both, tmp_path, **{"execution.runtime-mode": "batch"})


def test_errors_are_expected(tmp_path: Path) -> None:
    refused = "INSERT INTO appended SELECT k, COUNT(*) FROM t GROUP BY k;\nTEST 'a'; GIVEN t NOTHING;\n"
    passes(refused + "EXPECT ERROR 'doesn''t support consuming update changes';", tmp_path)
    assert "doesn't support consuming" in failure(refused + "EXPECT appended NOTHING;", tmp_path)
    divided = "CREATE VIEW v AS SELECT 1 / (k - 1) AS x FROM t; TEST 'a'; GIVEN t (k, ts) VALUES (1, NOW());\n"
    assert "zero" in failure(divided + "EXPECT v NOTHING;", tmp_path)
    fine = "TEST 'a'; GIVEN t NOTHING; EXPECT ERROR 'zero';"
    assert "no error came, and one with 'zero' was expected" in failure(COUNTED + fine, tmp_path)


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ("EXPECT o NOTHING;", "The job reads 't', and the test does not say which rows it holds."),
        ("GIVEN nosuch NOTHING; GIVEN t NOTHING; EXPECT nosuch NOTHING;", "'nosuch' is neither given nor written"),
        ("GIVEN t\n| nosuch |\n| 1 |\nEXPECT o NOTHING;", "There is no column 'nosuch'."),
        ("GIVEN t\n| k |\n| one |\nEXPECT o NOTHING;", "For input string: 'one'"),
        ("GIVEN t\n| op | k |\n| ?? | 1 |\nEXPECT o NOTHING;", "'??' is no kind of change."),
        ("GIVEN t NOTHING;\nEXPECT o\n| nosuch |\n| 1 |\n", "'o' has no column 'nosuch'."),
        ("GIVEN t FROM 'nosuch.csv'; EXPECT o NOTHING;", "'nosuch.csv' cannot be read"),
        ("SCRIPT 'nosuch.sql'; GIVEN t NOTHING; EXPECT o NOTHING;", "The script 'nosuch.sql' cannot be read"),
        ("SELECT 1; GIVEN t NOTHING; EXPECT o NOTHING;", "A query on its own has no table"),
        ("SCRIPT PROJECT;", "There is no flowsql.toml around this test."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(steps: str, complaint: str, tmp_path: Path) -> None:
    assert complaint in failure(COUNTED + "TEST 'a';\n" + steps, tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint", "line"),
    [
        ("SELECT 1;", "There is no test in this file.", 1),
        ("TEST 'a';\nGIVEN;\nGIVEN t", "This is no step that begins with GIVEN.", 2),
        ("TEST 'a';\nADVANCE TIME 5;", "This is no step that begins with ADVANCE.", 2),
        ("TEST 'a';\nGIVEN t\n| a | b |\n| 1 |\n", "This row does not fit.", 4),
        ("TEST 'a';\nGIVEN t\n| a | b\n", "This row does not fit.", 3),
    ],
)
def test_files_that_are_none(text: str, complaint: str, line: int) -> None:
    with pytest.raises(ParseError, match=complaint) as caught:
        parse_tests(Source(text, "x.test.sql"))
    assert caught.value.at is not None
    assert caught.value.source is not None
    assert caught.value.source.position(caught.value.at.start)[0] == line


def test_a_difference_shows_its_surroundings(tmp_path: Path) -> None:
    rows = "".join(f"| {k} | 2024-01-01 00:00:00 |\n" for k in range(20))
    wanted = "".join(f"| {k:2} | {2 if k == 7 else 1} |\n" for k in range(10, 20))
    text = failure(
        COUNTED + f"TEST 'a';\nGIVEN t\n| k | ts |\n{rows}EXPECT o\n| k | n |\n" + wanted.replace("| 17 | 1 |\n", ""),
        tmp_path,
    )
    assert "'o': 11 rows too much" in text
    assert "+ | 17 | 1 |" in text
    assert "  | 18 | 1 |" in text


def test_a_source_that_tells_its_watermark_waits_for_the_other(tmp_path: Path) -> None:
    passes(
        "CREATE TABLE u (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');\n"
        "CREATE VIEW merged AS SELECT k, ts FROM t UNION ALL SELECT k, ts FROM u;\n"
        "CREATE VIEW v AS SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE merged, DESCRIPTOR(ts), "
        "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;\n"
        "TEST 'a';\nGIVEN t\n| k | ts |\n| 1 | 2024-01-01 00:00:30 |\n"
        "GIVEN u\n| k | ts |\n| 1 | 2024-01-01 00:00:00 |\n"
        "ADVANCE WATERMARK FOR t TO TIMESTAMP '2024-01-01 01:00:00';\nEXPECT v NOTHING;\n"
        "ADVANCE WATERMARK FOR u TO TIMESTAMP '2024-01-01 00:01:00';\nEXPECT v\n| n |\n| 2 |\n",
        tmp_path,
    )
