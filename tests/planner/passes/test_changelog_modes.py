"""Changelog inference as tables: node x what is required of it x what arrives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from flowsql_core.errors import PlanError
from flowsql_core.expr import AggregateCall, Call, InputRef, Literal
from flowsql_core.graph.specs import JoinKind, SinkSpec, TableSpec, WindowKind, WindowProperty, WindowSpec
from flowsql_core.row import ALL_CHANGES, INSERT_ONLY, UPSERT, ChangelogMode, RowKind
from flowsql_core.span import Span
from flowsql_core.types.logical import BIGINT, BOOLEAN, INT, Column, TimestampType
from flowsql_planner.physical.nodes import (
    Calc,
    DropUpdateBefore,
    Exchange,
    GroupAggregate,
    JoinNode,
    Limit,
    Physical,
    SinkNode,
    TableSourceScan,
    UnionNode,
    WindowAggregate,
    WindowJoin,
)
from flowsql_planner.physical.passes.changelog_modes import infer_changelog_modes
from flowsql_planner.physical.passes.every_change import derive_every_change

COLUMNS = (Column("id", INT), Column("v", BIGINT))
SOURCE_MODES = {"append": INSERT_ONLY, "updates": ALL_CHANGES}
COUNT = AggregateCall("COUNT", (), BIGINT, "n")
WINDOW = WindowSpec(WindowKind.TUMBLE, 1000, 1000, time_index=0)
REF = tuple(InputRef(i, column.type) for i, column in enumerate(COLUMNS))


def scan(name: str) -> TableSourceScan:
    table = TableSpec(("c", "d", name), COLUMNS, ())
    return TableSourceScan(inputs=(), schema=COLUMNS, table=table, projection=(0, 1))


def exchange(node: Physical, *keys: int) -> Exchange:
    return Exchange(inputs=(node,), schema=node.schema, keys=keys)


def aggregate(node: Physical, *keys: int, calls: tuple[AggregateCall, ...] = (COUNT,)) -> GroupAggregate:
    schema = tuple(node.schema[key] for key in keys) + tuple(Column(call.name, call.type) for call in calls)
    return GroupAggregate(inputs=(exchange(node, *keys),), schema=schema, grouping=keys, calls=calls)


def keyed(node: Physical) -> Physical:
    """An aggregate by id over the source: [I, UA] or [I, UB, UA], deletes when the source updates."""
    return aggregate(node, 0)


def calc(node: Physical, filtered: bool) -> Calc:
    condition = Call(">", (InputRef(1, BIGINT), Literal(1, INT)), BOOLEAN) if filtered else None
    columns = tuple(InputRef(i, c.type) for i, c in enumerate(node.schema))
    return Calc(inputs=(node,), schema=node.schema, projections=(columns[1], columns[0]), condition=condition)


def join(left: Physical, right: Physical, kind: JoinKind, unique: bool) -> JoinNode:
    keys = ((0,),) if unique else ()
    return JoinNode(
        inputs=(exchange(left, 0), exchange(right, 0)),
        schema=left.schema + right.schema,
        kind=kind,
        left_keys=(0,),
        right_keys=(0,),
        null_safe=(False,),
        condition=None,
        rest=None,
        left_upsert_keys=keys,
        right_upsert_keys=keys,
    )


def sink(node: Physical, key: tuple[str, ...] = (), name: str = "out") -> SinkNode:
    table = TableSpec(("c", "d", name), node.schema, (), (), key)
    return SinkNode(inputs=(node,), schema=node.schema, table=table, name="c.d.out")


@dataclass(frozen=True)
class Tables:
    """Connectors by the names of their tables. ``sink_takes`` None: whatever comes."""

    sink_takes: ChangelogMode | None = None

    def source_mode(self, table: TableSpec, span: Span | None) -> ChangelogMode:
        return SOURCE_MODES[table.path[-1]]

    def sink_mode(self, sink: SinkSpec, span: Span | None) -> ChangelogMode:
        return sink.changelog_mode if self.sink_takes is None else self.sink_takes

    def shows_each_change(self, sink: SinkSpec, span: Span | None) -> bool:
        return sink.table.path[-1] == "shown"


def infer(root: Physical, sink_takes: ChangelogMode | None = None) -> Physical:
    return infer_changelog_modes(root, Tables(sink_takes))


A, U = scan("append"), scan("updates")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (A, "[I]"),
        # Nobody asks for -U: a source that has them drops them.
        (U, "[I,UA,D]"),
        (keyed(A), "[I,UA]"),
        (keyed(U), "[I,UA,D]"),
        (aggregate(A), "[I,UA]"),
        (aggregate(U), "[I,UA,D]"),
        (calc(keyed(A), filtered=False), "[I,UA]"),
        # A filter above updates must see the -U of a row that stops passing.
        (calc(keyed(A), filtered=True), "[I,UB,UA]"),
        # All rows of a key fulfil a condition on it, or none.
        (replace(calc(keyed(A), False), condition=Call(">", (InputRef(0, INT), Literal(1, INT)), BOOLEAN)), "[I,UA]"),
        (calc(A, filtered=True), "[I]"),
        (UnionNode(inputs=(keyed(A), A), schema=COLUMNS), "[I,UA]"),
        (UnionNode(inputs=(calc(keyed(A), True), A), schema=COLUMNS), "[I,UB,UA]"),
        (join(A, A, JoinKind.INNER, False), "[I]"),
        (join(keyed(A), A, JoinKind.INNER, True), "[I,UA]"),
        (join(keyed(A), A, JoinKind.INNER, False), "[I,UB,UA]"),
        (join(U, A, JoinKind.SEMI, True), "[I,UA,D]"),
        (join(A, A, JoinKind.LEFT, False), "[I,UA,D]"),
        (join(A, A, JoinKind.ANTI, False), "[I,UA,D]"),
        (join(keyed(A), A, JoinKind.FULL, False), "[I,UB,UA,D]"),
        (Limit(inputs=(exchange(A),), schema=COLUMNS, offset=0, fetch=3), "[I]"),
        (Limit(inputs=(exchange(keyed(A)),), schema=COLUMNS, offset=0, fetch=3), "[I,UA,D]"),
    ],
    ids=lambda value: value.describe()[:40] if isinstance(value, Physical) else value,
)
def test_mode_of_a_query_without_sink(node: Physical, expected: str) -> None:
    assert str(infer(node).mode) == expected


@pytest.mark.parametrize(
    ("takes", "key", "expected"),
    [
        (ALL_CHANGES, (), "[I,UB,UA]"),
        (UPSERT, (), "[I,UA]"),
        (UPSERT, ("id",), "[I,UA]"),
        # The sink's key is not the query's: upserts would overwrite other rows.
        (UPSERT, ("n",), "[I,UB,UA]"),
    ],
)
def test_what_a_sink_asks_of_an_aggregate(takes: ChangelogMode, key: tuple[str, ...], expected: str) -> None:
    made = infer(sink(keyed(A), key), takes)
    assert str(made.inputs[0].mode) == expected
    assert made.mode is None


@pytest.mark.parametrize(
    ("node", "takes", "message"),
    [
        (keyed(A), INSERT_ONLY, "doesn't support consuming update changes which is produced by node GroupAggregate("),
        (keyed(U), INSERT_ONLY, "doesn't support consuming update and delete changes which is produced by node Table"),
        (
            U,
            ChangelogMode(frozenset({RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER})),
            "doesn't support consuming delete changes which is produced by node TableSourceScan(",
        ),
    ],
)
def test_a_sink_refuses_what_it_cannot_take(node: Physical, takes: ChangelogMode, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        infer(sink(node), takes)
    assert str(caught.value).startswith(f"Table sink 'c.d.out' {message}")
    assert caught.value.hint


def test_an_aggregate_asks_its_input_for_both_halves_of_an_update() -> None:
    below = infer(aggregate(keyed(A), 1)).inputs[0].inputs[0]
    assert str(below.mode) == "[I,UB,UA]"


def test_the_source_drops_update_before_only_where_upserts_suffice() -> None:
    dropped = infer(sink(U), UPSERT).inputs[0]
    assert isinstance(dropped, DropUpdateBefore)
    kept = infer(sink(U), ALL_CHANGES).inputs[0]
    assert isinstance(kept, TableSourceScan)


def window_join(left: Physical) -> WindowJoin:
    window = replace(WINDOW, time_index=None, start_index=0, end_index=1)
    return WindowJoin(
        inputs=(exchange(left, 0), exchange(A, 0)),
        schema=left.schema + COLUMNS,
        kind=JoinKind.INNER,
        left_window=window,
        right_window=window,
        left_keys=(0,),
        right_keys=(0,),
        null_safe=(False,),
        condition=None,
        rest=None,
    )


def test_a_window_join_takes_inserts_only() -> None:
    assert str(infer(window_join(A)).mode) == "[I]"
    with pytest.raises(PlanError, match=r"WindowJoin doesn't support consuming update changes .* GroupAggregate\("):
        infer(window_join(keyed(A)))


def windowed(node: Physical, call: AggregateCall = COUNT) -> WindowAggregate:
    return WindowAggregate(
        inputs=(exchange(node, 0),),
        schema=(COLUMNS[0], Column(call.name, call.type), Column("window_end", TimestampType(precision=3))),
        grouping=(0,),
        calls=(call,),
        window=WINDOW,
        properties=(WindowProperty.END,),
    )


FIRST = AggregateCall("FIRST_VALUE", (InputRef(1, BIGINT),), BIGINT, "f")


@pytest.mark.parametrize(
    ("root", "takes", "expected"),
    [
        # Collected and printed answers show each change, a table that is upserted does not.
        (sink(keyed(A)), ALL_CHANGES, True),
        (sink(keyed(A)), UPSERT, False),
        # Unless somebody looks at what the sink gets.
        (sink(keyed(A), name="shown"), UPSERT, True),
        # A window answers with what is there when the watermark passes.
        (sink(windowed(keyed(A))), UPSERT, True),
        (sink(windowed(keyed(A), FIRST)), UPSERT, True),
        (sink(aggregate(keyed(A), 1)), UPSERT, False),
        (sink(aggregate(keyed(A), 0, calls=(FIRST,))), UPSERT, True),
    ],
)
def test_where_each_change_is_seen(root: SinkNode, takes: ChangelogMode, expected: bool) -> None:
    (made,) = derive_every_change((infer(root, takes),), Tables(takes))
    node = made
    while not isinstance(node, GroupAggregate) or any(
        isinstance(below, GroupAggregate) for below in node.inputs[0].inputs
    ):
        node = node.inputs[0]
    assert node.every_change is expected
