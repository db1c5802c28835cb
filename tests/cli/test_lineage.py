"""``flowsql lineage``: where columns come from, in all its forms, and that nothing runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest

from flowsql.cli.main import main
from flowsql.common import Row
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.process_function import ArgumentHint, ArgumentTrait, process_table_function
from flowsql_core.errors import FlowSqlError

ROOT = Path(__file__).resolve().parents[2]
TABLES = """
CREATE TABLE clicks (who STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv');
CREATE TABLE totals (who STRING, s INT) WITH ('connector' = 'filesystem', 'path' = 's3://a/b/c', 'format' = 'csv');
CREATE TABLE copies (who STRING, s INT) WITH ('connector' = 'blackhole');
"""
INSERTS = """
INSERT INTO totals SELECT who, SUM(n) FROM clicks GROUP BY who;
INSERT INTO copies SELECT who, s FROM totals;
"""
TEXT = """\
default_catalog.default_database.totals <- default_catalog.default_database.clicks
  who     default_catalog.default_database.clicks.who  IDENTITY
  s       default_catalog.default_database.clicks.n    AGGREGATION
  (rows)  default_catalog.default_database.clicks.who  GROUP_BY

default_catalog.default_database.copies <- default_catalog.default_database.totals
  who  default_catalog.default_database.totals.who  IDENTITY
  s    default_catalog.default_database.totals.s    IDENTITY
"""
MERMAID = """\
flowchart LR
  subgraph t0["default_catalog.default_database.clicks"]
    t0c0["who"]
    t0c1["n"]
  end
  subgraph t1["default_catalog.default_database.totals"]
    t1c0["who"]
    t1c1["s"]
  end
  subgraph t2["default_catalog.default_database.copies"]
    t2c0["who"]
    t2c1["s"]
  end
  t0c0 --> t1c0
  t0c1 -->|AGGREGATION| t1c1
  t0c0 -.->|GROUP_BY| t1
  t1c0 --> t2c0
  t1c1 --> t2c1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    (tmp_path / "job.sql").write_text(TABLES + INSERTS)
    return tmp_path


@pytest.mark.parametrize(("form", "wanted"), [("text", TEXT), ("mermaid", MERMAID)])
def test_a_script(capsys: pytest.CaptureFixture[str], form: str, wanted: str) -> None:
    assert main(["lineage", "job.sql", "--format", form]) == 0
    assert capsys.readouterr().out == wanted


def test_json_is_openlineages_facet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lineage", "job.sql", "--format", "json", "-o", "lineage.json"]) == 0
    assert capsys.readouterr().out == ""
    found = json.loads((folder / "lineage.json").read_text())
    clicks, totals = {"namespace": "file", "name": "/in"}, {"namespace": "s3://a", "name": "b/c"}
    assert found["inputs"] == [clicks, totals]
    first, second = found["outputs"]
    assert first == {
        **totals,
        "facets": {
            "columnLineage": {
                "fields": {
                    "who": {"inputFields": [field(clicks, "who", "DIRECT", "IDENTITY")]},
                    "s": {"inputFields": [field(clicks, "n", "DIRECT", "AGGREGATION")]},
                },
                "dataset": [field(clicks, "who", "INDIRECT", "GROUP_BY")],
            }
        },
    }
    assert (second["namespace"], second["name"]) == ("default_catalog", "default_database.copies")


def field(dataset: dict[str, str], name: str, kind: str, subtype: str) -> dict[str, object]:
    return {**dataset, "field": name, "transformations": [{"type": kind, "subtype": subtype}]}


def test_a_table_that_is_only_counted_has_an_arrow(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.sql").write_text(TABLES + "SELECT COUNT(*) AS c FROM clicks;")
    assert main(["lineage", "job.sql", "--format", "mermaid"]) == 0
    assert "  t0 -.-> t1\n" in capsys.readouterr().out


def test_nothing_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.sql").write_text(
        f"CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '{folder}/t', 'format' = 'csv');\n"
        "BEGIN STATEMENT SET; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); END;\n"
        "EXPLAIN SELECT 1; SHOW JOBS; CREATE TABLE u AS SELECT a + 1 AS b FROM t;\n"
    )
    assert main(["lineage", "-D", "execution.runtime-mode=batch", "job.sql"]) == 0
    assert capsys.readouterr().out.count("<- no table") == 2
    assert not (folder / "t").exists()


def test_a_project_is_one_chain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = folder / "project"
    shutil.copytree(ROOT / "examples" / "pipeline", project, ignore=shutil.ignore_patterns(".flowsql", "out"))
    assert main(["lineage", "project"]) == 0
    heads = [line.partition(" <- ") for line in capsys.readouterr().out.splitlines() if " <- " in line]
    written = [target for target, _, _ in heads]
    assert [name.rpartition(".")[2] for name in written] == ["orders", "customers", "best"]
    assert written[0] in heads[1][2]
    assert written[1] in heads[2][2]
    assert not (project / ".flowsql").exists()


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("INSERT INTO totals SELECT nobody, 1 FROM clicks;", 1, "job.sql:5:27"),
        ("SHOW TABLES;", 1, "moves no rows"),
        ("EXECUTE PLAN '/nowhere.json';", 1, "A compiled plan has no lineage"),
    ],
)
def test_what_has_none(folder: Path, capsys: pytest.CaptureFixture[str], sql: str, code: int, message: str) -> None:
    (folder / "job.sql").write_text(TABLES + sql)
    assert main(["lineage", "job.sql"]) == code
    assert message in capsys.readouterr().err


def test_files_and_words_that_are_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    assert main(["lineage", "nowhere.sql"]) == 2
    assert main(["lineage", "empty"]) == 2
    assert main(["lineage"]) == 2
    assert main(["lineage", "job.sql", "--format", "xml"]) == 2


@process_table_function(result_type="ROW<total BIGINT>")
def adding(
    input: Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)], threshold: int
) -> Iterator[tuple[int]]:
    raise AssertionError("nothing runs")


def test_a_function_of_tables_may_use_all_that_it_sees() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.create_temporary_system_function("adding", adding)
    environment.execute_sql("CREATE TABLE t (k STRING, a INT, b INT) WITH ('connector' = 'datagen')")
    found = environment.lineage_sql("SELECT * FROM adding(input => TABLE t PARTITION BY k, threshold => 3)")
    assert found.replace("default_catalog.default_database.", "") == (
        "(query) <- t\n"
        "  k       t.k  IDENTITY\n"
        "  total   t.a  TRANSFORMATION\n"
        "          t.b  TRANSFORMATION\n"
        "          t.k  TRANSFORMATION\n"
        "  (rows)  t.k  GROUP_BY\n"
    )


def test_programs(folder: Path) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for statement in TABLES.strip().rstrip(";").split(";"):
        environment.execute_sql(statement)
    insert = "INSERT INTO totals SELECT who, SUM(n) FROM clicks GROUP BY who"
    first = TEXT.partition("\n\n")[0] + "\n"
    assert environment.lineage_sql(insert) == first
    assert environment.execute_sql(f"EXPLAIN LINEAGE {insert}").text() == first
    assert environment.create_statement_set().add_insert_sql(insert).lineage() == first
    table = environment.from_path("clicks").select((col("n") + 1).alias("m"))
    assert table.lineage() == (
        "(query) <- default_catalog.default_database.clicks\n"
        "  m  default_catalog.default_database.clicks.n  TRANSFORMATION\n"
    )
    with pytest.raises(FlowSqlError, match="no format 'xml'"):
        table.lineage("xml")
    with pytest.raises(FlowSqlError, match="Only queries and INSERTs"):
        environment.lineage_sql("SHOW TABLES")
    deep = " + ".join(["n"] * 3000)
    assert "clicks.n  TRANSFORMATION" in environment.lineage_sql(f"SELECT {deep} AS m FROM clicks")
