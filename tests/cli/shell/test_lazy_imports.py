"""What the shell loads before its first prompt. Times are measured by ``benchmarks/interactive.py``."""

from __future__ import annotations

import subprocess
import sys


def test_a_run_without_a_prompt_loads_no_library_of_terminals() -> None:
    program = (
        "import sys\nfrom flowsql.cli.main import main\nassert main(['-c', 'SELECT 1']) == 0\n"
        "assert not {'prompt_toolkit', 'textual', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
