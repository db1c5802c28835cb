"""``flowsql fmt``: files in place, what would change, standard input, and files that are no SQL."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from flowsql.cli.main import COMMANDS, main

UGLY = "select a,b from t where a>1"
PRETTY = "SELECT a, b\nFROM t\nWHERE a > 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "marts").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "a.sql").write_text(UGLY)
    (tmp_path / "marts" / "b.sql").write_text(PRETTY)
    (tmp_path / "marts" / "c.txt").write_text(UGLY)
    (tmp_path / ".hidden" / "d.sql").write_text(UGLY)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_files_of_folders_are_written_in_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = names(folder)
    kept = os.stat("marts/b.sql").st_mtime_ns
    os.chmod("a.sql", 0o640)
    assert main(["fmt", "."]) == 0
    assert capsys.readouterr() == ("1 file reformatted, 1 file left unchanged\n", "")
    assert Path("a.sql").read_text() == PRETTY
    assert os.stat("a.sql").st_mode & 0o777 == 0o640
    assert os.stat("marts/b.sql").st_mtime_ns == kept
    assert Path("marts/c.txt").read_text() == Path(".hidden/d.sql").read_text() == UGLY
    assert names(folder) == before
    assert main(["fmt", "a.sql", "marts", "."]) == 0
    assert capsys.readouterr().out == "2 files left unchanged\n"


def test_files_that_are_named_need_no_ending(folder: Path) -> None:
    assert main(["fmt", "marts/c.txt"]) == 0
    assert Path("marts/c.txt").read_text() == PRETTY


def test_files_of_flowsql_test_are_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("marts/b.test.sql").write_text("GIVEN t\n| a |\n| 1 |\n")
    assert main(["fmt", "marts"]) == 0
    assert capsys.readouterr().out == "1 file left unchanged\n"
    assert main(["fmt", "marts/b.test.sql"]) == 0
    assert capsys.readouterr().out == "0 files left unchanged\n"


def test_check_lists_and_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", "."]) == 1
    assert capsys.readouterr().out == ("Would reformat: a.sql\n1 file would be reformatted, 1 file already formatted\n")
    assert Path("a.sql").read_text() == UGLY
    assert main(["fmt", "--check", "marts"]) == 0
    assert capsys.readouterr().out == "1 file already formatted\n"


def test_diff_shows_and_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--diff", "."]) == 1
    shown = capsys.readouterr()
    assert shown.out == (
        "--- a.sql\n+++ a.sql\n@@ -1 +1,3 @@\n"
        "-select a,b from t where a>1\n\\ No newline at end of file\n+SELECT a, b\n+FROM t\n+WHERE a > 1\n"
    )
    assert shown.err == "1 file would be reformatted, 1 file already formatted\n"
    assert Path("a.sql").read_text() == UGLY


def test_a_file_that_is_no_sql_stays_and_the_others_are_formatted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("0.sql").write_text("select 1;\nselect a frm t where b")
    Path("1.sql").write_bytes(b"select '\xff'")
    assert main(["fmt", "."]) == 1
    shown = capsys.readouterr()
    assert shown.out == "1 file reformatted, 1 file left unchanged, 2 files could not be formatted\n"
    assert "--> 0.sql:2:14" in shown.err
    assert "^" in shown.err
    assert "Cannot read '1.sql': it is not UTF-8 text (byte 8)" in shown.err
    assert Path("0.sql").read_text() == "select 1;\nselect a frm t where b"
    assert Path("a.sql").read_text() == PRETTY


def test_a_write_that_fails_leaves_the_file_whole(folder: Path) -> None:
    """No file of this process may have more than 16 bytes, as on a disk that is full."""
    before = names(folder)
    done = run_program(
        "import resource, sys; from flowsql.cli.main import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)); sys.exit(main(['fmt', 'a.sql']))"
    )
    assert done.returncode == 1
    assert "Cannot format 'a.sql': File too large" in done.stderr
    assert Path("a.sql").read_text() == UGLY
    assert names(folder) == before


def run_program(program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


def test_links_stay_links(folder: Path) -> None:
    os.symlink("a.sql", "link.sql")
    assert main(["fmt", "link.sql"]) == 0
    assert Path("link.sql").is_symlink()
    assert Path("a.sql").read_text() == PRETTY


def test_line_ends_of_windows_and_the_mark_of_utf8_go(folder: Path) -> None:
    Path("a.sql").write_bytes(b"\xef\xbb\xbfSELECT a;\r\n")
    assert main(["fmt", "--check", "a.sql"]) == 1
    assert main(["fmt", "a.sql"]) == 0
    assert Path("a.sql").read_bytes() == b"SELECT a;\n"


@pytest.mark.parametrize(
    ("words", "text", "code", "out"),
    [
        (["-"], UGLY, 0, PRETTY),
        (["-", "--check"], UGLY, 1, "Would reformat: <stdin>\n"),
        (["-", "--check"], PRETTY, 0, ""),
        (["--diff", "-"], "select 1\n", 1, "--- <stdin>\n+++ <stdin>\n@@ -1 +1 @@\n-select 1\n+SELECT 1\n"),
        (["-", "-w", "20"], "select aaaaaaaaaa, bbbbbbbbbb", 0, "SELECT\n    aaaaaaaaaa,\n    bbbbbbbbbb\n"),
        (["-"], "selct 1", 1, ""),
    ],
)
def test_standard_input(
    words: list[str],
    text: str,
    code: int,
    out: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["fmt", *words]) == code
    shown = capsys.readouterr()
    assert shown.out == out
    assert ("<stdin>:1:1" in shown.err) == (text == "selct 1")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "no flowsql.toml here or above"),
        (["-", "a.sql"], "'-' is standard input"),
        (["-w", "3", "a.sql"], "from 20 on, got '3'"),
        (["nowhere.sql"], "'nowhere.sql' does not exist"),
        (["empty"], "'empty' holds no *.sql file"),
    ],
)
def test_wrong_usage_ends_with_2(
    words: list[str], complaint: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    assert main(["fmt", *words]) == 2
    assert complaint in capsys.readouterr().err
    assert Path("a.sql").read_text() == UGLY


def test_it_starts_without_the_engine(folder: Path) -> None:
    program = (
        "import sys; from flowsql.cli.main import main; assert main(['fmt', 'a.sql']) == 0; "
        "print([name for name in ('pyarrow', 'numpy', 'flowsql_runtime', 'flowsql_planner') if name in sys.modules])"
    )
    assert run_program(program).stdout.splitlines()[-1] == "[]"


def test_hooks_for_pre_commit_call_commands_that_there_are() -> None:
    hooks = yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text())
    assert "flowsql-fmt" in [hook["id"] for hook in hooks]
    for hook in hooks:
        program, command = hook["entry"].split()
        assert program == "flowsql"
        assert command in COMMANDS
