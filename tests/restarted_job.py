"""Jobs in processes of their own, which tests kill and start again from their newest checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.recovery.harness import newest, published

ROOT = Path(__file__).resolve().parents[1]
_LONGEST_S = 60.0


class Job:
    """A script of a process of its own, which goes on from its newest checkpoint."""

    def __init__(self, script: str, folder: Path) -> None:
        self._script = script
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        checkpoints = self.folder / "checkpoints"
        options = {
            "execution.checkpointing.interval": "100 ms",
            "execution.checkpointing.dir": str(checkpoints),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
        last = newest(self.folder)
        if last is not None:
            options["execution.state-recovery.path"] = str(last)
        path = self.folder / "job.sql"
        path.write_text("".join(f"SET '{key}' = '{text}';\n" for key, text in options.items()) + self._script)
        paths = [ROOT, *(ROOT / name for name in ("grammar", "planner", "runtime", "connectors"))]
        with (self.folder / "stderr").open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "flowsql.cli", "-f", str(path)],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            )

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _LONGEST_S
        while not condition():
            code = self._process.poll()
            assert code is None, f"ended with {code} before {what}: {(self.folder / 'stderr').read_text()}"
            assert time.monotonic() < deadline, f"no {what}: {(self.folder / 'stderr').read_text()}"
            time.sleep(0.02)

    def wait_for_checkpoint(self) -> None:
        before = published(self.folder)
        self.wait_for("checkpoint", lambda: bool(published(self.folder) - before))

    def said(self) -> str:
        """What it printed, once it has ended by itself."""
        assert self._process is not None
        self._process.wait(_LONGEST_S)
        return (self.folder / "stderr").read_text()

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
