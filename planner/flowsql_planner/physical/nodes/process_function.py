"""Process table functions of users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from flowsql_core.errors import PlanError
from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.process_specs import ProcessCall, ProcessTableFunctionSpec
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.process_function import ArgumentTrait, ChangelogContext, TableParameter, mode_refusal
from flowsql_core.python_call import spoken_name
from flowsql_core.record import record
from flowsql_core.row import ALL_CHANGES, INSERT_ONLY, UPSERT, ChangelogMode, RowKind
from flowsql_planner.logical.expression_text import record_type
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import (
    ALL,
    INSERTS,
    Modifies,
    Updates,
    mode_of,
    modifies_of,
    updates_of,
    where_updated,
)
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
        """What the function declares, or chooses where every change may come and go."""
        tables = [mode_of(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving]
        return modifies_of(self._chosen(ALL_CHANGES, tables))

    def _chosen(self, required: ChangelogMode, tables: Sequence[ChangelogMode]) -> ChangelogMode:
        """The mode that the function has when its consumers require one, and its tables have theirs."""
        call = self.call
        if call.choose_mode is None:
            return call.changelog_mode
        # A call without tables has an input all the same.
        named = tuple((table.name, mode) for table, mode in zip(call.tables, tables, strict=False))
        name = spoken_name(call.function.name)
        try:
            mode = call.choose_mode(ChangelogContext(named, required))
        except Exception as error:
            raise PlanError(
                "changelog-mode", f"The changelog mode of '{name}' cannot be asked for: {error!r}", self.span
            ) from error
        if not isinstance(mode, ChangelogMode):
            raise PlanError(
                "changelog-mode",
                f"The function '{name}' chose {mode!r}, which is no changelog mode.",
                self.span,
                "ChangelogMode.insert_only(), ChangelogMode.upsert(), ChangelogMode.all()",
            )
        refusal = mode_refusal(mode, call.parameters)
        if refusal is None and call.row_time is not None and not mode.insert_only:
            refusal = f"emits {mode} and has `on_time`, which goes with inserts only."
        if refusal is not None:
            raise PlanError("changelog-mode", f"The process table function '{name}' {refusal}", self.span)
        return mode

    def takes_key_deletes(self, place: int, above: bool, connectors: Connectors) -> bool:
        """Where partitions are kept by a key, unless the argument asks for whole rows."""
        if not self.call.tables or self._updates(place) is not Updates.AFTER:
            return False
        return not self._parameter(place).has(ArgumentTrait.REQUIRE_FULL_DELETE)

    def emitted(self, wanted: ChangelogMode) -> ChangelogMode | None:
        """What the function declares or chooses, where that is what its consumers can take."""
        mode = self._chosen(wanted, [source.mode or INSERT_ONLY for source in self.inputs])
        partial = mode.key_only_deletes and mode.contains(RowKind.DELETE) and not wanted.key_only_deletes
        unknown = modifies_of(mode) - modifies_of(wanted)
        return None if partial or unknown or updates_of(mode) is not updates_of(wanted) else mode

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Rows after updates suffice where partitions are kept by a key."""
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
        """Upserts are by the partition of the first table, whose columns come first; else nobody knows.

        As in Flink, updates with the row before them are by it, too, where a sink asks once the mode is known, but a
        join does not rely on it.
        """
        if self.mode is None:
            tables = [UPSERT if self._changes(place) else INSERT_ONLY for place in range(len(self.inputs))]
            updates = self._chosen(UPSERT, tables).upsert
        else:
            updates = self.mode.contains(RowKind.UPDATE_AFTER)
        if not updates:
            return NO_KEYS
        partition = self.call.tables[0].partition if self.call.tables else ()
        return NO_KEYS if partition is None else frozenset({frozenset(range(len(partition)))})

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
        call = replace(
            self.call,
            function=replace(function, function=None),
            changelog_mode=self.mode or self.call.changelog_mode,
            choose_mode=None,
        )
        used = self.inputs if self.call.tables else ()
        ttls = tuple(job.state_ttl_ms(entry.ttl_ms) for entry in self.call.states)
        return ProcessTableFunctionSpec(
            call,
            tuple(source.schema for source in used),
            tuple(source.mode or INSERT_ONLY for source in used),
            self.schema,
            ttls,
        )
