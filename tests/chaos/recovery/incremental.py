"""A job that is killed while it writes incremental checkpoints: ``python tests/chaos/recovery/incremental.py FOLDER``.

It is killed before, in and behind files of its state, shared ones among them, and around ``_metadata``; each time it
starts again from the newest checkpoint, which it claims, so that files of several dead jobs are parts of one
checkpoint. At the end every row is committed once.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import LONGEST_S, Round, Strike, committed, newest, prepare, start, undisturbed, write_inputs

STRIKES = (
    Strike("half-state-file", 2),
    Strike("after-state-file", 2),
    Strike("before-metadata", 1),
    Strike(),
)


@dataclass(frozen=True)
class Incremental(Round):
    """State is in files of RocksDB, none of it in ``_metadata``."""

    @property
    def options(self) -> dict[str, str]:
        """Its options."""
        return Round(self.job, "hashmap", self.unaligned).options | {
            "state.backend.type": "rocksdb",
            "state.backend.rocksdb.memory.fixed-per-slot": "1",
            "execution.checkpointing.incremental": "true",
            "execution.checkpointing.data-inline-threshold": "0",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }


def main(folder: Path) -> None:
    """Play; raises AssertionError."""
    write_inputs(folder, 20_000, 3)
    wanted = undisturbed("aggregate", folder, folder / "whole")
    job = folder / "job"
    prepare(folder, job)
    # Sources rest long enough that each attempt leaves rows for the next.
    found = Incremental("aggregate", "rocksdb", False, pace_ms=25)
    for number, strike in enumerate(STRIKES):
        options = {
            "execution.checkpointing.dir": str(job / "checkpoints"),
            "execution.state-recovery.claim-mode": "CLAIM" if number % 2 else "NO_CLAIM",
            "parallelism.default": "2" if number == 2 else "1",
        }
        last = newest(job)
        if last is not None:
            options["execution.state-recovery.path"] = str(last)
        with (job / "stderr").open("w+b") as stderr:
            process = start(found, job, options, stderr, strike)
            try:
                process.wait(LONGEST_S)
            finally:
                process.kill()
        assert process.returncode == (-9 if strike.point else 0), (strike, last, (job / "stderr").read_text())
    assert committed(job) == wanted
    print(f"{len(STRIKES) - 1} kills, no row lost, none doubled")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except subprocess.TimeoutExpired as error:
        sys.exit(f"the job hangs: {error}")
