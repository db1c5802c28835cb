from __future__ import annotations

import subprocess
import sys

import pytest

from flowsql.cli.arguments.parser import UsageError
from flowsql.cli.arguments.script import parse
from flowsql.cli.main import main


def test_settings_may_stand_before_and_behind_the_script() -> None:
    found = parse(["-D", "a=1", "-f", "x.sql", "-D", "b=2=3"])
    assert found.file == "x.sql"
    assert found.settings == (("a", "1"), ("b", "2=3"))


def test_without_a_terminal_standard_input_is_a_script() -> None:
    assert parse([]).file == "-"
    assert not parse([]).is_shell


def test_flinks_word_embedded_is_accepted() -> None:
    assert parse(["embedded", "-c", "SELECT 1"]).command == "SELECT 1"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-f", "a", "-c", "b"], "give a script"),
        (["-c", "SELECT 1", "-D", "novalue"], "KEY=VALUE"),
        (["-c", "SELECT 1", "-D", "=v"], "KEY=VALUE"),
        (["-c", "SELECT 1", "--max-rows", "-1"], "number of rows"),
        (["-c", "SELECT 1", "--timeout", "0"], "positive number"),
        (["-c", "SELECT 1", "--format", "xml"], "tableau"),
        (["--nonsense"], "usage"),
    ],
)
def test_wrong_usage_is_told(arguments: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse(arguments)


def test_usage_errors_end_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-f", "/no/such/file.sql"]) == 2
    assert "/no/such/file.sql" in capsys.readouterr().err
    assert main(["-c", "SELECT 1", "-D", "parallelism.default=many"]) == 2
    assert "parallelism.default" in capsys.readouterr().err


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from flowsql.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {name.partition('.')[0] for name in sys.modules}\n"
        "bad = heavy & {'pyarrow', 'numba', 'numpy', 'lark', 'flowsql_core', 'flowsql_planner', 'flowsql_runtime'}\n"
        "assert not bad, bad\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert found.returncode == 0, found.stderr
    assert "exit codes" in found.stdout
