"""Fixtures of these tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .lake import KINDS, Lake

#: Catalogs in SQLite wait for the disk with every commit.
_MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is in memory where that can be."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as made:
        yield Path(made)


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, folder: Path) -> Lake:
    """A lake of each kind, without tables."""
    return Lake(request.param, folder)


@pytest.fixture
def iceberg(folder: Path) -> Lake:
    """A lake of Iceberg tables."""
    return Lake("iceberg", folder)


@pytest.fixture
def delta(folder: Path) -> Lake:
    """A lake of Delta tables."""
    return Lake("delta", folder)
