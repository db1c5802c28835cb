"""Row-wise DataStream programs, side by side with PyFlink: the same text with another import.

    python benchmarks/datastream.py [--rows 1000000] [--programs process,reduce,window]
    FLINK_PYTHON=/path/to/python python benchmarks/datastream.py

``FLINK_PYTHON`` is a Python that has apache-flink; without it only FlowSQL is measured. Each program runs over N and
over 2N rows in fresh processes. Printed: seconds of ``execute()`` over N rows, rows a second that the second N take
(start-up removed), CPU microseconds of the whole process tree for each of them, and the ratios of the two systems.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
IMPORT_ROOTS = (".", "grammar", "planner", "runtime", "connectors")
#: Rows that one element of the source becomes, so that the source costs nothing.
EACH = 1_000
#: Fewer than PyFlink keeps states in its cache (1,000): beyond that it asks the JVM for each element.
KEYS = 100


def programs(root: str) -> dict[str, Callable[[Any, Any], Any]]:
    """The programs by name: keyed stream of (key, number, time) in, stream of few rows out. ``root``: whose classes."""
    functions = importlib.import_module(f"{root}.datastream.functions")
    state = importlib.import_module(f"{root}.datastream.state")
    window = importlib.import_module(f"{root}.datastream.window")
    common = importlib.import_module(f"{root}.common")
    types = common.Types

    class RunningSum(functions.KeyedProcessFunction):  # type: ignore[misc, name-defined]
        def open(self, runtime_context: Any) -> None:
            self.sum = runtime_context.get_state(state.ValueStateDescriptor("sum", types.LONG()))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            total = self.sum.value()
            total = value[1] if total is None else total + value[1]
            self.sum.update(total)
            yield value[0], total

    class Total(functions.AggregateFunction):  # type: ignore[misc, name-defined]
        def create_accumulator(self) -> int:
            return 0

        def add(self, value: Any, accumulator: int) -> int:
            return int(accumulator + value[1])

        def get_result(self, accumulator: int) -> int:
            return accumulator

        def merge(self, acc_a: int, acc_b: int) -> int:
            return acc_a + acc_b

    class Stamp(importlib.import_module(f"{root}.common.watermark_strategy").TimestampAssigner):  # type: ignore[misc]
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[2])

    def keyed(stream: Any) -> Any:
        return stream.key_by(lambda value: value[0], key_type=types.STRING())

    pair = types.TUPLE([types.STRING(), types.LONG()])

    def process(stream: Any, wanted: Any) -> Any:
        return keyed(stream).process(RunningSum(), output_type=pair)

    def reduce(stream: Any, wanted: Any) -> Any:
        return keyed(stream).reduce(lambda one, two: (one[0], one[1] + two[1], two[2]))

    def tumble(stream: Any, wanted: Any) -> Any:
        strategy = common.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
        windows = window.TumblingEventTimeWindows.of(common.Time.seconds(10))
        stamped = stream.assign_timestamps_and_watermarks(strategy)
        return keyed(stamped).window(windows).aggregate(Total(), output_type=types.LONG())

    return {"process": process, "reduce": reduce, "window": tumble}


def run(root: str, name: str, rows: int) -> None:
    """One program over so many rows; prints the seconds of ``execute()``."""
    datastream = importlib.import_module(f"{root}.datastream")
    types = importlib.import_module(f"{root}.common").Types
    environment = datastream.StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    row = types.TUPLE([types.STRING(), types.LONG(), types.LONG()])

    def expand(block: int) -> Iterator[Any]:
        for number in range(block * EACH, (block + 1) * EACH):
            yield f"key {number % KEYS}", number, number * 10

    source = environment.from_collection(list(range(rows // EACH)), type_info=types.LONG())
    stream = programs(root)[name](source.flat_map(expand, output_type=row), None)
    # Everything is made, nothing is printed.
    stream.filter(lambda value: value is None).print()
    began = time.perf_counter()
    environment.execute(name)
    print(json.dumps({"seconds": time.perf_counter() - began}))


@dataclass(frozen=True)
class Figures:
    """Of one program under one system."""

    whole_seconds: float
    further_rows: float
    cpu_micros: float


def measured(python: str, root: str, name: str, rows: int) -> Figures:
    """Both sizes in fresh processes."""
    seconds, cpu = [], []
    for size in (rows, 2 * rows):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in IMPORT_ROOTS)}
        if root != "flowsql":
            environment.pop("PYTHONPATH")
            # The workers of PyFlink are started as "python".
            environment["PATH"] = os.pathsep.join((str(Path(python).parent), environment["PATH"]))
        before = os.times()
        command = [python, __file__, "--child", root, "--programs", name, "--rows", str(size)]
        made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if made.returncode:
            raise SystemExit(made.stdout + made.stderr)
        after = os.times()
        cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
        seconds.append(json.loads(made.stdout.splitlines()[-1])["seconds"])
    further = max(1e-9, seconds[1] - seconds[0])
    return Figures(seconds[0], rows / further, max(1e-9, (cpu[1] - cpu[0]) / rows * 1e6))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--programs", default="process,reduce,window")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run(arguments.child, arguments.programs, arguments.rows)
        return
    flink = os.environ.get("FLINK_PYTHON")
    print(f"{'program':10} {'system':8} {'seconds, N rows':>16} {'rows/s further':>15} {'CPU us a row':>15}")
    for name in arguments.programs.split(","):
        ours = measured(sys.executable, "flowsql", name, arguments.rows)
        show(name, "FlowSQL", ours)
        if flink:
            theirs = measured(flink, "pyflink", name, arguments.rows)
            show(name, "PyFlink", theirs)
            print(
                f"{name:10} {'ratio':8} {theirs.whole_seconds / ours.whole_seconds:15.1f}x "
                f"{ours.further_rows / theirs.further_rows:14.1f}x {theirs.cpu_micros / ours.cpu_micros:14.1f}x"
            )


def show(name: str, system: str, found: Figures) -> None:
    """One line."""
    print(f"{name:10} {system:8} {found.whole_seconds:16.2f} {found.further_rows:15,.0f} {found.cpu_micros:15.1f}")


if __name__ == "__main__":
    main()
