"""The one session: what it is started with, and what it takes later. Starts no Java."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import ConnectorError, NotSupportedYetError
from flowsql_runtime.spark.sessions import classic, current
from flowsql_runtime.spark.sessions.settings import PINNED, settings_of

#: What a running session lets nobody change here.
FIXED = ("spark.master", "spark.driver.memory", "spark.jars.packages")


class Settings:
    """The settings of a session that runs."""

    def __init__(self, started_with: Mapping[str, str]) -> None:
        self._started_with = started_with
        self.changed: dict[str, str | None] = {}

    def isModifiable(self, key: str) -> bool:  # noqa: N802 - pyspark's name
        return key.startswith("spark.sql.")

    def get(self, key: str, default: str | None) -> str | None:
        return self._started_with.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.changed[key] = value

    def unset(self, key: str) -> None:
        self.changed[key] = None


class Running:
    """A session."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.conf = Settings(options)
        self.sparkContext = SimpleNamespace(master=options["spark.master"])


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The options of each start."""
    made: list[dict[str, str]] = []

    def launched(pyspark: object, options: Mapping[str, str], chosen: object, log: object) -> Running:
        made.append(dict(options))
        return Running(options)

    monkeypatch.setattr(current, "_hosts", {})
    monkeypatch.setattr(classic, "_launched", launched)
    monkeypatch.setattr(classic, "_pyspark", lambda: None)
    monkeypatch.setattr(classic, "require_java", lambda: "/nowhere")
    return made


def asked(**options: str) -> Any:
    values = {"table.local-time-zone": "UTC"} | {key.replace("__", "."): text for key, text in options.items()}
    return current.spark_host(Configuration(values=values))


def test_keys_given_before_the_first_start_apply(launches: list[dict[str, str]]) -> None:
    wanted = {"spark__master": "local[3]", "spark__driver__memory": "700m", "spark__jars__packages": "a:b:1"}
    wanted |= {"spark__sql__shuffle__partitions": "7", "spark__ui__enabled": "true", "spark__my__own": "word"}
    asked(**wanted)
    (options,) = launches
    assert {key.replace("__", "."): text for key, text in wanted.items()}.items() <= options.items()
    assert os.environ["PYSPARK_PYTHON"]
    assert options["spark.sql.ansi.enabled"] == "false"
    assert options["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.parametrize(("parallelism", "master"), [("1", None), ("2", "local[2]"), ("3", "local[3]")])
def test_the_master_is_this_machine_unless_said(
    launches: list[dict[str, str]], parallelism: str, master: str | None
) -> None:
    asked(parallelism__default=parallelism)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    assert launches[0]["spark.master"] == (master or f"local[{cores}]")


@pytest.mark.parametrize("key", FIXED)
def test_later_they_are_refused_with_what_the_session_has(launches: list[dict[str, str]], key: str) -> None:
    first = asked(spark__master="local[3]")
    with pytest.raises(ConnectorError, match=f"'{key}' cannot change to 'other'") as caught:
        asked(**{"spark__master": "local[3]", key.replace(".", "__"): "other"})
    assert f"has {launches[0].get(key, 'its default')}." in caught.value.message
    assert "before the first statement" in (caught.value.hint or "")
    # What was given before may be left out, or said again.
    assert asked(spark__master="local[3]") is first
    assert asked() is first
    assert len(launches) == 1


def test_what_a_session_may_change_changes_and_goes_back(launches: list[dict[str, str]]) -> None:
    settings = asked().session.conf
    asked(spark__sql__autoBroadcastJoinThreshold="-1")
    assert settings.changed == {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    asked()
    assert settings.changed == {"spark.sql.autoBroadcastJoinThreshold": None}


@pytest.mark.parametrize("key", sorted(PINNED))
def test_what_answers_depend_on_is_never_otherwise(launches: list[dict[str, str]], key: str) -> None:
    with pytest.raises(ConnectorError, match="answers depend on it"):
        asked(**{key.replace(".", "__"): "other"})
    assert not launches


def test_streams_are_refused_on_a_connect_server(tmp_path: Path) -> None:
    options = {"execution.target": "spark", "spark.remote": "sc://nowhere"}
    options["execution.checkpointing.dir"] = str(tmp_path)
    session = TableEnvironment.of_configuration(Configuration(values=options))
    session.execute_sql("CREATE TABLE r (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')")
    with pytest.raises(NotSupportedYetError, match="a stream on a Spark Connect server"):
        session.execute_sql("SELECT n FROM r")


def test_a_session_over_connect_broadcasts_by_what_it_has_seen() -> None:
    """Of rows that FlowSQL's readers give the optimizer there knows no size, whoever made the session."""
    own = settings_of(Configuration(values={"spark.remote": "sc://there"})).options
    given = settings_of(Configuration(), is_given=True, is_remote=True).options
    assert own["spark.sql.autoBroadcastJoinThreshold"] == given["spark.sql.autoBroadcastJoinThreshold"] == "-1"
    assert "spark.sql.autoBroadcastJoinThreshold" not in settings_of(Configuration(), is_given=True).options
