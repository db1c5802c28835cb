"""How commands find the project that they are about, and begin a session for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from flowsql.cli.start import warn
from flowsql.pipeline.folder import BATCH, ProjectFolder, open_project, project_around
from flowsql.pipeline.manifest import MANIFEST
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import BindError


def found_project(named: str | None, profile: str | None, *, tests: bool = False) -> ProjectFolder:
    """The project of a folder that is named; else the one around the working directory.

    Raises:
        OSError: no such folder, or none is around.
        BindError: its ``flowsql.toml`` is wrong, or there is no such profile.
    """
    if named is None:
        around = project_around(Path.cwd())
        if around is None:
            raise OSError(f"no {MANIFEST} here or above: name the folder of a project, or make one: flowsql init")
        return open_project(around, profile, tests=tests)
    if not Path(named).is_dir():
        raise OSError(f"'{named}' is no folder")
    return open_project(Path(named), profile, tests=tests)


def project_environment(
    opened: ProjectFolder, settings: Iterable[tuple[str, str]], before: Iterable[tuple[str, str]] = BATCH
) -> TableEnvironment:
    """A session for a project; ``settings`` of the command line. Raises as :meth:`ProjectFolder.configuration`."""
    return TableEnvironment.of_configuration(opened.configuration(warn, settings, before))


def require_sql(opened: ProjectFolder, named: str | None) -> None:
    """Refuse a folder without SQL.

    Raises:
        OSError: there is none.
        BindError: a pattern of ``flowsql.toml`` finds none.
    """
    if not opened.sql_files():
        raise OSError(f"'{named or opened.folder}' holds no *.sql file")


def refuse_profile(profile: str | None, what: str) -> None:
    """A profile is one of a project.

    Raises:
        BindError: it is given for something else.
    """
    if profile is not None:
        raise BindError("no-profile", f"--profile is of projects, and {what} is none.", hint="leave it out")
