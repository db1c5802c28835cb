"""End a running ``flowsql`` at random points and look at what is left: ``python tests/chaos/chaos.py [ROUNDS] [SEED]``.

A script writes known rows into a partitioned table, half of the rounds through blocking exchanges that spill to disk.
It is killed (SIGKILL), interrupted (SIGINT) or terminated (SIGTERM) at a random moment. Whatever the moment:

- every visible file is whole, holds rows of its own partition only, and no row is visible twice;
- a partition that is marked with ``_SUCCESS`` has all its rows;
- after SIGINT and SIGTERM no in-progress file and no temporary file is left, and the exit code says how it ended.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROWS = 400_000
PARTITIONS = 8
ENDINGS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
EXIT_CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST_S = 120.0


class BrokenPromiseError(Exception):
    """Something half-done was visible, or something was left behind."""


@dataclass(frozen=True)
class Round:
    """One run: which signal, how it writes, and when it ended."""

    ending: signal.Signals
    spills: bool
    at: str
    visible_rows: int
    exit_code: int


def text_of(number: int) -> str:
    """The second column of a row: long enough that files grow while they are looked at."""
    return f"row {number} " + "x" * (number % 50)


def write_input(path: Path, rows: int) -> None:
    """The rows that are copied."""
    path.write_text("".join(f"{n},{text_of(n)},p{n % PARTITIONS}\n" for n in range(rows)), encoding="utf-8")


def script(source: Path, target: Path) -> str:
    """Copy all rows."""
    csv = "'connector' = 'filesystem', 'format' = 'csv'"
    return (
        f"CREATE TABLE src (id BIGINT, txt STRING, part STRING) WITH ({csv}, 'path' = '{source}');\n"
        "CREATE TABLE dst (id BIGINT, txt STRING, part STRING) PARTITIONED BY (part) "
        f"WITH ({csv}, 'path' = '{target}', 'sink.rolling-policy.file-size' = '1MB', 'sink.parallelism' = '2', "
        "'sink.partition-commit.policy.kind' = 'success-file');\n"
        "INSERT INTO dst SELECT id, txt, part FROM src;"
    )


def start(folder: Path, source: Path, spills: bool) -> subprocess.Popen[bytes]:
    """The command, running."""
    options = {"parallelism.default": "1" if spills else "2", "io.tmp.dirs": f"{folder}/tmp1,{folder}/tmp2"}
    if spills:
        options |= {
            "execution.runtime-mode": "batch",
            "execution.batch-shuffle-mode": "ALL_EXCHANGES_BLOCKING",
            "flowsql.memory": "300 mb",
        }
    flags = [part for key, value in options.items() for part in ("-D", f"{key}={value}")]
    return subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", *flags, "-c", script(source, folder / "out")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def files_below(folder: Path) -> list[Path]:
    """All files, sorted; a folder that is not there has none."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def check_visible(out: Path, rows: int) -> int:
    """What a reader of the table would see is whole; the number of rows."""
    seen: Counter[int] = Counter()
    by_partition: Counter[str] = Counter()
    marked = set()
    for path in files_below(out):
        partition = path.parent.name.removeprefix("part=")
        if path.name == "_SUCCESS":
            marked.add(partition)
        if path.name.startswith((".", "_")):
            continue
        data = path.read_text(encoding="utf-8")
        if not data.endswith("\n"):
            raise BrokenPromiseError(f"{path} ends in the middle of a row")
        for line in data.splitlines():
            number, _, text = line.partition(",")
            if f"p{int(number) % PARTITIONS}" != partition or text.strip('"') != text_of(int(number)):
                raise BrokenPromiseError(f"{path} holds '{line}'")
            seen[int(number)] += 1
            by_partition[partition] += 1
    if seen and max(seen.values()) > 1:
        raise BrokenPromiseError(f"a row is visible {max(seen.values())} times")
    for partition in marked:
        wanted = len(range(int(partition[1:]), rows, PARTITIONS))
        if by_partition[partition] != wanted:
            raise BrokenPromiseError(f"{partition} is marked with {by_partition[partition]} of {wanted} rows")
    return len(seen)


def play(
    folder: Path, source: Path, rows: int, ending: signal.Signals, draw: random.Random, lasts_s: dict[bool, float]
) -> Round:
    """One run that is ended at a random moment, and everything that must hold after it.

    ``lasts_s``: how long an undisturbed run takes without and with spilling. A run that was faster than its signal
    corrects it, so that a machine whose speed changes does not let every run end in peace.
    """
    folder.mkdir()
    spills = draw.random() < 0.5
    longest_s = lasts_s[spills]
    process = start(folder, source, spills)
    # Half of the rounds strike from the first file on, where something can be half-written; the others anywhere.
    strikes_files = draw.random() < 0.5
    began = time.monotonic()
    delay_s = draw.random() * (0.3 * longest_s if strikes_files else longest_s)
    while strikes_files and process.poll() is None and not files_below(folder):
        if time.monotonic() - began > LONGEST_S:
            process.kill()
            raise BrokenPromiseError("nothing was written")
        time.sleep(0.002)
    try:
        process.wait(delay_s)
    except subprocess.TimeoutExpired:
        process.send_signal(ending)
    _, stderr = process.communicate(timeout=LONGEST_S)
    lasted_s = time.monotonic() - began
    at = f"{lasted_s:.2f} s"
    if process.returncode == 0:
        lasts_s[spills] = min(lasts_s[spills], lasted_s)
    # Before the engine has loaded, and after it has ended, a signal finds Python itself: that ends by the signal, or
    # tells of an interrupt in modules of its own.
    by_python = process.returncode == -ending or (
        process.returncode in (0, 1) and b"KeyboardInterrupt" in stderr and b"flowsql/cli/" not in stderr
    )
    if not by_python and (process.returncode not in (0, EXIT_CODES[ending]) or b"Traceback" in stderr):
        raise BrokenPromiseError(f"{ending.name} at {at}: exit code {process.returncode}\n{stderr.decode()}")
    visible = check_visible(folder / "out", rows)
    if process.returncode == 0 and visible != rows:
        raise BrokenPromiseError(f"the run succeeded with {visible} of {rows} rows")
    if ending is not signal.SIGKILL:
        left = [path for path in files_below(folder) if path.name.startswith(".") or "tmp" in path.parts[-3]]
        left += [path for name in ("tmp1", "tmp2") for path in (folder / name).glob("*")]
        if left:
            raise BrokenPromiseError(f"{ending.name} at {at} left {left[:3]}")
        if visible not in (0, rows):
            raise BrokenPromiseError(f"{ending.name} at {at}: {visible} of {rows} rows are visible")
    return Round(ending, spills, at, visible, process.returncode)


def _undisturbed(folder: Path, source: Path, rows: int, spills: bool) -> float:
    """Seconds that a run takes to its end."""
    folder.mkdir()
    began = time.monotonic()
    process = start(folder, source, spills)
    _, stderr = process.communicate(timeout=LONGEST_S)
    if process.returncode or check_visible(folder / "out", rows) != rows:
        raise BrokenPromiseError(f"the undisturbed run failed: {stderr.decode()}")
    return time.monotonic() - began


def run(folder: Path, rounds: int, rows: int, seed: int) -> list[Round]:
    """All rounds; raises BrokenPromiseError."""
    draw = random.Random(seed)
    source = folder / "source.csv"
    write_input(source, rows)
    lasts_s = {spills: _undisturbed(folder / f"whole-{spills}", source, rows, spills) for spills in (False, True)}
    return [
        play(folder / str(number), source, rows, ENDINGS[number % len(ENDINGS)], draw, lasts_s)
        for number in range(rounds)
    ]


def main() -> None:
    """Play and tell."""
    # A shell without job control lets what runs in the background ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"{rounds} rounds, seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        played = run(Path(folder), rounds, ROWS, seed)
    ended = Counter((found.ending.name, found.exit_code, found.visible_rows) for found in played)
    for (ending, code, visible), count in sorted(ended.items()):
        print(f"{ending:8} exit code {code:4}  {visible:7} rows visible  {count} times")
    for ending in ENDINGS:
        if not any(found.ending is ending and found.exit_code for found in played):
            sys.exit(f"no {ending.name} struck a running job: play more rounds")


if __name__ == "__main__":
    main()
