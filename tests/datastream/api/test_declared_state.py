"""State with a declared type: what is written is checked, and the failure names state, value and element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flowsql.common import Time, Types
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.datastream.functions import (
    AggregateFunction,
    BroadcastProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
)
from flowsql.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flowsql_core.errors import ExecutionError


class Last(AggregateFunction):
    """The accumulator is what came last."""

    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_b


def first(one: Any, two: Any) -> Any:
    return two


INT, TEXT = Types.INT(), Types.STRING()
WRITES: dict[str, tuple[StateDescriptor, Callable[[Any, Any], Any]]] = {
    "value": (ValueStateDescriptor("s", INT), lambda state, value: state.update(value)),
    "list add": (ListStateDescriptor("s", INT), lambda state, value: state.add(value)),
    "list add_all": (ListStateDescriptor("s", INT), lambda state, value: state.add_all([1, value])),
    "list update": (ListStateDescriptor("s", INT), lambda state, value: state.update([1, value])),
    "map value": (MapStateDescriptor("s", TEXT, INT), lambda state, value: state.put("k", value)),
    "map item": (MapStateDescriptor("s", TEXT, INT), lambda state, value: state.__setitem__("k", value)),
    "map put_all": (MapStateDescriptor("s", TEXT, INT), lambda state, value: state.put_all({"a": 1, "k": value})),
    "map key": (MapStateDescriptor("s", INT, TEXT), lambda state, value: state.put(value, "v")),
    "reducing": (ReducingStateDescriptor("s", first, INT), lambda state, value: state.add(value)),
    "aggregating": (AggregatingStateDescriptor("s", Last(), INT), lambda state, value: state.add(value)),
}


class Writes(KeyedProcessFunction):
    def __init__(self, kind: str, lasting: bool) -> None:
        self.kind = kind
        self.lasting = lasting

    def open(self, runtime_context: RuntimeContext) -> None:
        found, self.write = WRITES[self.kind]
        made = type(found).__new__(type(found))
        vars(made).update(vars(found))
        if self.lasting:
            made.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        kind = type(made).__name__.removesuffix("StateDescriptor").lower()
        asked = runtime_context.get_state if kind == "value" else getattr(runtime_context, f"get_{kind}_state")
        self.state = asked(made)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.write(self.state, value)
        yield "written"


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("kind", WRITES)
def test_a_value_of_another_type_is_refused_where_it_is_written(
    env: StreamExecutionEnvironment, kind: str, lasting: bool
) -> None:
    given = [1, 2**31 - 1, -(2**31), "x"]
    env.from_collection(given).key_by(lambda value: 0).process(Writes(kind, lasting)).print()
    with pytest.raises(ExecutionError) as raised:
        env.execute()
    what = "key" if kind == "map key" else "value"
    expected = f"TypeError: a {what} of the state 's' is not of the declared type: 'x' of type str is not a value of"
    assert raised.value.message.startswith(expected)
    assert raised.value.details[0] == "in Writes.process_element"
    assert "element: 'x'" in raised.value.details
    assert not [line for line in raised.value.details if "declared_type" in line]


def test_a_number_that_does_not_fit_is_refused(env: StreamExecutionEnvironment) -> None:
    env.from_collection([2**31]).key_by(lambda value: 0).process(Writes("value", False)).print()
    with pytest.raises(ExecutionError, match="ValueError: a value of the state 's' is not of the declared type: 2147"):
        env.execute()


class Keeps(KeyedProcessFunction):
    """Hands back what the state gives for what was put."""

    def __init__(self, type_info: Any) -> None:
        self.type_info = type_info

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("s", self.type_info))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.state.update(value)
        yield self.state.value()


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (None, object),
        (Types.PICKLED_BYTE_ARRAY(), {1: {2}}),
        (Types.FLOAT(), 0.1),
        (Types.FLOAT(), 1),
        (Types.DOUBLE(), 3),
        (Types.BOOLEAN(), "yes"),
        (Types.TUPLE([Types.STRING(), Types.LONG()]), ("a", None)),
        (Types.TUPLE([Types.STRING(), Types.LONG()]), ["a", 1]),
        (Types.ROW([Types.STRING()]), ("a",)),
        (Types.LIST(Types.INT()), [1, 2]),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}),
    ],
)
def test_what_fits_stays_as_it_is(env: StreamExecutionEnvironment, type_info: Any, value: Any) -> None:
    stream = env.from_collection([value]).key_by(lambda _: 0).process(Keeps(type_info))
    with stream.execute_and_collect() as found:
        (kept,) = found
    assert kept == value
    assert type(kept) is type(value)


def test_broadcast_state_is_checked(env: StreamExecutionEnvironment) -> None:
    rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())

    class Rules(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value

        def process_broadcast_element(self, value: Any, ctx: Any) -> None:
            ctx.get_broadcast_state(rules).put("limit", value)

    broadcast = env.from_collection(["ten"]).broadcast(rules)
    env.from_collection([1]).connect(broadcast).process(Rules()).print()
    with pytest.raises(ExecutionError, match="a value of the state 'rules' is not of the declared type: 'ten' of type"):
        env.execute()
