"""One job from Kafka: ``python -m tests.chaos.kafka.jobs NAME FOLDER FACTS [KEY=VALUE ...]``; it ends with its input.

``FACTS`` is JSON: ``address`` of the broker, topics ``left`` and ``right`` that are read, ``out``: the topic, or the
table of PostgreSQL, that is written, ``url`` of the database. Files go below ``FOLDER/out``. The environment says what
happens: ``CHAOS_PLACE`` (``places.py``), ``CHAOS_POINT`` and ``CHAOS_PACE_MS`` (those of the recovery harness).
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from pathlib import Path
from typing import Final

from flowsql.table import EnvironmentSettings, TableEnvironment
from tests.chaos.kafka import places

#: Query of each job; ``o`` is its sink.
QUERIES: Final[dict[str, str]] = {
    "upserts": "SELECT k, COUNT(*), SUM(n), MAX(id) FROM left_rows GROUP BY k",
    "window": "SELECT window_start, k, COUNT(*), SUM(n) FROM TABLE(TUMBLE(TABLE left_rows, DESCRIPTOR(ts), "
    "INTERVAL '2' SECOND)) GROUP BY window_start, window_end, k",
    "join": "SELECT l.id, r.id, l.k FROM left_rows AS l JOIN right_rows AS r ON l.k = r.k AND l.ts BETWEEN r.ts - "
    "INTERVAL '1' SECOND AND r.ts WHERE MOD(l.id, 5) = 0",
    "files": "SELECT id, n, MOD(k, 4) FROM left_rows",
    "postgres": "SELECT k, COUNT(*), SUM(n), MAX(id) FROM left_rows GROUP BY k",
}
_ROWS: Final = "id BIGINT, k INT, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
_COUNTS: Final = "k INT, c BIGINT, total INT, newest BIGINT, PRIMARY KEY (k) NOT ENFORCED"


def sink(name: str, folder: Path, facts: dict[str, str]) -> str:
    """The table that a job writes."""
    once = (
        f"'topic' = '{facts['out']}', 'properties.bootstrap.servers' = '{facts['address']}', "
        f"'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{facts['out']}'"
    )
    match name:
        case "upserts":
            formats = "'key.format' = 'json', 'value.format' = 'json'"
            return f"{_COUNTS}) WITH ('connector' = 'upsert-kafka', {formats}, {once})"
        case "window":
            return (
                f"s TIMESTAMP(3), k INT, c BIGINT, total INT) WITH ('connector' = 'kafka', 'format' = 'json', {once})"
            )
        case "join":
            return f"a BIGINT, b BIGINT, k INT) WITH ('connector' = 'kafka', 'format' = 'json', {once})"
        case "files":
            return (
                "id BIGINT, n INT, part INT) PARTITIONED BY (part) WITH ('connector' = 'filesystem', 'format' = 'csv', "
                f"'path' = '{folder}/out/o', 'sink.rolling-policy.file-size' = '8kb')"
            )
    return f"{_COUNTS}) WITH ('connector' = 'jdbc', 'table-name' = '{facts['out']}', {facts['database']})"


def main() -> None:
    """Run one job."""
    name, folder, told, *options = sys.argv[1:]
    # One that hangs is ended by SIGABRT, and tells where its threads stood.
    faulthandler.enable()
    facts = json.loads(told)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "recovery"))
    if os.environ.get("CHAOS_POINT"):
        import points

        points.install(os.environ["CHAOS_POINT"])
    if os.environ.get("CHAOS_PLACE"):
        places.install(os.environ["CHAOS_PLACE"])
    if os.environ.get("CHAOS_PACE_MS"):
        import job

        job.rest_after_batches(float(os.environ["CHAOS_PACE_MS"]) / 1000)
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for option in options:
        key, _, value = option.partition("=")
        environment.get_config().set(key, value)
    for side in ("left", "right"):
        environment.execute_sql(
            f"CREATE TABLE {side}_rows ({_ROWS}) WITH ('connector' = 'kafka', 'topic' = '{facts[side]}', "
            f"'properties.bootstrap.servers' = '{facts['address']}', 'scan.startup.mode' = 'earliest-offset', "
            "'scan.bounded.mode' = 'latest-offset', 'format' = 'json')"
        )
    environment.execute_sql(f"CREATE TABLE o ({sink(name, Path(folder), facts)}")
    environment.execute_sql(f"INSERT INTO o {QUERIES[name]}").wait()


if __name__ == "__main__":
    main()
