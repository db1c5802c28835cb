"""``flowsql run``: order, what runs again, what does not, and what is said of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flowsql.cli.main import main
from flowsql_runtime.metrics.volumes import size_text

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline"
FILES = "'connector' = 'filesystem', 'format' = 'json'"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """The JSON report of a run."""
    report = folder.parent / "report.json"
    assert main(["run", "--engine", "local", "--report", str(report), *words, str(folder)]) == code
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def statuses(report: Mapping[str, Any]) -> dict[str, str]:
    return {each["node"]: each["status"] for each in report["nodes"]}


def stored(folder: Path) -> list[str]:
    """The lines of a table's files, sorted."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    return sorted(line for path in files for line in path.read_text().splitlines())


CHAIN = {
    "in.json": '{"a":1}\n{"a":2}\n',
    "b.sql": f"""CREATE TABLE t2 (a INT) WITH ({FILES}, 'path' = 'out/t2');
INSERT INTO t2 SELECT a + 1 FROM v;""",
    "a.sql": f"""CREATE TABLE source (a INT) WITH ({FILES}, 'path' = 'in.json');
CREATE TABLE t1 (a INT) WITH ({FILES}, 'path' = 'out/t1');
INSERT INTO t1 SELECT a * 10 FROM source;""",
    "0.sql": f"""-- A view over a table of another file, and a statement that nothing else hangs on.
CREATE VIEW v AS SELECT a FROM t1;
CREATE TABLE alone WITH ({FILES}, 'path' = 'out/alone') AS SELECT 1 AS n;""",
}
ALL_DONE = {"0.sql:3": "done", "a.sql:3": "done", "b.sql:2": "done"}
UNCHANGED = dict.fromkeys(ALL_DONE, "unchanged")


def test_nodes_run_behind_what_they_read_and_only_once(project: Path) -> None:
    write(project, CHAIN)
    report = run(project)
    assert list(statuses(report).items()) == list(ALL_DONE.items())
    assert report["status"] == "done"
    assert [each["rows"] for each in report["nodes"]] == [1, 2, 2]
    assert stored(project / "out" / "t2") == ['{"a":11}', '{"a":21}']
    assert statuses(run(project)) == UNCHANGED


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ({"a.sql": CHAIN["a.sql"].replace("SELECT a", "select  -- what\n a")}, {}),
        ({"a.sql": CHAIN["a.sql"].replace("10", "20")}, {
            "a.sql:3": "its statement changed", "b.sql:2": "a.sql:3 runs"}),
        ({"in.json": '{"a":7}\n'}, {"a.sql:3": "files that it reads changed", "b.sql:2": "a.sql:3 runs"}),
        ({"0.sql": CHAIN["0.sql"].replace("SELECT a FROM", "SELECT -a AS a FROM")}, {
            "b.sql:2": "a definition that it uses changed"}),
        ({"b.sql": CHAIN["b.sql"].replace("t2 (a INT)", "t2 (a INT, CONSTRAINT c CHECK (a > 1))")}, {
            "b.sql:2": "a definition that it uses changed"}),
        ({"b.sql": "SET 'table.local-time-zone' = 'UTC'; " + CHAIN["b.sql"]}, {"b.sql:2": "its settings changed"}),
        ({"b.sql": "SET 'parallelism.default' = '2'; " + CHAIN["b.sql"]}, {}),
    ],
)  # fmt: skip
def test_what_changed_runs_again_and_what_stands_behind_it(
    project: Path, changed: dict[str, str], reasons: dict[str, str]
) -> None:
    write(project, CHAIN)
    run(project)
    write(project, changed)
    report = run(project)
    assert {each["node"]: each["reason"] for each in report["nodes"] if each["status"] == "done"} == reasons
    assert len(stored(project / "out" / "t2")) == len((project / "in.json").read_text().splitlines())
    assert statuses(run(project)) == UNCHANGED


def test_full_runs_everything_and_a_dry_run_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, CHAIN)
    assert main(["run", "--dry-run", str(project)]) == 0
    assert capsys.readouterr().out == (
        "0.sql:3  alone  runs: it has not run to its end yet\n"
        "a.sql:3  t1     runs: it has not run to its end yet\n"
        "b.sql:2  t2     runs: it has not run to its end yet (behind a.sql:3)\n"
    )
    assert not (project / "out").exists()
    assert not (project / ".flowsql").exists()
    run(project)
    assert statuses(run(project, "--full")) == ALL_DONE
    assert stored(project / "out" / "t2") == ['{"a":11}', '{"a":21}']


def test_behind_a_failure_nothing_runs_and_later_only_the_rest_does(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, CHAIN)
    write(project, {"a.sql": CHAIN["a.sql"].replace("t1 (a INT)", "t1 (a INT, CONSTRAINT small CHECK (a < 15))")})
    report = run(project, code=1)
    assert statuses(report) == {"0.sql:3": "done", "a.sql:3": "failed", "b.sql:2": "skipped"}
    assert report["status"] == "failed"
    assert "expects 'small' of its rows" in report["nodes"][1]["error"]
    assert report["nodes"][2]["reason"] == "a.sql:3 failed"
    said = capsys.readouterr()
    assert "row: number 2 that the source read: a = 20" in said.err
    assert "b.sql:2 t2: skipped: a.sql:3 failed" in said.out
    write(project, {"in.json": '{"a":1}\n'})
    assert statuses(run(project)) == {"0.sql:3": "unchanged", "a.sql:3": "done", "b.sql:2": "done"}


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p)"])
def test_inserts_into_one_table_run_together_and_double_nothing(project: Path, partitioned: str) -> None:
    write(project, {
        "t.sql": f"CREATE TABLE t (a INT, p INT) {partitioned} WITH ({FILES}, 'path' = 'out/t');",
        "w1.sql": "INSERT INTO t VALUES (1, 1), (2, 2);",
        "w2.sql": "INSERT INTO t VALUES (3, 3);",
        "r.sql": f"CREATE TABLE n WITH ({FILES}, 'path' = 'out/n') AS SELECT COUNT(*) AS n FROM t;",
    })  # fmt: skip
    assert list(statuses(run(project))) == ["w1.sql:1", "w2.sql:1", "r.sql:1"]
    write(project, {"w2.sql": "INSERT INTO t VALUES (4, 4), (5, 5);"})
    report = run(project)
    assert {each["node"]: each["reason"] for each in report["nodes"]} == {
        "w1.sql:1": "w2.sql:1 runs", "w2.sql:1": "its statement changed", "r.sql:1": "w1.sql:1 runs",
    }  # fmt: skip
    assert len(stored(project / "out" / "t")) == 4
    assert stored(project / "out" / "n") == ['{"n":4}']


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_a_table_that_gets_no_rows_is_an_empty_one(project: Path, form: str) -> None:
    kind = f"'connector' = 'filesystem', 'format' = '{form}'"
    write(project, {
        "a.sql": f"CREATE TABLE nobody WITH ({kind}, 'path' = 'out/nobody') AS "
                 "SELECT * FROM (VALUES (1, 'x')) AS v(a, b) WHERE a < 0;",
        "b.sql": f"CREATE TABLE n WITH ({FILES}, 'path' = 'out/n') AS SELECT COUNT(*) AS n FROM nobody;",
    })  # fmt: skip
    assert [each["rows"] for each in run(project)["nodes"]] == [0, 1]
    assert stored(project / "out" / "n") == ['{"n":0}']
    assert set(statuses(run(project)).values()) == {"unchanged"}


def test_what_is_gone_is_made_again(project: Path) -> None:
    write(project, CHAIN)
    run(project)
    shutil.rmtree(project / "out" / "t1")
    report = run(project)
    assert {each["node"]: each["reason"] for each in report["nodes"] if each["status"] == "done"} == {
        "a.sql:3": "what it wrote is gone", "b.sql:2": "a.sql:3 runs",
    }  # fmt: skip


def test_modules_of_the_project_are_read_and_count(project: Path) -> None:
    write(project, {
        "twice_of_project.py": "from flowsql.table.udf import udf\n\n@udf(result_type='INT')\ndef f(a): return 2 * a\n",
        "t.sql": f"CREATE TABLE t WITH ({FILES}, 'path' = 'out/t') AS SELECT f(4) AS a;",
        "z.sql": "CREATE FUNCTION f AS 'twice_of_project.f' LANGUAGE PYTHON;",
    })  # fmt: skip
    run(project)
    assert stored(project / "out" / "t") == ['{"a":8}']
    with (project / "twice_of_project.py").open("a") as module:
        module.write("# another one\n")
    assert [each["reason"] for each in run(project)["nodes"]] == ["a definition that it uses changed"]


def test_statement_sets_are_one_node(project: Path) -> None:
    write(project, {
        "s.sql": f"""CREATE TABLE a (x INT) WITH ({FILES}, 'path' = 'out/a');
CREATE TABLE b (x INT) WITH ({FILES}, 'path' = 'out/b');
EXECUTE STATEMENT SET BEGIN
INSERT INTO a VALUES (1), (2);
INSERT INTO b VALUES (3);
END;""",
        "a.sql": f"CREATE TABLE c WITH ({FILES}, 'path' = 'out/c') AS SELECT * FROM a UNION ALL SELECT * FROM b;",
    })  # fmt: skip
    for words in ((), ("--full",)):
        report = run(project, *words)
        assert [(each["node"], each["rows"]) for each in report["nodes"]] == [("s.sql:3", 3), ("a.sql:1", 3)]
        assert stored(project / "out" / "c") == ['{"x":1}', '{"x":2}', '{"x":3}']


SINK = "WITH ('connector' = 'blackhole')"
MISTAKES: dict[str, tuple[dict[str, str], str]] = {
    "circle": (
        {"a.sql": f"CREATE TABLE t1 (a INT) WITH ({FILES}, 'path' = 'x');\nINSERT INTO t1 SELECT a FROM t2;",
         "b.sql": f"CREATE TABLE t2 (a INT) WITH ({FILES}, 'path' = 'y');\nINSERT INTO t2 SELECT a FROM t1;"},
        "The statements wait for each other: a.sql:2 writes default_catalog.default_database.t1, which b.sql:2 reads; "
        "b.sql:2 writes default_catalog.default_database.t2, which a.sql:2 reads\n --> a.sql:2:1",
    ),
    "own table": (
        {"a.sql": f"CREATE TABLE t (a INT) WITH ({FILES}, 'path' = 'x');\nINSERT INTO t SELECT a FROM t;"},
        "a.sql:2 writes default_catalog.default_database.t, which it reads",
    ),
    "views of each other": (
        {"a.sql": "CREATE VIEW v AS SELECT * FROM w;", "b.sql": "CREATE VIEW w AS SELECT * FROM v;"},
        "Definitions need each other: ",
    ),
    "defined twice": (
        {"a.sql": f"CREATE TABLE t (a INT) {SINK};", "b.sql": "\nCREATE VIEW t AS SELECT 1;"},
        "a.sql:1 and b.sql:2 both define 'default_catalog.default_database.t'\n --> b.sql:2:1",
    ),
    "unknown table": (
        {"a.sql": f"CREATE TABLE orders (a INT) {SINK};\nINSERT INTO orders SELECT a\n FROM ordrs;"},
        "Object 'ordrs' not found\n --> a.sql:3:7",
    ),
    "query": ({"a.sql": "SELECT 1;"}, "This statement has no place in a pipeline\n --> a.sql:1:1"),
    "streaming": ({"a.sql": "SET 'execution.runtime-mode' = 'streaming';"}, "A pipeline runs in batch mode\n --> a"),
    "syntax": ({"a.sql": "CREATE TABLE t (a INT;"}, "SQL parse failed"),
    "partitions overwritten and added to": (
        {"a.sql": f"CREATE TABLE t (a INT, p INT) PARTITIONED BY (p) WITH ({FILES}, 'path' = 'x');\n"
                  "INSERT OVERWRITE t PARTITION (p = 1) VALUES (1);\nINSERT INTO t VALUES (1, 2);"},
        "INSERT INTO 'default_catalog.default_database.t' would double rows when it runs again, as a.sql:2 overwrites "
        "partitions of that table\n --> a.sql:3:1",
    ),
    "twice in a set": (
        {"a.sql": f"CREATE TABLE t (a INT) WITH ({FILES}, 'path' = 'x');\n"
                  "EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); END;"},
        "One statement set inserts several times into 'default_catalog.default_database.t'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_told_before_anything_runs(project: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    files, message = MISTAKES[case]
    write(project, files)
    report = run(project, code=1)
    assert report["status"] == "failed"
    assert report["nodes"] == []
    said = capsys.readouterr()
    assert report["error"] in said.err
    assert said.err.startswith("[ERROR] The project cannot run. Reason:\n")
    assert message in said.err
    assert said.out == ""


def test_damaged_files_are_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, CHAIN)
    run(project)
    (project / ".flowsql" / "state.json").write_text("{")
    assert "state.json' is damaged" in run(project, code=1)["error"]
    (project / ".flowsql" / "state.json").unlink()
    (project / "b.sql").write_bytes(b"SELECT \xff")
    assert "b.sql': it is not UTF-8 text (byte 7)" in run(project, code=1)["error"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "'nowhere' is no folder"),
        (["project"], "'project' holds no *.sql file"),
        (["--profile", "dev", "project"], "There is no profile 'dev': the project has no flowsql.toml."),
        ([], "no flowsql.toml here or above"),
        (["--format", "json", "project"], "--format is of --dry-run"),
        (["--engine", "flink", "project"], "invalid choice: 'flink'"),
    ],
)
def test_usage(project: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_what_was_done_before_the_process_died_stays_done(project: Path, number: int, code: int) -> None:
    write(project, {
        "a.sql": f"CREATE TABLE fast WITH ({FILES}, 'path' = 'out/fast') AS SELECT 1 AS a;",
        "b.sql": f"""CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '12',
 'rows-per-second' = '10', 'fields.a.min' = '1', 'fields.a.max' = '9');
CREATE TABLE slow WITH ({FILES}, 'path' = 'out/slow') AS SELECT g.a FROM g, fast;""",
        "c.sql": f"CREATE TABLE last WITH ({FILES}, 'path' = 'out/last') AS SELECT COUNT(*) AS n FROM slow;",
    })  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "run", "--engine", "local", str(project)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("a.sql:1 fast: done")
    time.sleep(0.4)
    assert main(["run", str(project)]) == 1, "one process at a time"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    report = run(project)
    assert statuses(report) == {"a.sql:1": "unchanged", "b.sql:3": "done", "c.sql:1": "done"}
    assert stored(project / "out" / "last") == ['{"n":12}']


def test_the_example(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(EXAMPLE, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("out", ".flowsql"))
    report = run(project)
    assert list(statuses(report)) == ["orders.sql:10", "marts/customers.sql:3", "marts/best.sql:4"]
    assert report["nodes"][0]["expectations"] == [
        {"table": "default_catalog.default_database.orders", "name": name, "passed": passed, "dropped": dropped,
         "warned": warned}
        for name, passed, dropped, warned in [("positive_price", 4, 1, 0), ("known_customer", 3, 0, 1)]
    ]  # fmt: skip
    said = capsys.readouterr()
    head, first, *_ = said.out.partition("\n\n")[2].splitlines()
    assert head.split() == ["node", "table", "status", "rows", "seconds", "read", "written", "dropped", "warned"]
    columns = [column.strip() for column in first.split("  ") if column]
    written = sum(path.stat().st_size for path in (project / "out" / "orders").glob("part-*"))
    assert [*columns[:4], *columns[6:]] == ["orders.sql:10", "orders", "done", "4", size_text(written), "1", "1"]
    assert report["nodes"][0]["volumes"]["bytes_written"] == written
    assert "Expectation 'positive_price' of table 'default_catalog.default_database.orders': 1 row dropped" in said.err
    assert stored(project / "out" / "best") == ['{"customer":"ada","spent":19.9}', '{"customer":"cy","spent":60.5}']


def test_files_of_tests_are_no_nodes(project: Path) -> None:
    made = f"CREATE TABLE t WITH ({FILES}, 'path' = 'out/t') AS SELECT 1 AS n;"
    write(project, {"a.sql": made, "a.test.sql": "TEST 'none of the pipeline';"})
    assert statuses(run(project)) == {"a.sql:1": "done"}


def test_files_by_name_are_inputs(project: Path) -> None:
    sql = f"""CREATE VIEW big AS SELECT n, s FROM 'in.csv' WHERE n > 1;
CREATE TABLE t WITH ({FILES}, 'path' = 'out/t') AS SELECT big.n, other.m FROM big, 'other.jsonl';"""
    write(project, {"a.sql": sql, "in.csv": "n,s\n1,x\n2,y\n", "other.jsonl": '{"m": 5}\n'})
    assert statuses(run(project)) == {"a.sql:2": "done"}
    assert stored(project / "out" / "t") == ['{"n":2,"m":5}']
    assert statuses(run(project)) == {"a.sql:2": "unchanged"}
    for name, text in (("in.csv", "n,s\n1,x\n3,y\n4,z\n"), ("other.jsonl", '{"m": 6}\n')):
        write(project, {name: text})
        assert [each["reason"] for each in run(project)["nodes"]] == ["files that it reads changed"]
    assert stored(project / "out" / "t") == ['{"n":3,"m":6}', '{"n":4,"m":6}']


def test_rows_that_got_lost_are_told_and_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, {
        "clicks.csv": "1\n2,3\n",
        "a.sql": f"""CREATE TABLE clicks (a INT) WITH ('connector' = 'filesystem', 'path' = 'clicks.csv',
 'format' = 'csv', 'csv.ignore-parse-errors' = 'true');
CREATE TABLE kept WITH ({FILES}, 'path' = 'out/kept') AS SELECT a FROM clicks;""",
    })  # fmt: skip
    report = run(project)
    assert report["nodes"][0]["lost_rows"] == [
        {"loss": "skipped", "place": "clicks", "count": 1, "rows": 2, "first": "clicks.csv, row 2",
         "option": "ignore-parse-errors"}
    ]  # fmt: skip
    assert "[WARNING] Table 'clicks': 1 of 2 rows skipped" in capsys.readouterr().err
