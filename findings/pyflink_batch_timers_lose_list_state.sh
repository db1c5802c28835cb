#!/usr/bin/env bash
# PyFlink in batch mode: a timer of a key sees its ListState without values that were added, or the timer fires twice.
# The same program in streaming mode sees all values once.
# Needs Java 17 or 21 and a Python that apache-flink 2.3 has wheels for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check apache-flink==2.3.0
"$folder/venv/bin/python" - <<'PY'
import sys
import pyflink.version
from pyflink.common import Types
from pyflink.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor


class Times(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Collect(KeyedProcessFunction):
    def open(self, context):
        self.values = context.get_list_state(ListStateDescriptor("values", Types.LONG()))

    def process_element(self, value, ctx):
        self.values.add(value[1])
        ctx.timer_service().register_event_time_timer(1000)

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()}:{sorted(self.values.get())}"


def run(mode):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable(sys.executable)
    env.set_runtime_mode(mode)
    env.set_parallelism(1)
    rows = [(key, number) for number in (1, 2, 3) for key in ("a", "b", "c")]
    stream = env.from_collection(rows, Types.TUPLE([Types.STRING(), Types.LONG()]))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by(lambda row: row[0], Types.STRING())
    with keyed.process(Collect(), Types.STRING()).execute_and_collect() as results:
        return sorted(results)


streaming, batch = run(RuntimeExecutionMode.STREAMING), run(RuntimeExecutionMode.BATCH)
print("apache-flink", pyflink.version.__version__)
print("streaming:", *streaming)
print("batch:    ", *batch)
assert streaming == ["a:[1, 2, 3]", "b:[1, 2, 3]", "c:[1, 2, 3]"]
assert batch != streaming
PY
