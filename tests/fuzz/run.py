"""The differential fuzzer: random queries, each run in two ways and in batch mode, and asked of DuckDB.

python -m tests.fuzz.run [--minutes M] [--seed N] [--processes P] [--queries Q] [--keep FOLDER]
python -m tests.fuzz.run --seed N --query Q

World after world of random tables; what differs shrinks to a script, which is printed and kept in FOLDER. Scripts of
faults that were mended stand in ``tests/regressions``, each a test. The second form shows one query of one world and
judges it once more.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path

from .queries import Query
from .scripts import script_of
from .shrink import Shrinker
from .variations import Variation
from .world import Report, World, run_world

#: Queries over the tables of one world.
QUERIES = 60
#: A query that takes longer hangs.
HANGS_AFTER_SECONDS = 120.0
#: Findings of one kind that are made small; the others are counted.
SHRUNK = 3


class Watchdog:
    """Ends the process, and says at which query, when one does not come back."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._timer: threading.Timer | None = None

    def __call__(self, number: int, query: Query, variation: Variation) -> None:
        """The next query."""
        self.stop()
        self._timer = threading.Timer(HANGS_AFTER_SECONDS, self._hangs, (number, query, variation))
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """No query runs."""
        if self._timer is not None:
            self._timer.cancel()

    def _hangs(self, number: int, query: Query, variation: Variation) -> None:
        print(f"world {self._seed}, query {number} hangs: {variation}\n{query.flink()}", flush=True)
        os._exit(3)


def one_world(task: tuple[int, int]) -> Report:
    """Run one world, watched."""
    seed, count = task
    watchdog = Watchdog(seed)
    try:
        return run_world(seed, count, watchdog)
    finally:
        watchdog.stop()
        _leave_what_is_loaded()


@cache
def _leave_what_is_loaded() -> None:
    """Once a process has run a world, garbage collections look no more at what it has loaded, and come less often.

    A query makes many objects that live shortly; looking for cycles was a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def _one_query(seed: int, number: int, folder: Path) -> int:
    """One query of one world, shown and judged."""

    def show(number: int, query: Query, variation: Variation) -> None:
        print(*query.statements(), query.flink(), f"-- {variation}", query.duck() or f"-- {query.sql.why}", sep="\n")

    report = run_world(seed, number + 1, show, only=number)
    for finding in report.findings:
        print(f"{finding.fault.kind}\n{finding.fault.text}", flush=True)
    _show(report, 1.0)
    _keep(report, folder)
    return 1 if report.findings else 0


def _worlds(first: int, count: int, end: float) -> Iterator[tuple[int, int]]:
    seed = first
    while time.monotonic() < end:
        yield seed, count
        seed += 1


def _reports(arguments: argparse.Namespace) -> Iterator[Report]:
    end = time.monotonic() + 60 * arguments.minutes
    if arguments.processes == 1:
        yield from map(one_world, _worlds(arguments.seed, arguments.queries, end))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:
        seeds = _worlds(arguments.seed, arguments.queries, end)
        # One world waits for each process, so that none idles while another one's report is read.
        running = [pool.submit(one_world, task) for task in itertools.islice(seeds, 2 * arguments.processes)]
        while running:
            yield running.pop(0).result()
            running += [pool.submit(one_world, task) for task in itertools.islice(seeds, 1)]


def _whole(parts: Iterator[Report], report: Report) -> Iterator[Report]:
    """The reports of all worlds, until a process ends in one."""
    try:
        yield from parts
    except BrokenProcessPool:
        report.cut_short = True
        print("a process ended before its world was judged", flush=True)


def _show(report: Report, seconds: float) -> None:
    print(f"{report.queries} queries in {seconds:.0f} s, {report.queries / seconds:.1f} a second; {report.empty} empty")
    print("compared with:", ", ".join(f"{name} {count}" for name, count in report.judged.most_common()))
    print("operators:", ", ".join(f"{name} {count}" for name, count in report.used.most_common()))
    for title, counted in (
        ("no twin", report.no_twin),
        ("not in batch mode", report.no_batch),
        ("refused", report.refused),
    ):
        for reason, count in counted.most_common(20):
            print(f"{title}: {count} x {reason}")


def _keep(report: Report, folder: Path) -> None:
    """Make findings small and write them; the same query in another world is the same fault, mostly."""
    kinds: dict[str, int] = {}
    for finding in report.findings:
        number = kinds[finding.fault.kind] = kinds.get(finding.fault.kind, 0) + 1
        if number > SHRUNK:
            continue
        small = Shrinker(finding).shrink()
        with World(small.case.tables) as world:
            answer = world.twin_answer(small.case.query())
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"world-{small.seed}-{small.number}.case"
        text = script_of(small, answer)
        path.write_text(text, encoding="utf-8")
        print(f"\n{path}\n{text}", flush=True)
    for kind, number in kinds.items():
        print(f"{number} x {kind}")


def main(words: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of the first world; each world takes the next")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--queries", type=int, default=QUERIES, help="of each world")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="folder of failing cases")
    parser.add_argument("--query", type=int, help="judge this query of the first world alone")
    arguments = parser.parse_args(words)
    if arguments.query is not None:
        return _one_query(arguments.seed, arguments.query, arguments.keep)
    report = Report()
    started = time.monotonic()
    told = started
    for part in _whole(_reports(arguments), report):
        report.add(part)
        for finding in part.findings:
            print(f"world {finding.seed}, query {finding.number}: {finding.fault.kind}", flush=True)
        if time.monotonic() - told > 30:
            told = time.monotonic()
            seconds = told - started
            print(f"{report.queries} queries, {report.queries / seconds:.1f} a second, {len(report.findings)} findings")
            sys.stdout.flush()
    _show(report, time.monotonic() - started)
    _keep(report, arguments.keep)
    return 1 if report.findings or report.cut_short else 0


if __name__ == "__main__":
    sys.exit(main())
