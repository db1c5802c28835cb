"""A program of many small streams, the same under PyFlink: ``python asked_program.py pyflink asked.json`` asks it.

Each branch emits texts. Left out is what depends on PyFlink's bundles: timers that are registered while timers fire.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DATA = [("a", 1), ("b", 2), ("a", 12), ("a", 5), ("b", 25), ("a", 3), ("c", 40), ("a", 41), ("b", 14), ("a", 55)]


def answers(root: str) -> dict[str, list[str]]:
    """What each branch emits. ``root``: the package that the names come from."""

    def module(name: str) -> Any:
        return importlib.import_module(f"{root}.{name}")

    datastream, functions, common = module("datastream"), module("datastream.functions"), module("common")
    state, window = module("datastream.state"), module("datastream.window")
    types, time = common.Types, module("common.time").Time
    text = types.STRING()
    environment = datastream.StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    if root == "pyflink":
        environment.set_python_executable(sys.executable)

    class Stamp(module("common.watermark_strategy").TimestampAssigner):  # type: ignore[misc]
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[1])

    class Told(functions.ProcessFunction):  # type: ignore[misc, name-defined]
        def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
            yield str((value, ctx.timestamp(), ctx.timer_service().current_watermark()))

    class Lists(functions.ProcessWindowFunction):  # type: ignore[misc, name-defined]
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[str]:
            yield str((key, repr(context.window()), [value[1] for value in elements], context.current_watermark()))

    class Timers(functions.KeyedProcessFunction):  # type: ignore[misc, name-defined]
        def process_element(self, value: Any, ctx: Any) -> None:
            service = ctx.timer_service()
            for at in (value[1] + 10, 100, 100, -5):
                service.register_event_time_timer(at)
            if value[1] == 5:
                service.delete_event_time_timer(11)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
            watermark = ctx.timer_service().current_watermark()
            yield str((timestamp, ctx.get_current_key(), ctx.timestamp(), str(ctx.time_domain()), watermark))

    class Pairs(functions.KeyedCoProcessFunction):  # type: ignore[misc, name-defined]
        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_map_state(state.MapStateDescriptor("seen", types.STRING(), types.LONG()))

        def process_element1(self, value: Any, ctx: Any) -> None:
            self.seen.put("left", (self.seen.get("left") or 0) + 1)
            ctx.timer_service().register_event_time_timer(1000)

        def process_element2(self, value: Any, ctx: Any) -> None:
            self.seen.put("right", (self.seen.get("right") or 0) + 1)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
            names = sorted(self.seen.keys())
            yield str((ctx.get_current_key(), sorted(self.seen.items()), names, self.seen.is_empty()))

    class States(functions.KeyedProcessFunction):  # type: ignore[misc, name-defined]
        def open(self, runtime_context: Any) -> None:
            self.value = runtime_context.get_state(state.ValueStateDescriptor("value", types.LONG()))
            self.list = runtime_context.get_list_state(state.ListStateDescriptor("list", types.LONG()))
            summed = state.ReducingStateDescriptor("sum", lambda one, two: one + two, types.LONG())
            self.sum = runtime_context.get_reducing_state(summed)

        def process_element(self, value: Any, ctx: Any) -> list[str]:
            before = (self.value.value(), list(self.list.get()), self.sum.get())
            for put in (self.value.update, self.list.add, self.sum.add):
                put(value[1])
            if value[1] == 12:
                for kept in (self.value, self.list, self.sum):
                    kept.clear()
            if value[1] == 3:
                self.list.update([7, 8])
                self.list.add_all([9])
                self.value.update(None)
            return [str((value, before, self.value.value(), list(self.list), self.sum.get()))]

    odd = datastream.OutputTag("odd", text)

    class Split(functions.ProcessFunction):  # type: ignore[misc, name-defined]
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield (odd, f"{value} {ctx.timestamp()}") if value[1] % 2 else str(value)

    # However slow the machine is, no watermark comes between the rows.
    environment.get_config().set_auto_watermark_interval(3_600_000)
    source = environment.from_collection(DATA, type_info=types.TUPLE([text, types.LONG()]))
    strategy = common.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stamped = source.assign_timestamps_and_watermarks(strategy)
    keyed = stamped.key_by(lambda value: value[0], key_type=text)
    branches: dict[str, Any] = {}

    def ms(milliseconds: int) -> Any:
        return time.milliseconds(milliseconds)

    def windowed(name: str, assigner: Any, trigger: Any = None) -> Any:
        stream = keyed.window(assigner)
        branches[name] = (stream if trigger is None else stream.trigger(trigger)).process(Lists(), text)

    def total(one: Any, two: Any) -> Any:
        return one[0], one[1] + two[1]

    branches["source"] = source.process(Told(), text)
    branches["timestamps"] = stamped.process(Told(), text)
    windowed("tumbling", window.TumblingEventTimeWindows.of(ms(10)))
    windowed("sliding", window.SlidingEventTimeWindows.of(ms(10), ms(4)))
    windowed("session", window.EventTimeSessionWindows.with_gap(ms(8)))
    windowed("count", window.CountTumblingWindowAssigner.of(2))
    branches["time of a window"] = branches["tumbling"].process(Told(), text)
    branches["time of a count"] = branches["count"].process(Told(), text)
    branches["sliding count"] = keyed.count_window(3, 2).process(Lists(), text)
    windowed("global", window.GlobalWindows.create(), window.CountTrigger.of(2))
    windowed("purging", window.GlobalWindows.create(), window.PurgingTrigger.of(window.CountTrigger.of(2)))
    windowed("counted session", window.EventTimeSessionWindows.with_gap(ms(8)), window.CountTrigger.of(2))
    branches["reduced window"] = keyed.window(window.TumblingEventTimeWindows.of(ms(30))).reduce(total)
    branches["reduce"] = keyed.reduce(total)
    branches["timers"] = keyed.process(Timers(), text)
    branches["connected"] = keyed.connect(keyed).process(Pairs(), text)
    branches["state"] = keyed.process(States(), text)
    whole = stamped.window_all(window.TumblingEventTimeWindows.of(ms(30)))
    branches["whole stream"] = whole.reduce(lambda one, two: (one[0] + two[0], one[1] + two[1]))
    branches["main"] = stamped.process(Split(), text)
    branches["side"] = branches["main"].get_side_output(odd).process(Told(), text)

    named = [
        stream.map(lambda value, name=name: f"{name}|{value!r}", output_type=text) for name, stream in branches.items()
    ]
    found: dict[str, list[str]] = {name: [] for name in branches}
    for line in named[0].union(*named[1:]).execute_and_collect():
        name, _, value = line.partition("|")
        found[name].append(value)
    return found


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(answers(sys.argv[1]), indent=1) + "\n", encoding="utf-8")
