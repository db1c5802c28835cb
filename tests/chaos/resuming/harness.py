"""Projects and scripts that go on by themselves, killed again and again: no row lost, none doubled.

``python tests/chaos/resuming/harness.py [KILLS [SEED]] [--side-by-side=N]``.
A ``flowsql run`` of a streaming project, and ``flowsql -f job.sql --resume DIR``, are killed (SIGKILL) at random
moments and at chosen places (while a snapshot, a record or a commit is written; while a savepoint ends them), and
started again, as a supervisor does it. Also the worker processes of Python functions are killed, and runs are stopped
with savepoints. At the end what is committed is compared with what the input says.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
LONGEST_S: Final = 240.0
#: Kills of one project or script; then it comes to its end, and another one begins.
KILLS_A_ROUND: Final = 12
ROWS_A_FILE: Final = 40
FILES_A_KILL: Final = 3
#: Rows of a sequence: it ends in the middle of a round.
SEQUENCE_A_KILL: Final = 500
OPTIONS: Final = {
    "execution.checkpointing.interval": "80 ms",
    "flowsql.source.batch-rows": "20",
    "flowsql.network.batch-rows": "20",
    "execution.buffer-timeout.interval": "5 ms",
}
TABLES: Final = """
CREATE TABLE arriving (id BIGINT, k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/arriving'{monitor});
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', 'number-of-rows' = '{last}',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{last}');
CREATE TABLE plain (id BIGINT, k INT) WITH ({csv}, {rolling}, 'path' = '{folder}/out/plain');
CREATE TABLE windows (s TIMESTAMP(3), k INT, c BIGINT) WITH ({csv}, {rolling}, 'path' = '{folder}/out/windows');
CREATE TABLE counted (n BIGINT) WITH ({csv}, {rolling}, 'path' = '{folder}/out/counted');
CREATE TABLE counted2 (n BIGINT, m BIGINT) WITH ({csv}, {rolling}, 'path' = '{folder}/out/counted2');
CREATE FUNCTION plus_one AS 'functions_of_chaos.plus_one' LANGUAGE PYTHON;
"""
CSV: Final = "'connector' = 'filesystem', 'format' = 'csv'"
#: Rows become visible with nearly every checkpoint.
ROLLING: Final = (
    "'sink.rolling-policy.file-size' = '500b', 'sink.rolling-policy.inactivity-interval' = '100 ms', "
    "'sink.rolling-policy.check-interval' = '50 ms'"
)
PLAIN: Final = "INSERT INTO plain SELECT id, plus_one(k) FROM arriving"
WINDOWS: Final = (
    "INSERT INTO windows SELECT window_start, k, COUNT(*) FROM "
    "TABLE(TUMBLE(TABLE arriving, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k"
)
COUNTED: Final = "INSERT INTO counted SELECT n FROM numbers WHERE MOD(n, 2) = 0"
BOTH: Final = (
    "EXECUTE STATEMENT SET BEGIN INSERT INTO counted2 SELECT n, n * 2 FROM numbers WHERE MOD(n, 3) = 0; "
    "INSERT INTO counted SELECT -n FROM numbers; END"
)
FUNCTIONS: Final = """
from flowsql.table.udf import udf
@udf(result_type='INT')
def plus_one(k):
    return k + 1
"""
#: Places of ``start.py`` and of the recovery harness.
PLACES: Final = (
    "before-record", "after-record", "before-a-snapshot-is-noted", "before-metadata", "after-metadata",
    "before-commit", "after-commit", "between-files-of-a-commit", "half-state-file", "before-the-end-is-noted",
    "after-the-end-is-noted", "in-the-last-commit", "in-a-restore", "in-the-commit-of-a-restore",
)  # fmt: skip


class BrokenPromiseError(Exception):
    """A command failed, or did not come to its end."""


@dataclass
class Tally:
    """What happened."""

    kills: Counter[str] = field(default_factory=Counter)
    goes_on: int = 0
    lost: int = 0
    doubled: int = 0
    broken: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """What happened elsewhere, too."""
        self.kills += other.kills
        self.goes_on += other.goes_on
        self.lost += other.lost
        self.doubled += other.doubled
        self.broken += other.broken

    def __str__(self) -> str:
        return (
            f"{self.kills.total():4} kills, {self.goes_on:4} jobs went on from a snapshot, "
            f"{self.lost} rows lost, {self.doubled} doubled"
        )


class Arrivals:
    """Files that appear whole, one after the other, and the rows in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self.rows: list[tuple[int, int, int]] = []
        folder.mkdir()

    def add(self, rows: list[tuple[int, int, int]]) -> None:
        """One more file of (id, k, second)."""
        text = "".join(f"{i},{k},2024-01-01 {s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}.000\n" for i, k, s in rows)
        self._files += 1
        hidden = self._folder / f".{self._files:05}"
        hidden.write_text(text, encoding="utf-8")
        hidden.rename(self._folder / f"{self._files:05}.csv")
        self.rows += rows

    def more(self) -> None:
        """A file of known rows."""
        first = len(self.rows)
        self.add([(number, number % 7, number // 20) for number in range(first, first + ROWS_A_FILE)])


class Subject:
    """What is killed and started again. ``words``: of its command. ``done``: whether nothing is left to do."""

    def __init__(self, folder: Path, kills: int) -> None:
        self.folder = folder
        self.last = SEQUENCE_A_KILL * max(2, kills // 2)

    def tables(self, monitor: bool) -> str:
        """Their definitions."""
        words = ", 'source.monitor-interval' = '20 ms'" if monitor else ""
        return TABLES.format(folder=self.folder, monitor=words, last=self.last, csv=CSV, rolling=ROLLING)

    def command(self, draw: random.Random) -> list[str]:
        """Of one attempt."""
        raise NotImplementedError

    def ending(self) -> list[str]:
        """The command that comes to its end when all has arrived."""
        raise NotImplementedError

    def wanted(self, arrivals: Arrivals) -> dict[str, Counter[str]]:
        """What is committed in the end, by table."""
        windows: Counter[tuple[int, int]] = Counter((s // 10 * 10, k) for _, k, s in arrivals.rows)
        newest = max(s for _, _, s in arrivals.rows) // 10 * 10
        return {
            "plain": Counter(f"{i},{k + 1}" for i, k, _ in arrivals.rows),
            "windows": Counter(
                f'"2024-01-01 {s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}",{k},{count}'.replace('"', "")
                for (s, k), count in windows.items()
                if s < newest
            ),
        }


class Project(Subject):
    """``flowsql run``: three endless or bounded jobs, one of them with a Python function in a process of its own."""

    def __init__(self, folder: Path, kills: int, profile: bool) -> None:
        super().__init__(folder, kills)
        options = OPTIONS | {"execution.runtime-mode": "streaming", "python.execution-mode": "process"}
        lines = "".join(f'"{key}" = "{value}"\n' for key, value in options.items())
        where = '[profiles.prod.options]\n"execution.checkpointing.dir" = "checkpoints"\n' if profile else ""
        (folder / "flowsql.toml").write_text(f"[options]\n{lines}\n{where}", encoding="utf-8")
        (folder / "tables.sql").write_text(self.tables(monitor=True), encoding="utf-8")
        (folder / "jobs.sql").write_text(f"{PLAIN};\n{WINDOWS};\n{COUNTED};\n", encoding="utf-8")
        (folder / "functions_of_chaos.py").write_text(FUNCTIONS, encoding="utf-8")
        self._words = ["run", str(folder), *(["--profile", "prod"] if profile else [])]

    def command(self, draw: random.Random) -> list[str]:
        """As a service, from time to time, or to be stopped with savepoints."""
        return self._words + draw.choice([[], [], ["--available-now"], ["--stop-with-savepoint"]])

    def ending(self) -> list[str]:
        """It takes what is there."""
        return [*self._words, "--available-now"]

    def wanted(self, arrivals: Arrivals) -> dict[str, Counter[str]]:
        """And the even numbers."""
        return super().wanted(arrivals) | {"counted": Counter(str(n) for n in range(2, self.last + 1, 2))}


class Script(Subject):
    """``flowsql -f job.sql --resume DIR``: an INSERT and a statement set that end, then one that goes on for ever."""

    def __init__(self, folder: Path, kills: int) -> None:
        super().__init__(folder, kills)
        self.last //= 2
        options = "".join(f"SET '{key}' = '{value}';\n" for key, value in OPTIONS.items())
        (folder / "functions_of_chaos.py").write_text(FUNCTIONS, encoding="utf-8")
        for name, monitor in (("job.sql", True), ("end.sql", False)):
            trigger = "" if monitor else "SET 'flowsql.trigger' = 'available-now';\n"
            (folder / name).write_text(
                f"{options}SET 'execution.checkpointing.savepoint-dir' = '{folder}/saved';\n{self.tables(monitor=True)}"
                f"{COUNTED};\n{BOTH};\n{trigger}EXECUTE STATEMENT SET BEGIN {PLAIN}; {WINDOWS}; END;\n",
                encoding="utf-8",
            )

    def command(self, draw: random.Random) -> list[str]:
        """The same each time, as a supervisor has it."""
        del draw
        return ["-f", str(self.folder / "job.sql"), "--resume", str(self.folder / "state")]

    def ending(self) -> list[str]:
        """The same statements, and the last one takes what is there."""
        return ["-f", str(self.folder / "end.sql"), "--resume", str(self.folder / "state")]

    def wanted(self, arrivals: Arrivals) -> dict[str, Counter[str]]:
        """And what the jobs that ended wrote."""
        numbers = range(1, self.last + 1)
        return super().wanted(arrivals) | {
            "counted": Counter([*(str(n) for n in numbers if n % 2 == 0), *(str(-n) for n in numbers)]),
            "counted2": Counter(f"{n},{2 * n}" for n in numbers if n % 3 == 0),
        }


def committed(folder: Path) -> dict[str, Counter[str]]:
    """By table the rows that a reader sees."""
    found: dict[str, Counter[str]] = {}
    for path in sorted((folder / "out").glob("*/*")):
        if path.is_file() and not path.name.startswith((".", "_")):
            lines = path.read_text(encoding="utf-8").splitlines()
            found.setdefault(path.parent.name, Counter()).update(line.replace('"', "") for line in lines)
    return found


def snapshots(folder: Path) -> set[Path]:
    """All complete ones."""
    with contextlib.suppress(FileNotFoundError):
        return {path for path in folder.rglob("_metadata") if path.parent.name.startswith(("chk-", "savepoint-"))}
    return set()


def children(number: int) -> list[int]:
    """Processes that a process started, and theirs."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{number}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found


def start(words: list[str], folder: Path, point: str = "") -> subprocess.Popen[bytes]:
    """A command; its output is below ``folder``."""
    environment = {**os.environ, "FLOWSQL_RUNTIME_DIR": str(folder / "run")}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), environment.get("PYTHONPATH", "")])
    environment.pop("FLOWSQL_PROFILE", None)
    environment.pop("CHAOS_POINT", None)
    if point:
        environment["CHAOS_POINT"] = point
    with (folder / "stdout").open("ab") as out, (folder / "stderr").open("wb") as errors:
        command = [sys.executable, str(HERE / "start.py"), *words]
        return subprocess.Popen(command, stdout=out, stderr=errors, env=environment, cwd=folder)


def strike(subject: Subject, arrivals: Arrivals, draw: random.Random, tally: Tally) -> None:
    """One attempt, which is killed; raises BrokenPromiseError if it fails by itself."""
    folder = subject.folder
    before = snapshots(folder)
    chance = draw.random()
    point = f"{draw.choice(PLACES)}:{draw.randrange(1, 4)}" if chance < 0.45 else ""
    words = subject.command(draw)
    process = start(words, folder, point)
    began = time.monotonic()
    # One in six before it has a snapshot of its own, the others some time after.
    early = draw.uniform(0.3, 3.0) if chance > 0.85 else None
    due = began + early if early is not None else None
    files, told, worker, bereft = 0, False, draw.random() < 0.3, False
    while process.poll() is None:
        now = time.monotonic()
        if due is None and snapshots(folder) - before:
            due = now + draw.uniform(0.0, 1.5)
        if files < FILES_A_KILL and now > began + 0.3 * (files + 1):
            arrivals.more()
            files += 1
        if due is not None and now >= due:
            if "--stop-with-savepoint" in words and not told:
                # It ends with savepoints; the kill comes while it does so.
                told, due = True, now + draw.uniform(0.0, 0.6)
                process.send_signal(signal.SIGTERM)
            elif worker and (workers := children(process.pid)):
                worker, due = False, now + draw.uniform(0.2, 1.0)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(workers), signal.SIGKILL)
                    tally.kills["worker process"] += 1
                    bereft = True
            else:
                process.send_signal(signal.SIGKILL)
                break
        if now > began + LONGEST_S:
            process.kill()
            process.wait()
            raise BrokenPromiseError(f"{words} hangs ({point})")
        time.sleep(0.01)
    code = process.wait()
    tally.goes_on += _went_on(folder)
    if code == -signal.SIGKILL:
        place = "before a snapshot" if early is not None else "while it stops" if told else "any moment"
        # One that killed itself was at its place.
        tally.kills[point.partition(":")[0] if point and (due is None or time.monotonic() < due) else place] += 1
    # SIGTERM ends Python itself before the engine has loaded, and after it has ended; without a worker a job may fail.
    elif code not in (0, 143, -signal.SIGTERM) and not (bereft and code == 1):
        raise BrokenPromiseError(f"{words} ({point}) ends with {code}:\n{(folder / 'stderr').read_text()}")


def _went_on(folder: Path) -> int:
    errors = (folder / "stderr").read_text(encoding="utf-8", errors="replace")
    out = (folder / "stdout").read_text(encoding="utf-8", errors="replace")
    (folder / "stdout").write_text("", encoding="utf-8")
    return errors.count(" goes on from ") + out.count(": started from /")


def finish(subject: Subject, arrivals: Arrivals) -> None:
    """Let it come to its end: all that arrived is committed."""
    words = subject.ending()
    for _ in range(2):
        process = start(words, subject.folder)
        try:
            code = process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BrokenPromiseError(f"{words} does not end") from None
        if code:
            raise BrokenPromiseError(f"{words} ends with {code}:\n{(subject.folder / 'stderr').read_text()}")
    del arrivals


def compare(wanted: dict[str, Counter[str]], found: dict[str, Counter[str]], tally: Tally, name: str) -> None:
    """Count rows that are lost or doubled."""
    for table in sorted(wanted.keys() | found.keys()):
        lost = wanted.get(table, Counter()) - found.get(table, Counter())
        more = found.get(table, Counter()) - wanted.get(table, Counter())
        tally.lost += lost.total()
        tally.doubled += more.total()
        for what, rows in (("lost", lost), ("doubled", more)):
            if rows:
                tally.broken.append(f"{name}: {rows.total()} rows of '{table}' are {what}, e.g. {next(iter(rows))}")


def play(kind: str, make: Callable[[Path, int], Subject], kills: int, seed: str) -> Tally:
    """One subject, killed ``kills`` times."""
    draw, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory(prefix="flowsql-chaos-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        subject, arrivals = make(folder, kills), Arrivals(folder / "arriving")
        arrivals.more()
        try:
            for _ in range(4 * kills):
                if tally.kills.total() >= kills:
                    break
                strike(subject, arrivals, draw, tally)
            # A late row shuts all windows but its own.
            arrivals.add([(len(arrivals.rows), 0, 80_000)])
            finish(subject, arrivals)
        except BrokenPromiseError as broken:
            tally.broken.append(f"{kind} {seed}: {broken}")
        else:
            compare(subject.wanted(arrivals), committed(folder), tally, f"{kind} {seed}")
    print(f"{kind} {seed}: {tally}{' BROKEN' if tally.broken else ''}", file=sys.stderr, flush=True)
    return tally


KINDS: Final[dict[str, Callable[[Path, int], Subject]]] = {
    "script": Script,
    "project": lambda folder, kills: Project(folder, kills, profile=False),
    "project with a folder of checkpoints": lambda folder, kills: Project(folder, kills, profile=True),
}


def main() -> int:
    """Play rounds of all kinds until there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--side-by-side", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    rounds = []
    left = given.kills
    while left > 0:
        kinds = list(KINDS.items())
        kind, make = kinds[len(rounds) % len(kinds)]
        share = min(left, KILLS_A_ROUND, max(1, -(-given.kills // len(kinds))))
        rounds.append((kind, make, share, f"{given.seed}-{len(rounds)}"))
        left -= share
    whole: dict[str, Tally] = {}
    with ThreadPoolExecutor(given.side_by_side) as pool:
        for (kind, *_), tally in zip(rounds, pool.map(lambda one: play(*one), rounds), strict=True):
            whole.setdefault(kind, Tally()).add(tally)
    total = Tally()
    for kind, tally in whole.items():
        print(f"{kind:40} {tally}")
        total.add(tally)
    for place, count in total.kills.most_common():
        print(f"  {place:30} {count:4}")
    print(f"{'all':40} {total} in {time.monotonic() - began:.0f} s")
    for text in total.broken:
        print(text)
    if not total.broken:
        print("no row lost, none doubled")
    return bool(total.broken)


if __name__ == "__main__":
    sys.exit(main())
