"""Joins with what a table holds at the moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from flowsql_core.expr import Expr, InputRef, conjuncts
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind, OperatorSpec, ScanSpec
from flowsql_core.graph.time_join_specs import AsyncLookup, KeyedLookupJoinSpec, LookupJoinSpec, LookupKey
from flowsql_core.record import record
from flowsql_core.types.logical import is_proctime
from flowsql_planner.logical.expression_text import ExpressionPrinter, literal_text
from flowsql_planner.physical.nodes.base import JobContext, PassesThrough
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.determinism import NONE, Columns, refuse_changing, refuse_condition
from flowsql_planner.traits.keys import NO_KEYS, Keys, smallest
from flowsql_planner.traits.lineage import conditions, texts, united
from flowsql_planner.traits.window import WindowColumns


@record
class Retry:
    """A key that finds nothing is asked for again: ``attempts`` in all, ``delay_ms`` apart."""

    attempts: int
    delay_ms: int


@record(kw_only=True)
class LookupJoin(PassesThrough):
    """Each row beside the rows of a table that have its key now.

    ``table_keys``: columns of the scan that identify its rows, if the table says so. ``projections``, ``filter``: over
    the scan's columns. ``condition``: the whole one; ``rest``: what the keys do not say, over the node's columns.
    ``asynchronous``: parts of a batch are asked for side by side. ``unordered``: as the plan shows it.
    ``materialize``: what was found is kept and taken back as it was told. ``bounded``: in batch mode.
    """

    kind: JoinKind
    scan: ScanSpec
    keys: tuple[LookupKey, ...]
    unique: bool
    projections: tuple[Expr, ...]
    filter: Expr | None
    condition: Expr | None
    rest: Expr | None
    retry: Retry | None = None
    asynchronous: AsyncLookup | None = None
    unordered: bool = False
    materialize: bool = False
    bounded: bool = False

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """What is asked for of the row; what was looked up is kept, but for values that change from call to call."""
        if not self.inputs[0].retracts or not required:
            return (NONE,)
        refuse_condition(self.condition, self.span)
        refuse_condition(self.filter, self.span)
        width = len(self.inputs[0].schema)
        for index in sorted(required):
            if index >= width:
                refuse_changing([self.projections[index - width]], self.names[index], self.span)
        return (frozenset(index for index in required if index < width),)

    def making_determined(self, required: Columns) -> LookupJoin:
        """The table may hold something else by the time a row is taken back: what was found for it is kept."""
        width = len(self.inputs[0].schema)
        if not self.inputs[0].retracts or all(index < width for index in required):
            return self
        # As in Flink, what is kept is asked for by one request at a time.
        return replace(self, materialize=True, asynchronous=None)

    def partitioned_by(self) -> tuple[int, ...]:
        """What tells whose change a row is, if the changes of one row have to meet what is kept for it."""
        return self._state_key() if self.materialize else ()

    def _state_key(self) -> tuple[int, ...]:
        """The input's upsert key; all columns where there is none, or none with columns.

        A processing time has no value in Flink until it is read: it tells nothing.
        """
        source = self.inputs[0]
        every = tuple(index for index, column in enumerate(source.schema) if not is_proctime(column.type))
        return smallest(source.upsert_keys()) or every

    def upsert_keys(self) -> Keys:
        """Those of the input, where a row finds one row at most; and those together with the key of the table.

        What is kept is dealt out by one key of the input: others no longer keep the order of their changes.
        """
        own = self.inputs[0].upsert_keys()
        table = self._table_key()
        keys = own if self.unique else NO_KEYS
        if table is not None:
            keys |= frozenset(key | table for key in own)
        wanted = frozenset(self.partitioned_by())
        return frozenset(key for key in keys if wanted <= key)

    def _table_key(self) -> frozenset[int] | None:
        """The columns of the output that hold the table's primary key."""
        primary = self.scan.table.primary_key
        width = len(self.inputs[0].schema)
        places = {self.scan.output[below].name: width + out for out, below in plain_columns(self.projections).items()}
        if not primary or any(name not in places for name in primary):
            return None
        return frozenset(places[name] for name in primary)

    def window_columns(self) -> WindowColumns | None:
        """Those of the input."""
        return self.inputs[0].window_columns()

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """What rows are dealt out by where something is kept."""
        return tuple(sorted(arriving[0].columns[index] for index in self.partitioned_by()))

    def own_lineage(self) -> frozenset[str]:
        """The table."""
        return frozenset({self.scan.table.name})

    def predicates(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """How the table is joined: the kind, what is looked up, and the conditions."""
        return tuple(sorted(self._made(arriving[0])))

    def _table(self) -> tuple[str, ...]:
        return tuple(f"{self.scan.table.name}.{column.name}" for column in self.scan.output)

    def _made(self, source: Lineage) -> tuple[str, ...]:
        table = self._table()
        columns = (*source.columns, *texts(self.projections, table))
        pairs = tuple(
            sorted(f"{source.columns[key.left]} = {table[key.column]} now" for key in self.keys if key.left is not None)
        )
        return (*conditions(self.filter, table), *conditions(self.rest, columns), *pairs, self.kind.value)

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's columns, and those of the table."""
        source = arriving[0]
        columns = (*source.columns, *texts(self.projections, self._table()))
        return Lineage(columns, united(source.conditions, self._made(source)))

    def same_in_batch(self) -> bool:
        """A lookup is one, whoever asks."""
        return True

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One look at each row."""
        return Cost(rows, rows)

    def expressions(self) -> tuple[Expr, ...]:
        """What is computed from the table's rows, and the condition."""
        parts = (*self.projections, *conjuncts(self.filter))
        return parts if self.rest is None else (*parts, self.rest)

    def attributes(self, infix: bool) -> Attributes:
        """Table, kind, keys, conditions, columns, and how it is asked."""
        left = self.inputs[0].names
        shown = []
        for key in self.keys:
            name = self.scan.output[key.column].name
            if key.left is not None:
                shown.append(f"{name}={left[key.left]}")
            elif key.constant is not None:
                shown.append(f"{name}={literal_text(key.constant.value, key.constant.type)}")
        attributes = [
            ("table", ".".join(self.scan.table.shown_path)),
            ("joinType", self.kind.value),
            ("lookup", ", ".join(shown)),
        ]
        if self.filter is not None:
            names = [column.name for column in self.scan.output]
            attributes.append(("where", ExpressionPrinter(names, infix).print(self.filter)))
        attributes.append(("select", ", ".join(self.names)))
        if self.rest is not None:
            attributes.append(("joinCondition", ExpressionPrinter(self.names, infix).print(self.rest)))
        if self.asynchronous is not None:
            mode = "UNORDERED" if self.unordered else "ORDERED"
            attributes.append(("async", f"{mode}, {self.asynchronous.timeout_ms}ms, {self.asynchronous.capacity}"))
        if self.materialize:
            attributes.append(("upsertMaterialize", "true"))
        if self.retry is not None:
            attributes.append(("retry", f"lookup_miss, FIXED_DELAY, {self.retry.delay_ms}ms, {self.retry.attempts}"))
        upsert_key = None if self.bounded else smallest(self.inputs[0].upsert_keys())
        if upsert_key is not None:
            attributes.append(("upsertKey", f"[{', '.join(map(str, upsert_key))}]"))
        return attributes

    def spec(self, job: JobContext) -> OperatorSpec:
        """Without state, but for what is kept."""
        made = LookupJoinSpec(
            self.kind,
            self.scan,
            self.keys,
            self.projections,
            self.filter,
            self.rest,
            self.inputs[0].schema,
            self.schema,
            1 if self.retry is None else self.retry.attempts,
            0 if self.retry is None else self.retry.delay_ms,
            self.asynchronous,
        )
        if not self.materialize:
            return made
        table = tuple(f"{self.scan.table.name}.{column.name}" for column in self.scan.output)
        return KeyedLookupJoinSpec(
            **{field.name: getattr(made, field.name) for field in fields(made)},
            state_key=self._state_key(),
            kept=texts(self.projections, table),
            state_ttl_ms=job.state_ttl_ms(),
        )


def plain_columns(projections: Sequence[Expr]) -> dict[int, int]:
    """Projected column -> column below it, of those that are passed on as they are."""
    return {place: expr.index for place, expr in enumerate(projections) if isinstance(expr, InputRef)}
