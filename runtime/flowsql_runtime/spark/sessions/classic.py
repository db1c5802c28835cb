"""A session whose driver is a Java process of this program: started here, or handed in."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final

from flowsql_core.errors import ConnectorError
from flowsql_runtime.spark.measured import PlanNode, of_java
from flowsql_runtime.spark.sessions.class_archive import reading_option
from flowsql_runtime.spark.sessions.host import Progress, SparkHost
from flowsql_runtime.spark.sessions.java import require_java
from flowsql_runtime.spark.sessions.quiet import quiet
from flowsql_runtime.spark.sessions.settings import JAVA_OPTIONS, PINNED, ZONE, Settings, is_local_master
from flowsql_runtime.spark.sessions.shipping import look_at_executors, ship

_LOG_TAIL: Final = 2000


class ClassicHost(SparkHost):
    """A session of ``pyspark.sql.classic``.

    Raises:
        ConnectorError: FlowSQL's code cannot run on the executors.
    """

    def __init__(self, session: Any, program_session: Any = None) -> None:
        super().__init__(session, program_session)
        master = str(session.sparkContext.master)
        self.is_local = is_local_master(master)
        if not self.is_local:
            ship(self, master)

    def slots(self) -> int:
        """As many as the master has."""
        return max(int(self.session.sparkContext.defaultParallelism), 1)

    def begin(self, job_id: str, name: str) -> None:
        """A job group."""
        self.session.sparkContext.setJobGroup(job_id, name, interruptOnCancel=True)

    def cancel(self, job_id: str) -> None:
        """Ends the job group."""
        self.session.sparkContext.cancelJobGroup(job_id)

    def progress(self) -> Progress:
        """Of all active stages: one job runs at a time."""
        active = self.session.sparkContext._jsc.sc().statusStore().activeStages()
        stages = [active.apply(place) for place in range(active.size())]
        return Progress(
            max((int(stage.stageId()) + 1 for stage in stages), default=0),
            sum(int(stage.numCompleteTasks()) for stage in stages),
            sum(int(stage.numTasks()) for stage in stages),
            sum(int(stage.inputBytes()) for stage in stages),
        )

    def check(self, frame: Any) -> None:
        """The optimizer finds what the analyzer lets pass."""
        frame._jdf.queryExecution().optimizedPlan()

    def physical_plan(self, frame: Any) -> str:
        """Without its heading."""
        return str(frame._jdf.queryExecution().executedPlan().toString()).rstrip()

    def counted(self, frames: Sequence[Any], folder: str) -> list[PlanNode] | None:
        """Kept by the frames' plans."""
        identity = self.session._jvm.java.lang.System.identityHashCode
        return of_java([frame._jdf.queryExecution().executedPlan() for frame in frames], folder, identity)

    def schema(self, ddl: str) -> Any:
        """Parsed by Java."""
        return importlib.import_module("pyspark.sql.types").StructType.fromDDL(ddl)

    def unsized(self, count: int) -> Any:
        """A relation over an RDD. Of a range Spark knows that its numbers are few."""
        frames: Any = importlib.import_module("pyspark.sql.classic.dataframe")
        numbers = self.session.range(0, count, 1, count)._jdf.toDF()
        java = self.session._jsparkSession.createDataFrame(numbers.toJavaRDD(), numbers.schema())
        return frames.DataFrame(java, self.session)

    def broadcast_bytes(self) -> int:
        """Of the optimizer."""
        return int(self.session._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())

    def register(self, name: str, function: Callable[..., Any], type_text: str) -> None:
        """By its hints."""
        # Its declarations know functions with a fixed number of parameters.
        arrow_udf: Any = importlib.import_module("pyspark.sql.pandas.functions").arrow_udf
        with quiet():
            self.session.udf.register(name, arrow_udf(function, type_text))


class GivenHost(ClassicHost):
    """A session beside one that the program handed in: its Java, executors and tables, with settings of its own."""

    def __init__(self, given: Any) -> None:
        session = given.newSession()
        for key, value in given.conf.getAll.items():
            if key.startswith("spark.sql.") and key not in PINNED and session.conf.isModifiable(key):
                session.conf.set(key, value)
        super().__init__(session, given)
        if self.is_local:
            look_at_executors(self, str(session.sparkContext.master))

    def _change_hint(self) -> str:
        return "it is the session that the program gave: set it where that is made"


def is_submitted() -> bool:
    """Whether ``spark-submit`` started this process: then its Java stands, and knows what it was given."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def started(settings: Settings) -> SparkHost:
    """A new session.

    Raises:
        ConnectorError: pyspark or Java is missing, Spark does not start, or its executors cannot run FlowSQL.
    """
    pyspark = _pyspark()
    options = settings.options
    before = os.environ.get("JAVA_HOME")
    if not is_submitted():
        os.environ["JAVA_HOME"] = require_java()
    # Without it workers would take whichever python3 comes first. Other machines may have theirs elsewhere.
    elsewhere = is_submitted() or not is_local_master(options["spark.master"])
    python = options.get("spark.pyspark.python") or (os.environ.get("PYSPARK_PYTHON") if elsewhere else None)
    os.environ["PYSPARK_PYTHON"] = python or sys.executable
    try:
        # The Java process keeps the file open for itself.
        with tempfile.TemporaryFile("w+b") as log:
            try:
                session = _launched(pyspark, options, settings.chosen, log)
            except Exception as error:
                raise ConnectorError("spark-start", f"Spark did not start: {error}", hint=_log_tail(log)) from error
        try:
            host = ClassicHost(session)
        except ConnectorError:
            session.stop()
            raise
        host.started_with(settings)
        return host
    finally:
        if before is not None:
            os.environ["JAVA_HOME"] = before
        else:
            os.environ.pop("JAVA_HOME", None)


def _launched(pyspark: Any, options: Mapping[str, str], chosen: Mapping[str, str], log: IO[bytes]) -> Any:
    # Its modules are partly typed, and not on every machine: here they are any object.
    gateways: Any = importlib.import_module("pyspark.java_gateway")
    sessions: Any = importlib.import_module("pyspark.sql")
    conf = pyspark.SparkConf(loadDefaults=False)
    for key, value in options.items():
        conf.set(key, value)
    if not is_submitted() and JAVA_OPTIONS not in chosen:
        kept = reading_option(os.environ["JAVA_HOME"], pyspark)
        conf.set(JAVA_OPTIONS, f"{options[JAVA_OPTIONS]} {kept}".rstrip())
    with quiet():
        # What the Java process prints is no part of anybody's answer either.
        gateway = gateways.launch_gateway(None if is_submitted() else conf, {"stdout": log, "stderr": log})
        if is_submitted():
            conf = _beside_given(pyspark, gateway, options, chosen)
        if is_local_master(conf.get("spark.master")):
            # Processes of Python beside this one find the modules that it finds.
            conf.setIfMissing("spark.executorEnv.PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        context = pyspark.SparkContext(conf=conf, gateway=gateway)
        return sessions.SparkSession(context)


def _beside_given(pyspark: Any, gateway: Any, options: Mapping[str, str], chosen: Mapping[str, str]) -> Any:
    """The options, but for defaults that ``spark-submit`` was given otherwise."""
    given = gateway.jvm.java.lang.System.getProperty
    conf = pyspark.SparkConf(loadDefaults=False)
    for key, value in options.items():
        own = key in chosen or key in PINNED or key == ZONE
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
