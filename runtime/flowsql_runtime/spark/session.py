"""The one Spark session of the process: started for the first job, kept warm for all later ones."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from typing import IO, Any, Final

from flowsql_core.config import LOCAL_TIME_ZONE, PARALLELISM, Configuration
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.spark import SPARK_MASTER
from flowsql_runtime.spark.java import find_java, require_java
from flowsql_runtime.task.memory import machine_memory_bytes

#: What answers depend on; nobody may set these otherwise.
_PINNED: Final = {
    # Integers wrap and DECIMAL overflow is NULL, as in Flink; what must fail is written out in the query.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
#: What the user may set otherwise.
_DEFAULTS: Final = {
    "spark.app.name": "FlowSQL",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.maxResultSize": "0",
    "spark.sql.adaptive.enabled": "true",
    # Java's second compiler takes most of the time of a short statement (36 s of processor time for a cold one against
    # 26 s so, 19 s without it); what is really hot still gets it.
    "spark.driver.defaultJavaOptions": "-XX:Tier4InvocationThreshold=60000 -XX:Tier4MinInvocationThreshold=60000 "
    "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=600000",
}
_ZONE: Final = "spark.sql.session.timeZone"
_LOG_TAIL: Final = 2000

_lock = threading.Lock()
_session: Any = None
_applied: dict[str, str] = {}


def missing() -> str | None:
    """What Spark lacks on this machine, as a hint; None when a session can be started. Imports nothing of Spark."""
    for package in ("pyspark", "sqlglot"):
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install 'flowsql[spark]'"
    if not _submitted() and find_java() is None:
        return "there is no Java 17 or newer: pip install 'flowsql[java]', or set JAVA_HOME"
    return None


def spark_session(configuration: Configuration) -> Any:
    """The session, with the zone of this configuration; started with its ``spark.*`` keys if it is the first.

    Later jobs set what Spark lets a running session change.

    Raises:
        ConnectorError: pyspark or Java is missing, or Spark does not start; a key that answers depend on is set
            otherwise, or one that a running session cannot change (``spark.master``, memory) has changed.
    """
    global _session
    with _lock:
        chosen = _chosen(configuration)
        options = _options(configuration, chosen)
        if _session is None:
            _session = _started(options, chosen)
            _applied.update(options)
        session = _session
        for key, value in options.items():
            if _applied.get(key) == value:
                continue
            if session.conf.isModifiable(key):
                session.conf.set(key, value)
                _applied[key] = value
            elif key in chosen:
                raise ConnectorError(
                    "spark-option",
                    f"'{key}' cannot change to '{value}': the running Spark session has "
                    f"{_applied.get(key, 'its default')}.",
                    hint="set it before the first statement that runs on Spark",
                )
        for key in [key for key in _applied if key not in options and session.conf.isModifiable(key)]:
            session.conf.unset(key)
            del _applied[key]
        return session


def is_local(session: Any) -> bool:
    """Whether all of the session's tasks run in this machine's one process of Spark."""
    return _is_local(str(session.sparkContext.master))


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _chosen(configuration: Configuration) -> dict[str, str]:
    """The user's own ``spark.*`` keys."""
    chosen = {key: text for key, text in configuration.items() if key.startswith("spark.") and text}
    for key, value in chosen.items():
        if key == _ZONE:
            raise ConnectorError("spark-option", f"'{key}' is the session's zone.", hint=f"set '{LOCAL_TIME_ZONE.key}'")
        if _PINNED.get(key, value) != value:
            raise ConnectorError("spark-option", f"'{key}' must be '{_PINNED[key]}': answers depend on it.")
    return chosen


def _options(configuration: Configuration, chosen: Mapping[str, str]) -> dict[str, str]:
    parallelism = configuration.get(PARALLELISM)
    cores = parallelism if parallelism > 1 else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    made = dict(_DEFAULTS)
    made["spark.master"] = configuration.get(SPARK_MASTER) or f"local[{cores}]"
    if _is_local(made["spark.master"]):
        made["spark.sql.shuffle.partitions"] = str(max(cores, 1))
        # All tasks run in the driver: what Java takes by itself, where Spark says one gigabyte.
        made["spark.driver.memory"] = f"{max(machine_memory_bytes() // 4 >> 20, 1024)}m"
    # Folders of an unused warehouse or metastore must not appear where the user stands.
    made["spark.sql.warehouse.dir"] = os.path.join(tempfile.gettempdir(), "flowsql-spark-warehouse")
    made |= chosen
    made |= _PINNED
    made[_ZONE] = configuration.get(LOCAL_TIME_ZONE)
    return made


def _submitted() -> bool:
    """Whether ``spark-submit`` started this process: then its Java stands, and knows what it was given."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _started(options: Mapping[str, str], chosen: Mapping[str, str]) -> Any:
    pyspark = _pyspark()
    before = os.environ.get("JAVA_HOME")
    if not _submitted():
        os.environ["JAVA_HOME"] = require_java()
    # Without it workers would take whichever python3 comes first. Other machines may have theirs elsewhere.
    elsewhere = _submitted() or not _is_local(options["spark.master"])
    python = options.get("spark.pyspark.python") or (os.environ.get("PYSPARK_PYTHON") if elsewhere else None)
    os.environ["PYSPARK_PYTHON"] = python or sys.executable
    try:
        # The Java process keeps the file open for itself.
        with tempfile.TemporaryFile("w+b") as log:
            try:
                session = _launched(pyspark, options, chosen, log)
            except Exception as error:
                raise ConnectorError("spark-start", f"Spark did not start: {error}", hint=_log_tail(log)) from error
        if not is_local(session):
            _ship(session)
        return session
    finally:
        if before is not None:
            os.environ["JAVA_HOME"] = before
        else:
            os.environ.pop("JAVA_HOME", None)


def _ship(session: Any) -> None:
    from flowsql_runtime.spark.shipping import ship

    master = str(session.sparkContext.master)
    try:
        ship(session)
    except ConnectorError:
        session.stop()
        raise
    except Exception as error:
        session.stop()
        first = str(error).strip().partition("\n")[0]
        raise ConnectorError("spark-executor", f"No task ran on the executors of '{master}': {first}") from error


def _launched(pyspark: Any, options: Mapping[str, str], chosen: Mapping[str, str], log: IO[bytes]) -> Any:
    # Its modules are partly typed, and not on every machine: here they are any object.
    gateways: Any = importlib.import_module("pyspark.java_gateway")
    sessions: Any = importlib.import_module("pyspark.sql")
    conf = pyspark.SparkConf(loadDefaults=False)
    for key, value in options.items():
        conf.set(key, value)
    # What the Java process prints is no part of anybody's answer, nor what pyspark thinks of the versions around it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gateway = gateways.launch_gateway(None if _submitted() else conf, {"stdout": log, "stderr": log})
        if _submitted():
            conf = _beside_given(pyspark, gateway, options, chosen)
        if _is_local(conf.get("spark.master")):
            # Processes of Python beside this one find the modules that it finds.
            conf.setIfMissing("spark.executorEnv.PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        context = pyspark.SparkContext(conf=conf, gateway=gateway)
        return sessions.SparkSession(context)


def _beside_given(pyspark: Any, gateway: Any, options: Mapping[str, str], chosen: Mapping[str, str]) -> Any:
    """The options, but for defaults that ``spark-submit`` was given otherwise."""
    given = gateway.jvm.java.lang.System.getProperty
    conf = pyspark.SparkConf(loadDefaults=False)
    for key, value in options.items():
        own = key in chosen or key in _PINNED or key == _ZONE
        conf.set(key, value if own else given(key) or value)
    return conf


def _pyspark() -> Any:
    try:
        return importlib.import_module("pyspark")
    except ImportError:
        raise ConnectorError(
            "spark-missing", "Batch mode on Spark needs pyspark.", hint="pip install 'flowsql[spark]'"
        ) from None


def _log_tail(log: IO[bytes]) -> str | None:
    log.seek(0)
    text = log.read().decode("utf-8", "replace")[-_LOG_TAIL:].strip()
    return text or None
