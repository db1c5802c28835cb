"""Why a running job gives no rows: real jobs over files, each looked at until its state is told."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.span import Source
from tests.told_cases import Case, cases_of

CASES = cases_of(Path(__file__).with_name("silent_queries.txt"))
PATIENCE_S = 6.0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_silence_is_explained(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case.write_files(tmp_path)
    layer = dict(option.split("=") for option in case.options)
    environment = TableEnvironment.of_configuration(Configuration().with_layer(layer).with_layer())
    source = Source(case.sql, "case.sql")
    *_, result = (environment.execute(statement, source) for statement in environment.statements(source))
    job = result.get_job_client()
    assert job is not None
    told = ""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while told != case.told.strip() and time.monotonic() < deadline:
            found = job.explain_silence(job.records_read())
            told = "" if found is None else found.text
            time.sleep(0.02)
    finally:
        job.cancel_and_wait()
    assert told == case.told.strip()


def test_every_case_is_another_one() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert all(re.search(r"\S", case.told) for case in CASES)
