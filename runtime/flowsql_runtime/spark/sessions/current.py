"""Which session a job gets: the one of this process, that of a Connect server, or the one that the program gave."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from typing import Any

from flowsql_core.config import Configuration
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.spark import SPARK_REMOTE
from flowsql_runtime.spark.sessions import classic, connect
from flowsql_runtime.spark.sessions.host import SparkHost
from flowsql_runtime.spark.sessions.java import find_java
from flowsql_runtime.spark.sessions.settings import settings_of

_lock = threading.Lock()
#: Sessions that stay warm as long as the process does, by the address of their server; "" is the process's own.
_hosts: dict[str, SparkHost] = {}


def missing(configuration: Configuration) -> str | None:
    """What Spark lacks on this machine, as a hint; None when a session can be had. Imports nothing of Spark."""
    for package in ("pyspark", "sqlglot"):
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install 'flowsql[spark]'"
    if configuration.get(SPARK_REMOTE):
        lacking = connect.missing_packages()
        return f"{', '.join(lacking)} is not installed: pip install 'flowsql[spark-connect]'" if lacking else None
    if not classic.is_submitted() and find_java() is None:
        return "there is no Java 17 or newer: pip install 'flowsql[java]', or set JAVA_HOME"
    return None


def spark_host(configuration: Configuration, given: SparkHost | None = None) -> SparkHost:
    """The session for a job, with the zone of its configuration; started with its ``spark.*`` keys if it is the first.

    Later jobs set what Spark lets a running session change.

    Args:
        configuration: of the job.
        given: beside the session that the program handed in.

    Raises:
        ConnectorError: pyspark or Java is missing, Spark does not start, or no server answers; a key that answers
            depend on is set otherwise, or one that a running session cannot change (``spark.master``, memory) has
            changed.
    """
    with _lock:
        settings = settings_of(
            configuration, is_given=given is not None, is_remote=given is not None and given.is_remote
        )
        host = given or _hosts.get(settings.remote)
        if host is None:
            host = connect.connected(settings) if settings.remote else classic.started(settings)
            _hosts[settings.remote] = host
        host.apply(settings)
        return host


def start_early(configuration: Configuration) -> None:
    """Begin to start the session of a job that is still being planned; what goes wrong the job will say."""
    if configuration.get(SPARK_REMOTE) in _hosts:
        return

    def start() -> None:
        with contextlib.suppress(Exception):
            spark_host(configuration)

    threading.Thread(target=start, name="spark-start", daemon=True).start()


def is_own(session: Any) -> bool:
    """Whether FlowSQL made a session for itself."""
    with _lock:
        return any(host.session is session for host in _hosts.values())


def beside(given: Any) -> SparkHost:
    """A session for FlowSQL beside one that the program handed in: same tables, settings of its own.

    Raises:
        ConnectorError: it is no session, or has ended.
    """
    kind = f"{type(given).__module__}.{type(given).__qualname__}"
    try:
        if kind == "pyspark.sql.connect.session.SparkSession":
            return connect.beside_given(given)
        if kind in ("pyspark.sql.session.SparkSession", "pyspark.sql.classic.session.SparkSession"):
            return classic.GivenHost(given)
    except ConnectorError:
        raise
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise ConnectorError("spark-session", f"The Spark session that was given does not answer: {first}") from error
    raise ConnectorError(
        "spark-session",
        f"'spark' takes a SparkSession of pyspark, not a {type(given).__name__}.",
        hint="SparkSession.builder.getOrCreate(), or leave it out: FlowSQL then starts its own",
    )
