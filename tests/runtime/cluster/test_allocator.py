"""Arrow's allocator while jobs run."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from flowsql_runtime.cluster.allocator import VARIABLE, _on_glibc, reuse_freed_memory

pytestmark = pytest.mark.skipif(not _on_glibc(), reason="only glibc's allocator is preferred to Arrow's")


@pytest.fixture(autouse=True)
def usual_pool() -> Iterator[None]:
    """Another pool before, the one of before afterwards."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.mimalloc_memory_pool())
    yield
    pa.set_memory_pool(before)


def test_jobs_take_memory_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    reuse_freed_memory()
    assert pa.default_memory_pool().backend_name == "system"


def test_the_users_choice_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "mimalloc")
    reuse_freed_memory()
    assert pa.default_memory_pool().backend_name == "mimalloc"
