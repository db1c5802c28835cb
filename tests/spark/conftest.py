"""What tests of Spark share."""

from __future__ import annotations

import pytest

from flowsql_runtime.spark import batch


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the rows that FlowSQL's own readers handed over."""
    made: list[str] = []

    class Noted(batch.ParquetStage):
        def __init__(self, path: str, *rest: object) -> None:
            made.append(path)
            super().__init__(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(batch, "ParquetStage", Noted)
    return made
