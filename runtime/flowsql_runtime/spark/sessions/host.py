"""``SparkHost``: a session of Spark, and what FlowSQL asks of it beside SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from flowsql_core.errors import ConnectorError
from flowsql_core.record import record
from flowsql_runtime.spark.measured import PlanNode
from flowsql_runtime.spark.sessions.quiet import quiet
from flowsql_runtime.spark.sessions.settings import Settings
from flowsql_runtime.spark.sessions.shipping import FOLDER, at_the_task

_MOST_STANDING: Final = 64


class SparkHost(ABC):
    """A session that FlowSQL's jobs run in, one at a time.

    Attributes:
        session: pyspark's.
        program_session: the one that the program works with: the given one, or the same.
        is_local: whether all tasks run in one process on this machine: they see its files, and its memory is theirs.
    """

    is_local: bool = False
    #: Whether the driver stands in another process, which no file of this one may be promised to.
    is_remote: ClassVar[bool] = False

    def __init__(self, session: Any, program_session: Any = None) -> None:
        self.session = session
        self.program_session = session if program_session is None else program_session
        self._applied: dict[str, str] = {}
        #: Views that outlive their statement, with the frames behind them, the one that was asked for last at the end.
        self._standing: OrderedDict[str, Any] = OrderedDict()

    def stand(self, view: str, frame: Any) -> None:
        """Let a view of a frame stand: to make one takes Spark as long as to plan a small query."""
        if self._standing.get(view) is not frame:
            frame.createOrReplaceTempView(view)
            self._standing[view] = frame
        self._standing.move_to_end(view)

    def drop_views(self, views: Iterable[str]) -> None:
        """The views of a statement that is over go, but those that stand; of these the oldest if there are many."""
        gone = [view for view in views if view not in self._standing]
        while len(self._standing) > _MOST_STANDING:
            gone.append(self._standing.popitem(last=False)[0])
        for view in gone:
            self.session.catalog.dropTempView(view)

    def started_with(self, settings: Settings) -> None:
        """The session has these settings already."""
        self._applied = dict(settings.options)

    def apply(self, settings: Settings) -> None:
        """Let a running session have other settings.

        Raises:
            ConnectorError: it cannot change one that the user gave.
        """
        conf = self.session.conf
        for key, value in settings.options.items():
            if self._applied.get(key) == value:
                continue
            if conf.isModifiable(key):
                conf.set(key, value)
                self._applied[key] = value
            elif key in settings.chosen and self._has(key) != value:
                raise ConnectorError(
                    "spark-option",
                    f"'{key}' cannot change to '{value}': the running Spark session has "
                    f"{self._has(key) or 'its default'}.",
                    hint=self._change_hint(),
                )
        gone = [key for key in self._applied if key not in settings.options and conf.isModifiable(key)]
        for key in gone:
            conf.unset(key)
            del self._applied[key]

    def _has(self, key: str) -> str | None:
        found: str | None = self.session.conf.get(key, None)
        return found

    def _change_hint(self) -> str:
        return "set it before the first statement that runs on Spark"

    # What a job asks

    @abstractmethod
    def slots(self) -> int:
        """Tasks that run at once."""

    @abstractmethod
    def begin(self, job_id: str, name: str) -> None:
        """What this thread asks of Spark from now on belongs to a job."""

    @abstractmethod
    def cancel(self, job_id: str) -> None:
        """End the tasks of a job. May be called from any thread."""

    @abstractmethod
    def progress(self) -> Progress:
        """What Spark is doing now. May be called from any thread."""

    @abstractmethod
    def check(self, frame: Any) -> None:
        """Let Spark plan a query; raises what Spark has against it."""

    @abstractmethod
    def physical_plan(self, frame: Any) -> str:
        """Spark's plan of a query as text."""

    @abstractmethod
    def counted(self, frames: Sequence[Any], folder: str) -> list[PlanNode] | None:
        """What Spark counted while it ran the queries of a job; None where it does not say.

        Args:
            folder: through whose files the program handed rows to Spark.
        """

    @abstractmethod
    def schema(self, ddl: str) -> Any:
        """The columns ``c0 INT, c1 STRING`` as Spark's type."""

    @abstractmethod
    def unsized(self, count: int) -> Any:
        """The numbers from 0, each in a partition of its own, of which Spark must not conclude how large it is what
        tasks make of them."""

    @abstractmethod
    def broadcast_bytes(self) -> int:
        """Up to which size Spark broadcasts an input of a join; -1: none."""

    @abstractmethod
    def register(self, name: str, function: Callable[..., Any], type_text: str) -> None:
        """Make a function of Arrow arrays known to SQL."""

    # Code in tasks

    def at_the_task(self, thing: object) -> Callable[[], Any]:
        """A function that gives the object in a process of Spark, where FlowSQL's code is found."""
        return at_the_task(thing, None if self.is_local else FOLDER)

    def map_in_arrow(self, frame: Any, task: Callable[..., Any], ddl: str) -> Any:
        """What ``task`` makes of the batches of each partition, as a DataFrame with these columns."""
        there = self.at_the_task(task)
        with quiet():
            # Spark looks at the parameters of a function, which an object has not.
            return frame.mapInArrow(lambda batches: there()(batches), ddl)


@record
class Progress:
    """Where a job is: the stage that runs now, its tasks, done and in all, and bytes read (0: not known)."""

    stage: int = 0
    done: int = 0
    tasks: int = 0
    read_bytes: int = 0

    def __str__(self) -> str:
        if not self.tasks:
            return "Spark"
        stage = f"stage {self.stage}, " if self.stage else ""
        read = f", {self.read_bytes / 1e6:,.1f} MB read" if self.read_bytes else ""
        return f"Spark: {stage}{self.done} of {self.tasks} tasks{read}"
