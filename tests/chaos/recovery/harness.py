"""The fault harness: jobs in child processes, killed again and again, restarted from their last checkpoint.

``python tests/chaos/recovery/harness.py [KILLS [SEED]] [--short] [--jobs=NAME,NAME] [--rows=N] [--side-by-side=N]``.
Each job runs undisturbed once. Then it is killed (SIGKILL) at random moments and at chosen places (in the middle of
writing a snapshot, of a commit, of a restore), and started again from the newest checkpoint that is there, at another
parallelism now and then, until it has ended. What it committed must be what the undisturbed run committed: no row lost,
none doubled; with AT_LEAST_ONCE none lost.

Every job is played on every backend, aligned and unaligned; on ``rocksdb`` no state stays in memory between two
batches. The short form plays each job in one of these ways. Two rounds run side by side, as a start is mostly one
thread that loads code. At the end there is a line for each kind of round; the exit code is 1 if a row was lost or
doubled, or a job did not come back.
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
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from job import JOBS  # noqa: E402
from points import OF_A_RESTORE, OF_THE_END, POINTS  # noqa: E402

LONGEST_S: Final = 240.0
#: A job is not killed for ever: it must come to its end.
KILLS_A_ROUND: Final = 12
#: The input of the job that reads a folder: files, and seconds between them.
ARRIVING_FILES: Final = 30
ARRIVAL_S: Final = 0.1
#: Rounds that run at the same time, unless told otherwise.
SIDE_BY_SIDE: Final = 2
BACKENDS: Final[Mapping[str, Mapping[str, str]]] = {
    "hashmap": {},
    "rocksdb": {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1"},
}


class BrokenPromiseError(Exception):
    """A row is lost or doubled, or a job did not come back."""


@dataclass(frozen=True)
class Round:
    """How one job is run."""

    job: str
    backend: str
    unaligned: bool
    exactly_once: bool = True
    #: The machine's clock steps by hours.
    jumps: bool = False
    #: Rest of a source after each of its batches: a job runs for some seconds without using the processor for it.
    pace_ms: int = 8

    @property
    def options(self) -> dict[str, str]:
        """Its options."""
        found = {
            "execution.checkpointing.interval": "60 ms",
            "execution.checkpointing.mode": "EXACTLY_ONCE" if self.exactly_once else "AT_LEAST_ONCE",
            "execution.checkpointing.num-retained": "3",
            "flowsql.source.batch-rows": "200",
            "flowsql.network.batch-rows": "100",
            "execution.buffer-timeout.interval": "5 ms",
        }
        if self.unaligned:
            found["execution.checkpointing.unaligned.enabled"] = "true"
        return found | BACKENDS[self.backend]

    def __str__(self) -> str:
        mode = ("unaligned" if self.unaligned else "aligned") if self.exactly_once else "at least once"
        return f"{self.job:16} {self.backend:7} {mode + (', clock jumps' if self.jumps else ''):20}"


@dataclass
class Tally:
    """What happened in a round."""

    kills: Counter[str] = field(default_factory=Counter)
    restores: int = 0
    #: Kills before there was a checkpoint.
    early: int = 0
    lost: int = 0
    doubled: int = 0
    #: What is wrong, in words.
    broken: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """What happened in another round, too."""
        self.kills += other.kills
        self.restores += other.restores
        self.early += other.early
        self.lost += other.lost
        self.doubled += other.doubled
        self.broken += other.broken

    def __str__(self) -> str:
        counts = f"{self.kills.total():3} kills ({self.early} before a checkpoint) {self.restores:3} restores"
        return f"{counts} {self.lost:3} lost {self.doubled:3} doubled" + ("  BROKEN" if self.broken else "")


def write_inputs(folder: Path, rows: int, seed: int) -> None:
    """Two csv files of known rows, up to 3 s out of order; those of a key differ in their times."""
    draw = random.Random(seed)
    for side in ("left", "right"):
        lines = []
        taken: set[tuple[int, int]] = set()
        for number in range(rows):
            key, at_ms = draw.randrange(40), -1
            while at_ms < 0 or (key, at_ms) in taken:
                at_ms = int(number * 120_000 / rows + draw.random() * 3_000)
            taken.add((key, at_ms))
            stamp = f"2024-01-01 10:{at_ms // 60_000:02}:{at_ms // 1000 % 60:02}.{at_ms % 1000:03}"
            lines.append(f"{number},{key},{draw.randrange(1000)},row {number},{stamp}\n")
        (folder / f"{side}.csv").write_text("".join(lines), encoding="utf-8")


def start(
    found: Round, folder: Path, options: dict[str, str], stderr: BinaryIO, strike: Strike | None = None
) -> subprocess.Popen[bytes]:
    """The job in a child process; with a strike its sources rest, so that it runs when it is struck."""
    flags = [f"{key}={value}" for key, value in {**found.options, **options}.items()]
    environment = dict(os.environ)
    if strike is not None:
        environment["CHAOS_PACE_MS"] = str(found.pace_ms)
    if strike is not None and strike.point:
        environment["CHAOS_POINT"] = f"{strike.point}:{strike.number}"
    if found.jumps:
        environment["CHAOS_CLOCK"] = "1"
    command = [sys.executable, str(HERE / "job.py"), found.job, str(folder), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)


def committed(folder: Path) -> dict[str, Counter[str]]:
    """By sink the rows that a reader sees; a changelog as the rows that are left, with how often."""
    found: dict[str, Counter[str]] = {}
    for path in sorted((folder / "out").rglob("*")) if (folder / "out").exists() else []:
        if not path.is_file() or any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
            continue
        rows = found.setdefault(path.relative_to(folder / "out").parts[0], Counter())
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, _, rest = line.partition(",")
            match kind.strip('"'):
                case "+I" | "+U":
                    rows[rest] += 1
                case "-U" | "-D":
                    rows[rest] -= 1
                case _:
                    rows[line] += 1
    return {sink: Counter({row: count for row, count in rows.items() if count}) for sink, rows in found.items()}


def newest(folder: Path) -> Path | None:
    """The newest complete checkpoint of any attempt, or the savepoint that was to end the job: it committed, too."""
    found = [(path.stat().st_mtime_ns, path.parent) for path in (*published(folder), *folder.glob("saved/*/_metadata"))]
    return max(found)[1] if found else None


def published(folder: Path) -> set[Path]:
    """The ``_metadata`` of all complete checkpoints."""
    while True:
        try:
            return set((folder / "checkpoints").glob("*/chk-*/_metadata"))
        except FileNotFoundError:
            # A job that ends removes its folder while this one looks through it.
            continue


@dataclass(frozen=True)
class Strike:
    """What befalls an attempt: a place where it kills itself, or a kill from outside; neither: it is spared."""

    point: str = ""
    number: int = 0
    #: Seconds from the attempt's first checkpoint to the kill; None: no kill from outside.
    delay_s: float | None = None

    @staticmethod
    def draw(draw: random.Random, restores: bool, spared: bool) -> Strike:
        """One in three at any moment of a running job, one in ten in a restore, the others at places.

        A job that came by its place too seldom (``spared``) is struck at any moment.
        """
        chance = draw.random()
        if chance < 0.33 or spared:
            return Strike(delay_s=draw.uniform(0.0, 0.3))
        if chance < 0.43 and restores:
            return Strike(draw.choice(OF_A_RESTORE), 1)
        if chance < 0.46:
            return Strike(draw.choice(OF_THE_END), 1)
        return Strike(draw.choice(sorted(POINTS.keys() - {*OF_A_RESTORE, *OF_THE_END})), draw.randrange(1, 5))

    def struck(self, process: subprocess.Popen[bytes], folder: Path, before: set[Path]) -> str:
        """Wait until the attempt has ended, at latest by the kill; where it was struck, '' if its job had ended.

        A job that has ended removes its checkpoints before its process is gone. One that is killed then must not be
        started again: older attempts, which were killed, have left theirs, and their rows are committed.

        Raises:
            subprocess.TimeoutExpired: it hangs.
        """
        deadline = time.monotonic() + LONGEST_S
        if self.delay_s is not None:
            while process.poll() is None and time.monotonic() < deadline and not published(folder) - before:
                time.sleep(0.01)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.delay_s)
            if process.poll() is None and time.monotonic() < deadline:
                process.send_signal(signal.SIGKILL)
        process.wait(max(1.0, deadline - time.monotonic()))
        if process.returncode != -signal.SIGKILL:
            return ""
        # One that was killed from outside had a checkpoint, and a job that runs keeps its newest one.
        return self.point or ("any moment" if published(folder) - before else "")


def play(
    found: Round,
    inputs: Path,
    folder: Path,
    kills: int,
    draw: random.Random,
    wanted: dict[str, Counter[str]],
    spared: bool = False,
) -> Tally:
    """One job, killed up to ``kills`` times, then left alone. ``spared``: it was played before, and no kill struck."""
    tally = Tally()
    prepare(inputs, folder)
    try:
        with arriving(found, folder, wanted):
            strike_often(found, folder, kills, draw, tally, spared)
    except BrokenPromiseError as broken:
        tally.broken.append(str(broken))
    else:
        compare(found, wanted, committed(folder), tally)
    return tally


def strike_often(found: Round, folder: Path, kills: int, draw: random.Random, tally: Tally, spared: bool) -> None:
    """Start a job, and start it again from its newest checkpoint, until it has ended; raises BrokenPromiseError."""
    for number in range(KILLS_A_ROUND + 1):
        options = {
            "execution.checkpointing.dir": str(folder / "checkpoints"),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            # Rows on their way through forward exchanges restore at their parallelism only.
            "parallelism.default": "2" if found.unaligned else str(draw.choice([1, 2, 3])),
        }
        last = newest(folder)
        if last is not None:
            options["execution.state-recovery.path"] = str(last)
            tally.restores += 1
        strike = Strike() if number >= kills else Strike.draw(draw, last is not None, spared)
        before = published(folder)
        with (folder / "stderr").open("w+b") as stderr:
            process = start(found, folder, options, stderr, strike)
            try:
                place = strike.struck(process, folder, before)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise BrokenPromiseError(f"{found}: the job hangs, started from {last}") from None
        if place:
            tally.kills[place] += 1
            # Restores have a checkpoint already: what counts is that there is something to lose.
            tally.early += newest(folder) is None
        elif process.returncode not in (0, -signal.SIGKILL):
            text = (folder / "stderr").read_text(encoding="utf-8")
            raise BrokenPromiseError(f"{found} from {last} at {strike}: exit code {process.returncode}\n{text}")
        else:
            return
    raise BrokenPromiseError(f"{found}: the job does not come to its end")


def prepare(inputs: Path, folder: Path) -> None:
    """A folder for one job, with its inputs."""
    folder.mkdir()
    (folder / "arriving").mkdir()
    for side in ("left", "right"):
        (folder / f"{side}.csv").symlink_to(inputs / f"{side}.csv")


def arrive(folder: Path, pause_s: float = 0.0) -> Iterator[None]:
    """The rows of one input as files that come one by one."""
    lines = (folder / "left.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    for number in range(ARRIVING_FILES):
        hidden = folder / "arriving" / f".{number}"
        hidden.write_text("".join(lines[number::ARRIVING_FILES]), encoding="utf-8")
        hidden.rename(folder / "arriving" / f"{number}.csv")
        time.sleep(pause_s)
        yield


@contextlib.contextmanager
def arriving(found: Round, folder: Path, wanted: dict[str, Counter[str]]) -> Iterator[None]:
    """While a job runs, is killed and starts again its files arrive; it may end when all rows are committed."""
    over = threading.Event()

    def bring() -> None:
        for _ in arrive(folder, ARRIVAL_S):
            if over.is_set():
                return
        rows = sum(sink.total() for sink in wanted.values())
        while not over.wait(0.1) and sum(sink.total() for sink in committed(folder).values()) < rows:
            pass
        (folder / "stop").touch()

    thread = threading.Thread(target=bring, name="arriving")
    if found.job == "files":
        thread.start()
    try:
        yield
    finally:
        over.set()
        if found.job == "files":
            thread.join()


def compare(found: Round, wanted: dict[str, Counter[str]], seen: dict[str, Counter[str]], tally: Tally) -> None:
    """What was committed against what should have been."""
    for sink in sorted(wanted.keys() | seen.keys()):
        should, has = wanted.get(sink, Counter()), seen.get(sink, Counter())
        lost, doubled = should - has, has - should
        tally.lost += lost.total()
        tally.doubled += doubled.total()
        if lost:
            tally.broken.append(f"{found}: {lost.total()} rows of '{sink}' are lost, e.g. {next(iter(lost))}")
        if doubled and found.exactly_once:
            some = next(iter(doubled))
            tally.broken.append(f"{found}: {doubled.total()} rows of '{sink}' are too many, e.g. {some}")


def undisturbed(job: str, inputs: Path, folder: Path) -> dict[str, Counter[str]]:
    """What the job commits when nobody strikes it, without checkpoints."""
    prepare(inputs, folder)
    for _ in arrive(folder):
        pass
    (folder / "all-there").touch()
    with (folder / "stderr").open("w+b") as stderr:
        process = start(Round(job, "hashmap", False), folder, {"execution.checkpointing.interval": "0 ms"}, stderr)
        process.wait(LONGEST_S)
    if process.returncode:
        text = (folder / "stderr").read_text(encoding="utf-8")
        raise BrokenPromiseError(f"the undisturbed run of {job} failed:\n{text}")
    return committed(folder)


class Schedule:
    """Which round is next, for several that play them at a time, until there were enough kills, some in each round."""

    def __init__(self, rounds: list[Round], kills: int) -> None:
        self.tallies = {one: Tally() for one in rounds}
        self._kills = kills
        self._share = min(KILLS_A_ROUND, max(1, -(-kills // len(rounds))))
        self._planned = dict.fromkeys(rounds, 0)
        self._given = 0
        self._changed = threading.Condition()

    def next(self) -> tuple[int, Round, int] | None:
        """Number, round and kills; None at the end. Waits for what is under way: it may make fewer kills than planned.

        Raises:
            BrokenPromiseError: hardly any kill strikes.
        """
        with self._changed:
            while True:
                kills = {one: tally.kills.total() + self._planned[one] for one, tally in self.tallies.items()}
                found = min(kills, key=kills.__getitem__)
                open_ = self._kills - sum(kills.values())
                if open_ > 0 or not kills[found]:
                    break
                if not any(self._planned.values()):
                    return None
                self._changed.wait()
            if self._given >= 20 * len(self.tallies):
                raise BrokenPromiseError("too few kills struck a running job")
            number, planned = self._given, min(self._share, max(1, open_))
            self._given += 1
            self._planned[found] += planned
            return number, found, planned

    def done(self, one: Round, planned: int, tally: Tally) -> None:
        """A round is over."""
        with self._changed:
            self._planned[one] -= planned
            self.tallies[one].add(tally)
            self._changed.notify_all()


def run(
    folder: Path, rounds: list[Round], kills: int, rows: int, seed: int, side_by_side: int = SIDE_BY_SIDE
) -> dict[Round, Tally]:
    """Play rounds until there were ``kills`` kills over all; raises BrokenPromiseError where nothing can be said."""
    write_inputs(folder, rows, seed)
    jobs = sorted({one.job for one in rounds})
    schedule = Schedule(rounds, kills)

    def play_some() -> None:
        while (given := schedule.next()) is not None:
            number, one, most = given
            tally = Tally(broken=[f"{one}: the harness itself failed"])
            try:
                draw = random.Random(f"{seed} {number}")
                spared = number >= len(rounds) and not schedule.tallies[one].kills
                tally = play(one, folder, folder / f"round-{number}", most, draw, wanted[one.job], spared)
            finally:
                schedule.done(one, most, tally)

    with ThreadPoolExecutor(side_by_side) as pool:
        wholes = pool.map(lambda job: undisturbed(job, folder, folder / f"whole-{job}"), jobs)
        wanted = dict(zip(jobs, wholes, strict=True))
        for player in [pool.submit(play_some) for _ in range(side_by_side)]:
            player.result()
    return schedule.tallies


def all_rounds() -> list[Round]:
    """Every job on every backend, aligned and unaligned; two at least once, two with a clock that jumps.

    At least once only where each row stands for itself: one that counts again changes what an aggregate says.
    """
    found = [Round(job, backend, unaligned) for job in JOBS for backend in BACKENDS for unaligned in (False, True)]
    more = [Round("stateless", "hashmap", False, exactly_once=False)]
    more += [Round("broadcast", "rocksdb", False, exactly_once=False)]
    return [
        *found,
        *more,
        Round("window", "rocksdb", False, jumps=True),
        Round("keyed-process", "hashmap", False, jumps=True),
    ]


def short_rounds() -> list[Round]:
    """Each job in one of the four ways; neighbours in another one."""
    ways = [(backend, unaligned) for unaligned in (False, True) for backend in BACKENDS]
    return [Round(job, *ways[number % len(ways)]) for number, job in enumerate(JOBS)]


def job_names(text: str) -> tuple[str, ...]:
    """Names of jobs; raises ArgumentTypeError for one that is none."""
    names = tuple(text.split(","))
    for name in names:
        if name not in JOBS:
            raise argparse.ArgumentTypeError(f"no job '{name}', there are {', '.join(JOBS)}")
    return names


def main() -> int:
    """Play and tell; 1 if a promise was broken."""
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("kills", type=int, nargs="?", default=400)
    arguments.add_argument("seed", type=int, nargs="?", default=random.randrange(1 << 30))
    arguments.add_argument("--short", action="store_true", help="fewer rows, each job in one way")
    arguments.add_argument("--jobs", type=job_names, default=tuple(JOBS), help="only these, with commas between them")
    arguments.add_argument("--rows", type=int, help="of each input: 60000, 20000 if short")
    arguments.add_argument("--side-by-side", type=int, default=SIDE_BY_SIDE, help="jobs that run at the same time")
    given = arguments.parse_args()
    rows = given.rows or (20_000 if given.short else 60_000)
    kills, seed, short = given.kills, given.seed, given.short
    began = time.monotonic()
    print(f"{kills} kills, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rounds = [one for one in (short_rounds() if short else all_rounds()) if one.job in given.jobs]
        tallies = run(Path(folder), rounds, kills, rows, seed, given.side_by_side)
    whole = Tally()
    for one, tally in tallies.items():
        print(one, tally)
        whole.add(tally)
    for place, count in whole.kills.most_common():
        print(f"{place:28} {count:4}")
    print(f"{whole} in {time.monotonic() - began:.0f} s")
    for text in whole.broken:
        print(text)
    if not whole.broken:
        print("no row lost, none doubled by an exactly-once job")
    return bool(whole.broken)


if __name__ == "__main__":
    sys.exit(main())
