"""Upsert keys through the operators that keep, move or lose them."""

from __future__ import annotations

from flowsql_core.expr import AggregateCall, Cast, InputRef, Literal
from flowsql_core.graph.specs import JoinKind, TableSpec
from flowsql_core.types.logical import BIGINT, DOUBLE, INT, STRING, Column
from flowsql_planner.physical.nodes import Calc, Exchange, GroupAggregate, JoinNode, Physical, TableSourceScan
from flowsql_planner.traits.keys import smallest

COLUMNS = (Column("id", INT), Column("k", STRING), Column("v", BIGINT))


def scan(key: tuple[str, ...] = ("id",), projection: tuple[int, ...] = (0, 1, 2)) -> TableSourceScan:
    table = TableSpec(("c", "d", "t"), COLUMNS, (), (), key)
    return TableSourceScan(inputs=(), schema=tuple(COLUMNS[i] for i in projection), table=table, projection=projection)


def keys(node: Physical) -> set[tuple[int, ...]]:
    return {tuple(sorted(key)) for key in node.upsert_keys()}


def exchange(node: Physical, *columns: int) -> Exchange:
    return Exchange(inputs=(node,), schema=node.schema, keys=columns)


def join(left: Physical, right: Physical, kind: JoinKind, left_key: int, right_key: int) -> JoinNode:
    return JoinNode(
        inputs=(exchange(left, left_key), exchange(right, right_key)),
        schema=left.schema + right.schema,
        kind=kind,
        left_keys=(left_key,),
        right_keys=(right_key,),
        null_safe=(False,),
        condition=None,
        rest=None,
    )


def test_a_declared_key_is_one_while_its_columns_are_read() -> None:
    assert keys(scan()) == {(0,)}
    assert keys(scan(projection=(1, 2))) == set()
    assert keys(scan(key=())) == set()


def test_a_calc_moves_keys_with_their_columns() -> None:
    source = scan()
    moved = Calc(
        inputs=(source,),
        schema=COLUMNS[1:] + COLUMNS[:1],
        projections=(
            InputRef(1, STRING),
            InputRef(2, BIGINT),
            Cast(InputRef(0, INT), INT.as_nullable(False), implicit=True),
        ),
    )
    assert keys(moved) == {(2,)}
    widened = Calc(inputs=(source,), schema=COLUMNS[:1], projections=(Cast(InputRef(0, INT), BIGINT),))
    assert keys(widened) == {(0,)}
    lost = Calc(inputs=(source,), schema=COLUMNS[:1], projections=(Cast(InputRef(0, INT), DOUBLE),))
    assert keys(lost) == set()
    constant = Calc(inputs=(source,), schema=COLUMNS[:1], projections=(Literal(1, INT),))
    assert keys(constant) == set()


def test_groups_are_a_key_and_a_global_aggregate_has_one_row() -> None:
    call = AggregateCall("COUNT", (), BIGINT, "n")
    grouped = GroupAggregate(
        inputs=(exchange(scan(()), 1),), schema=(COLUMNS[1], Column("n", BIGINT)), grouping=(1,), calls=(call,)
    )
    assert keys(grouped) == {(0,)}
    one = GroupAggregate(inputs=(exchange(scan(())),), schema=(Column("n", BIGINT),), grouping=(), calls=(call,))
    assert keys(one) == {()}
    assert smallest(one.upsert_keys()) == ()


def test_a_shuffle_keeps_only_keys_that_hold_its_columns() -> None:
    assert keys(exchange(scan(), 0)) == {(0,)}
    assert keys(exchange(scan(), 1)) == set()
    assert keys(exchange(scan())) == {(0,)}


def test_joining_by_the_other_sides_key_keeps_rows_unique() -> None:
    assert keys(join(scan(), scan(), JoinKind.INNER, 0, 0)) == {(0,), (3,), (0, 3)}
    # Many left rows to one right row: the left rows have no key.
    assert keys(join(scan(()), scan(), JoinKind.INNER, 0, 0)) == set()
    # One left row may meet many right ones.
    assert keys(join(scan(), scan(()), JoinKind.INNER, 0, 0)) == set()
