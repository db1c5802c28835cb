"""Writers and commits that die at any request: no row is lost, none comes twice, nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

import flowsql_connectors.filesystem.stores.objects as objects
from tests.connectors.file_crash_job import attempt, table_in
from tests.connectors.remote.dying import Dies, dying, look
from tests.connectors.remote.store import memory, s3
from tests.connectors.tables import files_table, scan

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("", "grammar", "planner", "runtime", "connectors")
#: Every so many moments of the job a run dies there.
STRIDE = 7
KILLS = 12
ROWS = 24_000


class Died(BaseException):
    pass


def _raise() -> None:
    raise Died


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_job_that_stops_at_any_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str) -> None:
    """In one process: what was held of the store is simply forgotten."""
    whole = objects.place_of
    at, moments = -1, 1
    while at < moments:
        store = memory()
        folder = tmp_path / str(at + 1)
        folder.mkdir()
        for number, dies in enumerate((Dies(at, _raise), Dies(-1, _raise))):
            monkeypatch.setattr(objects, "place_of", whole)
            dying(dies)
            try:
                attempt(folder, table_in(store.root, format_, False), number, lazy=True)
            except Died:
                look(folder, store.root, format_, False, store.names())
                continue
            look(folder, store.root, format_, True, store.names())
            moments = max(moments, dies.moments) if at < 0 else moments
            break
        at += STRIDE


def _environment(server: dict[str, str]) -> dict[str, str]:
    paths = os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)
    return {**os.environ, **server, "AWS_ENDPOINT_URL": server["S3_ENDPOINT"], "PYTHONPATH": paths}


@pytest.mark.servers
def test_sigkill_at_requests(tmp_path: Path, s3_server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    environment = _environment(s3_server)
    for key in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(key, environment[key])
    store = s3(s3_server)

    def run(folder: Path, root: str, number: int, at: int) -> int | None:
        command = [
            sys.executable,
            "-m",
            "tests.connectors.remote.dying",
            str(folder),
            root,
            "csv",
            str(number),
            str(at),
        ]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return int(done.stdout) if done.returncode == 0 else None

    def play(name: str, kills: list[int]) -> int | None:
        folder, root = tmp_path / name, f"{store.root}/{name}"
        folder.mkdir()
        moments = None
        for number, at in enumerate([*kills, -1]):
            moments = run(folder, root, number, at)
            look(folder, root, "csv", moments is not None, store.names(name))
            if moments is not None:
                break
        return moments

    moments = play("undisturbed", [])
    assert moments is not None
    for kill in range(KILLS):
        play(f"kill-{kill}", [kill * moments // KILLS, moments // 3])


@pytest.mark.servers
def test_sigkill_of_a_job_in_sql(tmp_path: Path, s3_server: dict[str, str]) -> None:
    """Checkpoints and table in the same bucket; kills by the clock, wherever the job stands.

    It has a checkpoint by then: without one the next job is another one, which leaves this one's hidden files alone.
    """
    store = s3(s3_server)

    def checkpointed() -> bool:
        return any(name.endswith("_metadata") for name in store.names("checkpoints"))

    script = tmp_path / "job.sql"
    script.write_text(f"""
        CREATE TABLE numbers (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000',
          'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '{ROWS}');
        CREATE TABLE t (a INT, p INT) PARTITIONED BY (p)
        WITH ('connector' = 'filesystem', 'path' = '{store.root}/t', 'format' = 'csv');
        INSERT INTO t SELECT a, a % 3 FROM numbers;
    """)
    options = {
        **store.settings,
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": f"{store.root}/checkpoints",
        "execution.checkpointing.create-subdir": "false",
        "execution.state-recovery.claim-mode": "CLAIM",
        "table.dml-sync": "true",
        "parallelism.default": "2",
    }
    draw = random.Random(7)
    kills = 0
    while True:
        if checkpointed():
            options["execution.state-recovery.path"] = f"{store.root}/checkpoints"
        command = [sys.executable, "-m", "flowsql.cli"]
        for key, value in options.items():
            command += ["-D", f"{key}={value}"]
        log = tmp_path / f"log-{kills}-{uuid.uuid4().hex}"
        with log.open("w") as file:
            job = subprocess.Popen([*command, "-f", str(script)], env=_environment(s3_server), stdout=file, stderr=file)
            while not checkpointed() and job.poll() is None:
                time.sleep(0.05)
            try:
                job.wait(None if kills == KILLS else 1.2 + draw.random() * 1.5)
            except subprocess.TimeoutExpired:
                job.kill()
                job.wait()
                kills += 1
                continue
        assert job.returncode == 0, log.read_text()
        assert store.settings["s3.secret-key"] not in log.read_text()
        break
    assert kills >= KILLS // 2
    table = files_table("a INT, p INT", f"{store.root}/t", "csv", ("p",))
    assert sorted(row[0] for row in scan(table, configuration=store.settings)) == list(range(1, ROWS + 1))
    assert not [name for name in store.names("t") if ".inprogress." in name]
