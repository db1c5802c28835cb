"""How soon the shell answers. Limits are far above what a quiet machine needs: tests run beside others."""

from __future__ import annotations

import time
from pathlib import Path

from tests.cli.shell.terminal import shell


def test_the_prompt_is_there_before_the_engine(tmp_path: Path) -> None:
    started = time.monotonic()
    with shell(tmp_path) as terminal:
        terminal.wait_for("Flow SQL>")
        assert time.monotonic() - started < 1.5


def test_a_small_query_in_a_warm_shell(tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        terminal.wait_for("Flow SQL>")
        for number in range(4):
            terminal.type(f"SELECT {number};")
            terminal.wait_for(f"SELECT {number};")
            started = time.monotonic()
            terminal.press("Enter")
            terminal.wait_for(lambda screen, wanted=number + 1: screen.count("Received a total") == wanted)
        assert time.monotonic() - started < 0.5


def test_a_run_without_a_prompt_loads_no_library_of_terminals(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "import sys\nfrom flowsql.cli.main import main\nassert main(['-c', 'SELECT 1']) == 0\n"
        "assert not {'prompt_toolkit', 'textual', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
