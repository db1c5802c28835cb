"""Letters of a stream of NATS, from whose position killed jobs go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.local_servers import LocalServer
from tests.restarted_job import Job

from .test_nats import Place

_LAST = 2000


@pytest.mark.servers
def test_each_letter_is_there_once_although_the_job_is_killed(nats_server: LocalServer, tmp_path: Path) -> None:
    place = Place(nats_server.port)
    dead, good = tmp_path / "dead", tmp_path / "good"
    bad = set(range(0, _LAST, 7))
    job = Job(
        f"CREATE TABLE t (k INT) WITH ('connector' = 'nats', 'url' = '{place.url}', 'subject' = '{place.name}.a', "
        f"'format' = 'json', 'on-error' = 'dead-letter', 'on-error.dead-letter.path' = '{dead}');\n"
        f"CREATE TABLE s (k INT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{good}', "
        "'sink.rolling-policy.rollover-interval' = '10 ms', 'sink.rolling-policy.check-interval' = '10 ms');\n"
        "INSERT INTO s SELECT k FROM t;",
        tmp_path,
    )

    def letters() -> list[str]:
        # A job that is killed may leave a hidden file, which is no letter.
        files = dead.glob("[!.]*")
        return [json.loads(line)["source_position"] for file in files for line in file.read_text().splitlines()]

    def rows() -> list[int]:
        return [int(line) for file in good.glob("[!.]*") for line in file.read_text().split()]

    try:
        for first in range(0, _LAST, 500):
            place.publish("a", *(f'{{"k": {"true" if n in bad else n}}}' for n in range(first, first + 500)))
            before = len(letters())
            job.start()
            if first % 1000:
                # Most often before a checkpoint holds what comes behind the letters.
                job.wait_for("letters", lambda before=before: len(letters()) > before)
            else:
                job.wait_for_checkpoint()
            job.kill()
        job.start()
        job.wait_for("rows", lambda: len(rows()) >= _LAST - len(bad))
        job.kill()
        assert sorted(rows()) == sorted(set(range(_LAST)) - bad)
        assert sorted(map(int, letters())) == sorted(n + 1 for n in bad)
    finally:
        place.close()
