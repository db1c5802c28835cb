"""Python functions side by side: FlowSQL and, where one is at hand, PyFlink over the same rows.

    python benchmarks/python_udf.py [--rows 1000000] [--parallelism 1] [--repeat 3]
    FLINK_PYTHON=/path/to/venv/bin/python python benchmarks/python_udf.py

Each case is one job that reads a csv file and writes into a blackhole: a row-wise function, a pandas function, and the
same job without a function. ``rows/s`` is the whole job of a warm process; ``further`` is the rate of the rows beyond a
tenth of the file, which leaves out what a job costs before its first row. Both sides run one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = {
    "no function": "SELECT id + 1, name FROM numbers",
    "row-wise udf": "SELECT plus_one(id), name FROM numbers",
    "row-wise udf, two arguments": "SELECT label(id, name), name FROM numbers",
    "pandas udf": "SELECT pandas_plus_one(id), name FROM numbers",
}


def write_rows(path: Path, rows: int) -> None:
    """``id,name`` lines."""
    with path.open("w") as file:
        for start in range(0, rows, 100_000):
            file.writelines(f"{i},name-{i % 1000}\n" for i in range(start, min(start + 100_000, rows)))


def environment(api: str, parallelism: int) -> Any:
    """A session of ``flowsql`` or ``pyflink`` with the functions, which are the same text on both sides."""
    if api == "pyflink":
        from pyflink.table import EnvironmentSettings, TableEnvironment
        from pyflink.table.udf import udf

        made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    else:
        from flowsql.table import TableEnvironment
        from flowsql.table.udf import udf

        made = TableEnvironment.create()
    made.get_config().set("parallelism.default", str(parallelism))
    made.create_temporary_system_function("plus_one", udf(lambda i: i + 1, result_type="BIGINT"))
    made.create_temporary_system_function("label", udf(lambda i, name: f"{name}/{i}", result_type="STRING"))
    made.create_temporary_system_function(
        "pandas_plus_one", udf(lambda i: i + 1, result_type="BIGINT", func_type="pandas")
    )
    return made


def seconds_of(made: Any, folder: Path, rows: int, query: str) -> float:
    """One job over the first ``rows`` rows."""
    made.execute_sql("DROP TEMPORARY TABLE IF EXISTS numbers")
    made.execute_sql(
        f"CREATE TEMPORARY TABLE numbers (id BIGINT, name STRING) WITH ('connector' = 'filesystem', "
        f"'format' = 'csv', 'path' = '{folder / f'{rows}.csv'}')"
    )
    made.execute_sql("DROP TEMPORARY TABLE IF EXISTS nothing")
    first = "STRING" if "label" in query else "BIGINT"
    made.execute_sql(f"CREATE TEMPORARY TABLE nothing (a {first}, name STRING) WITH ('connector' = 'blackhole')")
    began = time.perf_counter()
    made.execute_sql(f"INSERT INTO nothing {query}").wait()
    return time.perf_counter() - began


def measure(api: str, folder: Path, rows: int, parallelism: int, repeat: int) -> dict[str, dict[str, float]]:
    """Rates of all cases: the best of ``repeat`` runs."""
    made = environment(api, parallelism)
    found: dict[str, dict[str, float]] = {}
    for name, query in CASES.items():
        few = rows // 10
        seconds_of(made, folder, few, query)
        small = min(seconds_of(made, folder, few, query) for _ in range(repeat))
        whole = min(seconds_of(made, folder, rows, query) for _ in range(repeat))
        found[name] = {"rows/s": rows / whole, "further": (rows - few) / max(whole - small, 1e-9)}
    return found


def other_process(python: str, api: str, folder: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """:func:`measure` in a process of another Python."""
    command = [
        python, __file__, "--measure", api, "--folder", str(folder), "--rows", str(arguments.rows),
        "--parallelism", str(arguments.parallelism), "--repeat", str(arguments.repeat),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, then print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", choices=["flowsql", "pyflink"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        found = measure(arguments.measure, arguments.folder, arguments.rows, arguments.parallelism, arguments.repeat)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows in (arguments.rows, arguments.rows // 10):
            write_rows(folder / f"{rows}.csv", rows)
        ours = other_process(sys.executable, "flowsql", folder, arguments)
        flink = os.environ.get("FLINK_PYTHON")
        theirs = other_process(flink, "pyflink", folder, arguments) if flink else {}
    runs = f"parallelism {arguments.parallelism}, best of {arguments.repeat}"
    print(f"{arguments.rows:,} rows, {runs}, thousand rows a second")
    heads = ("FlowSQL", "further", *(("PyFlink", "further", "ratio", "further") if theirs else ()))
    print(f"{'':30}" + "".join(f"{head:>10}" for head in heads))
    for case, rates in ours.items():
        cells = [f"{rates[key] / 1e3:,.0f}" for key in ("rows/s", "further")]
        if theirs:
            cells += [f"{theirs[case][key] / 1e3:,.0f}" for key in ("rows/s", "further")]
            cells += [f"{rates[key] / theirs[case][key]:.1f}x" for key in ("rows/s", "further")]
        print(f"{case:30}" + "".join(f"{cell:>10}" for cell in cells))


if __name__ == "__main__":
    main()
