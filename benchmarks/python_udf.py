"""Python functions side by side: FlowSQL and, where one is at hand, PyFlink over the same rows.

    python benchmarks/python_udf.py [--rows 1000000] [--parallelism 1] [--repeat 3]
    FLINK_PYTHON=/path/to/venv/bin/python python benchmarks/python_udf.py

Each case is one job that reads a csv file and writes into a blackhole: row-wise functions, a pandas function, and the
same job without a function. ``rows/s`` is the whole job in a warm process, ``cpu`` the microseconds of processor time a
row that the job took in all its processes (JVM and Python workers included), which a busy machine does not change much.
``further`` is the cost of the rows beyond a tenth of the file: it leaves out what a job costs before its first row.
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


def cpu_seconds() -> float:
    """Processor time of this process and of all that it started, ended ones too (Linux)."""
    fields: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue  # it ended meanwhile
        fields[int(name.split()[0])] = rest.split()
    own = {os.getpid()}
    while more := {pid for pid, stat in fields.items() if pid not in own and int(stat[1]) in own}:
        own |= more
    ticks = sum(sum(map(int, fields[pid][11:15])) for pid in own)
    return ticks / os.sysconf("SC_CLK_TCK")


def run(made: Any, folder: Path, rows: int, query: str) -> tuple[float, float]:
    """Seconds and processor seconds of one job over the first ``rows`` rows."""
    made.execute_sql("DROP TEMPORARY TABLE IF EXISTS numbers")
    made.execute_sql(
        f"CREATE TEMPORARY TABLE numbers (id BIGINT, name STRING) WITH ('connector' = 'filesystem', "
        f"'format' = 'csv', 'path' = '{folder / f'{rows}.csv'}')"
    )
    made.execute_sql("DROP TEMPORARY TABLE IF EXISTS nothing")
    first = "STRING" if "label" in query else "BIGINT"
    made.execute_sql(f"CREATE TEMPORARY TABLE nothing (a {first}, name STRING) WITH ('connector' = 'blackhole')")
    began, cpu = time.perf_counter(), cpu_seconds()
    made.execute_sql(f"INSERT INTO nothing {query}").wait()
    return time.perf_counter() - began, cpu_seconds() - cpu


def measure(api: str, folder: Path, rows: int, parallelism: int, repeat: int) -> dict[str, dict[str, float]]:
    """Seconds of all cases: the least of ``repeat`` runs."""
    made = environment(api, parallelism)
    found: dict[str, dict[str, float]] = {}
    for name, query in CASES.items():
        few = rows // 10
        run(made, folder, few, query)
        small = [run(made, folder, few, query) for _ in range(repeat)]
        whole = [run(made, folder, rows, query) for _ in range(repeat)]
        found[name] = {
            "seconds": min(wall for wall, _ in whole),
            "cpu": min(cpu for _, cpu in whole),
            "further": max(min(cpu for _, cpu in whole) - min(cpu for _, cpu in small), 1e-9),
        }
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
    report(ours, theirs, arguments.rows)


def report(ours: dict[str, dict[str, float]], theirs: dict[str, dict[str, float]], rows: int) -> None:
    """One line a case; ratios are PyFlink's cost by FlowSQL's."""

    def cells(found: dict[str, float]) -> list[str]:
        return [
            f"{rows / found['seconds'] / 1e3:,.0f} k",
            f"{found['cpu'] / rows * 1e6:.2f}",
            f"{found['further'] / (0.9 * rows) * 1e6:.2f}",
        ]

    heads = ["rows/s", "cpu", "further"]
    line = heads + (heads + heads if theirs else [])
    title = "FlowSQL" + (f"{'PyFlink':>37}{'ratio':>28}" if theirs else "")
    print(f"{rows:,} rows; cpu in microseconds a row")
    print(f"{'':30}{title:>10}")
    print(f"{'':30}" + "".join(f"{head:>10}" for head in line))
    for case, own in ours.items():
        shown = cells(own)
        if theirs:
            other = theirs[case]
            shown += cells(other)
            shown += [f"{other[key] / own[key]:.1f}x" for key in ("seconds", "cpu", "further")]
        print(f"{case:30}" + "".join(f"{cell:>10}" for cell in shown))


if __name__ == "__main__":
    main()
