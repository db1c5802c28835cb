"""The machine's zone is the one that Java finds, and everybody has the same."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.session_zone import session_zone
from flowsql_compute.eval.time import machine_zone as module
from flowsql_compute.eval.time.calendar import zone_of
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_core.config import Configuration
from flowsql_planner.physical.context import PlanContext

#: What ``java.time.ZoneId.systemDefault()`` of Java 17 answers, in FlowSQL's spelling of offsets and UTC.
JAVA = {
    "Europe/Berlin": "Europe/Berlin",
    ":Europe/Berlin": "Europe/Berlin",
    "posix/Europe/Berlin": "Europe/Berlin",
    "UTC": "UTC",
    "Etc/UTC": "UTC",
    "GMT": "UTC",
    "PST": "America/Los_Angeles",
    "CTT": "Asia/Shanghai",
    "GMT+2": "+02:00",
    "GMT-03:30": "-03:30",
    # The three next ones are the C library's: what it makes of them at present.
    "UTC-5": "+05:00",
    "XYZ8": "-08:00",
    "/usr/share/zoneinfo/Asia/Tokyo": "+09:00",
    "No/Such_Zone": "UTC",
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    _tell_c_library()


def _tell_c_library() -> None:
    import time

    time.tzset()


@pytest.mark.parametrize("named", JAVA)
def test_tz_is_read_as_java_reads_it(clock: pytest.MonkeyPatch, named: str) -> None:
    clock.setenv("TZ", named)
    _tell_c_library()
    assert machine_zone() == JAVA[named]
    assert zone_of(machine_zone()).utcoffset(datetime.datetime(2020, 1, 1)) is not None


def test_the_session_the_planner_and_the_operators_have_the_same(clock: pytest.MonkeyPatch) -> None:
    clock.setenv("TZ", "PST")
    _tell_c_library()
    assert session_zone(Configuration()) == PlanContext(Configuration()).zone == "America/Los_Angeles"


@pytest.mark.parametrize("empty", ["", None])
def test_without_tz_the_local_time_file_counts(clock: pytest.MonkeyPatch, tmp_path: Path, empty: str | None) -> None:
    zones = tmp_path / "zoneinfo"
    for name, contents in [("Europe/Paris", "p"), ("posix/Asia/Tokyo", "t"), ("Asia/Tokyo", "t"), ("UTC", "u"),
                           ("Zulu", "u"), ("posixrules", "r")]:  # fmt: skip
        (zones / name).parent.mkdir(parents=True, exist_ok=True)
        (zones / name).write_text(contents)
    local = tmp_path / "localtime"
    clock.setattr(module, "_LOCAL_TIME", local)
    clock.setattr(module, "_ZONE_FILES", zones)
    if empty is None:
        clock.delenv("TZ", raising=False)
    else:
        clock.setenv("TZ", empty)
    assert machine_zone() == "UTC"
    local.symlink_to("../usr/share/zoneinfo/Europe/Paris")
    assert machine_zone() == "Europe/Paris"
    for contents, zone in [("t", "Asia/Tokyo"), ("u", "UTC"), ("r", "UTC"), ("x", "UTC")]:
        local.unlink()
        local.write_text(contents)
        assert machine_zone() == zone


def test_parquet_files_have_the_same_zone(tmp_path: Path) -> None:
    """Flink's parquet files hold wall clocks of the machine's zone."""
    script = (
        "from flowsql.table import EnvironmentSettings, TableEnvironment as T\n"
        "t = T.create(EnvironmentSettings.in_streaming_mode())\n"
        f"t.execute_sql(\"CREATE TABLE p (a TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/p',"
        " 'format' = 'parquet')\")\n"
        "t.execute_sql(\"INSERT INTO p VALUES (TIMESTAMP '2020-06-01 12:00:00')\").wait()\n"
        "print(next(iter(t.execute_sql('SELECT a, CAST(a AS STRING) FROM p').collect()))[1])\n"
        "import pathlib, pyarrow.parquet as pq\n"
        f"print(pq.read_table('{tmp_path}/p').column(0)[0].as_py())\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "TZ": "PST"}, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[0] == "2020-06-01 12:00:00.000"
    assert found.stdout.splitlines()[1].startswith("2020-06-01 19:00:00")
