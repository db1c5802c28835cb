"""A runtime folder of its own for every test: the machine's other processes are not looked at."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Paths of sockets are short: not below the test's own folder.
    folder = Path(tempfile.mkdtemp(prefix="flowsql-jobs-"))
    monkeypatch.setenv("FLOWSQL_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
