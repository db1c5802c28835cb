"""Process table functions of users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.process_specs import ProcessCall, ProcessTableFunctionSpec
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.process_function import ArgumentTrait, TableParameter
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY
from flowsql_planner.logical.expression_text import record_type
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Updates, modifies_of, updates_of, where_updated
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.lineage import short
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class ProcessTableFunctionNode(Inner):
    """A user's function over tables; those with set semantics are Exchanges."""

    call: ProcessCall
    invocation: str

    @property
    def title(self) -> str:
        """Flink's name."""
        return "ProcessTableFunction"

    def _parameter(self, place: int) -> TableParameter:
        tables = [parameter for parameter in self.call.parameters if isinstance(parameter, TableParameter)]
        return tables[place]

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """What any of its tables may bring."""
        return ALL

    def takes_from(self, place: int, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Changes where the argument says so."""
        return ALL if self._changes(place) else INSERTS

    def _changes(self, place: int) -> bool:
        return bool(self.call.tables) and self._parameter(place).has(ArgumentTrait.SUPPORT_UPDATES)

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """What the function declares."""
        return modifies_of(self.call.changelog_mode)

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Rows after updates suffice where partitions are kept by a key; the function's own changes are as declared."""
        if required is Updates.AFTER and updates_of(self.call.changelog_mode) is Updates.BEFORE_AND_AFTER:
            return ()
        best = tuple(where_updated(modifies, self._updates(place)) for place, modifies in enumerate(arriving))
        whole = tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving)
        return (best,) if best == whole else (best, whole)

    def _updates(self, place: int) -> Updates:
        if not self._changes(place) or self._parameter(place).has(ArgumentTrait.REQUIRE_UPDATE_BEFORE):
            return Updates.BEFORE_AND_AFTER
        partition = self.call.tables[place].partition
        keyed = partition and any(key <= set(partition) for key in self.inputs[place].upsert_keys())
        return Updates.AFTER if keyed else Updates.BEFORE_AND_AFTER

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """The function sees each change."""
        return True

    def upsert_keys(self) -> Keys:
        """Nobody knows what the function makes."""
        return NO_KEYS

    def window_columns(self) -> WindowColumns | None:
        """None go on."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """What the tables are partitioned by."""
        return tuple(
            source.columns[index]
            for table, source in zip(self.call.tables, arriving, strict=False)
            for index in table.partition or ()
        )

    def declared_uid(self) -> str | None:
        """The function's, by which its state is found whatever stands around it."""
        return self.call.uid if self.call.keeps_partitions else None

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Columns of tables, then what the function makes."""
        given: list[str] = []
        for table, source in zip(self.call.tables, arriving, strict=False):
            given += source.columns if table.through else [source.columns[index] for index in table.partition or ()]
        over = "; ".join(", ".join(source.columns) for source in arriving)
        made = (f"{name} OF {self.invocation} OVER ({over})" for name in self.names[len(given) :])
        conditions = sorted({one for source in arriving for one in source.conditions})
        return Lineage((*given, *map(short, made)), tuple(conditions))

    def repeatable(self) -> bool:
        """Whether the declaration says so."""
        return self.call.function.deterministic

    def same_in_batch(self) -> bool:
        """Rows are seen one by one, in the order of streams."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """Timers wait for watermarks of row time."""
        return MiniBatchMode.ROW_TIME if self.call.row_time is not None else above

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As many as arrive."""
        return sum(arriving)

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A call a row."""
        return Cost(rows, sum(arriving))

    def expressions(self) -> tuple[Expr, ...]:
        """Scalar arguments."""
        return tuple(scalar for scalar in self.call.scalars if scalar is not None)

    def attributes(self, infix: bool) -> Attributes:
        """The call."""
        return [
            ("invocation", self.invocation),
            ("uid", self.call.uid or "null"),
            ("select", ",".join(self.names)),
            ("rowType", record_type(self.schema)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator; the function's object goes into the job's resources if no text can name it."""
        function = self.call.function
        if function.path is None and function.source is None:
            job.resources[function.key] = function.function
        call = replace(self.call, function=replace(function, function=None))
        used = self.inputs if self.call.tables else ()
        ttls = tuple(job.state_ttl_ms(entry.ttl_ms) for entry in self.call.states)
        return ProcessTableFunctionSpec(
            call,
            tuple(source.schema for source in used),
            tuple(source.mode or INSERT_ONLY for source in used),
            self.schema,
            ttls,
        )
