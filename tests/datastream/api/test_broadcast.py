"""Broadcast state: every subtask hears every rule; what is not allowed says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flowsql.common import Types
from flowsql.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flowsql.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flowsql_core.errors import ExecutionError

Env = StreamExecutionEnvironment
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
OTHER = MapStateDescriptor("other", Types.STRING(), Types.INT())


class Passing(BroadcastProcessFunction[Any, Any, Any]):
    """Elements pass; each subtask tells of each rule. ``rule`` and ``element`` do something with the context first."""

    def __init__(self, rule: Any = None, element: Any = None) -> None:
        self.rule = rule
        self.element = element

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if self.element is not None:
            self.element(ctx)
        yield "element", value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if self.rule is not None:
            self.rule(ctx)
        ctx.get_broadcast_state(RULES)[value] = len(value)
        yield self.subtask, sorted(ctx.get_broadcast_state(RULES).items())


class KeyedPassing(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def __init__(self, rule: Any = None) -> None:
        self.rule = rule

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        if self.rule is not None:
            self.rule(self, ctx)


def passing(env: Env, function: Any, elements: tuple[Any, ...] = (1, 2, 3, 4)) -> list[Any]:
    rules = env.from_collection(["a", "bb"]).broadcast(RULES)
    return list(env.from_collection(elements).connect(rules).process(function).execute_and_collect())


def keyed(env: Env, function: Any) -> list[Any]:
    rules = env.from_collection(["a", "bb"]).broadcast(RULES)
    stream = env.from_collection([1, 2, 3, 4]).key_by(lambda value: value % 2)
    return list(stream.connect(rules).process(function).execute_and_collect())


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_subtask_hears_every_rule(env: Env, parallelism: int) -> None:
    found = passing(env.set_parallelism(parallelism), Passing())
    assert sorted(value for name, value in found if name == "element") == [1, 2, 3, 4]
    told = [(name, value) for name, value in found if name != "element"]
    assert sorted(told) == sorted(
        (subtask, rules) for subtask in range(parallelism) for rules in ([("a", 1)], [("a", 1), ("bb", 2)])
    )
    assert sorted(keyed(env, KeyedPassing())) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_results_have_types_and_sides(env: Env) -> None:
    side = OutputTag("side", Types.INT())
    rows = OutputTag("rows", [Types.INT(), Types.STRING()])

    class Sides(Passing):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value, "x"
            yield side, value * 10
            yield rows, (value, "y")

        def process_broadcast_element(self, value: Any, ctx: Any) -> None:
            pass

    rules = env.from_collection(["a"]).broadcast(RULES)
    stream = env.from_collection([1, 2]).connect(rules).process(Sides(), [Types.INT(), Types.STRING()])
    assert [type(value).__name__ for value in stream.execute_and_collect()] == ["Row", "Row"]
    assert sorted(stream.get_side_output(side).execute_and_collect()) == [10, 20]
    assert sorted(map(tuple, stream.get_side_output(rows).execute_and_collect())) == [(1, "y"), (2, "y")]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Passing(element=lambda ctx: ctx.get_broadcast_state(RULES).put("x", 1)), "'rules' is read-only here"),
        (Passing(element=lambda ctx: ctx.get_broadcast_state(RULES).clear()), "'rules' is read-only here"),
        (Passing(rule=lambda ctx: ctx.get_broadcast_state(OTHER)), "no broadcast state 'other' here"),
        (Passing(element=lambda ctx: ctx.timer_service().register_event_time_timer(1)), "only supported on a keyed"),
    ],
)
def test_what_is_not_allowed_says_why(env: Env, function: Any, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        passing(env, function)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda self, ctx: self.count.value(), "keyed state is asked for where there is no key"),
        (lambda self, ctx: self.count.update(1), "keyed state is asked for where there is no key"),
        (lambda self, ctx: ctx.timer_service().register_event_time_timer(1), "only supported on a keyed stream"),
    ],
)
def test_rules_have_no_key(env: Env, rule: Any, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        keyed(env, KeyedPassing(rule))


def test_functions_fit_their_streams(env: Env) -> None:
    stream = env.from_collection([1])
    rules = stream.broadcast(RULES)
    with pytest.raises(TypeError, match="applied to keyed DataStream"):
        stream.connect(rules).process(KeyedPassing())
    with pytest.raises(TypeError, match="applied to non-keyed DataStream"):
        stream.key_by(str).connect(rules).process(Passing())
    with pytest.raises(TypeError, match="must be MapStateDescriptor"):
        stream.broadcast(ValueStateDescriptor("v", Types.INT()))  # type: ignore[call-overload]
