"""A job with a webhook is killed again and again: what its sender was told is kept is there, whenever the kill came."""

from __future__ import annotations

import http.client
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .test_webhook import post

ROOT = Path(__file__).resolve().parents[3]
KILLS = 8
PATIENCE_S = 60


def script(folder: Path, port: int) -> str:
    """The job, from its last whole checkpoint on."""
    found = [(path.stat().st_mtime_ns, path.parent) for path in folder.glob("checkpoints/*/chk-*/_metadata")]
    again = f"SET 'execution.state-recovery.path' = '{max(found)[1]}';" if found else ""
    return f"""
SET 'execution.checkpointing.interval' = '100 ms';
SET 'execution.checkpointing.dir' = '{folder / "checkpoints"}';
{again}
CREATE TABLE hook (id INT) WITH (
  'connector' = 'webhook', 'port' = '{port}', 'path' = '/in', 'format' = 'json', 'token' = 'geheim');
CREATE TABLE kept (id INT) WITH (
  'connector' = 'filesystem', 'path' = '{folder / "out"}', 'format' = 'csv',
  'sink.rolling-policy.rollover-interval' = '50 ms', 'sink.rolling-policy.check-interval' = '50 ms');
INSERT INTO kept SELECT id FROM hook;
"""


def started(folder: Path, port: int) -> subprocess.Popen[bytes]:
    path = folder / "job.sql"
    path.write_text(script(folder, port))
    roots = [ROOT, *(ROOT / part for part in ("grammar", "planner", "runtime", "connectors"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    with (folder / "log.txt").open("ab") as log:
        command = [sys.executable, "-m", "flowsql.cli", "-f", str(path)]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)


def eventually(holds: Callable[[], bool], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, (folder / "log.txt").read_text()[-3000:]
        time.sleep(0.02)


@pytest.mark.nightly
def test_what_was_answered_is_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answered: list[int] = []
    done = threading.Event()

    def send(first: int) -> None:
        number = first
        while not done.is_set():
            try:
                status = post(f"http://127.0.0.1:{port}/in", f'{{"id": {number}}}')[0]
            except (OSError, http.client.HTTPException):
                status = 0
            if status == 200:
                answered.append(number)
                number += 4
            elif status == 0:
                time.sleep(0.02)

    senders = [threading.Thread(target=send, args=(first,), daemon=True) for first in range(4)]
    for sender in senders:
        sender.start()
    random_ = random.Random(14)
    for _ in range(KILLS):
        job, before = started(tmp_path, port), len(answered)
        eventually(lambda before=before: len(answered) > before, tmp_path)  # type: ignore[misc]
        time.sleep(random_.random() * 0.4)
        job.kill()
        job.wait()
    job = started(tmp_path, port)
    before = len(answered)
    eventually(lambda: len(answered) > before, tmp_path)
    done.set()
    for sender in senders:
        sender.join(PATIENCE_S)

    def missing() -> set[int]:
        there = {int(line) for path in (tmp_path / "out").glob("[!.]*") for line in path.read_text().split()}
        return set(answered) - there

    try:
        eventually(lambda: not missing(), tmp_path)
    finally:
        job.kill()
        job.wait()
    assert len(answered) > 4 * KILLS
