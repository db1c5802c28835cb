"""The folder of a project: its ``flowsql.toml``, the profile that was chosen, and its files."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from flowsql.configuration import Tell, file_configuration, set_option, set_options, warn_program
from flowsql.pipeline.manifest import MANIFEST, Manifest, Overlay, Profile, read_manifest
from flowsql.testing.files import SUFFIX
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.record import record
from flowsql_core.secrets.placeholders import filled

#: Names the profile where the command line does not.
PROFILE_VARIABLE: Final = "FLOWSQL_PROFILE"
#: A project is in batch mode unless it says otherwise.
BATCH: Final = (("execution.runtime-mode", "batch"),)
#: The profile of ``flowsql test``, if the project has it.
TEST_PROFILE: Final = "test"


@record
class ProjectFolder:
    """A project with the profile that holds. Without a ``flowsql.toml`` all ``*.sql`` in the folder are its files."""

    folder: Path
    manifest: Manifest | None = None
    profile: Profile | None = None

    @property
    def name(self) -> str:
        """As the project calls itself, or its folder."""
        return self.folder.name if self.manifest is None else self.manifest.name

    @property
    def overlays(self) -> tuple[tuple[Overlay, bool], ...]:
        """WITH options of tables by the profile; true: of one that the project writes."""
        if self.profile is None:
            return ()
        return (*((each, False) for each in self.profile.sources), *((each, True) for each in self.profile.targets))

    @property
    def variables(self) -> dict[str, str] | None:
        """What stands for ``${name}`` in SQL; None without a ``flowsql.toml``, where that is nothing special."""
        if self.manifest is None:
            return None
        own = () if self.profile is None else self.profile.variables
        return {variable.key: variable.value for variable in (*self.manifest.variables, *own)}

    def sql_files(self) -> list[Path]:
        """Files with SQL in order; hidden folders are left out, and so are files of tests.

        Raises:
            BindError: a pattern of ``flowsql.toml`` finds none.
        """
        if self.manifest is None:
            return sql_files(self.folder)
        found: set[Path] = set()
        for pattern in self.manifest.sql:
            files = [path for path in _matching(self.folder, pattern.value) if not path.name.endswith(SUFFIX)]
            if not files:
                message = f"No file of the project is '{pattern.value}'"
                raise pattern.place.error("no-sql-files", message, 'patterns: "sql/*.sql", "**/*.sql"')
            found.update(files)
        return sorted(found)

    def test_files(self) -> list[Path]:
        """Files of tests in order."""
        patterns = ["**/*" + SUFFIX] if self.manifest is None else [each.value for each in self.manifest.tests]
        found = {path for pattern in patterns for path in _matching(self.folder, pattern)}
        return sorted(path for path in found if path.name.endswith(SUFFIX))

    def configuration(
        self, tell: Tell, settings: Iterable[tuple[str, str]], before: Iterable[tuple[str, str]] = ()
    ) -> Configuration:
        """The layers of a session: ``config.yaml``, batch mode, options of project and profile, the command line's.

        Args:
            tell: hears of options that are worth a word.
            settings: of the command line.
            before: what the project's options count more than.

        Raises:
            BindError: an option is refused; with its place in ``flowsql.toml``, if it stands there.
            OSError: ``config.yaml`` cannot be read.
        """
        made = file_configuration(tell).with_layer()
        set_options(made, before, tell)
        self.put_options(made, tell)
        return set_options(made, settings, tell).with_layer()

    def put_options(self, configuration: Configuration, tell: Tell = warn_program) -> None:
        """Set the options of the project, then those of the profile. Raises as :meth:`configuration`."""
        own = () if self.manifest is None else self.manifest.options
        for setting in (*own, *(() if self.profile is None else self.profile.options)):
            try:
                set_option(configuration, setting.key, filled(setting.value), tell)
            except FlowSqlError as error:
                raise setting.place.located(error) from None

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Relative paths, and modules of Python functions, are those of the project."""
        path = str(self.folder)
        sys.path.insert(0, path)
        try:
            with contextlib.chdir(self.folder):
                yield
        finally:
            sys.path.remove(path)


def sql_files(folder: Path) -> list[Path]:
    """The ``*.sql`` of a folder in order; hidden folders are left out, and so are files of tests."""
    return sorted(path for path in _matching(folder, "**/*.sql") if not path.name.endswith(SUFFIX))


def _matching(folder: Path, pattern: str) -> list[Path]:
    found = (path.relative_to(folder) for path in folder.glob(pattern) if path.is_file())
    return [folder / path for path in found if not any(part.startswith(".") for part in path.parts)]


def project_around(start: Path) -> Path | None:
    """The nearest folder from ``start`` upwards that holds a ``flowsql.toml``."""
    here = start.absolute()
    return next((folder for folder in (here, *here.parents) if (folder / MANIFEST).is_file()), None)


def open_project(folder: Path, profile: str | None = None, *, tests: bool = False) -> ProjectFolder:
    """The project of a folder.

    Args:
        folder: of the project.
        profile: its name; None: ``FLOWSQL_PROFILE``, else the one that ``flowsql.toml`` names, else none.
        tests: without a ``profile`` the one of tests, if there is one.

    Raises:
        BindError: ``flowsql.toml`` is wrong, or there is no such profile.
    """
    folder = folder.absolute()
    manifest = read_manifest(folder)
    if manifest is None:
        if profile is not None:
            message = f"There is no profile '{profile}': the project has no {MANIFEST}."
            raise BindError("no-profile", message, hint="flowsql init makes one")
        return ProjectFolder(folder)
    if profile is None and tests and any(each.name == TEST_PROFILE for each in manifest.profiles):
        profile = TEST_PROFILE
    chosen = profile or os.environ.get(PROFILE_VARIABLE)
    if chosen:
        return ProjectFolder(folder, manifest, manifest.profile(chosen))
    default = manifest.default_profile
    return ProjectFolder(folder, manifest, None if default is None else manifest.profile(default.value, default.place))
