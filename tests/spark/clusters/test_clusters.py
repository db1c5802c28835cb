"""Executors in other processes: of the driver's Java, of a standalone master with two workers, of a Connect server."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql_runtime.spark.sessions.connect import missing_packages
from flowsql_runtime.spark.sessions.java import require_java
from flowsql_runtime.spark.sessions.shipping import _difference
from tests.spark.spark_machine import ON_SPARK

NEEDS_SPARK = ON_SPARK[1]
LACKING = missing_packages()
NEEDS_CONNECT = pytest.mark.skipif(bool(LACKING), reason=f"Spark Connect needs {', '.join(LACKING)}")
SUITE = Path(__file__).resolve().parents[4] / "shared" / "conformance"
COUNT = 200_000


def write_tables(folder: Path) -> None:
    (folder / "t").mkdir()
    for file in range(2):
        numbers = range(file, COUNT, 2)
        lines = (f"{n},K{n % 5},{n % 1000}.25,2020-01-01 00:00:00" for n in numbers)
        (folder / "t" / f"{file}.csv").write_text("\n".join(lines) + "\n")
    ids = pa.array(range(COUNT), pa.int64())
    pq.write_table(pa.table({"id": ids, "n": ids}), folder / "p.parquet")


def on_master(master: str) -> dict[str, str]:
    return {"spark.master": master, "spark.executor.memory": "1024m", "spark.driver.host": "127.0.0.1"}


def program(name: str, settings: dict[str, str], folder: Path, limit_s: int) -> str:
    """What a program of this folder prints in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    words = [sys.executable, str(Path(__file__).with_name(name)), json.dumps(settings), str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    assert process.returncode == 0, out[-4000:] + err[-4000:]
    return out


def run_on(settings: dict[str, str], folder: Path) -> dict[str, Any]:
    write_tables(folder)
    found: dict[str, Any] = json.loads(program("cluster_job.py", settings, folder, 300).splitlines()[-1])
    return found


def check(found: dict[str, Any], folder: Path) -> None:
    kept = [n for n in range(COUNT) if n % 1000 + 0.25 > 1]
    totals = []
    for k in range(5):
        own = [n for n in kept if n % 5 == k]
        cents = sum(n % 1000 * 100 + 25 for n in own)
        totals.append([f"k{k}", str(len(own)), str(sum(own)), f"{cents // 100}.{cents % 100:02}"])
    assert found["answers"] == [totals, [["2020", "5", "499.750000"]]]
    assert [list(row.values()) for row in found["frame"]] == [[sum(n % 1000 == 0 for n in range(COUNT)), "K0"]]
    stored = [path.stat().st_size for path in [*(folder / "t").iterdir(), folder / "p.parquet"]]
    volumes = found["volumes"]
    # Of the csv table what its readers' filter lets pass, the parquet table, and five rows of VALUES.
    assert (volumes["rows_read"], volumes["bytes_read"]) == (len(kept) + COUNT + 5, sum(stored))
    written = [path.stat().st_size for path in (folder / "o").rglob("part-*")]
    assert (volumes["rows_written"], volumes["bytes_written"]) == (len(kept), sum(written))
    assert volumes["bytes_shuffled"] > 1_000_000
    assert os.getpid() not in found["processes"]
    assert {path.name for path in (folder / "o").iterdir() if path.is_dir()} == {f"k=k{k}" for k in range(5)}
    # Ten million bytes of rows were read and written; the driver saw names of files.
    assert found["sent"] < 200_000


def free_port() -> int:
    """A port that nobody has, below those that systems give to whoever asks for any: a server of Spark opens a dozen
    of those before it comes to listen on this one."""
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def spark_home() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent)


def bare_environment() -> dict[str, str]:
    """Of processes that find nothing of this checkout."""
    own = {"JAVA_HOME": require_java(), "SPARK_HOME": spark_home(), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""}
    return {**os.environ, **own}


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[dict[str, str]]:
    """A master and two workers of Spark on loopback; gives the settings that lead to them."""
    port = free_port()
    environment = bare_environment()
    spark_class = f"{spark_home()}/bin/spark-class"
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
        yield on_master(master)
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(30)
        log.close()


@contextlib.contextmanager
def connect_server(folder: Path) -> Iterator[tuple[dict[str, str], str]]:
    """A Connect server on loopback, with executors in processes of their own; gives the settings that lead to it, and
    where it tells what its stages did."""
    port, ui = free_port(), free_port()
    options = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.port": str(ui),
        "spark.executor.memory": "1024m",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "WARN",
    }
    words = [f"{spark_home()}/bin/spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    words += ["--master", "local-cluster[2,1,1024]"]
    for key, value in options.items():
        words += ["--conf", f"{key}={value}"]
    log = (folder / "connect.log").open("wb")
    environment = {**bare_environment(), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 90
        while not answers(port) and time.monotonic() < deadline:
            assert process.poll() is None, (folder / "connect.log").read_text()[-4000:]
            time.sleep(0.2)
        yield {"spark.remote": f"sc://127.0.0.1:{port}"}, f"http://127.0.0.1:{ui}/api/v1/applications"
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def told_result_bytes(address: str) -> int:
    """What the tasks of a server's one application have sent to its driver, as Spark counted it."""

    def asked(url: str) -> Any:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)

    (application,) = asked(address)
    return sum(stage["resultSize"] for stage in asked(f"{address}/{application['id']}/stages"))


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.nightly
@NEEDS_SPARK
def test_executors_in_other_processes(tmp_path: Path) -> None:
    check(run_on(on_master("local-cluster[2,1,1024]"), tmp_path), tmp_path)


@pytest.mark.nightly
@NEEDS_SPARK
def test_a_standalone_master_with_two_workers(tmp_path: Path) -> None:
    with standalone(tmp_path) as settings:
        check(run_on(settings, tmp_path), tmp_path)


@pytest.mark.nightly
@NEEDS_SPARK
@NEEDS_CONNECT
def test_a_connect_server(tmp_path: Path) -> None:
    with connect_server(tmp_path) as (settings, told):
        found = run_on(settings, tmp_path)
        assert found["sent"] is None
        found["sent"] = told_result_bytes(told)
    check(found, tmp_path)


@pytest.mark.nightly
@NEEDS_SPARK
@pytest.mark.parametrize("place", ["local-cluster", "standalone", pytest.param("connect", marks=NEEDS_CONNECT)])
def test_ten_queries_of_tpch_and_the_family_batch_mode(place: str, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        if place == "standalone":
            settings = stack.enter_context(standalone(tmp_path))
        elif place == "connect":
            settings, _ = stack.enter_context(connect_server(tmp_path))
        else:
            settings = on_master("local-cluster[2,1,1024]")
        said = program("cluster_suite.py", settings, tmp_path, 900).splitlines()
    assert "10 queries" in said
    assert f"{15 if SUITE.is_dir() else 0} cases" in said


@pytest.mark.nightly
@NEEDS_SPARK
@pytest.mark.parametrize("master", ["local[1]", "local-cluster[1,1,1024]"])
def test_a_program_that_spark_submits(tmp_path: Path, master: str) -> None:
    example = Path(__file__).parents[3] / "examples" / "spark_submit"
    environment = {
        **os.environ,
        "JAVA_HOME": require_java(),
        "SPARK_HOME": spark_home(),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    words = [f"{spark_home()}/bin/spark-submit", "--master", master, "--conf", "spark.app.name=nightly"]
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
