"""``flowsql lint``: its words, its forms, its exit codes, and that it leaves nothing behind."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.errors import FlowSqlError
from flowsql_planner.lint.registry import BY_NAME

ROOT = Path(__file__).resolve().parents[2]
CLICKS = "CREATE TABLE clicks (user_id STRING, n INT) WITH ('connector' = 'datagen');\n"
JOB = CLICKS + "SELECT user_id, COUNT(*)\nFROM clicks\nGROUP BY user_id;\n"
TEXT = """\
job.sql:4:10: unbounded-state: GroupAggregate keeps a row for each key of 'user_id' for ever.
  |
4 | GROUP BY user_id;
  |          ^^^^^^^
  = reason: the input never ends and nothing removes state: memory, checkpoints and restarts grow until the job fails
  = remedy: SET 'table.exec.state.ttl' = '1 d' (or a STATE_TTL hint) for keys that come back within that time, or let \
windows over a watermark close them

Found 1 problem in 1 file.
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    (tmp_path / "job.sql").write_text(JOB)
    return tmp_path


def linted(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["lint", *words])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert linted(capsys, "job.sql") == (1, TEXT)


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.sql").write_text(JOB + "SELECT m FROM clicks;\n")
    code, out = linted(capsys, "job.sql", "--format", "json")
    first, second = json.loads(out)
    assert code == 1
    assert (first["file"], first["line"], first["column"], first["endColumn"]) == ("job.sql", 4, 10, 17)
    assert (first["rule"], first["error"]) == ("unbounded-state", False)
    assert (second["rule"], second["error"], second["line"]) == ("column-not-found", True, 5)


def test_annotations_of_github(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a,b.sql").write_text("SELEC 1;\n" + JOB)
    _, out = linted(capsys, "a,b.sql", "--format", "github")
    error, warning = out.splitlines()
    assert error.startswith("::error file=a%2Cb.sql,line=1,col=1,title=syntax::SQL parse failed.")
    assert "%0A" in error
    assert warning.startswith("::warning file=a%2Cb.sql,line=5,col=10,title=unbounded-state::GroupAggregate keeps")


@pytest.mark.parametrize("form", ["text", "github", "json"])
def test_nothing_found(folder: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    (folder / "job.sql").write_text(CLICKS)
    assert linted(capsys, "job.sql", "--format", form) == (0, "[]\n" if form == "json" else "")


def test_rules_that_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert linted(capsys, "job.sql", "--select", "unused-with,hot-aggregate") == (0, "")
    assert linted(capsys, "job.sql", "--ignore", "unbounded-state") == (0, "")
    assert linted(capsys, "job.sql", "--select", "unbounded-state")[0] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--select", "unbound-state", "job.sql"], "did you mean 'unbounded-state'?"),
        (["nowhere.sql"], "No such file"),
        (["empty"], "holds no *.sql file"),
        ([], "no flowsql.toml here or above"),
        (["-i", "job.sql", "job.sql"], "Unsupported operation in the initialization file"),
    ],
)
def test_usage_errors(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    (folder / "empty").mkdir()
    code, out = linted(capsys, *words)
    assert code == 2
    assert told in out


def test_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = linted(capsys, "--rules")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(BY_NAME)


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(JOB))
    assert "<stdin>:4:10: unbounded-state" in linted(capsys, "-")[1]


def test_options_and_what_stands_in_an_initialization_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "init.sql").write_text(CLICKS)
    (folder / "job.sql").write_text("SELECT user_id, COUNT(*) FROM clicks GROUP BY user_id;")
    assert "unbounded-state" in linted(capsys, "-i", "init.sql", "job.sql")[1]
    assert linted(capsys, "-i", "init.sql", "-D", "table.exec.state.ttl=1 h", "job.sql") == (0, "")


def test_scripts_of_a_folder_share_what_one_of_them_defines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = folder / "project" / "deep"
    project.mkdir(parents=True)
    (project / "tables.sql").write_text(CLICKS)
    (project / "view.sql").write_text("CREATE VIEW v AS SELECT user_id FROM clicks;")
    (project / "query.sql").write_text("SELECT DISTINCT user_id FROM v;")
    code, out = linted(capsys, "project")
    assert code == 1
    assert re.findall(r"(?m)^\S+: .*", out) == [
        "project/deep/query.sql:1:1: unbounded-state: GroupAggregate keeps each different row of 'user_id' for ever."
    ]


def test_a_project_is_clean_in_batch_mode(capsys: pytest.CaptureFixture[str]) -> None:
    project = str(ROOT / "examples" / "pipeline")
    assert linted(capsys, project, "-D", "execution.runtime-mode=batch") == (0, "")


def test_nothing_is_left_behind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.sql").write_text(
        "CREATE CATALOG c WITH ('type' = 'file', 'path' = 'kept');\nUSE CATALOG c;\n"
        "CREATE TABLE t (n INT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'csv');\n"
        "INSERT INTO t VALUES (1);\nDROP TABLE t;\n"
    )
    assert linted(capsys, "job.sql") == (0, "")
    assert [path.name for path in folder.iterdir()] == ["job.sql"]


def test_a_catalog_of_files_is_read_and_stays_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definition = "CREATE CATALOG c WITH ('type' = 'file', 'path' = 'kept');\nUSE CATALOG c;\n"
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for sql in (*definition.split("\n")[:2], CLICKS):
        environment.execute_sql(sql.rstrip(";\n"))
    (folder / "job.sql").write_text(definition + "SELECT DISTINCT n FROM clicks;\nDROP TABLE clicks;\n")
    assert "job.sql:3:1: unbounded-state" in linted(capsys, "job.sql")[1]
    assert environment.list_tables() == ["clicks"]


def test_a_session_is_linted_in_and_not_changed() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(CLICKS.rstrip(";\n"))
    script = "SET 'table.exec.state.ttl' = '0 s'; CREATE VIEW v AS SELECT n FROM clicks; SELECT DISTINCT n FROM v;"
    (finding,) = environment.lint_sql(script)
    assert (finding.rule, finding.position) == ("unbounded-state", (1, 76))
    assert environment.list_tables() == ["clicks"]
    assert "table.exec.state.ttl" not in dict(environment.configuration.items())
    with pytest.raises(FlowSqlError):
        environment.lint_sql(1)  # type: ignore[arg-type]


def test_every_rule_has_a_section_and_the_sections_are_in_order() -> None:
    headings = re.findall(r"(?m)^### ([a-z-]+)$", (ROOT / "docs" / "lint.md").read_text())
    assert headings == list(BY_NAME)
