"""The packages of the product and their sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    ROOT / "flowsql",
    ROOT / "grammar" / "flowsql_core",
    ROOT / "grammar" / "flowsql_grammar",
    ROOT / "planner" / "flowsql_planner",
    ROOT / "runtime" / "flowsql_compute",
    ROOT / "runtime" / "flowsql_runtime",
    ROOT / "connectors" / "flowsql_connectors",
)


def sources() -> Iterator[Path]:
    """Every Python file of the packages."""
    for package in PACKAGES:
        yield from sorted(package.rglob("*.py"))
