"""PyFlink's own examples under FlowSQL: with ``pyflink`` changed to ``flowsql`` in the imports they print the same.

    python tests/datastream/pyflink_examples.py            run all, compare with what PyFlink printed
    python tests/datastream/pyflink_examples.py --record   ask PyFlink itself again ($FLINK_PYTHON) and keep its answers

The examples stand in PyFlink's wheel: ``$PYFLINK_EXAMPLES`` names the folder, or ``$FLINK_PYTHON`` an interpreter that
has PyFlink. What PyFlink printed is kept in ``pyflink_examples.json``, lines sorted: their order depends on threads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ANSWERS = Path(__file__).with_name("pyflink_examples.json")
ROOT = Path(__file__).resolve().parents[2]
IMPORT_ROOTS = (".", "grammar", "planner", "runtime", "connectors")

#: Examples without external services that end by themselves, and print the same.
PASSING = (
    "datastream/basic_operations.py",
    "datastream/event_time_timer.py",
    "datastream/process_json_data.py",
    "datastream/state_access.py",
    "datastream/windowing/session_with_dynamic_gap_window.py",
    "datastream/windowing/session_with_gap_window.py",
    "datastream/windowing/sliding_time_window.py",
    "datastream/windowing/tumbling_count_window.py",
    "datastream/windowing/tumbling_time_window.py",
    "datastream/word_count.py",
    "table/async/async_scalar_function.py",
    "table/mixing_use_of_datastream_and_table.py",
    "table/multi_sink.py",
    "table/pandas/conversion_from_dataframe.py",
    "table/pandas/pandas_udaf.py",
    "table/process_json_data.py",
    "table/process_json_data_with_udf.py",
    "table/windowing/over_window.py",
    "table/windowing/session_window.py",
    "table/windowing/sliding_window.py",
    "table/windowing/tumble_window.py",
    "table/word_count.py",
)
_NUMBERS = r"-?\d+(\.\d+)?(e-?\d+)?"
#: What these print is random: only its shape is compared, without what the pattern finds.
RANDOM = {
    # Texts of one hexadecimal digit. PyFlink 2.3 prints results beside the keys of other rows.
    "table/async/async_scalar_function.py": rf"\b(db_value_for_)?[0-9a-f]\b|{_NUMBERS}",
    "table/mixing_use_of_datastream_and_table.py": _NUMBERS,
    "table/pandas/conversion_from_dataframe.py": _NUMBERS,
}
#: What PyFlink's own libraries write into the output of programs that log to it.
_CHATTER = ("No module named google", "PYFLINK_CYTHON_ENABLED", "Using Any for unsupported type")


def examples_folder() -> Path | None:
    """Where PyFlink's examples stand, or None where there is no PyFlink."""
    named = os.environ.get("PYFLINK_EXAMPLES")
    if named:
        return Path(named)
    interpreter = os.environ.get("FLINK_PYTHON")
    if not interpreter:
        return None
    found = sorted(Path(interpreter).parent.parent.glob("lib/python*/site-packages/pyflink/examples"))
    return found[0] if found else None


def rewritten(text: str) -> str:
    """The program with FlowSQL's imports."""
    return re.sub(r"^(\s*)(from|import) pyflink\b", r"\1\2 flowsql", text, flags=re.MULTILINE)


def data_lines(name: str, output: str) -> list[str]:
    """What a run printed: without subtask prefixes and the chatter of libraries, sorted."""
    lines = [re.sub(r"^\d+> ", "", line.rstrip()) for line in output.splitlines() if not line.startswith(_CHATTER)]
    if name in RANDOM:
        lines = [re.sub(RANDOM[name], "#", line) for line in lines]
        lines = [re.sub(r"\s+", " ", line).strip() for line in lines]
    return sorted(line for line in lines if line)


def run_flowsql(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """An example under FlowSQL."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / Path(name).name
        program.write_text(rewritten((folder / name).read_text()))
        paths = os.pathsep.join(str(ROOT / root) for root in IMPORT_ROOTS)
        environment = {**os.environ, "PYTHONPATH": paths, "TZ": "UTC"}
        return subprocess.run(
            [sys.executable, str(program)],
            env=environment,
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def run_pyflink(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """An example under PyFlink itself."""
    interpreter = Path(os.environ["FLINK_PYTHON"])
    # PyFlink starts its workers with the first ``python`` of the path.
    path = os.pathsep.join((str(interpreter.parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "TZ": "UTC", "PATH": path}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [str(interpreter), str(folder / name)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def record(folder: Path, names: list[str]) -> None:
    """Keep what PyFlink prints."""
    answers = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    for name in names:
        ran = run_pyflink(folder, name)
        if ran.returncode:
            print(f"{name}: PyFlink failed\n{ran.stderr[-2000:]}", file=sys.stderr)
            continue
        answers[name] = data_lines(name, ran.stdout)
        print(f"{name}: {len(answers[name])} lines", flush=True)
    ANSWERS.write_text(json.dumps(dict(sorted(answers.items())), ensure_ascii=False, indent=1) + "\n")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="run PyFlink and keep its answers")
    parser.add_argument("names", nargs="*", default=PASSING, help="examples; all unless told")
    arguments = parser.parse_args()
    folder = examples_folder()
    if folder is None:
        print("there is no PyFlink: set PYFLINK_EXAMPLES or FLINK_PYTHON", file=sys.stderr)
        return 2
    if arguments.record:
        record(folder, arguments.names)
        return 0
    answers = json.loads(ANSWERS.read_text())
    passed = 0
    for name in arguments.names:
        ran = run_flowsql(folder, name)
        if ran.returncode:
            print(f"FAILED  {name}: {(ran.stderr.strip().splitlines() or ['?'])[-1]}")
        elif data_lines(name, ran.stdout) != answers[name]:
            print(f"DIFFERS {name}")
            wanted, found = answers[name], data_lines(name, ran.stdout)
            print("  only PyFlink:", [line for line in wanted if line not in found][:5])
            print("  only FlowSQL:", [line for line in found if line not in wanted][:5])
        else:
            passed += 1
            print(f"passed  {name}")
    print(f"{passed} of {len(arguments.names)} print the same")
    return 0 if passed == len(arguments.names) else 1


if __name__ == "__main__":
    sys.exit(main())
