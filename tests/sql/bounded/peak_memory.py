"""Runs one query of batch mode in this process and says how much memory it took: ``peak_memory.py FOLDER``.

The folder has ``query.json`` (statements, options) and gets ``report.json``. The query runs first over small tables, so
that code and kernels are loaded before anything is measured.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import pyarrow as pa

from flowsql.table.session.environment import TableEnvironment


def of_process(field: str) -> int:
    """A line of /proc/self/status, bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def run(statements: list[str], options: dict[str, str]) -> None:
    """All statements in a session of their own."""
    environment = TableEnvironment.create()
    for key, value in options.items():
        environment.get_config().set(key, value)
    for statement in statements:
        environment.execute_sql(statement).wait()


def main(folder: Path) -> None:
    """Measure."""
    given = json.loads((folder / "query.json").read_text(encoding="utf-8"))
    run(given["small"], given["options"])
    gc.collect()
    pa.default_memory_pool().release_unused()
    # The peak starts anew.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = of_process("VmRSS")
    run(given["large"], given["options"])
    report = {"before": before, "growth": of_process("VmHWM") - before}
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
