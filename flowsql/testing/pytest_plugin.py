"""pytest runs ``*.test.sql`` files, a test each; ``--flowsql-update`` writes what differs as what is expected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--flowsql-update``."""
    group = parser.getgroup("flowsql")
    group.addoption("--flowsql-update", action="store_true", help="write tables of *.test.sql files anew")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Files that end with ``.test.sql``."""
    if file_path.name.endswith(".test.sql"):
        made: pytest.Collector = SqlTestFile.from_parent(parent, path=file_path)
        return made
    return None


class SqlTestFile(pytest.File):
    """A file of tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """An item a test."""
        from flowsql.testing.files import read_file

        for case in read_file(self.path).cases:
            yield SqlTestItem.from_parent(self, name=case.name)


class SqlTestFailedError(Exception):
    """A test failed; the text is for people."""


class SqlTestItem(pytest.Item):
    """One test."""

    def runtest(self) -> None:
        """Run it in a session of its own."""
        from flowsql.testing.files import read_file
        from flowsql.testing.run import run_file

        # An earlier test of the file may have been written anew: places have moved.
        update = bool(self.config.getoption("--flowsql-update"))
        (outcome,) = run_file(read_file(self.path), {}, lambda name: name == self.name, update)
        if outcome.error is not None:
            raise SqlTestFailedError(outcome.error)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The rows that differ, without a Python trace."""
        if isinstance(excinfo.value, SqlTestFailedError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands."""
        return self.path, 0, self.name
