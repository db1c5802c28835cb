"""Joins of several inputs at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.multi_join_specs import MultiJoinInput, MultiJoinSpec
from flowsql_core.graph.specs import JoinKind, OperatorSpec
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter, record_type
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext
from flowsql_planner.physical.nodes.exchange import Exchange
from flowsql_planner.physical.nodes.joins.pairs import KEYED, best_key, paired_keys, selectivity
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, Modifies, Modify, Updates, where_updated
from flowsql_planner.traits.cost import HASH_CPU, Cost, row_bytes
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.lineage import conditions, placed, united
from flowsql_planner.traits.window import WindowColumns


@record
class JoinedInput:
    """How an input behind the first is joined; the fields are those of ``MultiJoinInput``.

    ``condition``: the whole one, over the columns of all inputs; ``rest``: what the shared key does not say of it.
    """

    kind: JoinKind
    condition: Expr | None
    rest: Expr | None
    linked: frozenset[int]
    equal: tuple[tuple[int, int], ...]


@record(kw_only=True)
class MultiJoinNode(Inner):
    """Regular joins of several Exchanges by their shared key, INNER and LEFT, from left to right.

    ``upsert``: the upsert keys of each input. ``hinted_ttls``: what a STATE_TTL hint says, as it is written.
    """

    joined: tuple[JoinedInput, ...]
    upsert: tuple[tuple[tuple[int, ...], ...], ...]
    ttls_ms: tuple[int | None, ...]
    hinted_ttls: tuple[str | None, ...] | None

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Combinations come and go with their rows; padded ones update."""
        if any(one.kind is JoinKind.LEFT for one in self.joined):
            return ALL
        return frozenset().union(*arriving)

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Upserts suffice where a row keeps its place under the shared key."""
        if required is not Updates.AFTER:
            return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)
        for modifies, key, upsert_keys in zip(arriving, self._keys(), self.upsert, strict=True):
            if Modify.UPDATE in modifies and not (key and any(set(key) <= set(one) for one in upsert_keys)):
                return ()
        return (tuple(where_updated(modifies, Updates.AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each change of a row makes those of its combinations."""
        return observed

    def upsert_keys(self) -> Keys:
        """Those of the joins one behind another, as far as they hold the shared key of an input."""
        starts = self._starts()
        shared = self._keys()
        if not shared[0]:
            return NO_KEYS
        keys = self.inputs[0].upsert_keys()
        for place, one in enumerate(self.joined, 1):
            start = starts[place]
            linked = {starts[i] + column for i in one.linked for column in shared[i]}
            left = frozenset(linked | {before for before, _ in one.equal})
            right = frozenset({*shared[place], *(own for _, own in one.equal)})
            keys = paired_keys(one.kind, keys, left, self.inputs[place].upsert_keys(), right, start)
        held = [frozenset(start + column for column in key) for start, key in zip(starts, shared, strict=True)]
        return frozenset(key for key in keys if any(one <= key for one in held))

    def window_columns(self) -> WindowColumns | None:
        """A combination is in no window."""
        return None

    def same_in_batch(self) -> bool:
        """Without updates, combinations are the same."""
        return True

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above; rows do not wait here."""
        return above

    def expressions(self) -> tuple[Expr, ...]:
        """The conditions."""
        return tuple(one.condition for one in self.joined if one.condition is not None)

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As of joins one behind another."""
        rows = arriving[0]
        for one, right in zip(self.joined, arriving[1:], strict=True):
            share = selectivity(one.rest)
            pairs = ((rows + right) * KEYED if self._keys()[0] else rows * right) * share
            rows = pairs if one.kind is JoinKind.INNER else max(rows, pairs)
        return rows

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """Keys are hashed, all inputs are kept."""
        memory = sum(count * row_bytes(child.schema) for count, child in zip(arriving, self.inputs, strict=True))
        return Cost(rows, sum(arriving) * HASH_CPU, 0.0, 0.0, memory)

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The shared key of all inputs."""
        by_input = [[source.columns[i] for i in key] for source, key in zip(arriving, self._keys(), strict=True)]
        return tuple(sorted(" = ".join(columns) for columns in zip(*by_input, strict=True)))

    def predicates(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """By input from the second on: how it is joined, and under which condition."""
        columns = tuple(column for source in arriving for column in source.columns)
        return tuple(f"{one.kind.value} {' AND '.join(conditions(one.condition, columns))}" for one in self.joined)

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The columns of all inputs; what combines them is a condition."""
        columns = tuple(column for source in arriving for column in source.columns)
        asked = []
        for one in self.joined:
            kind = () if one.kind is JoinKind.INNER else (one.kind.value,)
            asked.append((*conditions(one.condition, columns), *kind))
        if any(one.kind is not JoinKind.INNER for one in self.joined):
            asked.append(placed("ON", self.predicates(arriving)))
            asked.append(placed("BELOW JOIN", (one for source in arriving for one in source.conditions)))
        return Lineage(columns, united(*(source.conditions for source in arriving), *asked))

    def attributes(self, infix: bool) -> Attributes:
        """The shared key, kinds, keys of rows, conditions, columns."""
        shared = [self.names[i] for i in self._keys()[0]]
        printer = ExpressionPrinter(self.names, infix)
        asked = ("true" if one.condition is None else printer.print(one.condition) for one in self.joined)
        kinds = ("LEFT" if one.kind is JoinKind.LEFT else "INNER" for one in self.joined)
        found: Attributes = [
            ("commonJoinKey", ", ".join(shared) if shared else "noCommonJoinKey"),
            ("joinTypes", ", ".join(kinds)),
            ("inputUniqueKeys", ", ".join(map(self._unique_text, range(len(self.inputs))))),
        ]
        if self.hinted_ttls is not None:
            kept = ", ".join(ttl or "0s" for ttl in self.hinted_ttls)
            found.append(("stateTtlHints", f"[[STATE_TTL options:[{kept}]]]"))
        return [
            *found,
            ("joinConditions", ", ".join(asked)),
            ("select", ",".join(self.names)),
            ("rowType", record_type(self.schema)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """All inputs in state."""
        made: list[MultiJoinInput] = []
        for place, (source, key) in enumerate(zip(self.inputs, self._keys(), strict=True)):
            one = self.joined[place - 1] if place else None
            made.append(
                MultiJoinInput(
                    source.schema,
                    key,
                    () if one is None else tuple(sorted(one.linked)),
                    one is not None and one.kind is JoinKind.LEFT,
                    None if one is None else one.rest,
                    () if one is None else one.equal,
                    best_key(self.upsert[place], key),
                    source.retracts,
                    source.retracts and not source.emits_before,
                    job.state_ttl_ms(self.ttls_ms[place]),
                )
            )
        return MultiJoinSpec(tuple(made), self.schema)

    def _keys(self) -> tuple[tuple[int, ...], ...]:
        """The columns of the shared key in each input: what its rows are distributed by."""
        return tuple(child.keys if isinstance(child, Exchange) else () for child in self.inputs)

    def _starts(self) -> tuple[int, ...]:
        return (0, *accumulate(len(child.schema) for child in self.inputs[:-1]))

    def _unique_text(self, place: int) -> str:
        names = self.inputs[place].names
        keys = [f"({', '.join(names[i] for i in key)})" for key in self.upsert[place]]
        return ", ".join(keys) if keys else "noUniqueKey"
