"""The Nexmark queries over events in Kafka answer as over files."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from pathlib import Path

import confluent_kafka as ck
import pytest
from confluent_kafka import admin as ck_admin

from flowsql.cli.main import main
from tests.nexmark import suite

pytestmark = [
    pytest.mark.servers,
    pytest.mark.shared,
    pytest.mark.skipif(not suite.SUITE.is_dir(), reason="the Nexmark queries are not beside the checkout"),
]
#: Readers and partitions. The events lie in the partitions as they do in as many files.
SHAPES = [(1, 1), (2, 2), (2, 4)]
#: Of equal prices the first one that arrives ranks higher, and two partitions of one reader arrive in any order.
RANKED_BY_ARRIVAL = "q19"
_FILES = re.compile(r"'connector' = 'filesystem',\s*'path' = '[^']*/events',\s*'format' = 'json'")


@pytest.fixture(scope="module", params=SHAPES, ids=[f"parallelism {p}, partitions {n}" for p, n in SHAPES])
def events(
    request: pytest.FixtureRequest, kafka_server: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, int, Path, str]:
    """Readers, partitions, the folder of the events as files, and the options of a table of those in Kafka."""
    parallelism, partitions = request.param
    folder = tmp_path_factory.mktemp("nexmark")
    suite.generate(folder, "json", partitions)
    address, topic = kafka_server["KAFKA"], f"nexmark-{uuid.uuid4().hex[:8]}"
    admin = ck_admin.AdminClient({"bootstrap.servers": address})
    admin.create_topics([ck_admin.NewTopic(topic, partitions)])[topic].result(30)
    producer = ck.Producer({"bootstrap.servers": address, "linger.ms": 20})
    files = sorted((folder / "events").iterdir())
    assert len(files) == partitions
    for partition, file in enumerate(files):
        for event in file.read_bytes().splitlines():
            producer.produce(topic, event, partition=partition)
            producer.poll(0)
    assert producer.flush(60) == 0
    options = (
        f"'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{address}', "
        "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json'"
    )
    return parallelism, partitions, folder, options


def _printed(script: str, parallelism: int, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = out / "query.sql"
    path.write_text(script)
    settings = ["-D", f"parallelism.default={parallelism}", "-D", "table.local-time-zone=UTC"]
    capsys.readouterr()
    code = main(["--format", "jsonl", *settings, "-f", str(path)])
    output = capsys.readouterr().out
    assert code == 0, output
    return output


def _ranks(output: str) -> Counter[tuple[int, int, int]]:
    """Auction, price and rank of what stands at the end."""
    rows = map(json.loads, suite.judge().materialise(output.splitlines(), RANKED_BY_ARRIVAL))
    return Counter((row[0], row[2], row[-1]) for row in rows)


@pytest.mark.parametrize("query", suite.queries())
def test_answers_as_over_files(
    query: str, events: tuple[int, int, Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parallelism, partitions, data, options = events
    over_files = suite.script(query, data, tmp_path, "json")
    over_kafka, replaced = _FILES.subn(options, over_files)
    assert replaced == 1
    output = _printed(over_kafka, parallelism, tmp_path, capsys)
    if query == RANKED_BY_ARRIVAL and partitions > parallelism:
        assert _ranks(output) == _ranks(_printed(over_files, 1, tmp_path, capsys))
    else:
        suite.assert_answer(query, output, tmp_path)
