"""Jobs from Kafka into Kafka, files and PostgreSQL, whose processes and whose broker are killed again and again.

``python -m tests.chaos.kafka.harness [KILLS [BROKER_KILLS [SEED]]] [--jobs=NAME,NAME] [--backends=NAME,NAME]
[--rows=N] [--place=VICTIM:PLACE]``.
Each job runs undisturbed once. Then its process (SIGKILL) and the broker (SIGKILL, and a start over the same data) are
struck at random moments, and before, in and after each call of a transaction. A job whose process died is started again
from its newest checkpoint; one whose broker died has to go on by itself. What readers with ``read_committed``, of the
files or of the database see at the end must be what the undisturbed run gave: nothing lost, nothing doubled. Exit code
1 if not; 3 if there are no servers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.chaos.kafka.jobs import QUERIES
from tests.chaos.kafka.places import PLACES
from tests.chaos.recovery.harness import BACKENDS, BrokenPromiseError, committed, newest, published
from tests.connectors.kafka.broker import PARTITIONS, Broker, real_broker
from tests.servers import SCRIPTS, Server

ROOT: Final = Path(__file__).resolve().parents[3]
LONGEST_S: Final = 180.0
#: Kills of one job before it may come to its end.
A_ROUND: Final = 8
#: Rest of a source after each of its batches: a job runs long enough to be struck.
PACE_MS: Final = 20
#: Calls that a job makes often: at its start there is one call of the others.
_OFTEN: Final = 6
#: Places of the recovery harness that a job with another sink than files passes, too.
_POINTS: Final = ("after-metadata", "before-commit", "after-commit", "in-the-last-commit", "half-state-file")
_POINTS_OF_A_RESTORE: Final = ("in-a-restore", "in-the-commit-of-a-restore")


@dataclass
class Tally:
    """What happened to one job on one backend."""

    jobs: Counter[str] = field(default_factory=Counter)
    brokers: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    restores: int = 0
    lost: int = 0
    doubled: int = 0
    seconds: float = 0.0
    #: From the start of a broker to the next checkpoint of the job, or its end.
    longest_outage_s: float = 0.0
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds:2} rounds {self.jobs.total():3} job kills {self.brokers.total():3} broker kills "
            f"{self.restores:3} restores {self.lost:3} lost {self.doubled:3} doubled {self.seconds:5.0f} s, at most "
            f"{self.longest_outage_s:.1f} s behind a broker's return" + ("  BROKEN" if self.broken else "")
        )


@dataclass(frozen=True)
class Strike:
    """What befalls an attempt: ``victim`` '': nothing. ``place`` '': ``delay_s`` after its first checkpoint."""

    victim: str = ""
    place: str = ""
    number: int = 1
    delay_s: float = 0.0
    #: How long a broker stays away.
    away_s: float = 0.0

    @staticmethod
    def draw(draw: random.Random, broker: bool, transactions: bool, restores: bool) -> Strike:
        """Half of them at places, where the job has some."""
        victim = "broker" if broker else "job"
        away_s, delay_s = draw.choice([0.0, draw.uniform(0.0, 6.0)]), draw.uniform(0.0, 0.6)
        chance = draw.random()
        if transactions and chance < 0.5:
            place = draw.choice(PLACES)
            number = 1 if place.endswith("init_transactions") else draw.randrange(1, _OFTEN)
            return Strike(victim, place, number, 0.0, away_s)
        if not broker and chance < 0.7:
            place = draw.choice([*_POINTS, *(_POINTS_OF_A_RESTORE if restores else ())])
            return Strike(victim, place, 1 if place in _POINTS_OF_A_RESTORE else draw.randrange(1, 4))
        return Strike(victim, "", 1, delay_s, away_s)

    def environment(self, pid: int) -> dict[str, str]:
        """What a job has to know of it; ``pid``: of the broker."""
        if not self.place:
            return {}
        if self.place not in PLACES:
            return {"CHAOS_POINT": f"{self.place}:{self.number}"}
        return {"CHAOS_PLACE": f"{self.victim}:{self.place}:{self.number}", "CHAOS_BROKER_PID": str(pid)}


@dataclass
class World:
    """The servers, and the topics that all jobs read."""

    kafka: Server
    folder: Path
    facts: dict[str, str]
    database: str

    @property
    def broker(self) -> Broker:
        """Clients of the broker."""
        return real_broker(self.kafka.env["KAFKA"])

    @property
    def pid(self) -> int:
        """The broker's process."""
        return int((self.folder / "kafka" / "pid").read_text().split()[0])

    def alive(self) -> bool:
        """Whether the broker's process is there."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError, IndexError):
            return False
        return state not in ("Z", "X")

    def restart(self) -> None:
        """Start a broker that was killed, once its last thread has let go of its port."""
        host, _, port = self.kafka.env["KAFKA"].rpartition(":")
        deadline = time.monotonic() + 30
        with suppress(ConnectionRefusedError):
            while time.monotonic() < deadline:
                socket.create_connection((host, int(port)), 1).close()
                time.sleep(0.05)
        self.kafka.start()

    def target(self, job: str) -> str:
        """A new topic, or table, for one run of a job."""
        if job == "postgres":
            name = f"counts_{time.time_ns()}"
            with self.connected() as connection:
                connection.execute(f"CREATE TABLE {name} (k INT PRIMARY KEY, c BIGINT, total INT, newest BIGINT)")
            return name
        return self.broker.made_topic(f"{job}-")

    def connected(self):  # type: ignore[no-untyped-def]
        """A connection to PostgreSQL."""
        import psycopg

        return psycopg.connect(self.database, autocommit=True)

    def seen(self, job: str, target: str, folder: Path) -> tuple[Counter[str], Counter[str]]:
        """What a job has written: the rows that count, and those that must not come twice."""
        if job == "files":
            rows = committed(folder).get("o", Counter())
            return rows, rows
        if job == "postgres":
            with self.connected() as connection:
                rows = Counter(map(str, connection.execute(f"SELECT * FROM {target}").fetchall()))
            return rows, rows
        values = [message.value().decode() for message in self.broker.read(target)]
        if job == "upserts":
            # Which totals are told on the way depends on the order of partitions; the number of rows is told once.
            told = [json.loads(value) for value in values]
            return Counter({row["k"]: json.dumps(row) for row in told}.values()), Counter(
                f"count {row['c']} of {row['k']}" for row in told
            )
        return Counter(values), Counter(values)


@contextmanager
def world(rows: int, seed: int, jobs: tuple[str, ...]) -> Iterator[World]:
    """A broker with the input, and PostgreSQL where a job needs it."""
    with tempfile.TemporaryDirectory(prefix="flowsql-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        servers = [Server("kafka", folder / "kafka", dies=True)]
        try:
            database = options = ""
            if "postgres" in jobs:
                servers.append(Server("postgres", folder / "postgres"))
                env = servers[1].env
                database = env["PG_URL"]
                options = (
                    f"'url' = '{env['PG_JDBC']}', 'username' = '{env['PG_USER']}', 'password' = '{env['PG_PASSWORD']}'"
                )
            facts = {"address": servers[0].env["KAFKA"], "database": options}
            made = World(servers[0], folder, facts, database)
            for side in ("left", "right"):
                facts[side] = made.broker.made_topic(side)
                write_input(made.broker, facts[side], rows, random.Random(f"{seed} {side}"))
            yield made
        finally:
            for server in servers:
                server.stop()


def write_input(broker: Broker, topic: str, rows: int, draw: random.Random) -> None:
    """Known rows in all partitions, up to 3 s out of order, of two minutes."""
    made: list[list[dict[str, object]]] = [[] for _ in range(PARTITIONS)]
    for number in range(rows):
        at_ms = int(number * 120_000 / rows + draw.random() * 3_000)
        stamp = f"2024-01-01 10:{at_ms // 60_000:02}:{at_ms // 1000 % 60:02}.{at_ms % 1000:03}"
        row: dict[str, object] = {"id": number, "k": draw.randrange(40), "n": draw.randrange(1000), "ts": stamp}
        made[number % PARTITIONS].append(row)
    for partition, some in enumerate(made):
        broker.write(topic, *some, partition=partition)


def start(
    world: World, job: str, target: str, folder: Path, options: dict[str, str], more: dict[str, str]
) -> subprocess.Popen[bytes]:
    """A job in a process of its own."""
    paths = [ROOT, *(ROOT / name for name in ("grammar", "planner", "runtime", "connectors"))]
    facts = json.dumps({**world.facts, "out": target})
    flags = [f"{key}={value}" for key, value in options.items()]
    with (folder / "stderr").open("ab") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.kafka.jobs", job, str(folder), facts, *flags],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, **more, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        )


def undisturbed(world: World, job: str) -> Counter[str]:
    """What a job writes when nobody strikes it."""
    folder = world.folder / f"whole-{job}"
    folder.mkdir()
    target = world.target(job)
    process = start(world, job, target, folder, {"parallelism.default": "2"}, {})
    if process.wait(LONGEST_S):
        raise BrokenPromiseError(f"the undisturbed run of {job} failed:\n{(folder / 'stderr').read_text()}")
    return world.seen(job, target, folder)[0]


def attempt(
    world: World, process: subprocess.Popen[bytes], strike: Strike, folder: Path, tally: Tally
) -> tuple[bool, bool]:
    """One process of a job to its end: whether the strike fell, and whether the job had ended.

    Raises:
        BrokenPromiseError: it hangs.
    """
    before = published(folder)
    deadline = time.monotonic() + LONGEST_S
    struck = False
    at: float | None = None
    returned: float | None = None
    since = before
    while process.poll() is None:
        now = time.monotonic()
        if now > deadline:
            process.send_signal(signal.SIGABRT)
            process.wait(10)
            raise BrokenPromiseError(f"the job hangs behind {strike}:\n{(folder / 'stderr').read_text()}")
        if at is None and published(folder) - before:
            at = now + strike.delay_s
        if strike.victim and not strike.place and not struck and at is not None and now >= at:
            struck = True
            if strike.victim == "job":
                process.send_signal(signal.SIGKILL)
                process.wait()
                # A job that has ended removes its checkpoints before its process is gone.
                return True, not published(folder) - before
            os.kill(world.pid, signal.SIGKILL)
        if not world.alive():
            struck = True
            time.sleep(strike.away_s)
            world.restart()
            returned, since = time.monotonic(), published(folder)
        if returned is not None and published(folder) - since:
            tally.longest_outage_s = max(tally.longest_outage_s, time.monotonic() - returned)
            returned = None
        time.sleep(0.01)
    if not world.alive():
        # It was struck in the last moment, or by a job that died of it.
        struck = True
        world.restart()
    if returned is not None:
        tally.longest_outage_s = max(tally.longest_outage_s, time.monotonic() - returned)
    killed = process.returncode == -signal.SIGKILL
    return struck or killed, not killed


def play(world: World, job: str, backend: str, wanted: Counter[str], plan: list[bool], draw: random.Random, number: int,
         tally: Tally, fixed: str = "") -> None:  # fmt: skip
    """A job under the strikes of ``plan`` (True: the broker's), then left alone until its end, and compared."""
    folder = world.folder / f"round-{number}"
    folder.mkdir()
    target = world.target(job)
    transactions = job not in ("files", "postgres")
    tally.rounds += 1
    for broker in [*plan, None]:
        options = {
            "execution.checkpointing.interval": "100 ms",
            "execution.checkpointing.num-retained": "3",
            "execution.checkpointing.dir": str(folder / "checkpoints"),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "flowsql.source.batch-rows": "200",
            "flowsql.network.batch-rows": "100",
            "execution.buffer-timeout.interval": "5 ms",
            "parallelism.default": str(draw.choice([1, 2, 3])),
            **BACKENDS[backend],
        }
        last = newest(folder)
        if last is not None:
            options["execution.state-recovery.path"] = str(last)
            tally.restores += 1
        strike = Strike() if broker is None else Strike.draw(draw, broker, transactions, last is not None)
        if fixed and broker is not None:
            victim, place = fixed.split(":")
            strike = Strike(victim, place, draw.randrange(1, _OFTEN), 0.0, strike.away_s)
        more = {"CHAOS_PACE_MS": str(PACE_MS)} if broker is not None else {}
        process = start(world, job, target, folder, options, {**more, **strike.environment(world.pid)})
        struck, ended = attempt(world, process, strike, folder, tally)
        if struck:
            kills = tally.brokers if strike.victim == "broker" else tally.jobs
            kills[strike.place or "any moment"] += 1
        if ended and process.returncode not in (0, -signal.SIGKILL):
            text = (folder / "stderr").read_text()
            raise BrokenPromiseError(f"{job} on {backend} from {last} at {strike}: exit {process.returncode}\n{text}")
        if ended:
            break
    rows, once = world.seen(job, target, folder)
    compare(f"{job} on {backend}", wanted, rows, once, tally)


def compare(what: str, wanted: Counter[str], rows: Counter[str], once: Counter[str], tally: Tally) -> None:
    """What a job left against what it should have left, and what it told more than ``once``."""
    lost, wrong = wanted - rows, rows - wanted
    doubled = (once - Counter(dict.fromkeys(once, 1))) | wrong
    tally.lost += lost.total()
    tally.doubled += doubled.total()
    for word, found in (("lost", lost), ("doubled or wrong", doubled)):
        if found:
            tally.broken.append(f"{what}: {found.total()} rows {word}, e.g. {next(iter(found))}")


def run(world: World, given: argparse.Namespace, draw: random.Random) -> dict[tuple[str, str], Tally]:
    """Rounds of each job on each backend in turn until there were enough kills of both kinds."""
    tallies = {(job, backend): Tally() for job in given.jobs for backend in given.backends}
    wanted = {job: undisturbed(world, job) for job in given.jobs}
    number = 0
    while True:
        jobs = sum(tally.jobs.total() for tally in tallies.values())
        brokers = sum(tally.brokers.total() for tally in tallies.values())
        if jobs >= given.kills and brokers >= given.broker_kills:
            return tallies
        if number > 20 * len(tallies) + given.kills:
            raise BrokenPromiseError("too few kills struck a running job")
        (job, backend), tally = min(tallies.items(), key=lambda item: item[1].rounds)
        left = len(tallies) - number % len(tallies)
        plan = [False] * min(A_ROUND, max(0, -(-(given.kills - jobs) // left)))
        plan += [True] * min(2, max(0, -(-(given.broker_kills - brokers) // left)))
        draw.shuffle(plan)
        began = time.monotonic()
        try:
            play(world, job, backend, wanted[job], plan, draw, number, tally, given.place)
        except BrokenPromiseError as broken:
            tally.broken.append(str(broken))
            print(broken, flush=True)
        tally.seconds += time.monotonic() - began
        print(f"round {number}: {job} on {backend}: {tally}", flush=True)
        number += 1


def names(known: tuple[str, ...]):  # type: ignore[no-untyped-def]
    """A parser of some of these, with commas between them."""

    def parse(text: str) -> tuple[str, ...]:
        for name in (found := tuple(text.split(","))):
            if name not in known:
                raise argparse.ArgumentTypeError(f"no '{name}', there are {', '.join(known)}")
        return found

    return parse


def main() -> int:
    """Play and tell."""
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("kills", type=int, nargs="?", default=100)
    arguments.add_argument("broker_kills", type=int, nargs="?", default=10)
    arguments.add_argument("seed", type=int, nargs="?", default=random.randrange(1 << 30))
    arguments.add_argument("--jobs", type=names(tuple(QUERIES)), default=tuple(QUERIES))
    arguments.add_argument("--backends", type=names(tuple(BACKENDS)), default=tuple(BACKENDS))
    arguments.add_argument("--rows", type=int, default=30_000, help="of each of the two inputs")
    arguments.add_argument("--place", default="", help="VICTIM:PLACE, the only one that is struck")
    given = arguments.parse_args()
    if not SCRIPTS.exists():
        print("needs the scripts that start servers")
        return 3
    print(f"{given.kills} kills of jobs, {given.broker_kills} of the broker, seed {given.seed}", flush=True)
    began = time.monotonic()
    with world(given.rows, given.seed, given.jobs) as servers:
        tallies = run(servers, given, random.Random(given.seed))
    places: Counter[str] = Counter()
    for (job, backend), tally in tallies.items():
        print(f"{job:9} {backend:8} {tally}")
        places.update({f"job    {place}": count for place, count in tally.jobs.items()})
        places.update({f"broker {place}": count for place, count in tally.brokers.items()})
    for place, count in sorted(places.items()):
        print(f"{place:45} {count:4}")
    broken = [text for tally in tallies.values() for text in tally.broken]
    print(*broken, sep="\n")
    lost, doubled = (sum(getattr(tally, name) for tally in tallies.values()) for name in ("lost", "doubled"))
    print(f"{lost} lost, {doubled} doubled in {time.monotonic() - began:.0f} s" + ("  BROKEN" if broken else ""))
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
