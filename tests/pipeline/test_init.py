"""``flowsql init``, and the example: projects that run at once, and whose tests pass."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.pipeline.new_project import TEMPLATES
from flowsql_core.secrets import hidden

EXAMPLE = Path(__file__).parents[2] / "examples" / "project"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("FLOWSQL_CONF_DIR", "FLOWSQL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(hidden, "_PLACEHOLDERS", {})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def passes_everything(folder: Path, capsys: pytest.CaptureFixture[str], nodes: int) -> None:
    """All commands find the project around them, from below it, too."""
    os.chdir(folder / "sql")
    for words in (
        ["run", "--dry-run"],
        ["plan"],
        ["run"],
        ["test"],
        ["lint"],
        ["fmt", "--check"],
        ["lineage"],
        ["explain"],
    ):
        capsys.readouterr()
        assert main(words) == 0, (words, capsys.readouterr())
    assert main(["run"]) == 0
    assert capsys.readouterr().out.count("unchanged") >= 2 * nodes


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_runs_at_once(template: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "my shop", "--template", template]) == 0
    out = capsys.readouterr().out
    assert "  flowsql.toml\n" in out
    assert "Next:\n  cd my shop\n  flowsql run --dry-run" in out
    made = folder / "my shop"
    assert 'name = "my-shop"' in (made / "flowsql.toml").read_text()
    assert (made / ".gitignore").read_text() == ".flowsql/\nout/\n"
    passes_everything(made, capsys, nodes=2 if template == "batch" else 1)


def test_files_are_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "flowsql.toml").write_text("# mine\n")
    assert main(["init"]) == 1
    assert "'.' holds flowsql.toml already; nothing was written." in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["flowsql.toml"]
    assert main(["init", "--template", "nosuch"]) == 2
    (folder / "file").write_text("")
    assert main(["init", "file"]) == 1
    assert "cannot write 'file" in capsys.readouterr().err


def test_the_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder / "sensors"
    shutil.copytree(EXAMPLE, made, ignore=shutil.ignore_patterns("out", ".flowsql"))
    passes_everything(made, capsys, nodes=2)
    assert main(["run", "--profile", "prod"]) == 1
    assert "The environment variable 'WAREHOUSE' is not set." in capsys.readouterr().err
    process = subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "run", "--profile", "live", "-D", "table.local-time-zone=UTC"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    while not (line := process.stdout.readline()).startswith("+I["):
        assert line
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
