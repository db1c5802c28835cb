"""Scripts of this project with Flink's answers (``asked/cases/<family>/<name>.sql`` and ``.expected.jsonl``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import ASKED, NEEDS_JUDGE

pytestmark = NEEDS_JUDGE


@pytest.mark.parametrize("name", ASKED.parameters())
def test_flinks_answer(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = ASKED.judge(name, tmp_path, capsys)
    assert verdict.rows is None, verdict.rows
