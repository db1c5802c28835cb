"""``flowsql test``, the plugin of pytest, and :class:`flowsql.testing.SqlTest`."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from flowsql.cli.main import main
from flowsql.testing import SqlTest

TESTS = """CREATE TABLE t (k INT) WITH ('connector' = 'kafka');
CREATE VIEW v AS SELECT k, COUNT(*) AS n FROM t GROUP BY k;
-- a comment; kept

TEST 'right';
GIVEN t VALUES (1), (1);
EXPECT v
| k | n |
| 1 | 2 |

TEST 'wrong';
GIVEN t VALUES (1);
EXPECT v
| k | n   |
| 1 | 777 |
-- the end
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "some.test.sql").write_text(TESTS)
    return tmp_path / "some.test.sql"


def test_failures_are_shown_as_rows(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(file)]) == 1
    text = capsys.readouterr().out
    assert f"{file}: 1 passed, 1 failed" in text
    assert f"{file}:13: 'v': 1 row missing, 1 row too much" in text
    assert "      | k | n   |\n    + | 1 | 1   |\n    - | 1 | 777 |\n" in text
    assert "1 passed, 1 failed in " in text


def test_names_choose_and_a_report_is_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = file.with_name("report.xml")
    assert main(["test", "-v", "-k", "right", "--junit-xml", str(report), str(file.parent)]) == 0
    assert "  ok    right (" in capsys.readouterr().out
    suite = ElementTree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert main(["test", "--junit-xml", str(report), str(file)]) == 1
    failure = ElementTree.parse(report).getroot().find(".//failure")
    assert failure is not None
    assert "777" in (failure.text or "")


def test_update_writes_what_is_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--update", str(file)]) == 0
    assert file.read_text() == TESTS.replace("| k | n   |\n| 1 | 777 |", "| k | n |\n| 1 | 1 |")
    assert main(["test", str(file)]) == 0


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(tmp_path)]) == 2
    assert "no file ends with '.test.sql'" in capsys.readouterr().err
    assert main(["test", str(tmp_path / "nosuch")]) == 2
    assert "cannot read" in capsys.readouterr().err
    (tmp_path / "bad.test.sql").write_text("TEST 'a';\nGIVEN 5;\n")
    assert main(["test", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "this file could not be run" in text
    assert "bad.test.sql:2:1" in text


def test_pytest_runs_the_files(file: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "flowsql.testing.pytest_plugin",
        "--rootdir",
        str(file.parent),
    ]
    command += ["-c", "/dev/null", str(file)]
    installed = subprocess.run([*command, "--co"], capture_output=True, text=True, check=False, cwd=file.parent)
    if "already registered" in installed.stderr:
        command = [word for word in command if word not in ("-p", "flowsql.testing.pytest_plugin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=file.parent)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "- | 1 | 777 |" in done.stdout
    done = subprocess.run([*command, "--flowsql-update"], capture_output=True, text=True, check=False, cwd=file.parent)
    assert "2 passed" in done.stdout
    assert "777" not in file.read_text()


SCRIPT = """CREATE TABLE t (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = '${connector}');
CREATE TABLE o (k INT, started TIMESTAMP(3), n BIGINT) WITH ('connector' = 'kafka');
INSERT INTO o SELECT k, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY k, window_start, window_end;"""
TEN = datetime.datetime(2024, 1, 1, 10)


def test_the_same_in_python() -> None:
    with SqlTest(SCRIPT, parameters={"connector": "kafka"}) as test:
        test.given("t", [(1, TEN), {"k": 1, "ts": TEN}, {"ts": TEN}])
        assert test.rows("o") == []
        test.advance_watermark("t", TEN + datetime.timedelta(minutes=1))
        assert ("+I", "1", "2024-01-01 10:00:00.000", "2") in test.changes("o")
        assert test.changes("o") == []
        test.given("t", [(2, TEN + datetime.timedelta(minutes=1))])
        test.end_input()
        test.expect("o", [(1, "2024-01-01 10:00:00.000", 2), (None, "2024-01-01 10:00:00.000", 1),
                            (2, "2024-01-01 10:01:00.000", 1)])  # fmt: skip
        with pytest.raises(AssertionError, match="1 row too much"):
            test.expect("o", [(1, "2024-01-01 10:00:00.000", 2), (2, "2024-01-01 10:01:00.000", 1)])


def test_changes_and_time_in_python() -> None:
    script = (
        "CREATE TABLE t (k INT, v INT, pt AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'kafka'); "
        "CREATE VIEW v AS SELECT SUM(v) AS total FROM t; CREATE VIEW w AS SELECT k, v FROM t"
    )
    with SqlTest(script) as test:
        test.given("t", [(1, 5), (1, 5), (1, 7)], kinds=["+I", "-U", "+U"])
        assert test.rows("v") == [("7",)]
        test.advance_time(datetime.timedelta(hours=1))
        test.advance_time(to=TEN)
        assert test.rows("v") == [("7",)]
        # One that nobody has looked at yet is answered over what was given before.
        assert test.rows("w") == [("1", "7")]
