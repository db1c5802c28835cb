"""``${env:NAME}`` and ``${file:PATH}`` in WITH options: filled in for connectors, and hidden from whoever reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql_connectors.options import ConnectorOption, OptionSet
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.secrets import hidden as hidden_module
from flowsql_core.secrets.hidden import hidden
from flowsql_core.secrets.placeholders import filled
from flowsql_core.secrets.references import has_placeholder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hidden_module, "_PLACEHOLDERS", {})
    monkeypatch.setenv("WORD", "hunter2")
    monkeypatch.setenv("LONG", "correct-horse")
    monkeypatch.setenv("SHORT", "7")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("from a file\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:WORD}", "hunter2"),
        ("a${env:WORD}b${env:LONG}", "ahunter2bcorrect-horse"),
        ("${file:secret}", "from a file"),
        ("x${env:EMPTY}", "x"),
        ("${WORD} $env:WORD ${ENV:WORD} ${env:WORD", "${WORD} $env:WORD ${ENV:WORD} ${env:WORD"),
    ],
)
def test_placeholders_are_filled_in_and_hidden_again(text: str, value: str) -> None:
    assert filled(text) == value
    assert has_placeholder(text) is (text != value)
    assert hidden(value) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user:hunter2@host", "user:${env:WORD}@host"),
        ("hunter22", "hunter22"),
        ("xcorrect-horsex", "x${env:LONG}x"),
        ("line 7", "line 7"),
        ("7", "${env:SHORT}"),
    ],
)
def test_long_values_are_hidden_anywhere_and_short_ones_as_words(text: str, shown: str) -> None:
    for name in ("WORD", "LONG", "SHORT"):
        filled(f"${{env:{name}}}")
    assert hidden(text) == shown


def test_what_is_not_there() -> None:
    with pytest.raises(BindError, match="The environment variable 'NOSUCH' is not set"):
        filled("${env:NOSUCH}")
    with pytest.raises(BindError, match=r"The file of '\$\{file:nosuch\}' cannot be read: No such file or directory"):
        filled("${file:nosuch}")


def test_tables_keep_placeholders_and_connectors_get_values() -> None:
    table = TableSpec(("c", "d", "t"), (), (("connector", "x"), ("password", "${env:WORD}"), ("port", "${env:LONG}")))
    assert table.option("password") == "hunter2"
    assert table.declared("password") == "${env:WORD}"
    assert "hunter2" not in repr(table)
    options = OptionSet((ConnectorOption("password", str, "", ""), ConnectorOption("port", int, 0, "a port")))
    with pytest.raises(BindError) as caught:
        options.check(table)
    assert "Could not parse value '${env:LONG}' for key 'port'" in caught.value.render()
    assert "correct-horse" not in caught.value.render() + str(caught.value)
    assert ConnectorError("x", "login of hunter2 failed").message == "login of ${env:WORD} failed"


SCRIPT = """CREATE TABLE t (x INT) WITH ('connector' = 'filesystem', 'path' = '${env:LONG}/a.csv', 'format' = 'csv');
CREATE TABLE inferred WITH ('connector' = 'filesystem', 'path' = '${env:LONG}/a.csv');
CREATE TABLE l WITH ('path' = '${env:LONG}/a.csv') LIKE t (OVERWRITING OPTIONS);
SHOW CREATE TABLE t;
SHOW CREATE TABLE inferred;
SHOW CREATE TABLE l;
EXPLAIN SELECT * FROM t;
EXPLAIN SELECT * FROM inferred;
CREATE CATALOG k WITH ('type' = 'file', 'path' = '${env:LONG}/catalog');
SHOW CREATE CATALOG k;
SELECT * FROM t;
SELECT * FROM l /*+ OPTIONS('path' = '${env:LONG}/b.csv') */;
SET 'sql-client.verbose' = 'true';
SELECT * FROM t /*+ OPTIONS('path' = '${env:LONG}/nosuch.csv') */;
"""


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_nothing_that_a_script_prints_shows_a_value(
    mode: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "correct-horse").mkdir()
    (folder / "correct-horse" / "catalog").mkdir()
    (folder / "correct-horse" / "a.csv").write_text("41\n")
    (folder / "correct-horse" / "b.csv").write_text("42\n")
    (folder / "job.sql").write_text(SCRIPT)
    words = ["-D", f"execution.runtime-mode={mode}", "-D", "execution.batch.engine=local", "-f", "job.sql"]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert " 41 |" in out
    assert " 42 |" in out
    assert "File ${env:LONG}/nosuch.csv does not exist" in err
    assert "Traceback" in err
    assert out.count("'path' = '${env:LONG}/a.csv'") >= 6
    assert "correct-horse" not in out + err
    kept = [path.read_text() for path in (folder / "correct-horse" / "catalog").rglob("*") if path.is_file()]
    assert not [text for text in kept if "correct-horse" in text]
