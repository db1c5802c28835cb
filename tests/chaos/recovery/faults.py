"""Faults that leave the process alive: ``python faults.py [FAULT JOB]``, see ``FAULTS``. The job goes on by itself.

Without arguments each fault befalls some jobs. Those that mount a small file system do it in a mount namespace of their
own, ``unshare --user --map-root-user --mount python faults.py FAULT JOB``; without the right to, they are left out.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import (  # noqa: E402
    BACKENDS,
    LONGEST_S,
    SIDE_BY_SIDE,
    BrokenPromiseError,
    Round,
    Strike,
    Tally,
    committed,
    compare,
    prepare,
    published,
    start,
    undisturbed,
    write_inputs,
)
from job import JOBS  # noqa: E402

ROWS: Final = 20_000
TIMEOUT_MS: Final = 400
MOST_FREEZES: Final = 10
SMALL: Final = "size=2m"
OWN_MOUNTS: Final = ["unshare", "--user", "--map-root-user", "--mount"]


@dataclass(frozen=True)
class Victim:
    """A job that runs."""

    folder: Path
    process: subprocess.Popen[bytes]

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something that happens while the job runs; raises BrokenPromiseError."""
        deadline = time.monotonic() + LONGEST_S
        while not condition():
            if self.process.poll() is not None and not condition():
                raise BrokenPromiseError(f"the job ended (code {self.process.returncode}) before {what}\n{self.said()}")
            if time.monotonic() > deadline:
                raise BrokenPromiseError(f"never: {what}\n{self.said()}")
            time.sleep(0.005)

    def said(self) -> str:
        """What it wrote to its standard error."""
        return (self.folder / "stderr").read_text(encoding="utf-8")

    def checkpoint(self) -> None:
        """Wait for the next checkpoint."""
        before = published(self.folder)
        self.until(lambda: published(self.folder) - before, "the next checkpoint")

    def complaint(self, text: str) -> None:
        """Wait until it says so once more."""
        before = self.said().count(text)
        self.until(lambda: self.said().count(text) > before, f"it says '{text}'")


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """A small file system of its own at a folder."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", SMALL, "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """No byte is free below a folder."""
    ballast = folder / ".ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        ballast.unlink()


def full_checkpoints(victim: Victim) -> None:
    """The disk of the checkpoints is full for a while."""
    with filled(victim.folder / "checkpoints"):
        victim.complaint("No space left on device")
    victim.checkpoint()


def full_output(victim: Victim) -> None:
    """The disk of the sink is full for a while."""
    with filled(victim.folder / "out"):
        victim.complaint("No space left on device")
    victim.checkpoint()


def read_only(victim: Victim) -> None:
    """The disk of the checkpoints takes nothing for a while."""

    def remount(mode: str) -> bool:
        command = ["mount", "-o", f"remount,{mode},{SMALL}", str(victim.folder / "checkpoints")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    victim.until(lambda: remount("ro"), "a moment without a file that is being written")
    victim.complaint("Read-only file system")
    if not remount("rw"):
        raise BrokenPromiseError("the file system cannot be made writable again")
    victim.checkpoint()


def hanging(victim: Victim) -> None:
    """Opening the metadata of the next checkpoints never returns: they are pipes that nobody reads."""
    text = "took longer than"
    before, laid = victim.said().count(text), 0

    def hangs() -> bool:
        nonlocal laid
        try:
            newest = max(published(victim.folder), key=lambda path: path.stat().st_mtime_ns).parent
        except (ValueError, FileNotFoundError):  # the next one has just taken its place
            return False
        number = int(newest.name.removeprefix("chk-"))
        # Checkpoints go on meanwhile: pipes are laid ahead of them until one runs into a pipe.
        for ahead in range(max(laid, number + 3), number + 6):
            folder = newest.parent / f"chk-{ahead}"
            folder.mkdir(exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkfifo(folder / "._metadata.inprogress")
            laid = ahead + 1
        return victim.said().count(text) > before

    victim.until(hangs, f"it says '{text}'")
    victim.checkpoint()


def frozen(victim: Victim) -> None:
    """The process stands for longer than a checkpoint may take, until a checkpoint was given up for it."""
    for _ in range(MOST_FREEZES):
        before = victim.said().count("took longer than")
        victim.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5 * TIMEOUT_MS / 1000)
        victim.process.send_signal(signal.SIGCONT)
        victim.checkpoint()
        if victim.said().count("took longer than") > before:
            return
    raise BrokenPromiseError(f"{MOST_FREEZES} freezes met no checkpoint under way")


def failing(victim: Victim) -> None:
    """Every operator fails once, and the job restarts in its process."""
    victim.process.wait(LONGEST_S)
    told = (victim.folder / "failures").read_text(encoding="utf-8").splitlines()
    made, failed = ({line.partition(" ")[2] for line in told if line.startswith(what)} for what in ("made", "failed"))
    if made != failed:
        raise BrokenPromiseError(f"these operators never failed: {sorted(made - failed)}\n{victim.said()}")
    print(f"{len(failed)} operators failed")


@dataclass(frozen=True)
class Fault:
    """What is done to running jobs after their first checkpoint; which folder is a small file system for it."""

    work: Callable[[Victim], None]
    jobs: tuple[str, ...]
    small: str = ""
    #: Rest of a source after each batch: the job lasts long enough for what befalls it.
    pace_ms: int = 60
    #: Checkpoints are given up after ``TIMEOUT_MS``: what the fault is about.
    times_out: bool = False


FAULTS: Final = {
    "full-checkpoints": Fault(full_checkpoints, ("keyed-process", "aggregate"), "checkpoints"),
    "full-output": Fault(full_output, ("statement-set", "window", "stateless"), "out"),
    "read-only": Fault(read_only, ("join", "broadcast"), "checkpoints"),
    "hanging": Fault(hanging, ("aggregate", "keyed-process"), times_out=True),
    "frozen": Fault(frozen, ("window", "statement-set"), times_out=True),
    "failing": Fault(failing, tuple(job for job in JOBS if job != "files"), pace_ms=250),
}


def play(fault: Fault, job: str, root: Path) -> None:
    """One job through one fault; raises BrokenPromiseError."""
    write_inputs(root, ROWS, 1)
    wanted = undisturbed(job, root, root / "whole")
    folder = root / "struck"
    prepare(root, folder)
    # Every other job of a fault is on the other backend.
    backend = list(BACKENDS)[fault.jobs.index(job) % len(BACKENDS)]
    found = Round(job, backend, False, pace_ms=fault.pace_ms)
    options = {
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.timeout": f"{TIMEOUT_MS if fault.times_out else 20_000} ms",
        "execution.checkpointing.tolerable-failed-checkpoints": "100000",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "50 ms",
        "parallelism.default": "2",
    }
    if fault.work is failing:
        os.environ["CHAOS_FAILURES"] = str(folder / "failures")
    with contextlib.ExitStack() as stack:
        if fault.small:
            stack.enter_context(mounted(folder / fault.small))
        stderr = stack.enter_context((folder / "stderr").open("w+b"))
        victim = Victim(folder, start(found, folder, options, stderr, Strike()))
        stack.callback(victim.process.kill)
        victim.checkpoint()
        fault.work(victim)
        if victim.process.wait(LONGEST_S):
            raise BrokenPromiseError(f"the job failed:\n{victim.said()}")
        tally = Tally()
        compare(found, wanted, committed(folder), tally)
        if tally.broken:
            raise BrokenPromiseError("\n".join(tally.broken))


def may_mount() -> bool:
    """Whether this user may mount file systems in a namespace of its own."""
    with tempfile.TemporaryDirectory() as folder:
        mount = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "-o", SMALL, "none", folder]
        try:
            return subprocess.run(mount, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False


def play_all() -> bool:
    """Every fault over its jobs, two at a time; whether all was well."""
    mounts = may_mount()
    found = [(name, job) for name, fault in FAULTS.items() for job in fault.jobs]

    def played(fault: tuple[str, str]) -> bool:
        name, job = fault
        if FAULTS[name].small and not mounts:
            print(f"{name} {job}: left out, this user may not mount file systems", flush=True)
            return True
        before = OWN_MOUNTS if FAULTS[name].small else []
        return (
            subprocess.run([*before, sys.executable, str(HERE / "faults.py"), name, job], check=False).returncode == 0
        )

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        broken = [fault for fault, well in zip(found, pool.map(played, found), strict=True) if not well]
    for name, job in broken:
        print(f"{name} {job}: BROKEN")
    print(f"{len(found) - len(broken)} of {len(found)} faults did no harm")
    return not broken


def main() -> int:
    """Play and tell; 1 if a fault did harm."""
    if len(sys.argv) == 1:
        return not play_all()
    name, job = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        play(FAULTS[name], job, Path(folder))
    print(f"{name} {job}: no row lost, none doubled", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
