"""A session over Spark Connect: driver and executors stand elsewhere, this program speaks to them over gRPC."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from flowsql_core.config import parse_memory_bytes
from flowsql_core.errors import ConnectorError
from flowsql_runtime.spark.measured import PlanNode, of_connect
from flowsql_runtime.spark.sessions.host import Progress, SparkHost
from flowsql_runtime.spark.sessions.quiet import quiet
from flowsql_runtime.spark.sessions.settings import ADAPTIVE_BROADCAST, Settings
from flowsql_runtime.spark.sessions.shipping import ship

#: Where a server listens unless its address says otherwise.
_PORT: Final = 15002
_KNOCK_S: Final = 20
#: What the client needs beside pyspark, as modules.
_NEEDED: Final = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas")


class ConnectHost(SparkHost):
    """A session of ``pyspark.sql.connect``.

    Args:
        session: pyspark's.
        address: of the server, for errors.
        program_session: the one that the program works with, if it is another one.

    Raises:
        ConnectorError: FlowSQL's code cannot run on the executors.
    """

    is_remote: ClassVar[bool] = True

    def __init__(self, session: Any, address: str, program_session: Any = None) -> None:
        super().__init__(session, program_session)
        self._progress = Progress()
        self._types: dict[str, Any] = {}
        # It writes every error of the server with its stack of Java, before anybody has looked at it.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        ship(self, address)
        session.registerProgressHandler(self._note_progress)

    def _change_hint(self) -> str:
        return "it is the server's: set it where that is started"

    def slots(self) -> int:
        """As many as a shuffle has partitions: a client is not told how many cores there are."""
        return max(int(self.session.conf.get("spark.sql.shuffle.partitions")), 1)

    def begin(self, job_id: str, name: str) -> None:
        """A tag of this thread."""
        self.session.clearTags()
        self.session.addTag(job_id)

    def cancel(self, job_id: str) -> None:
        """Ends what has the tag."""
        self.session.interruptTag(job_id)

    def progress(self) -> Progress:
        """As the server said it last."""
        return self._progress

    def _note_progress(
        self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        known = list(stages or ())
        active = [] if done else [stage for stage in known if not stage.done]
        self._progress = Progress(
            len(known) - len(active) + 1 if active else 0,
            sum(stage.num_completed_tasks for stage in active),
            sum(stage.num_tasks for stage in active),
            sum(stage.num_bytes_read for stage in known) if active else 0,
        )

    def check(self, frame: Any) -> None:
        """The optimizer finds what the analyzer lets pass."""
        frame._explain_string()

    def physical_plan(self, frame: Any) -> str:
        """Without its heading."""
        return str(frame._explain_string()).removeprefix("== Physical Plan ==\n").rstrip()

    def counted(self, frames: Sequence[Any], folder: str) -> list[PlanNode] | None:
        """As the server told it behind the answers."""
        told = [frame.executionInfo for frame in frames]
        if any(info is None or info.metrics is None for info in told):
            return None
        return [of_connect(info.metrics) for info in told]

    def schema(self, ddl: str) -> Any:
        """Parsed by the server."""
        return self.session.createDataFrame([], ddl).schema

    def unsized(self, count: int) -> Any:
        """A range. Spark takes what tasks make of it for as small as that, wherefore its optimizer broadcasts nothing
        by itself in these sessions."""
        return self.session.range(0, count, 1, count)

    def broadcast_bytes(self) -> int:
        """Of adaptive execution."""
        text = str(self.session.conf.get(ADAPTIVE_BROADCAST))
        return -1 if text.startswith("-") else parse_memory_bytes(text)

    def register(self, name: str, function: Callable[..., Any], type_text: str) -> None:
        """As Arrow function by its kind; without Java on this side the server parses the type."""
        functions: Any = importlib.import_module("pyspark.sql.connect.udf")
        kinds: Any = importlib.import_module("pyspark.util").PythonEvalType
        if type_text not in self._types:
            self._types[type_text] = self.schema(f"c {type_text}").fields[0].dataType
        made = functions.UserDefinedFunction(function, self._types[type_text], evalType=kinds.SQL_SCALAR_ARROW_UDF)
        self.session.udf.register(name, made._wrapped())


def connected(settings: Settings) -> SparkHost:
    """A new session of a server.

    Raises:
        ConnectorError: a package is missing, or the server does not answer.
    """
    missing = missing_packages()
    if missing:
        raise ConnectorError(
            "spark-missing",
            f"Spark Connect needs {', '.join(missing)}.",
            hint="pip install 'flowsql[spark-connect]'",
        )
    with quiet():
        sessions: Any = importlib.import_module("pyspark.sql.connect.session")
        try:
            _knock(settings.remote)
            session = sessions.SparkSession.builder.remote(settings.remote).create()
            _ = session.version
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            raise ConnectorError(
                "spark-start",
                f"The Spark Connect server at '{_without_secrets(settings.remote)}' does not answer: {first}",
                hint="the address is sc://host:port, with ;use_ssl=true or ;token=... behind it where the server asks",
            ) from error
        return ConnectHost(session, _without_secrets(settings.remote))


def _without_secrets(address: str) -> str:
    """The address without its parameters, of which one may be a token."""
    return address.partition(";")[0]


def _knock(address: str) -> None:
    """Raise what a connection raises: the client itself asks a server that is not there for ten minutes."""
    found = urlsplit(address)
    if found.scheme != "sc" or not found.hostname:
        raise ValueError("this is no address of a server")
    with socket.create_connection((found.hostname, found.port or _PORT), timeout=_KNOCK_S):
        pass


def beside_given(given: Any) -> SparkHost:
    """A session of the server that a session of the program speaks to."""
    if not hasattr(given, "newSession"):
        raise ConnectorError(
            "spark-session", "A session over Spark Connect can be handed in with pyspark 4.3 or newer only."
        )
    return ConnectHost(given.newSession(), "the server of the given session", given)


def missing_packages() -> list[str]:
    """What the client lacks."""
    lacking = []
    for name in _NEEDED:
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            lacking.append(name)
    return lacking
