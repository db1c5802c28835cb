"""Where rows leave: tables and the program that asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from flowsql_core.errors import InternalError
from flowsql_core.expr import Expr, input_refs
from flowsql_core.graph.constraints import Expectation, constraints_of
from flowsql_core.graph.expectation import ViolationAction
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import (
    CollectSinkSpec,
    ConstraintEnforcerSpec,
    OperatorSpec,
    SinkConflictsSpec,
    SinkMaterializerSpec,
    SinkSpec,
    TableSpec,
)
from flowsql_core.record import record
from flowsql_core.row import ALL_CHANGES, ChangelogMode, RowKind
from flowsql_core.types.logical import Column, Schema
from flowsql_planner.logical.expression_text import expectations_text, target_columns
from flowsql_planner.logical.nodes import WrittenMetadata
from flowsql_planner.physical.nodes.base import Connectors, JobContext, Physical
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import (
    ALL,
    Modifies,
    Modify,
    Updates,
    mode_of,
    modifies_of,
    updates_of,
    where_updated,
)
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.determinism import NONE, Columns
from flowsql_planner.traits.keys import Keys, smallest
from flowsql_planner.traits.window import WindowColumns

#: What leaves a materialiser.
MATERIALIZED: Final = ChangelogMode(frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE}))
_UPDATES: Final = frozenset({RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER})
#: Strategies of ON CONFLICT that decide when a watermark passes.
BY_WATERMARK: Final = ("NOTHING", "ERROR")


@record(kw_only=True)
class SinkNode(Physical):
    """Writes a table, or hands the answer to the program (``table`` None)."""

    table: TableSpec | None
    name: str
    overwrite: bool = False
    static_partition: tuple[tuple[str, str], ...] = ()
    #: What ON CONFLICT DO asks for.
    on_conflict: str | None = None
    #: Indexes of the columns that the statement lists.
    target_columns: tuple[int, ...] = ()
    #: What the table expects of its rows.
    expectations: tuple[Expectation, ...] = ()
    #: The columns behind the physical ones.
    metadata: tuple[WrittenMetadata, ...] = ()
    #: Whether rows are materialised by the table's primary key.
    materialize: bool = False

    def writing(self, mode: ChangelogMode) -> SinkSpec:
        """The table's sink as far as planning is concerned, when the query produces ``mode``."""
        assert self.table is not None
        keys = self._metadata_keys()
        return SinkSpec(self.table, self.schema, mode, self.overwrite, self.static_partition, metadata=keys)

    def taken_mode(self, arriving: ChangelogMode, connectors: Connectors) -> ChangelogMode:
        """What the table's sink takes when the query produces ``arriving``."""
        return connectors.sink_mode(self.writing(self._handed(arriving)), self.span)

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """What the connector takes."""
        if self.table is None:
            return ALL
        taken = modifies_of(self.taken_mode(mode_of(arriving, Updates.BEFORE_AND_AFTER), connectors))
        return taken | {Modify.UPDATE} if self.dropping() and Modify.DELETE in taken else taken

    def dropping(self) -> tuple[Expectation, ...]:
        """Expectations that leave rows out."""
        return tuple(each for each in self.expectations if each.action is ViolationAction.DROP)

    def _handed(self, arriving: ChangelogMode) -> ChangelogMode:
        """What stands in front of the sink makes of a changelog: where rows are left out, an update is two changes."""
        if not self.dropping() or arriving.kinds.isdisjoint(_UPDATES):
            return arriving
        return ChangelogMode((arriving.kinds - _UPDATES) | {RowKind.INSERT, RowKind.DELETE})

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Nothing leaves."""
        return frozenset()

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Upserts where the connector takes them and they suffice."""
        (modifies,) = arriving
        both = (where_updated(modifies, Updates.BEFORE_AND_AFTER),)
        # A row that is left out must not leave the one before it behind.
        if self.table is not None and not self.dropping():
            taken = self.taken_mode(mode_of(modifies, Updates.BEFORE_AND_AFTER), connectors)
            if updates_of(taken) is Updates.AFTER and self._upserts_suffice():
                return ((where_updated(modifies, Updates.AFTER),), both)
        return (both,)

    def takes_key_deletes(self, place: int, above: bool, connectors: Connectors) -> bool:
        """Where the connector takes upserts by the key that identifies the query's rows, and needs no more of them."""
        if self.table is None or self.dropping():
            return False
        taken = self.taken_mode(ALL_CHANGES, connectors)
        return taken.key_only_deletes and taken.upsert and self._upserts_suffice()

    def _upserts_suffice(self) -> bool:
        """Without a primary key nobody finds the old row; with one, it must be what identifies the query's rows."""
        key = self.primary_key()
        return not key or frozenset(key) in self.inputs[0].upsert_keys()

    def primary_key(self) -> tuple[int, ...]:
        """Columns of the table's primary key; none without one."""
        if self.table is None:
            return ()
        names = [column.name for column in self.table.columns]
        return tuple(names.index(name) for name in self.table.primary_key)

    def written_partition_keys(self) -> tuple[int, ...]:
        """Columns of the partition keys that the statement leaves to the rows."""
        if self.table is None:
            return ()
        names = [column.name for column in self.table.columns]
        static = dict(self.static_partition)
        return tuple(names.index(key) for key in self.table.partition_keys if key not in static)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """A sink that takes upserts keeps a table; one that asks for -U and a collected answer show each change."""
        mode = self.inputs[0].mode
        if self.table is None or mode is None or not mode.upsert:
            return True
        return connectors.shows_each_change(self.writing(mode), self.span)

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """All columns where rows have no key, or are materialised by it; where the query's own key is that, nothing.

        Rows that a program reads have none. As in Flink, EXPLAIN of a query says nothing of it: it has no sink.
        """
        source = self.inputs[0]
        if not source.retracts:
            return (NONE,)
        judged = frozenset().union(*(input_refs(each.condition) for each in self.dropping()))
        if self.table is not None and self.table.primary_key and not self.materialize:
            primary = frozenset(self.primary_key())
            return (judged if any(key <= primary for key in source.upsert_keys()) else primary | judged,)
        return (frozenset(range(len(source.schema))),)

    def upsert_keys(self) -> Keys:
        """Those of the query."""
        return self.inputs[0].upsert_keys()

    def window_columns(self) -> WindowColumns | None:
        """Nothing leaves."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """Rows are written where they are."""
        return ()

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """That of the input."""
        return arriving[0]

    def own_lineage(self) -> frozenset[str]:
        """The table."""
        return frozenset() if self.table is None else frozenset({f"> {self.name}"})

    def repeatable(self) -> bool:
        """What is written twice is there twice."""
        return False

    def same_in_batch(self) -> bool:
        """Rows are the same."""
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

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The table, the columns, and what becomes of conflicts."""
        more = [("upsertMaterialize", "true")] if self.materialize else []
        if self.on_conflict is not None:
            more.append(("conflictStrategy", self.on_conflict))
        listed = [("targetColumns", target_columns(self.target_columns))] if self.target_columns else []
        if self.expectations:
            more.append(("expectations", expectations_text(self.expectations)))
        return [("table", self.name), *listed, ("fields", ", ".join(self.inputs[0].names)), *more]

    # The operators

    def spec(self, job: JobContext) -> OperatorSpec:
        """The writer."""
        mode = self.inputs[0].mode
        if mode is None:
            raise InternalError("a sink without a changelog mode")
        if self.table is None:
            demanded = constraints_of(self.schema, job.configuration)
            return CollectSinkSpec(job.collect_resources[self.name], self.schema, mode, demanded)
        return SinkSpec(
            self.table,
            self._written(),
            MATERIALIZED if self.materialize else self._handed(mode),
            self.overwrite,
            self.static_partition,
            upsert_key=self._sink_key(),
            metadata=self._metadata_keys(),
        )

    def enforcer(self, job: JobContext) -> ConstraintEnforcerSpec | None:
        """What stands in front of a sink whose table demands something of its rows."""
        if self.table is None:
            return None
        written = (*self.table.columns, *(Column(written.column, written.type) for written in self.metadata))
        demanded = constraints_of(written, job.configuration)
        if not demanded and not self.expectations:
            return None
        mode = self.inputs[0].mode
        retracts = mode is not None and self._handed(mode) != mode
        return ConstraintEnforcerSpec(self._written(), demanded, self.expectations, retracts)

    def materializer(self, job: JobContext) -> SinkMaterializerSpec | SinkConflictsSpec | None:
        """What makes one row of the query's rows with one key of the sink."""
        if not self.materialize:
            return None
        # A table of one row is identified by no column: as in Flink, by all of them.
        key = smallest(self.inputs[0].upsert_keys()) or None
        if self.on_conflict in BY_WATERMARK:
            return SinkConflictsSpec(self._written(), self._sink_key(), key, self.on_conflict == "ERROR")
        return SinkMaterializerSpec(self._written(), self._sink_key(), key, job.state_ttl_ms())

    def _written(self) -> Schema:
        """The rows that the table gets under its names, of which messages speak."""
        assert self.table is not None
        names = (*(column.name for column in self.table.columns), *(written.column for written in self.metadata))
        return tuple(Column(name, column.type) for name, column in zip(names, self.inputs[0].schema, strict=True))

    def _metadata_keys(self) -> tuple[str, ...]:
        return tuple(written.key for written in self.metadata)

    def _sink_key(self) -> tuple[int, ...]:
        return self.primary_key() or smallest(self.inputs[0].upsert_keys()) or ()
