"""Executors in other processes: a cluster inside of the driver's Java, and a standalone master with two workers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql_runtime.spark.java import require_java
from flowsql_runtime.spark.shipping import _difference
from tests.spark.spark_machine import ON_SPARK

NEEDS_SPARK = ON_SPARK[1]
COUNT = 200_000


def write_tables(folder: Path) -> None:
    (folder / "t").mkdir()
    for file in range(2):
        numbers = range(file, COUNT, 2)
        lines = (f"{n},K{n % 5},{n % 1000}.25,2020-01-01 00:00:00" for n in numbers)
        (folder / "t" / f"{file}.csv").write_text("\n".join(lines) + "\n")
    ids = pa.array(range(COUNT), pa.int64())
    pq.write_table(pa.table({"id": ids, "n": ids}), folder / "p.parquet")


def run_on(master: str, folder: Path) -> dict[str, Any]:
    write_tables(folder)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    words = [sys.executable, str(Path(__file__).with_name("cluster_job.py")), master, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any], folder: Path) -> None:
    kept = [n for n in range(COUNT) if n % 1000 + 0.25 > 1]
    totals = []
    for k in range(5):
        own = [n for n in kept if n % 5 == k]
        cents = sum(n % 1000 * 100 + 25 for n in own)
        totals.append([f"k{k}", str(len(own)), str(sum(own)), f"{cents // 100}.{cents % 100:02}"])
    assert found["answers"] == [totals, [["2020", "5", "499.750000"]]]
    assert os.getpid() not in found["processes"]
    assert {path.name for path in (folder / "o").iterdir() if path.is_dir()} == {f"k=k{k}" for k in range(5)}
    # Ten million bytes of rows were read and written; the driver saw names of files.
    assert found["sent"] < 200_000


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and two workers of Spark on loopback; gives the address."""
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    port = free_port()
    environment = {
        **os.environ,
        "JAVA_HOME": require_java(),
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": "",
    }
    spark_class = f"{home}/bin/spark-class"
    master = f"spark://127.0.0.1:{port}"
    place = ("--host", "127.0.0.1", "--webui-port", "0")
    processes = [(spark_class, "org.apache.spark.deploy.master.Master", "--port", str(port), *place)]
    worker = "org.apache.spark.deploy.worker.Worker"
    processes += [
        (spark_class, worker, "-c", "1", "-m", "1g", "-d", str(folder / f"work{n}"), *place, master) for n in range(2)
    ]
    running: list[subprocess.Popen[bytes]] = []
    log = (folder / "spark.log").open("wb")
    try:
        for words in processes:
            running.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log))
            deadline = time.monotonic() + 60
            while len(running) == 1 and not answers(port) and time.monotonic() < deadline:
                time.sleep(0.2)
        yield master
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(30)
        log.close()


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@NEEDS_SPARK
def test_executors_in_other_processes(tmp_path: Path) -> None:
    check(run_on("local-cluster[2,1,1024]", tmp_path), tmp_path)


@pytest.mark.nightly
@NEEDS_SPARK
def test_a_standalone_master_with_two_workers(tmp_path: Path) -> None:
    with standalone(tmp_path) as master:
        check(run_on(master, tmp_path), tmp_path)


@pytest.mark.nightly
@NEEDS_SPARK
@pytest.mark.parametrize("master", ["local[1]", "local-cluster[1,1,1024]"])
def test_a_program_that_spark_submits(tmp_path: Path, master: str) -> None:
    import pyspark

    example = Path(__file__).parents[2] / "examples" / "spark_submit"
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "JAVA_HOME": require_java(),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    words = [str(home / "bin" / "spark-submit"), "--master", master, "--conf", "spark.app.name=nightly"]
    words += [str(example / "flowsql_job.py"), "--file", str(example / "job.sql")]
    done = subprocess.run(
        words, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    shown = [line.strip("| ").split() for line in done.stdout.splitlines() if line.startswith("|")]
    assert shown[1:] == [["shop", "|", "3.00"], ["web", "|", "19.75"]]


def test_what_stands_on_executors_is_compared_in_a_sentence() -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    releases: dict[str, str | None] = {"pyarrow": "20.0.0", "numpy": "2.0.0", "numba": "0.61.0", "orjson": "3.10.0"}
    assert _difference(here, releases, releases) is None
    assert _difference("3.1", releases, releases) == f"they have Python 3.1, and this program {here}"
    assert _difference(here, releases | {"numpy": None}, releases) == "they lack numpy"
    assert _difference(here, releases | {"numpy": None, "numba": None}, releases) == "they lack numpy, numba"
    found = _difference(here, releases | {"pyarrow": "21.0.0"}, releases)
    assert found == "they have pyarrow 21.0.0, and this program 20.0.0"
    assert _difference(here, releases | {"orjson": "3.11.0"}, releases) is None
