"""Small DataStream programs, the same text under PyFlink and under FlowSQL: they print the same lines.

    python tests/datastream/pyflink_programs.py [NAME...]            run them, compare with what PyFlink printed
    python tests/datastream/pyflink_programs.py --record [NAME...]   ask PyFlink ($FLINK_PYTHON), keep its answers

The programs stand in ``programs/*.txt``, each below a line ``=== name``. Answers are kept in ``programs/answers.json``,
lines sorted: the order of two streams is nobody's promise. Under FlowSQL only the root of the imports is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import traceback
import types
from pathlib import Path

FOLDER = Path(__file__).with_name("programs")
ANSWERS = FOLDER / "answers.json"
#: Stands in a line of its own before the output of each program.
_MARK = "=#=#= "
#: What PyFlink's own libraries write between the lines of a program.
_CHATTER = re.compile(
    r"^(No module named google|PYFLINK_CYTHON_ENABLED|Using Any for unsupported type|WARNING: |SLF4J:)"
)


def programs() -> dict[str, str]:
    """All programs by name."""
    found: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.txt")):
        for part in re.split(r"^=== ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, _, text = part.partition("\n")
            found[name.strip()] = text
    return found


def rewritten(text: str) -> str:
    """The program with FlowSQL's imports."""
    return re.sub(r"^(\s*)(from|import) pyflink\b", r"\1\2 flowsql", text, flags=re.MULTILINE)


def run(name: str, text: str) -> None:
    """Run a program as if it were the script that was started."""
    module = types.ModuleType("__main__")
    module.__file__ = f"{name}.py"
    exec(compile(text, module.__file__, "exec"), module.__dict__)


def lines(output: str) -> list[str]:
    """What a program printed, sorted."""
    return sorted(line.rstrip() for line in output.splitlines() if line.strip() and not _CHATTER.match(line))


def run_flowsql(name: str) -> list[str]:
    """The lines of a program under FlowSQL."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        run(name, rewritten(programs()[name]))
    return lines(output.getvalue())


def drive(names: list[str]) -> None:
    """Run programs here, under PyFlink, with marks between them: Java writes to the same standard output."""
    from pyflink.java_gateway import get_gateway  # type: ignore[import-not-found, import-untyped, unused-ignore]

    known = programs()
    system = get_gateway().jvm.System
    for name in names:
        print(_MARK + name, flush=True)
        try:
            run(name, known[name])
        except Exception:
            traceback.print_exc()
            print("RAISED", flush=True)
        sys.stdout.flush()
        system.out.flush()


def record(names: list[str]) -> None:
    """Keep what PyFlink prints."""
    interpreter = Path(os.environ["FLINK_PYTHON"])
    environment = {**os.environ, "TZ": "UTC", "PATH": f"{interpreter.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    environment.pop("PYTHONPATH", None)
    command = [str(interpreter), __file__, "--drive", *names]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    answers = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    for part in ran.stdout.split(_MARK)[1:]:
        name, _, output = part.partition("\n")
        answers[name.strip()] = lines(output)
    ordered = {name: answers[name] for name in programs() if name in answers}
    ANSWERS.write_text(json.dumps(ordered, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def compare(names: list[str]) -> int:
    """Run under FlowSQL and say what differs; the number of programs that do."""
    answers = json.loads(ANSWERS.read_text(encoding="utf-8"))
    differing = 0
    for name in names:
        wanted = answers.get(name, [])
        try:
            found = run_flowsql(name)
        except Exception as error:
            print(f"RAISED  {name}: {type(error).__name__}: {error}")
            differing += 1
            continue
        if found == wanted:
            print(f"same    {name}")
            continue
        differing += 1
        print(f"DIFFERS {name}")
        left = list(found)
        for line in wanted:
            if line in left:
                left.remove(line)
            else:
                print(f"    PyFlink: {line}")
        for line in left:
            print(f"    FlowSQL: {line}")
    return differing


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="run PyFlink and keep its answers")
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="programs; all unless told")
    arguments = parser.parse_args()
    names = arguments.names or list(programs())
    if arguments.drive:
        drive(names)
        return 0
    if arguments.record:
        record(names)
    return 1 if compare(names) else 0


if __name__ == "__main__":
    sys.exit(main())
