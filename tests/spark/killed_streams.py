"""Streams on Spark whose driver is killed again and again: what becomes visible is the exact answer, once.

``python tests/spark/killed_streams.py KIND [KILLS] [ROWS]``; KIND: windows, changes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

#: Seconds of event time that one file has, and of a window.
FILE_S = 60
WINDOW_S = 10
START = datetime(2024, 1, 1)
#: A run that gets no further than this is broken.
LONGEST_S = 120.0

QUERIES = {
    "windows": (
        "k BIGINT, n BIGINT, s BIGINT, w TIMESTAMP(3)",
        "json",
        "SELECT k, COUNT(*), SUM(v), window_start "
        f"FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '{WINDOW_S}' SECOND)) "
        "GROUP BY k, window_start, window_end",
    ),
    "changes": (
        "k BIGINT, n BIGINT, s BIGINT",
        "debezium-json",
        "SELECT k, COUNT(*), SUM(v) FROM src GROUP BY k",
    ),
}


class BrokenPromiseError(Exception):
    """What is visible is not the answer."""


@dataclass
class Stream:
    """One statement over files of known rows. ``keys``: how many groups."""

    folder: Path
    kind: str
    rows: int
    files: int
    keys: int
    seed: int = 7
    #: After each run: the number of its last whole batch.
    reached: list[int] = field(default_factory=list)

    def write_input(self) -> None:
        """Files that follow each other in event time."""
        (self.folder / "in").mkdir()
        for file, (keys, values, seconds) in enumerate(self._rows()):
            times = [START + timedelta(seconds=second) for second in seconds.tolist()]
            lines = zip(keys.tolist(), values.tolist(), times, strict=True)
            text = "".join(f"{k},{v},{at.isoformat(sep=' ', timespec='milliseconds')}\n" for k, v, at in lines)
            (self.folder / "in" / f"{file:04}.csv").write_text(text)

    def _rows(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:  # type: ignore[type-arg]
        rng = np.random.default_rng(self.seed)
        each = self.rows // self.files
        return [
            (
                rng.integers(0, self.keys, each),
                rng.integers(0, 1000, each),
                file * FILE_S + rng.integers(0, FILE_S * 1000, each) / 1000,
            )
            for file in range(self.files)
        ]

    def start(self) -> subprocess.Popen[bytes]:
        """The command, running; each batch is one file."""
        columns, format_, query = QUERIES[self.kind]
        files = "'connector' = 'filesystem'"
        script = (
            "CREATE TABLE src (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
            f"WITH ({files}, 'format' = 'csv', 'path' = '{self.folder / 'in'}');\n"
            f"CREATE TABLE dst ({columns}) WITH ({files}, 'format' = '{format_}', 'path' = '{self.folder / 'out'}');\n"
            f"INSERT INTO dst {query};"
        )
        options = {
            "execution.target": "spark",
            "execution.checkpointing.dir": str(self.folder / "checkpoint"),
            "flowsql.spark.max-files-per-batch": "1",
            "parallelism.default": "2",
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
        }
        flags = [part for key, value in options.items() for part in ("-D", f"{key}={value}")]
        words = [sys.executable, "-m", "flowsql.cli", *flags, "-c", script]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)

    def newest_batch(self) -> int:
        """Of the last whole snapshot."""
        found = (self.folder / "checkpoint").glob("chk-*/_metadata")
        return max((int(path.parent.name.removeprefix("chk-")) for path in found), default=0)

    def run_and_kill(self, batches: int, delay_s: float) -> None:
        """Kill a run once it has made so many batches, a moment later."""
        process = self.start()
        deadline = time.monotonic() + LONGEST_S
        wanted = self.newest_batch() + batches
        while self.newest_batch() < wanted and process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                raise BrokenPromiseError(f"no batch {wanted} after {LONGEST_S:g} s")
            time.sleep(0.005)
        time.sleep(delay_s)
        if process.poll() is not None:
            _, errors = process.communicate()
            raise BrokenPromiseError(f"the run ended by itself: {errors.decode()[-2000:]}")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.reached.append(self.newest_batch())

    def run_to_end(self) -> None:
        """A run that nobody disturbs."""
        process = self.start()
        _, errors = process.communicate(timeout=2 * LONGEST_S)
        if process.returncode:
            raise BrokenPromiseError(errors.decode()[-4000:])
        self.reached.append(self.newest_batch())

    def check(self) -> None:
        """Compare what is visible with the answer."""
        expected = self._windows() if self.kind == "windows" else self._groups()
        found: Counter[tuple[object, ...]] = Counter()
        for path in sorted((self.folder / "out").glob("part-*")):
            for line in path.read_text().splitlines():
                told = json.loads(line)
                if self.kind == "windows":
                    found[tuple(told.values())] += 1
                elif told["op"] == "c":
                    found[tuple(told["after"].values())] += 1
                else:
                    found[tuple(told["before"].values())] -= 1
        left = {row: count for row, count in found.items() if count}
        if left != dict.fromkeys(expected, 1):
            wrong = [*(set(left) ^ expected), *(row for row, count in left.items() if count != 1)]
            raise BrokenPromiseError(f"{len(wrong)} rows differ, such as {wrong[:3]}")
        hidden = [path.name for path in (self.folder / "out").iterdir() if path.name.startswith(".")]
        if hidden:
            raise BrokenPromiseError(f"left behind: {hidden[:3]}")

    def _groups(self) -> set[tuple[object, ...]]:
        keys, values, _ = (np.concatenate(column) for column in zip(*self._rows(), strict=True))
        counts, sums = np.bincount(keys), np.bincount(keys, values)
        return {(key, int(counts[key]), int(sums[key])) for key in np.unique(keys).tolist()}

    def _windows(self) -> set[tuple[object, ...]]:
        keys, values, seconds = (np.concatenate(column) for column in zip(*self._rows(), strict=True))
        windows = seconds.astype(np.int64) // WINDOW_S
        place = windows * self.keys + keys
        counts, sums = np.bincount(place), np.bincount(place, values)
        # The input goes on for ever: what the last watermark has not passed is still open.
        last = int(seconds.max() * 1000)
        closed = [at for at in np.unique(place).tolist() if (at // self.keys + 1) * WINDOW_S * 1000 - 1 <= last]
        return {(at % self.keys, int(counts[at]), int(sums[at]), _text(at // self.keys)) for at in closed}


def _text(window: int) -> str:
    return (START + timedelta(seconds=window * WINDOW_S)).isoformat(sep=" ")


def play(folder: Path, kind: str, kills: int, rows: int, files: int, keys: int, seed: int = 1) -> Stream:
    """Kill a stream so often, let it end, and check what it wrote."""
    stream = Stream(folder, kind, rows, files, keys)
    stream.write_input()
    moments = random.Random(seed)
    for _ in range(kills):
        stream.run_and_kill(moments.randint(1, 3), moments.uniform(0, 0.6))
    stream.run_to_end()
    stream.check()
    return stream


def main(arguments: list[str]) -> None:
    """The command."""
    kind = arguments[0]
    kills, rows = (int(found) for found in (*arguments[1:3], *("20", "1000000")[len(arguments) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        stream = play(Path(folder), kind, kills, rows, files=5 * kills, keys=100_000 if kind == "changes" else 200)
        print(f"{kind}: {rows:,} rows exact after {kills} kills behind batches {stream.reached[:-1]}, "
              f"{stream.reached[-1]} batches, {time.monotonic() - began:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
