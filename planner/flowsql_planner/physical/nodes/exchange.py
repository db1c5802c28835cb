"""Where rows of several tasks or inputs meet: exchanges and unions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.errors import InternalError
from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec, UnionSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes.base import Connectors, JobContext, Keyless, PassesThrough, Physical, named
from flowsql_planner.physical.nodes.calc import Calc
from flowsql_planner.physical.nodes.line import Attributes, distribution_text
from flowsql_planner.physical.nodes.source import ValuesNode
from flowsql_planner.traits.changes import INSERTS, Modifies, Updates
from flowsql_planner.traits.cost import HASH_CPU, Cost, row_bytes
from flowsql_planner.traits.determinism import NONE, Columns
from flowsql_planner.traits.interval import Bounds, spanning
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.lineage import short, united
from flowsql_planner.traits.monotonicity import Monotonicities
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class Exchange(PassesThrough):
    """Rows of equal ``keys`` meet in one subtask; without keys all rows meet (``single``).

    ``broadcast``: every subtask gets all rows.
    """

    keys: tuple[int, ...]
    broadcast: bool = False

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """As asked: rows go on as they are."""
        return (required if self.inputs[0].retracts else NONE,)

    def takes_key_deletes(self, place: int, above: bool, connectors: Connectors) -> bool:
        """As above: rows go on as they are."""
        return above

    def upsert_keys(self) -> Keys:
        """Behind a shuffle only keys that hold the shuffle's columns still keep the order of their changes."""
        wanted = frozenset(self.keys)
        below = self.inputs[0].upsert_keys()
        return frozenset(key for key in below if wanted <= key) if self.keys else below

    def monotonicity(self) -> Monotonicities:
        """Rows are the same."""
        return self.inputs[0].monotonicity()

    def bounds(self, column: int) -> Bounds:
        """Rows are the same."""
        return self.inputs[0].bounds(column)

    def filtered_bounds(self, column: int, condition: int) -> Bounds:
        """Rows are the same."""
        return self.inputs[0].filtered_bounds(column, condition)

    def window_columns(self) -> WindowColumns | None:
        """Those of the input."""
        return self.inputs[0].window_columns()

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """What rows are partitioned by."""
        return tuple(sorted(arriving[0].columns[index] for index in self.keys))

    def same_in_batch(self) -> bool:
        """Rows are the same."""
        return True

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """Keys are hashed, bytes travel."""
        size = rows * row_bytes(self.schema)
        return Cost(rows, rows * len(self.keys) * HASH_CPU + size, 0.0, size)

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """By what rows are distributed."""
        return [("distribution", "broadcast" if self.broadcast else distribution_text(named(self, self.keys)))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """An edge of the job, not an operator."""
        raise InternalError("an Exchange is an edge")


@record(kw_only=True)
class UnionNode(Keyless):
    """UNION ALL."""

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """As asked, of each input that updates."""
        return tuple(required if child.retracts else NONE for child in self.inputs)

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """What any input brings."""
        return frozenset().union(*arriving)

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """What is asked of the node, of each input that changes rows."""
        return (tuple(Updates.NONE if modifies == INSERTS else required for modifies in arriving),)

    def takes_key_deletes(self, place: int, above: bool, connectors: Connectors) -> bool:
        """As above: rows go on as they are."""
        return above

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Columns of all inputs, each text once; which rows arrive is said input by input where they differ."""
        columns = zip(*(source.columns for source in arriving), strict=True)
        merged = tuple(short(" | ".join(sorted(set(column)))) for column in columns)
        found = {source.conditions for source in arriving}
        if len(found) == 1:
            return Lineage(merged, arriving[0].conditions)
        branches = sorted(f"[{' AND '.join(one.conditions)}] OF {', '.join(one.columns)}" for one in arriving)
        return Lineage(merged, united(map(short, branches)))

    def window_columns(self) -> WindowColumns | None:
        """Where all inputs have the same ones."""
        all_windows = [child.window_columns() for child in self.inputs]
        first = all_windows[0]
        return first if all(windows == first for windows in all_windows) else None

    def bounds(self, column: int) -> Bounds:
        """Of all inputs."""
        return spanning(child.bounds(column) for child in self.inputs)

    def same_in_batch(self) -> bool:
        """Rows are the same."""
        return True

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """All together."""
        return sum(arriving)

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The columns."""
        return [("all", "true"), ("union", ", ".join(self.names))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Inputs that are written in the query are read one behind another, as in Flink."""
        return UnionSpec(len(self.inputs), in_order=all(map(_is_written, self.inputs)))


def _is_written(node: Physical) -> bool:
    """Whether all rows are written in the query, as those of VALUES with expressions are."""
    if isinstance(node, ValuesNode):
        return True
    return isinstance(node, Calc | UnionNode) and all(map(_is_written, node.inputs))
