"""Nexmark bids in Kafka, counted by auction: FlowSQL, Kafka's client alone, and Flink on the same broker.

    python benchmarks/kafka.py [--rows N] [--repeat N] [--formats json,csv,avro] [--parallelism 1,2] [--kafka HOST:PORT]

The broker is that of ``--kafka`` or of the variable ``KAFKA``, else one that is started by the scripts beside the
checkout (``../shared/servers``). Topics of four partitions are filled with the bids of ``../shared/nexmark``, and
removed at the end. All parties read in turns, FlowSQL and the client with the same settings of the client library, a
quarter of the rows and all of them; medians are printed:

  rows/s   all rows over the whole time of a process, from its start to its end: FlowSQL's with planning, the slowest of
           the client's; of Flink the statement in a JVM that stands and is warm
  further  three quarters of the rows over the difference of the two times: start-up removed
  cold     all rows over the time of a Flink process up to its answer

The client alone is ``confluent_kafka.Consumer.consume`` in a loop that touches no record, a process a consumer. Flink
is there with FLINK_PYTHON, a Python that has apache-flink 2.3.0; its jars are fetched as those of
``../shared/conformance_connectors`` are.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
PATHS = [str(ROOT), *(str(ROOT / folder) for folder in ("grammar", "planner", "runtime", "connectors"))]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
PARTITIONS = 4
BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING"
#: What FlowSQL's reader tells the client library, where it differs from the library's own defaults.
FETCH = {"fetch.queue.backoff.ms": "5", "fetch.wait.max.ms": "100"}
#: Bids of fifty events.
BIDS_OF_50 = 46
COUNT = (
    "CREATE TABLE bids ({bid}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = '{format}', "
    "'properties.bootstrap.servers' = '{kafka}', 'scan.startup.mode' = 'earliest-offset', "
    "'scan.bounded.mode' = 'specific-offsets', 'scan.bounded.specific-offsets' = '{offsets}');\n"
    "CREATE TABLE counts (auction BIGINT, n BIGINT) WITH ('connector' = 'blackhole');\n"
    "INSERT INTO counts SELECT auction, COUNT(*) FROM bids GROUP BY auction;\n"
)
Party = Callable[[str, int], float]


def loaded(path: Path) -> ModuleType:
    """A script of the suites beside the checkout."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(f"suite_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def broker(named: str | None) -> Iterator[str]:
    """The address of a broker."""
    if named is not None:
        yield named
        return
    script = SHARED / "servers" / "kafka.sh"
    if not script.exists():
        raise SystemExit(f"name a broker: --kafka host:port; there is no {script} that starts one")
    with tempfile.TemporaryDirectory(prefix="flowsql-") as folder, tempfile.TemporaryFile("w+") as told:
        subprocess.run([script, "start", f"{folder}/kafka"], check=True, stdout=told, stdin=subprocess.DEVNULL)
        try:
            told.seek(0)
            yield told.read().split("KAFKA=")[1].split()[0]
        finally:
            subprocess.run([script, "stop", f"{folder}/kafka"], check=True, stdout=subprocess.DEVNULL)


def flowsql(sql: str, parallelism: int, options: dict[str, str]) -> float:
    """Seconds of a whole process that runs a script."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(sql)
        script.flush()
        settings = {"parallelism.default": str(parallelism), **options}
        words = [x for key, text in settings.items() for x in ("-D", f"{key}={text}")]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "flowsql.cli", *words, "-f", script.name],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stderr)
        return time.perf_counter() - began


def fill(kafka: str, topics: dict[str, str], rows: int, folder: str) -> dict[str, list[int]]:
    """Write the bids into one topic a format; the offset behind the last record of each partition."""
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS) for topic in topics.values()]).values():
        future.result(30)
    events = -(-rows // BIDS_OF_50) * 50
    options = ["--events", str(events), "--seed", "7", "--out", folder, "--format", "parquet", "--files", "1"]
    generate = str(SHARED / "nexmark" / "generate.py")
    subprocess.run([sys.executable, generate, *options], check=True, stdout=subprocess.DEVNULL)
    sql = (
        "CREATE TABLE events (event_type INT, `dateTime` TIMESTAMP(3), extra STRING, b_auction BIGINT, "
        "b_bidder BIGINT, b_price BIGINT, b_channel STRING, b_url STRING) WITH ('connector' = 'filesystem', "
        f"'format' = 'parquet', 'path' = '{folder}/events');\n"
    )
    for name, topic in topics.items():
        sql += (
            f"CREATE TABLE {name}_bids ({BID}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = '{name}', "
            f"'properties.bootstrap.servers' = '{kafka}', 'sink.partitioner' = 'round-robin');\n"
            f"INSERT INTO {name}_bids SELECT b_auction, b_bidder, b_price, b_channel, b_url, `dateTime`, extra "
            "FROM events WHERE event_type = 2;\n"
        )
    flowsql(sql, 1, {})
    asked = ck.Consumer({"bootstrap.servers": kafka, "group.id": "ends"})
    ends = {
        topic: [asked.get_watermark_offsets(ck.TopicPartition(topic, p), timeout=10)[1] for p in range(PARTITIONS)]
        for topic in topics.values()
    }
    asked.close()
    return ends


def client(kafka: str, topic: str, partitions: list[int], records: int) -> None:
    """Consume so many records by the client library alone."""
    consumer = ck.Consumer({"bootstrap.servers": kafka, "group.id": "alone", "enable.auto.commit": False, **FETCH})
    consumer.assign([ck.TopicPartition(topic, partition, 0) for partition in partitions])
    got = 0
    while got < records:
        got += len(consumer.consume(10_000, 0.1))
    consumer.close()


def clients(kafka: str, topic: str, count: int, records: int) -> float:
    """The seconds of the slowest of some consumers, a process each."""
    began = time.perf_counter()
    processes = []
    for number in range(count):
        own = [str(partition) for partition in range(PARTITIONS) if partition % count == number]
        words = [sys.executable, __file__, "--client", kafka, topic, ",".join(own), str(records // count)]
        processes.append(subprocess.Popen(words))
    if any(process.wait() for process in processes):
        raise SystemExit("a consumer of the client library failed")
    return time.perf_counter() - began


def flink(suite: ModuleType, heap: str, parallelism: int) -> Any:
    """Flink in a process of its own, which stands until it is ended."""
    python = os.environ["FLINK_PYTHON"]
    arguments = argparse.Namespace(flink_python=python, flink_default=False, heap=heap, limit=600, one_jvm=True)
    party = suite.Flink(arguments, parallelism)
    party.begin("count")
    return party


def answered(jvm: Any, sql: str) -> float:
    """Seconds of a statement in a Flink that stands."""
    answer = jvm.run(sql)
    if "error" in answer:
        raise SystemExit(answer["error"])
    return float(answer["wall"])


def cold_flink(suite: ModuleType, heap: str, parallelism: int, sql: str) -> float:
    """Seconds of a Flink process from its start to the end of a statement."""
    began = time.perf_counter()
    jvm = flink(suite, heap, parallelism)
    try:
        answered(jvm, sql)
        return time.perf_counter() - began
    finally:
        jvm.end(last=True)


def measured(parties: dict[str, Party], sql: Callable[[int], str], sizes: tuple[int, int], repeat: int) -> Any:
    """Of each party: rows a second of the larger size, and of a further row."""
    took: dict[str, dict[int, list[float]]] = {name: {size: [] for size in sizes} for name in parties}
    for turn in range(-1, repeat):
        for size in sizes:
            for name, party in parties.items():
                seconds = party(sql(size), size)
                # The first turn warms up: JVM, files, kernels.
                if turn >= 0:
                    took[name][size].append(seconds)
    found = {}
    for name in parties:
        small, large = (statistics.median(took[name][size]) for size in sizes)
        further = (sizes[1] - sizes[0]) / (large - small) if large > small else float("nan")
        found[name] = {"whole": sizes[1] / large, "further": further, "seconds": large}
    return found


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--formats", default="json,csv,avro")
    parser.add_argument("--parallelism", default="1,2")
    parser.add_argument("--heap", default="2g", help="of Flink's JVM")
    parser.add_argument("--kafka", default=os.environ.get("KAFKA"))
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--client", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        kafka, topic, partitions, records = arguments.client
        client(kafka, topic, [int(partition) for partition in partitions.split(",")], int(records))
        return
    if not (SHARED / "nexmark").is_dir():
        raise SystemExit(f"there is no {SHARED / 'nexmark'}, which makes the bids")
    suite = loaded(SHARED / "nexmark" / "side_by_side.py")
    has_flink = "FLINK_PYTHON" in os.environ
    if has_flink:
        ask = loaded(SHARED / "conformance_connectors" / "ask_flink.py")
        os.environ.update(FLINK_TESTING="1", FLINK_TEST_LIBS=f"{ask.jars('flink-2.3', ask.JARS)}/*.jar")
    topics = {name: f"bids-{name}-{uuid.uuid4().hex[:6]}" for name in arguments.formats.split(",")}
    everything: dict[str, Any] = {}
    with broker(arguments.kafka) as kafka, tempfile.TemporaryDirectory() as folder:
        ends = fill(kafka, topics, arguments.rows, folder)
        try:
            for parallelism in map(int, arguments.parallelism.split(",")):
                for name, topic in topics.items():
                    everything[f"{name} {parallelism}"] = compared(
                        kafka, name, topic, ends[topic], parallelism, suite, has_flink, arguments
                    )
                    if arguments.json:
                        arguments.json.write_text(json.dumps(everything, indent=1))
        finally:
            admin = AdminClient({"bootstrap.servers": kafka})
            for future in admin.delete_topics(list(topics.values())).values():
                future.result(30)


def compared(
    kafka: str,
    format_: str,
    topic: str,
    ends: list[int],
    parallelism: int,
    suite: ModuleType,
    has_flink: bool,
    arguments: argparse.Namespace,
) -> Any:
    """The parties over one topic at one parallelism."""

    def sql(size: int) -> str:
        offsets = ";".join(f"partition:{p},offset:{end * size // sum(ends)}" for p, end in enumerate(ends))
        return COUNT.format(bid=BID, topic=topic, format=format_, kafka=kafka, offsets=offsets)

    parties: dict[str, Party] = {
        "FlowSQL": lambda text, size: flowsql(text, parallelism, suite.TUNED),
        "client": lambda text, size: clients(kafka, topic, parallelism, size),
    }
    jvm = flink(suite, arguments.heap, parallelism) if has_flink else None
    if jvm is not None:
        parties["Flink"] = lambda text, size: answered(jvm, text)
    try:
        found = measured(parties, sql, (sum(ends) // 4, sum(ends)), arguments.repeat)
    finally:
        if jvm is not None:
            jvm.end(last=True)
    if jvm is not None:
        cold = [cold_flink(suite, arguments.heap, parallelism, sql(sum(ends))) for _ in range(arguments.repeat)]
        found["Flink"]["cold"] = sum(ends) / statistics.median(cold)
    cells = [f"{name} {one['whole']:>9,.0f} rows/s ({one['further']:>9,.0f} further)" for name, one in found.items()]
    own = found["FlowSQL"]
    ratios = [
        f"{own['whole'] / one['whole']:.2f}x {name} ({own['further'] / one['further']:.2f}x further)"
        for name, one in found.items()
        if name != "FlowSQL"
    ]
    if jvm is not None:
        ratios.append(f"{own['whole'] / found['Flink']['cold']:.2f}x Flink's process")
    print(f"{format_:4} parallelism {parallelism}: " + "; ".join(cells + ratios), flush=True)
    return found


if __name__ == "__main__":
    main()
