"""CPU time of the Nexmark queries beside DuckDB: the same csv file, one fresh process a run, results as Arrow batches.

DuckDB sees the whole input and answers once; FlowSQL says every change. Each query runs over N and 2N events: the
difference is the cost of a further event, without what it takes to start. ``python benchmarks/nexmark_duckdb --help``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT.parent / "shared" / "nexmark"
TWINS = Path(__file__).with_name("queries.sql")


def twins(data: Path, out: Path) -> tuple[str, dict[str, str]]:
    """The schema and DuckDB's text of each query."""
    text = TWINS.read_text().replace("${DATA}", str(data)).replace("${OUT}", str(out))
    schema, *sections = re.split(r"(?m)^-- (q\d+)\n", text)
    return schema, dict(zip(sections[::2], sections[1::2], strict=True))


def duckdb_batches(query: str, data: Path, out: Path) -> Iterator[Any]:
    """The answer of one query as Arrow batches."""
    import duckdb

    schema, texts = twins(data, out)
    connection = duckdb.connect()
    connection.execute(schema)
    result = connection.sql(texts[query])
    if result is not None:  # COPY writes files and has no rows
        yield from result.to_arrow_reader()


def suite_module(name: str) -> ModuleType:
    """A script of the suite as a module."""
    spec = importlib.util.spec_from_file_location(f"nexmark_{name}", SUITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu_seconds(command: list[str]) -> tuple[float, float]:
    """User and system time of a process, and its peak memory in MiB."""
    # Modules and kernels are compiled once, as where FlowSQL is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            log.seek(0)
            sys.exit(f"{shlex.join(command)}: {log.read().decode(errors='replace')[-1000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def events(work: Path, arguments: list[str], name: str) -> Path:
    """The folder of generated events, made once."""
    folder = work / name
    if not folder.exists():
        made = folder.with_suffix(".tmp")
        command = [sys.executable, str(SUITE / "generate.py"), *arguments, "--out", str(made), "--format", "csv"]
        subprocess.run([*command, "--files", "1"], check=True, stdout=subprocess.DEVNULL)
        made.rename(folder)
    return folder


def flowsql_command(query: str, data: Path, out: Path, side_by_side: ModuleType) -> list[str]:
    """The process that runs one query with the settings of the suite."""
    path = out / f"{query}.sql"
    path.write_text(side_by_side.script(str(SUITE), query, str(data), str(out), "csv"))
    tuned = [word for key, value in side_by_side.TUNED.items() for word in ("-D", f"{key}={value}")]
    places = ["-D", "parallelism.default=1", "-D", "table.local-time-zone=UTC"]
    return [sys.executable, "-m", "flowsql.cli", *tuned, *places, "-f", str(path)]


def measure(queries: list[str], count: int, repeat: int, work: Path) -> None:
    """Print the CPU time of each query for both, and how many take no more than DuckDB's."""
    side_by_side = suite_module("side_by_side")
    print("query | FlowSQL: cpu s/M, further, MiB | DuckDB: cpu s/M, further, MiB | DuckDB / FlowSQL whole, further")
    whole: list[float] = []
    further: list[float] = []
    for query in queries:
        best: dict[tuple[str, int], tuple[float, float]] = {}
        for size in (count, 2 * count) * repeat:
            data = events(work, ["--events", str(size), "--seed", "7"], f"csv-{size}-1")
            for party in ("flowsql", "duckdb"):
                out = Path(tempfile.mkdtemp(dir=work))
                try:
                    own = [sys.executable, str(Path(__file__).parent), "--child", query, str(data), str(out)]
                    command = own if party == "duckdb" else flowsql_command(query, data, out, side_by_side)
                    run = cpu_seconds(command)
                finally:
                    shutil.rmtree(out)
                best[party, size] = min(run, best.get((party, size), run))
        cells = []
        for party in ("flowsql", "duckdb"):
            (small, _), (large, memory) = best[party, count], best[party, 2 * count]
            cells.append((large / (2 * count) * 1e6, max(large - small, 0.01) / count * 1e6, memory))
        (a, b, _), (c, d, _) = cells
        whole.append(c / a)
        further.append(d / b)
        text = " | ".join(f"{cpu:.2f}, {more:.2f}, {memory:,.0f}" for cpu, more, memory in cells)
        print(f"{query} | {text} | {c / a:.2f}, {d / b:.2f}", flush=True)
    for name, ratios in (("whole job", whole), ("further event", further)):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        least = sum(ratio >= 1 for ratio in ratios)
        print(f"{name}: FlowSQL takes no more CPU time on {least} of {len(ratios)}, geometric mean {mean:.2f}")


def text_of(value: object) -> object:
    """A value as the recorded answers write it."""
    match value:
        case datetime():
            whole, _, fraction = value.isoformat(sep=" ", timespec="milliseconds").partition(".")
            return whole if fraction == "000" else f"{whole}.{fraction}"
        case Decimal():
            return str(value)
        case _:
            return value


def check(queries: list[str], work: Path) -> None:
    """Compare DuckDB's answers with the recorded ones."""
    judge = suite_module("check")
    different = 0
    for query in queries:
        golden = json.loads((SUITE / "golden" / f"{query}.json").read_text())
        data = events(work, shlex.split(golden["generate"]), "csv-golden-1")
        with tempfile.TemporaryDirectory(dir=work) as out:
            rows: list[str] = []
            for batch in duckdb_batches(query, data, Path(out)):
                columns = [[text_of(value) for value in column.to_pylist()] for column in batch.columns]
                rows += map(judge.text_of, map(list, zip(*columns, strict=True)))
            if query == "q10":
                rows = [row.replace('.000"', '"') for row in judge.csv_rows(Path(out) / "q10", golden["columns"])]
        same = len(rows) == golden["rows"] and judge.digest(rows) == golden["sha256"]
        if not same and query == "q19" and len(rows) == golden["rows"]:
            verdict = "as many rows (equal prices rank by arrival, which is no column)"
        else:
            different += not same
            verdict = "same rows" if same else f"{len(rows)} rows, recorded {golden['rows']}"
        print(f"{query}: {verdict}")
    sys.exit(different > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", default=",".join(f"q{i}" for i in range(24)))
    parser.add_argument("--events", type=int, default=1_000_000, help="N: runs take N and 2N events")
    parser.add_argument("--repeat", type=int, default=1, help="runs of which the cheapest counts")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "nexmark-data")
    parser.add_argument("--check", action="store_true", help="compare DuckDB's rows with the recorded answers instead")
    parser.add_argument("--child", nargs=3, metavar=("QUERY", "DATA", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        query, data, out = arguments.child
        for _ in duckdb_batches(query, Path(data), Path(out)):
            pass
        return
    if not SUITE.is_dir():
        print(f"Nexmark: skipped, there is no {SUITE}")
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    queries = arguments.queries.split(",")
    if arguments.check:
        check(queries, arguments.work)
    measure(queries, arguments.events, arguments.repeat, arguments.work)


if __name__ == "__main__":
    main()
