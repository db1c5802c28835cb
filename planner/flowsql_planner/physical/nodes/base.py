"""What every physical node says about itself: one method a question, so that a node that forgets one is no class.

A pass asks nodes through these methods and knows no kinds of nodes, but for scans, exchanges and sinks: where rows come
in, move between tasks, and leave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from flowsql_core.config import STATE_TTL_MS, Configuration
from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import MiniBatch, OperatorSpec, SinkSpec, TableSpec
from flowsql_core.record import record
from flowsql_core.row import ChangelogMode, RowKind
from flowsql_core.span import Span
from flowsql_core.types.logical import Schema
from flowsql_planner.physical.nodes.line import Attributes, Line
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Updates, where_updated
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.determinism import NONE, Columns
from flowsql_planner.traits.interval import Bounds
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.monotonicity import Monotonicities
from flowsql_planner.traits.window import WindowColumns


class Connectors(Protocol):
    """What nodes ask of the connectors behind tables."""

    def source_mode(self, table: TableSpec, span: Span | None) -> ChangelogMode:
        """The changelog that a scan of a table emits."""
        ...

    def source_guarantee(self, table: TableSpec, span: Span | None) -> str | None:
        """What becomes of a scan's rows when the job is restored; None: each counts exactly once."""
        ...

    def sink_mode(self, sink: SinkSpec, span: Span | None) -> ChangelogMode:
        """What a sink takes when the query produces the spec's mode."""
        ...

    def shows_each_change(self, sink: SinkSpec, span: Span | None) -> bool:
        """Whether somebody sees each change that a sink gets, although it takes upserts."""
        ...


@dataclass(slots=True)
class JobContext:
    """What specs need to know of the job. ``resources`` gets the Python objects that specs name by id.

    ``collect_resources``: resource id of each collected answer, by sink name.
    """

    configuration: Configuration
    mini_batch: MiniBatch | None
    resources: dict[str, Any]
    collect_resources: dict[str, str]

    def state_ttl_ms(self, hinted: int | None = None) -> int:
        """The time-to-live of an operator's state: the hint's, or else the option's."""
        return self.configuration.get(STATE_TTL_MS) if hinted is None else hinted


@record(kw_only=True)
class Physical(ABC):
    """Base. ``mode``: the changelog that leaves the node, None before inference and for sinks.

    ``every_change``: somebody downstream sees each change, not only the resulting table.
    """

    inputs: tuple[Physical, ...]
    schema: Schema
    mode: ChangelogMode | None = None
    every_change: bool = True
    span: Span | None = field(default=None, compare=False, repr=False)

    # Facts that follow

    @property
    def title(self) -> str:
        """What kind of operator the node is, as plans and operator ids name it."""
        return type(self).__name__.removesuffix("Node")

    @property
    def names(self) -> list[str]:
        """Names of the output columns."""
        return [column.name for column in self.schema]

    @property
    def retracts(self) -> bool:
        """Whether anything but ``+I`` may leave the node."""
        return self.mode is not None and not self.mode.insert_only

    @property
    def emits_before(self) -> bool:
        """Whether the node's updates carry ``-U``."""
        return self.mode is not None and self.mode.contains(RowKind.UPDATE_BEFORE)

    @property
    def upserts(self) -> bool:
        """Whether the node's updates come without the row that they replace."""
        return self.mode is not None and self.mode.contains(RowKind.UPDATE_AFTER) and not self.emits_before

    # The changelog

    @abstractmethod
    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """The modifications that the node can take, given what arrives from an input."""

    def takes_from(self, place: int, arriving: Modifies, connectors: Connectors) -> Modifies:
        """:meth:`takes` of one input."""
        del place
        return self.takes(arriving, connectors)

    @abstractmethod
    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """The modifications that leave the node when these arrive from its inputs."""

    @abstractmethod
    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """How inputs must encode updates so that the node emits them as ``required``.

        Each item is one way, an encoding an input; the best comes first, and none at all means that it cannot.
        """

    def takes_key_deletes(self, place: int, above: bool, connectors: Connectors) -> bool:
        """Whether rows that an input takes away may have their key only, given whether those of the node may.

        Here: no.
        """
        del place, above, connectors
        return False

    def emitted(self, wanted: ChangelogMode) -> ChangelogMode | None:
        """The mode of the node when ``wanted`` is asked of it and its inputs have theirs; None: it cannot do it.

        Here: what is asked for, where only rows that go on may be taken away by their key.
        """
        partial = any(child.mode.key_only_deletes for child in self.inputs if child.mode)
        return replace(wanted, key_only_deletes=wanted.key_only_deletes and partial)

    @abstractmethod
    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Whether single changes of the inputs are seen, given whether those of the node are."""

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """The columns of each input that must be the same when a row is computed again, given those of the output.

        Here: all of an input that updates, for its rows are found again by their columns.

        Raises:
            PlanError: what is required depends on a value that changes from call to call.
        """
        del required
        return tuple(frozenset(range(len(child.schema))) if child.retracts else NONE for child in self.inputs)

    def making_determined(self, required: Columns) -> Physical:
        """The node as it has to be for these columns of the output to be the same when a row is taken back."""
        del required
        return self

    def partitioned_by(self) -> tuple[int, ...]:
        """Columns of the one input by which the operator has rows dealt out although plans show no Exchange."""
        return ()

    # Columns that mean something

    @abstractmethod
    def upsert_keys(self) -> Keys:
        """Sets of columns that identify a row of the output and keep the order of its changes."""

    @abstractmethod
    def window_columns(self) -> WindowColumns | None:
        """The columns of the output that tell a window; None where no window is attached."""

    def monotonicity(self) -> Monotonicities:
        """What updates do to each column of the output; None where nothing is known of them."""
        return None

    def bounds(self, column: int) -> Bounds:
        """Between which numbers a column of the output lies; None where nothing is known of it."""
        del column
        return None

    def filtered_bounds(self, column: int, condition: int) -> Bounds:
        """:meth:`bounds` of a column in rows where another one, of BOOLEAN, is true."""
        del condition
        return self.bounds(column)

    # Identity

    @abstractmethod
    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """Canonical texts of what the operator partitions by, in any fixed order; they are part of its id."""

    def declared_uid(self) -> str | None:
        """The id that the query itself gives the operator; it stands for it whatever surrounds it."""
        return None

    @abstractmethod
    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """What the columns of the output are, given those of the inputs."""

    def predicates(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """Canonical texts of the conditions that the operator applies beside its keys; the same under any alias."""
        del arriving
        return ()

    @abstractmethod
    def own_lineage(self) -> frozenset[str]:
        """Tables that the node itself reads or writes; they are part of the id of what depends on them."""

    @abstractmethod
    def repeatable(self) -> bool:
        """Whether an equal node over the same input makes the same rows, so that one of them may serve both."""

    # Modes

    @abstractmethod
    def same_in_batch(self) -> bool:
        """Whether the answer over a bounded input is the final result of the streaming one."""

    @abstractmethod
    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """By what the mini-batches of the inputs are marked, given what the consumer wants."""

    def waits_for_mini_batch(self) -> bool:
        """Whether the operator collects rows until a mini-batch ends."""
        return False

    # Expressions

    @abstractmethod
    def expressions(self) -> tuple[Expr, ...]:
        """What the operator computes from rows; columns that it only names are none."""

    # EXPLAIN

    @abstractmethod
    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Rows that leave the node, given the rows of its inputs."""

    @abstractmethod
    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """Cost without what stands below, given the rows that leave and arrive."""

    @abstractmethod
    def attributes(self, infix: bool) -> Attributes:
        """What stands in the brackets of the node's line. ``infix``: expressions as in the execution plan."""

    def nets_changes(self) -> bool:
        """Whether the operator leaves out changes that later ones of the same batch undo."""
        return False

    def lines(self, infix: bool = False) -> list[Line]:
        """The lines of the node, outermost first; more than one where Flink plans several nodes for it."""
        return [self.own_line(infix)]

    def own_line(self, infix: bool = False) -> Line:
        """The node as one operator."""
        return Line(self.title, tuple(self.attributes(infix)), self.mode, self.nets_changes())

    def lines_show_exchange(self) -> bool:
        """Whether the node's lines already show the Exchange below it."""
        return False

    def shown_inputs(self) -> tuple[Physical, ...]:
        """What stands below the node's lines in the plan."""
        return self.inputs

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """Operators among :meth:`lines` that do not run as ones of their own in a job of that parallelism."""
        del parallelism
        return ()

    def describe(self, infix: bool = False) -> str:
        """The node's line, as messages and operator names show it."""
        return self.own_line(infix).text()

    # The job

    @abstractmethod
    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator.

        Raises:
            NotSupportedYetError: a plan node of Flink's that has no operator here yet.
        """


@record(kw_only=True)
class Inner(Physical, ABC):
    """A node between sources and sinks: it reads and writes no table itself."""

    def own_lineage(self) -> frozenset[str]:
        """No table."""
        return frozenset()


@record(kw_only=True)
class InsertOnly(Inner, ABC):
    """Inputs and output only grow."""

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Rows that never change."""
        return INSERTS

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Rows that never change."""
        return INSERTS

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Nothing: no row is updated."""
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)


@record(kw_only=True)
class PassesThrough(Inner, ABC):
    """One input, whose changes go on as they are: the same rows with the same keys, or each of them for itself."""

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """What arrives."""
        return arriving[0]

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """What is asked of the node."""
        return ((required,),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Who sees the changes behind the node sees those in front of it."""
        return observed

    def upsert_keys(self) -> Keys:
        """Those of the input."""
        return self.inputs[0].upsert_keys()

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """None: rows are not partitioned."""
        return ()

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """That of the input."""
        return arriving[0]

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above."""
        return above

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As many as arrive."""
        return arriving[0]

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One look at each row."""
        return Cost(rows, rows)


@record(kw_only=True)
class Keyless(PassesThrough, ABC):
    """As :class:`PassesThrough`, but what identifies a row is lost: rows are multiplied or get columns."""

    def upsert_keys(self) -> Keys:
        """None is known."""
        return NO_KEYS

    @abstractmethod
    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The columns that are added have texts of their own."""


def named(node: Physical, columns: Sequence[int]) -> tuple[str, ...]:
    """Names of some columns of a node's output."""
    return tuple(node.schema[index].name for index in columns)


def walk(node: Physical) -> list[Physical]:
    """The node and all below it, inputs first; a shared node once (by identity)."""
    seen: set[int] = set()
    order: list[Physical] = []

    def visit(current: Physical) -> None:
        if id(current) in seen:
            return
        seen.add(id(current))
        for child in current.inputs:
            visit(child)
        order.append(current)

    visit(node)
    return order


def estimate_rows(node: Physical) -> float:
    """Rows that leave a node."""
    return node.row_estimate([estimate_rows(child) for child in node.inputs])


def cumulative_cost(node: Physical) -> Cost:
    """Cost of a node and all below it; what is shared is counted at each use."""
    total = node.own_cost(estimate_rows(node), [estimate_rows(child) for child in node.inputs])
    for child in node.inputs:
        total = total.plus(cumulative_cost(child))
    return total
