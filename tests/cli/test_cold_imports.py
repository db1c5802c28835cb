"""What a short run must not import: it would be most of its time."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

PROGRAM = """
import sys
from flowsql.cli.main import main
code = main({arguments!r})
assert code == 0, code
print("LOADED", *sorted({{name for name in {names!r} if name in sys.modules}}))
"""
HEAVY = ["flowsql.options", "numba", "llvmlite", "pyarrow.compute", "pandas", "duckdb", "lark"]


def loaded(arguments: list[str], cache: pathlib.Path | None = None) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if cache is not None:
        environment["FLOWSQL_KERNEL_CACHE"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(arguments=arguments, names=HEAVY)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


def test_a_constant_query_imports_no_compiler() -> None:
    assert loaded(["-c", "SELECT 1"]) == []


def test_options_that_are_read_load_no_table_of_all_options() -> None:
    assert loaded(["-D", "parallelism.default=2", "-c", "SET 'table.exec.state.ttl' = '1 h'; SELECT 1"]) == []
    assert "flowsql.options" in loaded(["-c", "SET 'yarn.tags' = 'a'"])


def test_a_stateful_query_imports_numba_only_to_compile(tmp_path: pathlib.Path) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text("ann,3.5\nbob,1.0\nann,2.0\n")
    script = tmp_path / "script.sql"
    script.write_text(
        f"CREATE TABLE orders (who STRING, amount DOUBLE) WITH ('connector' = 'filesystem', 'path' = '{orders}', "
        "'format' = 'csv'); SELECT who, COUNT(*), SUM(amount) FROM orders GROUP BY who;"
    )
    assert "numba" in loaded(["-f", str(script)], tmp_path / "cache")
    assert loaded(["-f", str(script)], tmp_path / "cache") == ["llvmlite"]
