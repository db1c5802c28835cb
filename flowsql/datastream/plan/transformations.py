"""What a program asked for, recorded as frozen data: operators, and between them unions, partitionings, side outputs.

Nothing here runs. ``graph`` turns the recorded transformations into operators and edges when a job is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flowsql.common.typeinfo import TypeInformation
from flowsql_core.graph.job import ChainingStrategy, Partitioning
from flowsql_core.graph.specs import OperatorSpec

if TYPE_CHECKING:
    from flowsql.datastream.bridges.tables import TablePart

#: Makes the spec of an operator when a job is built: the mode and intervals of the environment count as they are then.
SpecMaker = Callable[["JobSettings"], "SpecWithResources"]


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What the specs of a job depend on beside their own transformation.

    Args:
        batch: whether the job runs in batch mode.
        watermark_interval_ms: ``pipeline.auto-watermark-interval``.
        prefix: of the keys of this operator's resources; unique in the job.
    """

    batch: bool
    watermark_interval_ms: int
    prefix: str


@dataclass(frozen=True, slots=True)
class SpecWithResources:
    """A spec, and the Python objects that it names."""

    spec: OperatorSpec
    resources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transformation:
    """Base. ``id`` is unique in its environment; ``output_type``: of the values that leave."""

    id: int
    output_type: TypeInformation


@dataclass(frozen=True, slots=True)
class OperatorTransformation(Transformation):
    """Something that runs: a source (no inputs), a function, a sink.

    Args:
        inputs: ids of transformations, one per input of the operator.
        name: short, for logs and plans.
        make_spec: see :data:`SpecMaker`.
        keyed_output: whether rows leave with their key (of ``key_by``).
        sink: whether nothing can follow.
        wishes: what the program set for the operator.
    """

    inputs: tuple[int, ...]
    name: str
    make_spec: SpecMaker
    keyed_output: bool = False
    sink: bool = False
    wishes: Wishes = field(default_factory=lambda: Wishes())


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a program may set for an operator; None leaves it to the environment.

    ``parallelism_fixed``: the operator cannot have another parallelism. ``slot_sharing_group``: operators of different
    groups do not share a task.
    """

    description: str | None = None
    uid: str | None = None
    parallelism: int | None = None
    parallelism_fixed: bool = False
    max_parallelism: int | None = None
    buffer_timeout_ms: int | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    slot_sharing_group: str | None = None

    def with_(self, **changes: Any) -> Wishes:
        """The same with some changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class PartitionTransformation(Transformation):
    """How rows travel to whatever follows. ``resources``: of a custom partitioner."""

    input: int
    partitioning: Partitioning
    resources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnionTransformation(Transformation):
    """All rows of several streams."""

    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SideOutputTransformation(Transformation):
    """Rows that an operator emits under a tag."""

    input: int
    tag: str


@dataclass(frozen=True, slots=True)
class TableTransformation(Transformation):
    """The rows of a table: a whole plan, whose scans may read streams again."""

    part: TablePart
    wishes: Wishes = field(default_factory=Wishes)


class Recorder:
    """The transformations of one environment, by id. Each is replaced when a program sets something on it."""

    def __init__(self) -> None:
        self._known: dict[int, Transformation] = {}
        #: Ids of what ends streams and waits for ``execute``, in the order of the program.
        self.sinks: list[int] = []

    def next_id(self) -> int:
        """An id that is not taken."""
        return len(self._known) + 1

    def add(self, transformation: Transformation) -> int:
        """Record; the id."""
        self._known[transformation.id] = transformation
        return transformation.id

    def __getitem__(self, number: int) -> Transformation:
        return self._known[number]

    def change(self, number: int, **changes: Any) -> None:
        """Set wishes of an operator (or of what stands before a partitioning: it has none of its own)."""
        found = self._known[number]
        match found:
            case OperatorTransformation() | TableTransformation():
                self._known[number] = replace(found, wishes=found.wishes.with_(**changes))
            case _:
                raise TypeError(f"nothing can be set on {type(found).__name__}")

    def rename(self, number: int, name: str) -> None:
        """Name an operator."""
        found = self._known[number]
        if not isinstance(found, OperatorTransformation):
            raise TypeError(f"{type(found).__name__} has no name")
        self._known[number] = replace(found, name=name)
