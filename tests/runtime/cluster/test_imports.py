from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..graphs import __file__ as graphs_file

PROGRAM = """
import importlib.util, sys
class NoPandas:  # Arrow asks for it, and it would bring pyarrow.compute along
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
spec = importlib.util.spec_from_file_location("graphs", {graphs!r})
graphs = importlib.util.module_from_spec(spec)
sys.modules["graphs"] = graphs
spec.loader.exec_module(graphs)
from flowsql_runtime.cluster.local import run_job
out = graphs.Collected()
run_job(graphs.graph([graphs.vertex(1, graphs.values([(1, "a")]), graphs.collect())], out=out))
assert out.rows == [("+I", 1, "a")]
heavy = ("numba", "pyarrow.compute", "flowsql", "flowsql_planner", "flowsql_grammar", "flowsql_runtime.state")
print(*[name for name in heavy if name in sys.modules])
"""


def test_a_stateless_job_loads_neither_numba_nor_state_nor_the_planner() -> None:
    root = Path(__file__).parents[3]
    paths = [str(root / part) for part in ("grammar", "planner", "runtime", "connectors", ".")]
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(graphs=graphs_file)],
        env={"PYTHONPATH": ":".join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == []
