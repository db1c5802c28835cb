"""The fault harness: jobs in child processes, killed again and again, restarted from their last checkpoint.

``python tests/chaos/recovery/harness.py [KILLS [SEED]] [--short]``. Each job runs undisturbed once. Then it is killed
(SIGKILL) at random moments and at chosen places (in the middle of writing a snapshot, of a commit, of a restore), and
started again from the newest checkpoint that is there, at another parallelism now and then, until it has ended. What
it committed must be what the undisturbed run committed: no row lost, none doubled; with AT_LEAST_ONCE none lost.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from job import JOBS  # noqa: E402
from points import POINTS  # noqa: E402

LONGEST_S: Final = 240.0
#: A job is not killed for ever: it must come to its end.
KILLS_A_ROUND: Final = 12


class BrokenPromiseError(Exception):
    """A row is lost or doubled, or a job did not come back."""


@dataclass(frozen=True)
class Round:
    """How one job is run."""

    job: str
    backend: str
    unaligned: bool
    exactly_once: bool = True

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
        if self.backend != "hashmap":
            found["state.backend.type"] = self.backend
        if self.unaligned:
            found["execution.checkpointing.unaligned.enabled"] = "true"
        return found


@dataclass
class Tally:
    """What happened in a round."""

    kills: Counter[str] = field(default_factory=Counter)
    restores: int = 0


def write_inputs(folder: Path, rows: int, seed: int) -> None:
    """Two csv files of known rows."""
    draw = random.Random(seed)
    for side in ("left", "right"):
        lines = []
        for number in range(rows):
            at_ms = int(number * 120_000 / rows + draw.random() * 3_000)
            stamp = f"2024-01-01 10:{at_ms // 60_000:02}:{at_ms // 1000 % 60:02}.{at_ms % 1000:03}"
            lines.append(f"{number},{draw.randrange(40)},{draw.randrange(1000)},row {number},{stamp}\n")
        (folder / f"{side}.csv").write_text("".join(lines), encoding="utf-8")


def start(found: Round, folder: Path, options: dict[str, str], point: str = "") -> subprocess.Popen[bytes]:
    """The job in a child process."""
    flags = [f"{key}={value}" for key, value in {**found.options, **options}.items()]
    environment = {**os.environ, "CHAOS_POINT": point}
    command = [sys.executable, str(HERE / "job.py"), found.job, str(folder), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)


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
    """The newest complete checkpoint of any attempt."""
    found = list((folder / "checkpoints").glob("*/chk-*/_metadata"))
    return max(found, key=lambda path: path.stat().st_mtime_ns).parent if found else None


def play(
    found: Round, inputs: Path, folder: Path, kills: int, draw: random.Random, wanted: dict[str, Counter[str]]
) -> Tally:
    """One job, killed up to ``kills`` times, then left alone; raises BrokenPromiseError."""
    folder.mkdir()
    for side in ("left", "right"):
        (folder / f"{side}.csv").symlink_to(inputs / f"{side}.csv")
    tally = Tally()
    lasted_s = 3.0
    for number in range(KILLS_A_ROUND + 1):
        options = {
            "execution.checkpointing.dir": str(folder / "checkpoints"),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "parallelism.default": str(draw.choice([1, 2] if found.unaligned else [1, 2, 3])),
        }
        if found.unaligned:
            # Rows on their way through forward exchanges restore at their parallelism only.
            options["parallelism.default"] = "2"
        last = newest(folder)
        if last is not None:
            options["execution.state-recovery.path"] = str(last)
            tally.restores += 1
        spared = number >= kills
        point = "" if spared or draw.random() < 0.4 else f"{draw.choice(sorted(POINTS))}:{draw.randrange(1, 4)}"
        began = time.monotonic()
        process = start(found, folder, options, point)
        limit_s = LONGEST_S if spared or point else draw.uniform(0.3, lasted_s)
        try:
            _, stderr = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            if spared or point:
                process.kill()
                raise BrokenPromiseError(f"{found}: the job hangs, started from {last}") from None
            process.send_signal(signal.SIGKILL)
            _, stderr = process.communicate()
            tally.kills["any moment"] += 1
            continue
        if process.returncode == -signal.SIGKILL:
            tally.kills[point.partition(":")[0]] += 1
            continue
        if process.returncode:
            raise BrokenPromiseError(
                f"{found} from {last} at {point}: exit code {process.returncode}\n{stderr.decode()}"
            )
        lasted_s = max(0.5, time.monotonic() - began)
        break
    else:
        raise BrokenPromiseError(f"{found}: the job does not come to its end")
    _compare(found, wanted, committed(folder))
    return tally


def _compare(found: Round, wanted: dict[str, Counter[str]], seen: dict[str, Counter[str]]) -> None:
    for sink in wanted.keys() | seen.keys():
        should, has = wanted.get(sink, Counter()), seen.get(sink, Counter())
        lost, doubled = should - has, has - should
        if lost:
            raise BrokenPromiseError(
                f"{found}: {sum(lost.values())} rows of '{sink}' are lost, e.g. {next(iter(lost))}"
            )
        if doubled and found.exactly_once:
            some = next(iter(doubled))
            raise BrokenPromiseError(f"{found}: {sum(doubled.values())} rows of '{sink}' are too many, e.g. {some}")


def undisturbed(job: str, inputs: Path, folder: Path) -> dict[str, Counter[str]]:
    """What the job commits when nobody strikes it, without checkpoints."""
    folder.mkdir()
    for side in ("left", "right"):
        (folder / f"{side}.csv").symlink_to(inputs / f"{side}.csv")
    process = start(Round(job, "hashmap", False), folder, {"execution.checkpointing.interval": "0 ms"})
    _, stderr = process.communicate(timeout=LONGEST_S)
    if process.returncode:
        raise BrokenPromiseError(f"the undisturbed run of {job} failed:\n{stderr.decode()}")
    return committed(folder)


def run(folder: Path, rounds: list[Round], kills: int, rows: int, seed: int) -> dict[Round, Tally]:
    """Play rounds until there were ``kills`` kills over all; raises BrokenPromiseError."""
    draw = random.Random(seed)
    write_inputs(folder, rows, seed)
    wanted = {job: undisturbed(job, folder, folder / f"whole-{job}") for job in sorted({one.job for one in rounds})}
    tallies: dict[Round, Tally] = {one: Tally() for one in rounds}
    number = 0
    while (made := sum(tally.kills.total() for tally in tallies.values())) < kills or number < len(rounds):
        one = rounds[number % len(rounds)]
        most = min(KILLS_A_ROUND, max(1, kills - made), max(2, -(-kills // len(rounds))))
        found = play(one, folder, folder / f"round-{number}", most, draw, wanted[one.job])
        tallies[one].kills += found.kills
        tallies[one].restores += found.restores
        number += 1
        if number > 20 * len(rounds):
            raise BrokenPromiseError("too few kills struck a running job")
    return tallies


def all_rounds() -> list[Round]:
    """Every job on every backend, aligned and unaligned, and one at least once."""
    backends = os.environ.get("CHAOS_BACKENDS", "hashmap").split(",")
    found = [Round(job, backend, unaligned) for job in JOBS for backend in backends for unaligned in (False, True)]
    return [*found, Round("stateless", backends[0], False, exactly_once=False)]


def short_rounds() -> list[Round]:
    """Each job once, every other one unaligned."""
    return [Round(job, "hashmap", bool(number % 2)) for number, job in enumerate(JOBS)]


def main() -> None:
    """Play and tell."""
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    short = "--short" in sys.argv
    kills = numbers[0] if numbers else 400
    seed = numbers[1] if len(numbers) > 1 else random.randrange(1 << 30)
    print(f"{kills} kills, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rounds = short_rounds() if short else all_rounds()
        tallies = run(Path(folder), rounds, kills, 20_000 if short else 60_000, seed)
    points: Counter[str] = Counter()
    for one, tally in tallies.items():
        kind = ("unaligned" if one.unaligned else "aligned") if one.exactly_once else "at least once"
        print(f"{one.job:14} {one.backend:8} {kind:14} {tally.kills.total():4} kills {tally.restores:4} restores")
        points += tally.kills
    for place, count in points.most_common():
        print(f"{place:28} {count:4}")
    print(f"{points.total()} kills, no row lost, none doubled")


if __name__ == "__main__":
    main()
